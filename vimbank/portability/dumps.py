"""Dumps of other memory systems as drafts: mem0, the Redis agent-memory-server, MemoryBank; and plain memories.

Ids, times, scopes and counters are kept; what has no field of ours goes into the metadata under its own name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from vimbank.domain.archive import Past
from vimbank.domain.models import Event, MemoryDraft, Source
from vimbank.domain.sanitize import clean_id
from vimbank.domain.times import parse_time
from vimbank.errors import InvalidInput, VimbankError
from vimbank.ingestion.dialog import Turn, drafts_of_turns
from vimbank.ingestion.jsonl import draft_of_fields

__all__ = ["READERS", "Found", "Reader", "found_in"]

_MOST_STRENGTH: Final = 20.0
_EVENTS: Final = {"ADD": Event.ADD, "UPDATE": Event.UPDATE, "DELETE": Event.DELETE}
_OF_AGENT_MEMORY: Final = frozenset(
    {"memory_type", "namespace", "topics", "entities", "last_accessed", "extracted_from"}
)
_RANKING: Final = frozenset({"score", "score_type", "dist", "hash", "memory_hash"})
"""Of one search, or made anew here."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one item of a dump says. Without a draft: the past of memory ``id`` of ``user_id``, which was deleted."""

    draft: MemoryDraft | None
    id: str | None = None
    user_id: str | None = None
    past: Sequence[Past] = ()
    updated_at: datetime | None = None
    strength: float = 1.0
    recall_count: int = 0
    last_recalled_at: datetime | None = None

    @property
    def identified(self) -> bool:
        """Whether the dump itself names the memory."""
        return self.draft is None or self.draft.id is not None


Reader = Callable[..., Iterator[Found | InvalidInput]]
"""Called with the document and ``tenant``, ``user_id``, ``bank``; an item that is bad is its error, in its place."""


def found_in(value: object) -> str:
    """The format of a document, by its shape. Raises InvalidInput (``format``)."""
    items = value if isinstance(value, list) else None
    if isinstance(value, dict):
        if isinstance(value.get("results"), list):
            return "mem0"
        if isinstance(value.get("memories"), list) or isinstance(value.get("messages"), list):
            return "agent-memory"
        if value and all(isinstance(each, dict) and "history" in each for each in value.values()):
            return "memorybank"
        items = [value]
    first = next((each for each in items or () if isinstance(each, dict)), {})
    if "memory" in first or "memory_id" in first:
        return "mem0"
    if "text" in first:
        return "agent-memory" if not _OF_AGENT_MEMORY.isdisjoint(first) else "jsonl"
    raise InvalidInput.of("format", "is not recognised; name it")


# --- mem0 -------------------------------------------------------------------------------------------------------


def _mem0(value: object, *, tenant: str, user_id: str | None, bank: str) -> Iterator[Found | InvalidInput]:
    """What ``get_all`` gives, with or without rows of the history table: under ``history``, or as the list itself."""
    document = value if isinstance(value, dict) else {"results": value}
    items = document.get("results", [document] if "memory" in document else [])
    rows = _dicts(document.get("history")) + [each for each in _dicts(items) if "memory_id" in each]
    past = _history(rows, bank)
    for item in _items(items):
        if isinstance(item, InvalidInput) or "memory_id" not in item:
            yield (item if isinstance(item, InvalidInput) else _tried(_of_mem0, item, past, tenant, user_id, bank))
    for memory_id, entries in past.items():  # those that no item has asked for
        yield _tried(_of_past, memory_id, entries, rows, tenant, user_id, bank)


def _of_mem0(
    item: Mapping[str, Any], past: dict[str, list[Past]], tenant: str, user_id: str | None, bank: str
) -> Found:
    known = {
        "id", "memory", "metadata", "user_id", "agent_id", "run_id", "created_at", "updated_at", "expiration_date",
    }  # fmt: skip
    memory_id = item.get("id")
    draft = MemoryDraft(
        tenant=tenant,
        user_id=_user(item, user_id),
        bank=bank,
        text=item.get("memory"),  # type: ignore[arg-type]  # the preparer says what is wrong with it
        id=memory_id,
        agent_id=item.get("agent_id"),
        session_id=item.get("run_id"),
        metadata=_metadata(item, known),
        created_at=_time(item, "created_at"),
        expires_at=_time(item, "expiration_date"),
    )
    entries = past.pop(memory_id, []) if isinstance(memory_id, str) else []
    if entries and entries[-1].event is Event.DELETE:
        entries = entries[:-1]  # the dump has it, so it was there
    return Found(draft, past=entries, updated_at=_time(item, "updated_at"))


