"""summaries."""

import click

from vimbank.cli.command import Call, command
from vimbank.cli.render import first_line, table
from vimbank.domain.models import Memory, Page
from vimbank.domain.records import page_record
from vimbank.domain.summaries import DerivedKind, derived_of
from vimbank.service import MAX_TOP_K
from vimbank.wiring import open_service

__all__ = ["summaries"]

_SHOWN_CHARS = 400


@command("summaries", example='vimbank summaries --user ana --question "where does she live?"')
@click.option("--user", "user_id", required=True, help="Whose.")
@click.option("--bank", help="Only of this bank.  [default: all]")
@click.option("--level", type=click.Choice(["group", "day", "month", "global"]), help="Only these.")
@click.option("--portraits", is_flag=True, help="The user's portraits instead.")
@click.option("--question", help="Only the summary of turns that is nearest to this.")
@click.option("--cursor", help="Go on from a listing's cursor.")
@click.option("--limit", type=int, default=MAX_TOP_K, show_default=True, help="How many at a time.")
def summaries(
    call: Call,
    user_id: str,
    bank: str | None,
    level: str | None,
    portraits: bool,
    question: str | None,
    cursor: str | None,
    limit: int,
) -> None:
    """Show a user's summaries or portraits, oldest first: of which time, how made, from how many, and whether stale.

    `vimbank jobs start summarise` and `vimbank jobs start portrait` write what is missing or stale.
    """
    kind: DerivedKind = "portrait" if portraits else "summary"
    if question is not None and (portraits or level is not None or cursor is not None):
        raise click.UsageError("--question goes with --user and --bank alone")
    with open_service(call.settings()) as service:
        if question is not None:
            best = service.best_summary(call.tenant, user_id, question, bank=bank or "dialog")
            page = Page([] if best is None else [best], int(best is not None), None)
        else:
            page = service.derived(call.tenant, user_id, kind, bank=bank, level=level, cursor=cursor, limit=limit)
    rows = [_row(memory) for memory in page.items]
    heading = ("level", "period", "method", "sources", "state", "text")
    text = table(rows, heading=heading) if rows else f"No {kind} found."
    call.answer(page_record(page), text)


def _row(memory: Memory) -> tuple[str, ...]:
    derived = derived_of(memory)
    if derived is None:  # somebody's own memory of this kind
        return ("", "", "", "", "", first_line(memory.text, _SHOWN_CHARS))
    period = derived.period if derived.level != "group" else memory.session_id or ""
    method = derived.method if derived.model is None else f"{derived.method} ({derived.model})"
    state = "stale" if memory.metadata.get("stale") else "fresh"
    text = first_line(" ".join(memory.text.split()), _SHOWN_CHARS)
    return (derived.level, period, method, str(len(derived.sources)), state, text)
