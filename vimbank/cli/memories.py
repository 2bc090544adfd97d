"""add, get, list, update, delete, history, feedback."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import click

from vimbank.cli.command import Call, command
from vimbank.cli.render import render_history, render_memory, render_page
from vimbank.cli.values import filter_of, object_of, text_of, time_of
from vimbank.domain.filters import Filter
from vimbank.domain.models import AddResult, ListQuery, MemoryDraft, MemoryPatch, MemoryState, Scope, Signal
from vimbank.domain.records import history_record, memory_record, page_record, plain
from vimbank.errors import NotFound
from vimbank.service import MemoryService
from vimbank.wiring import open_service

__all__ = ["add", "delete", "feedback", "get", "history", "list_", "update"]

ACTOR: Final = "cli"
_STATES = [state.value for state in MemoryState if state is not MemoryState.DELETED]
_CLEARABLE = ("title", "event_at", "valid_from", "valid_to", "expires_at", "importance")


def width() -> int:
    """Columns of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns


def _content_options(function: Callable[..., None]) -> Callable[..., None]:
    """What add and update both may set."""
    for option in (
        click.option("--importance", type=float, help="0 to 1."),
        click.option("--expires-at", metavar="TIME", help="When it stops being found."),
        click.option("--valid-to", metavar="TIME", help="Until when it is true."),
        click.option("--valid-from", metavar="TIME", help="Since when it is true."),
        click.option("--event-at", metavar="TIME", help="When it happened."),
        click.option("--metadata", metavar="JSON", help="A JSON object."),
        click.option("--title", help="A title."),
    ):
        function = option(function)
    return function


def _times(options: dict[str, Any]) -> dict[str, Any]:
    """``options`` with the names of times turned into times."""
    names = ("created_at", "event_at", "valid_from", "valid_to", "expires_at")
    return {**options, **{name: time_of(options[name], name) for name in names if name in options}}


@command("add", example='vimbank add "Ana is allergic to peanuts" --user ana --bank dialog')
@click.argument("text")
@click.option("--user", "user_id", required=True, help="Whose memory it is.")
@click.option("--bank", default="knowledge", show_default=True, help="knowledge, dialog, task or a declared one.")
@click.option("--kind", default="note", show_default=True, help="A word of your own.")
@click.option("--speaker", help="Who said it.")
@click.option("--agent", "agent_id", help="The agent it belongs to.")
@click.option("--session", "session_id", help="The session it belongs to.")
@_content_options
@click.option("--created-at", metavar="TIME", help="When it was made.  [default: now]")
@click.option("--pinned", is_flag=True, help="Never forgotten.")
@click.option("--id", help="An id of your own.")
@click.option("--idempotency-key", help="A second add with this key stores nothing.")
def add(call: Call, text: str, metadata: str | None, **options: Any) -> None:
    """Add one memory. TEXT is the text itself, or - for standard input.

    A TIME is ISO 8601 (without a zone: UTC) or epoch seconds.
    """
    draft = MemoryDraft(
        tenant=call.tenant, text=text_of(text), metadata=object_of(metadata, "metadata"), **_times(options)
    )
    with open_service(call.settings()) as service:
        result = service.add(draft, actor=ACTOR)
    call.answer(plain(result), f"{result.id}{_note(result)}")


def _note(result: AddResult) -> str:
    if result.duplicate:
        return " (already there)"
    if result.superseded:
        return f" (supersedes {', '.join(result.superseded)})"
    return f" ({result.segments} segments)" if result.segments else ""


@command("get", example="vimbank get 0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f")
@click.argument("id")
@click.option("--as-of", metavar="TIME", help="As it stood then, also if it was deleted since.")
def get(call: Call, id: str, as_of: str | None) -> None:
    """Show one memory."""
    with open_service(call.settings()) as service:
        memory = service.get(call.tenant, id, as_of=time_of(as_of, "as_of"))
    call.answer(memory_record(memory), render_memory(memory))


@command("list", example="vimbank list --user ana --bank dialog --limit 20")
@click.option("--user", "user_id", help="Only this user's.")
@click.option("--bank", help="Only this bank.")
@click.option("--agent", "agent_id", help="Only this agent's.")
@click.option("--session", "session_id", help="Only this session's.")
@click.option("--kind", help="Only this kind.")
@click.option("--parent", "parent_id", help="Only the parts of this document or task run.")
@click.option("--state", type=click.Choice([*_STATES, "any"]), default="active", show_default=True, help="Only these.")
@click.option("--filter", "filter_json", metavar="JSON", help="Only those that match.")
@click.option("--as-of", metavar="TIME", help="List the memories as they stood then.")
@click.option("--cursor", help="Go on from a listing's cursor.")
@click.option("--limit", type=int, default=100, show_default=True, help="How many at a time.")
@click.option("--all", "every", is_flag=True, help="All pages in one listing.")
def list_(call: Call, state: str, filter_json: str | None, as_of: str | None, every: bool, **options: Any) -> None:
    """List memories, oldest first."""
    query = ListQuery(
        tenant=call.tenant,
        state=None if state == "any" else MemoryState(state),
        filter=filter_of(filter_json),
        as_of=time_of(as_of, "as_of"),
        **options,
    )
    with open_service(call.settings()) as service:
        page = service.list(query)
        if every:
            items = list(page.items)
            while page.next_cursor is not None:
                page = service.list(replace(query, cursor=page.next_cursor))
                items.extend(page.items)
            page = replace(page, items=items)
    call.answer(page_record(page), render_page(page, width=width()))