def _of_past(
    memory_id: str,
    entries: list[Past],
    rows: Sequence[Mapping[str, Any]],
    tenant: str,
    user_id: str | None,
    bank: str,
) -> Found:
    """A memory of which only its history is left: as the last change left it, or deleted."""
    row = next(each for each in rows if each["memory_id"] == memory_id)
    owner = _user(row, user_id)
    last = entries[-1]
    if last.event is Event.DELETE or last.new_text is None:
        return Found(None, id=clean_id(memory_id, "memory_id"), user_id=owner, past=entries)
    draft = MemoryDraft(
        tenant=tenant, user_id=owner, bank=bank, text=last.new_text, id=memory_id, created_at=entries[0].at
    )
    return Found(draft, past=entries, updated_at=last.at)


def _history(rows: Sequence[Mapping[str, Any]], bank: str) -> dict[str, list[Past]]:
    """Entries by memory, oldest first; rows that say nothing that can be kept are left out."""
    found: dict[str, list[Past]] = {}
    for row in rows:
        memory_id, event = row.get("memory_id"), _EVENTS.get(str(row.get("event")).upper())
        at = row.get("updated_at") or row.get("created_at")
        if not isinstance(memory_id, str) or event is None or at is None:
            continue
        try:
            moment = parse_time(at, "updated_at")
        except InvalidInput:
            continue
        entry = Past(
            bank=bank,
            at=moment,
            event=event,
            actor=str(row.get("actor_id") or "mem0"),
            old_text=_words(row.get("old_memory")),
            new_text=None if event is Event.DELETE else _words(row.get("new_memory")),
            moved=event is not Event.ADD,
        )
        found.setdefault(memory_id, []).append(entry)
    return {name: sorted(entries, key=lambda each: each.at) for name, entries in found.items()}


# --- agent-memory-server ----------------------------------------------------------------------------------------


def _agent_memory(value: object, *, tenant: str, user_id: str | None, bank: str) -> Iterator[Found | InvalidInput]:
    """Search results or lists of long-term memories, and working memories with their messages."""
    document = value if isinstance(value, dict) else {"memories": value}
    if "text" in document:
        document = {"memories": [document]}
    yield from _messages(document, tenant, user_id, bank)
    scopes = {name: document[name] for name in ("user_id", "session_id", "namespace") if name in document}
    for item in _items(document.get("memories", [])):
        yield (
            item
            if isinstance(item, InvalidInput)
            else _tried(_of_agent_memory, {**scopes, **item}, tenant, user_id, bank)
        )


def _messages(
    document: Mapping[str, Any], tenant: str, user_id: str | None, bank: str
) -> Iterator[Found | InvalidInput]:
    messages = document.get("messages")
    if not messages:
        return
    try:
        turns = [
            Turn(
                str(each.get("role")), str(each.get("content")),
                event_at=_time(each, "created_at"), event_id=each.get("id"),
            )
            for each in _dicts(messages)
        ]  # fmt: skip
        session = clean_id(document.get("session_id"), "session_id")
        drafts = drafts_of_turns(turns, tenant=tenant, user_id=_user(document, user_id), session_id=session, bank=bank)
    except InvalidInput as error:
        yield error
        return
    yield from (Found(draft) for draft in drafts)


def _of_agent_memory(item: Mapping[str, Any], tenant: str, user_id: str | None, bank: str) -> Found:
    known = {
        "id", "text", "user_id", "session_id", "created_at", "updated_at", "event_date", "pinned", "memory_type",
        "last_accessed", "access_count", "persisted_at",
    }  # fmt: skip
    count = item.get("access_count")
    recalls = count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
    draft = MemoryDraft(
        tenant=tenant,
        user_id=_user(item, user_id),
        bank=bank,
        text=item.get("text"),  # type: ignore[arg-type]  # as above
        kind=item.get("memory_type") or "note",
        id=item.get("id") or item.get("id_"),
        session_id=item.get("session_id"),
        metadata=_metadata(item, known | {"id_"}),
        created_at=_time(item, "created_at"),
        event_at=_time(item, "event_date"),
        pinned=item.get("pinned") is True,
    )
    return Found(
        draft,
        updated_at=_time(item, "updated_at"),
        strength=min(_MOST_STRENGTH, 1.0 + recalls),
        recall_count=recalls,
        last_recalled_at=_time(item, "last_accessed") if recalls else None,
    )


# --- MemoryBank -------------------------------------------------------------------------------------------------


def _memorybank(value: object, *, tenant: str, user_id: str | None, bank: str) -> Iterator[Found | InvalidInput]:
    """Users with rounds, summaries and portraits by day; strengths and last recalls where they were kept."""
    if not isinstance(value, dict):
        raise InvalidInput.of("body", "must be an object of users")
    for name, user in value.items():
        if not isinstance(user, dict):
            yield InvalidInput.of(name, "must be an object")
            continue
        owner = user_id or name
        for day, rounds in _days(user.get("history")):
            for position, said in enumerate(_items(rounds)):
                yield (
                    said if isinstance(said, InvalidInput) else _tried(_round, said, day, position, tenant, owner, bank)
                )
        for part, kind in (("summary", "summary"), ("personality", "portrait")):
            for day, written in _days(user.get(part)):
                yield _tried(_written, written, day, kind, tenant, owner, bank)
        for part, kind in (("overall_history", "summary"), ("overall_personality", "portrait")):
            if user.get(part):
                yield _tried(_written, user[part], None, kind, tenant, owner, bank)


def _round(said: Mapping[str, Any], day: str, position: int, tenant: str, owner: str, bank: str) -> Found:
    query, response = said.get("query"), said.get("response")
    if not isinstance(query, str) or not isinstance(response, str):
        raise InvalidInput.of("query", "and response must be text")
    moment = parse_time(day, "date")
    draft = MemoryDraft(
        tenant=tenant,
        user_id=owner,
        bank=bank,
        kind="round",
        text=f"{query}\n{response}",
        session_id=day,
        metadata={"roles": ["user", "assistant"]},
        source=Source(position=position),
        created_at=moment,
        event_at=moment,
        id=f"memorybank:{owner}/{day}/{position}",
    )
    return _with_strength(draft, said)


def _written(written: object, day: str | None, kind: str, tenant: str, owner: str, bank: str) -> Found:
    fields = written if isinstance(written, dict) else {"content": written}
    moment = None if day is None else parse_time(day, "date")
    draft = MemoryDraft(
        tenant=tenant,
        user_id=owner,
        bank=bank,
        kind=kind,
        text=fields.get("content"),  # type: ignore[arg-type]  # as above
        metadata={"period": "all" if day is None else "day"},
        created_at=moment,
        event_at=moment,
        id=f"memorybank:{owner}/{day or 'all'}/{kind}",
    )
    return _with_strength(draft, fields)


def _with_strength(draft: MemoryDraft, item: Mapping[str, Any]) -> Found:
    strength = item.get("memory_strength")
    strength = float(strength) if isinstance(strength, int | float) and strength >= 1 else 1.0
    recalls = round(strength) - 1  # it counts one a recall (M-15)
    return Found(
        draft,
        strength=min(_MOST_STRENGTH, strength),
        recall_count=recalls,
        last_recalled_at=_time(item, "last_recall_date") if recalls else None,
    )


# --- plain memories ---------------------------------------------------------------------------------------------


def _plain(value: object, *, tenant: str, user_id: str | None, bank: str) -> Iterator[Found | InvalidInput]:
    """A list of memories with the fields of ``POST /v1/memories``."""
    for item in _items(value if isinstance(value, list) else [value]):
        yield (item if isinstance(item, InvalidInput) else _tried(_drafted, item, tenant, user_id, bank))


def _drafted(item: Mapping[str, Any], tenant: str, user_id: str | None, bank: str) -> Found:
    return Found(draft_of_fields(item, tenant=tenant, user_id=user_id, bank=bank))


READERS: Final[Mapping[str, Reader]] = {
    "mem0": _mem0,
    "agent-memory": _agent_memory,
    "memorybank": _memorybank,
    "jsonl": _plain,
}
"""By format."""


def _tried(read: Callable[..., Found], *values: Any) -> Found | InvalidInput:
    try:
        return read(*values)
    except VimbankError as error:
        return error if isinstance(error, InvalidInput) else InvalidInput.of("item", str(error))


def _items(value: object) -> Iterator[Mapping[str, Any] | InvalidInput]:
    if not isinstance(value, list):
        raise InvalidInput.of("body", "has no list of items where this format has one")
    for item in value:
        yield item if isinstance(item, dict | InvalidInput) else InvalidInput.of("item", "must be an object")


def _dicts(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _days(value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()


def _user(item: Mapping[str, Any], user_id: str | None) -> str:
    owner = item.get("user_id") or user_id
    if owner is None:
        raise InvalidInput.of("user_id", "is missing; name one for the whole file")
    return clean_id(owner, "user_id")


def _time(item: Mapping[str, Any], name: str) -> datetime | None:
    value = item.get(name)
    return None if value in (None, "") else parse_time(value, name)


def _words(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _metadata(item: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    """The dump's own metadata, and what has no field of ours."""
    own = item.get("metadata")
    rest = {
        name: value
        for name, value in item.items()
        if name not in known | _RANKING | {"metadata"} and value not in (None, [], {})
    }
    return rest | (dict(own) if isinstance(own, dict) else {})