@command("update", example='vimbank update 0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f --text "Ana likes coffee"')
@click.argument("id")
@click.option("--text", help="The new text, or - for standard input.")
@_content_options
@click.option("--pinned/--unpinned", default=None, help="Never forgotten, or as any other.")
@click.option("--clear", multiple=True, type=click.Choice(_CLEARABLE), help="Take this field's value away; repeatable.")
@click.option("--revision", type=int, help="Only if this is still its revision.")
def update(
    call: Call,
    id: str,
    text: str | None,
    metadata: str | None,
    clear: Sequence[str],
    revision: int | None,
    **options: Any,
) -> None:
    """Change fields of one memory; those not named stay. --metadata replaces key by key; a null removes the key."""
    given = {name: value for name, value in _times(options).items() if value is not None}
    if text is not None:
        given["text"] = text_of(text)
    if metadata is not None:
        given["metadata"] = object_of(metadata, "metadata")
    patch = MemoryPatch(**{**dict.fromkeys(clear), **given})
    with open_service(call.settings()) as service:
        memory = service.update(call.tenant, id, patch, expected_revision=revision, actor=ACTOR)
    call.answer(memory_record(memory), render_memory(memory))


@command("delete", example="vimbank delete --user ana --session s-17")
@click.argument("ids", nargs=-1)
@click.option("--user", "user_id", help="All memories of this user.")
@click.option("--bank", help="With --user: only this bank.")
@click.option("--agent", "agent_id", help="With --user: only this agent's.")
@click.option("--session", "session_id", help="With --user: only this session's.")
@click.option("--filter", "filter_json", metavar="JSON", help="With --user: only those that match.")
def delete(call: Call, ids: Sequence[str], user_id: str | None, filter_json: str | None, **scope: Any) -> None:
    """Delete memories by their IDS, or all memories of a user; prints how many.

    An unknown id is named and gives exit code 1; the others are deleted.
    """
    if bool(ids) == (user_id is not None):
        raise click.UsageError("Give ids, or --user; not both.")
    if ids and (filter_json is not None or any(scope.values())):
        raise click.UsageError("--bank, --agent, --session and --filter go with --user.")
    with open_service(call.settings()) as service:
        if user_id is None:
            missing = _delete_ids(service, call.tenant, ids)
            deleted = len(ids) - len(missing)
        elif filter_json is None:
            missing = []
            deleted = service.delete_all(Scope(call.tenant, user_id, **scope), actor=ACTOR)
        else:
            missing = []
            deleted = _delete_matching(
                service, ListQuery(tenant=call.tenant, user_id=user_id, state=None, **scope), filter_of(filter_json)
            )
    call.answer({"deleted": deleted, "not_found": missing}, f"deleted {deleted}")
    if missing:
        click.echo(f"vimbank: not found: {', '.join(missing)}", err=True)
        raise click.exceptions.Exit(1)


def _delete_ids(service: MemoryService, tenant: str, ids: Sequence[str]) -> list[str]:
    """Delete each; the ids that were not there."""
    missing = []
    for each in ids:
        try:
            service.delete(tenant, each, actor=ACTOR)
        except NotFound:
            missing.append(each)
    return missing


def _delete_matching(service: MemoryService, query: ListQuery, condition: Filter | None) -> int:
    """Delete what a listing under ``condition`` holds; the whole list is read before the first goes."""
    query = replace(query, filter=condition, limit=1_000)
    page = service.list(query)
    ids = [memory.id for memory in page.items]
    while page.next_cursor is not None:
        page = service.list(replace(query, cursor=page.next_cursor))
        ids.extend(memory.id for memory in page.items)
    return len(ids) - len(_delete_ids(service, query.tenant, ids))


@command("history", example="vimbank history 0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f")
@click.argument("id")
def history(call: Call, id: str) -> None:
    """Show every change of one memory, oldest first, also of a deleted one."""
    with open_service(call.settings()) as service:
        entries = service.history(call.tenant, id)
    call.answer(history_record(id, entries), render_history(entries, width=width()))


@command("feedback", example="vimbank feedback 0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f used")
@click.argument("id")
@click.argument("signal", type=click.Choice(["used", "ignored", "wrong"]))
def feedback(call: Call, id: str, signal: str) -> None:
    """Say what became of a memory that a search returned."""
    with open_service(call.settings()) as service:
        service.feedback(call.tenant, id, Signal(signal))
    call.answer({"id": id, "signal": signal}, f"{id} {signal}")
