"""What each write means, once for all stores: pure decisions, and flows over the few verbs of ``Rows``.

A flow decides before it writes: when it raises NotFound or Conflict, nothing has been written.
"""

import secrets
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol

from vimbank.domain.endings import ended_record
from vimbank.domain.fingerprint import content_hash
from vimbank.domain.models import (
    PARENT_KIND,
    PLAIN_KIND,
    SEGMENT_KIND,
    UNSET,
    AddResult,
    Event,
    HistoryEntry,
    Memory,
    MemoryPatch,
    MemoryState,
    Partition,
    Source,
    Unset,
    Vector,
)
from vimbank.domain.patching import patched
from vimbank.domain.times import format_time, to_micros
from vimbank.errors import Conflict, NotFound
from vimbank.ports import Embedded, PreparedDraft, PreparedPatch

__all__ = [
    "STATE_FIELDS",
    "IdSource",
    "Record",
    "Rows",
    "add_draft",
    "as_they_stood",
    "bury",
    "delete_memories",
    "enders",
    "tombstone",
    "update_memory",
    "with_parts",
]

STATE_FIELDS: Final = ("state", "superseded_by", "ended", "valid_to", "last_recalled_at", "updated_at", "revision")
"""What a change of state writes, and what undoes it."""

_BURIED_TOGETHER: Final = 256
"""Memories whose vectors are read and held together."""

_RECORDED: Final = (
    "kind",
    "title",
    "metadata",
    "event_at",
    "valid_from",
    "valid_to",
    "expires_at",
    "importance",
    "pinned",
    "state",
    "superseded_by",
    "sample",
    "ended",
)


@dataclass(frozen=True, slots=True)
class Record:
    """A history entry with what is needed to undo it.

    ``before`` is the whole memory before the change, None where the change made it. ``moved``: the embedding changed
    or went; it was ``vector`` (None: there was none). Of a change of state ``undo`` says all: the former values of the
    fields that it changed.
    """

    entry: HistoryEntry
    partition: Partition
    before: Memory | None = None
    moved: bool = False
    vector: Vector | None = None
    undo: Mapping[str, Any] | None = None


class Rows(Protocol):
    """One writing transaction. Finders see its own writes, and no deleted memory."""

    def take_revision(self) -> int: ...
    def take_number(self) -> int: ...
    def take_id(self, now: datetime) -> str: ...
    def by_id(self, tenant: str, memory_id: str) -> Memory | None: ...
    def by_ids(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        """Those of these memories that there are, in any order."""
        ...

    def by_key(self, tenant: str, key: str) -> Memory | None: ...
    def by_event(self, tenant: str, event_id: str) -> Memory | None: ...

    def twin(self, partition: Partition, kind: str, content_hash: str) -> Memory | None:
        """The oldest active memory of this content, of which nothing has ended: what holds again is told anew."""
        ...

    def parts(self, memories: Sequence[Memory]) -> list[Memory]:
        """What names one of these memories as its parent, in its partition, by number."""
        ...

    def vectors(self, memories: Sequence[Memory]) -> Mapping[int, Vector]:
        """By number, of those that have one."""
        ...

    def insert(self, memory: Memory, key: str | None, embedding: Embedded | None) -> None: ...

    def rewrite(self, memory: Memory, embedding: Embedded | Unset | None) -> None:
        """Replace the row of ``memory.number``; an embedding of UNSET stays."""
        ...

    def put_claims(self, memory: Memory, claims: Sequence[tuple[str, str]]) -> None:
        """The memory is found under these (subject, attribute) pairs from now on, and under no other."""
        ...

    def rivals(self, memory: Memory, subject: str, attribute: str | None, *, limit: int) -> list[Memory]:
        """What else of this memory's partition and agent has such a claim (None: of any attribute): active, archived
        or superseded.

        Up to ``limit`` that were said before it or together with it, and as many that were said after it, the nearest
        in time, in no order. What was superseded before it was said is passed over where there is no room.
        """
        ...

    def history_of(self, memory: Memory) -> list[Record]:
        """All records of this memory's id, by revision, without their vectors."""
        ...

    def bury(self, memory: Memory) -> None:
        """Replace the row by this tombstone; embeddings, claims and idempotency key go."""
        ...

    def move(self, memory: Memory) -> None:
        """Write ``STATE_FIELDS`` only."""
        ...

    def record(self, record: Record) -> None: ...


class IdSource:
    """UUIDv7: 48 bits of milliseconds, then 12 bits of finer time, then chance; ascending inside a process.

    Not thread-safe: taken inside the writing transaction.
    """

    def __init__(self, randbits: Callable[[int], int] = secrets.randbits) -> None:
        self._randbits = randbits
        self._last = 0

    def take(self, now: datetime) -> str:
        """A new id of the time ``now`` (or just after the last one, should the clock stand or step back)."""
        self._last = max(self._last + 1, max(0, to_micros(now)) * 4096 // 1000)  # 1/4096 ms
        ticks = self._last & ((1 << 60) - 1)
        value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | self._randbits(62)
        digits = f"{value:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


# --- add --------------------------------------------------------------------------------------------------------


def add_draft(rows: Rows, prepared: PreparedDraft, *, actor: str, now: datetime) -> AddResult:
    """Write one draft and its segments, or find what is already there. Raises Conflict (see ``MemoryStore.add``)."""
    draft = prepared.draft
    stored = _stored(rows, prepared)
    if stored is not None:
        segments = len(_segments(rows, stored)) if stored.kind == PARENT_KIND else 0
        return AddResult(stored.id, stored.revision, duplicate=True, segments=segments)
    memory_id = draft.id if draft.id is not None else rows.take_id(now)
    for position in range(len(prepared.segments)):
        _refuse_taken(rows, draft.tenant, segment_id(memory_id, position))
    memory = _insert(rows, prepared, memory_id, draft.source, Event.ADD, actor, now)
    for position, part in enumerate(prepared.segments):
        _insert_segment(rows, part, memory, position, Event.ADD, actor, now)
    return AddResult(memory.id, memory.revision, segments=len(prepared.segments))


def _stored(rows: Rows, prepared: PreparedDraft) -> Memory | None:
    """The memory that this draft would write again; Conflict where a name of it is taken by another content."""
    draft = prepared.draft
    named = [
        (name, value, find(draft.tenant, value))
        for name, value, find in (
            ("id", draft.id, rows.by_id),
            ("idempotency_key", draft.idempotency_key, rows.by_key),
            ("event_id", draft.source.event_id, rows.by_event),
        )
        if value is not None
    ]
    if not named:
        partition = Partition(draft.tenant, draft.user_id, draft.bank)
        return rows.twin(partition, draft.kind, prepared.content_hash) if draft.deduplicate else None
    found: Memory | None = None
    for name, value, stored in named:
        if stored is None:
            continue
        same = stored.content_hash == prepared.content_hash and (stored.user_id, stored.bank) == (
            draft.user_id,
            draft.bank,
        )
        if not same or (found is not None and found.number != stored.number):
            raise Conflict(f"{name} {value!r} belongs to another memory")
        found = stored
    return found


def segment_id(parent_id: str, position: int) -> str:
    """The id of a document's segment."""
    return f"{parent_id}:{position:04d}"


def _refuse_taken(rows: Rows, tenant: str, memory_id: str) -> None:
    if rows.by_id(tenant, memory_id) is not None:
        raise Conflict(f"id {memory_id!r} belongs to another memory")


def _insert_segment(
    rows: Rows, part: PreparedDraft, parent: Memory, position: int, event: Event, actor: str, now: datetime
) -> None:
    source = replace(part.draft.source, parent_id=parent.id, position=position)
    draft = part.draft
    if draft.created_at is None:
        part = replace(part, draft=replace(draft, created_at=parent.created_at))
    _insert(rows, part, segment_id(parent.id, position), source, event, actor, now, parent)


def _insert(
    rows: Rows,
    prepared: PreparedDraft,
    memory_id: str,
    source: Source,
    event: Event,
    actor: str,
    now: datetime,
    parent: Memory | None = None,
) -> Memory:
    memory = replace(
        prepared.memory(memory_id, now=now),
        source=source,
        revision=rows.take_revision(),
        number=rows.take_number(),
        # A segment that an update adds to an archived document is as archived as the rest.
        state=MemoryState.ACTIVE if parent is None else parent.state,
        superseded_by=None if parent is None else parent.superseded_by,
    )
    rows.insert(memory, prepared.draft.idempotency_key, prepared.embedding)
    if prepared.claims:
        rows.put_claims(memory, prepared.claims)
    entry = HistoryEntry(memory.id, memory.revision, now, event, actor, None, memory.text)
    rows.record(Record(entry, memory.partition, moved=event is not Event.ADD))
    return memory


# --- update -----------------------------------------------------------------------------------------------------


def update_memory(rows: Rows, prepared: PreparedPatch, *, tenant: str, actor: str, now: datetime) -> Memory:
    """Apply a patch to a memory and, where it is a document, to its segments (see ``MemoryStore.update``).

    A patch that changes nothing writes nothing.
    """
    old = rows.by_id(tenant, prepared.id)
    if old is None:
        raise NotFound(f"no memory {prepared.id!r}")
    if prepared.expected_revision not in (None, old.revision):
        raise Conflict(f"memory {old.id!r} is at revision {old.revision}, not {prepared.expected_revision}")
    new = patched(old, prepared.patch)
    rebuilt = bool(prepared.segments) or prepared.embedding is not None or new.text != old.text
    if rebuilt:
        new = replace(new, kind=_kind_after(old, prepared))
    new = replace(
        new,
        content_hash=new.content_hash if prepared.content_hash is None else prepared.content_hash,
        token_count=new.token_count if prepared.token_count is None else prepared.token_count,
    )
    if prepared.claims is not None:
        # What had ended of the old text is not in the new one.
        new = replace(
            new,
            sample=prepared.sample,
            sample_reasons=prepared.sample_reasons,
            information=prepared.information,
            ended=(),
        )
    if new == old and not rebuilt:
        return old
    segments = _segments(rows, old)
    mine = {segment.id for segment in segments}
    for position in range(len(prepared.segments)):
        if segment_id(old.id, position) not in mine:
            _refuse_taken(rows, tenant, segment_id(old.id, position))
    new = _rewrite(rows, old, new, prepared.embedding if rebuilt else UNSET, actor, now)
    if prepared.claims is not None:
        rows.put_claims(new, prepared.claims)
    if rebuilt:
        _replace_segments(rows, new, segments, prepared.segments, actor, now)
    else:
        for segment in segments:
            _patch_segment(rows, segment, prepared.patch, actor, now)
    return new


def _kind_after(old: Memory, prepared: PreparedPatch) -> str:
    if prepared.embedding is None:
        return PARENT_KIND
    return PLAIN_KIND if old.kind == PARENT_KIND else old.kind


def _segments(rows: Rows, memory: Memory) -> list[Memory]:
    return [part for part in rows.parts([memory]) if part.kind == SEGMENT_KIND]


def _patch_segment(rows: Rows, segment: Memory, patch: MemoryPatch, actor: str, now: datetime) -> None:
    """What is said of a document holds for its segments, which are what is searched."""
    new = patched(segment, replace(patch, text=UNSET))
    if new != segment:
        _rewrite(rows, segment, replace(new, content_hash=content_hash(new)), UNSET, actor, now)


def _replace_segments(
    rows: Rows, parent: Memory, old: Sequence[Memory], new: Sequence[PreparedDraft], actor: str, now: datetime
) -> None:
    """Rewrite segments in place by position, add what is missing, delete the rest."""
    by_id = {segment.id: segment for segment in old}
    for position, part in enumerate(new):
        standing = by_id.pop(segment_id(parent.id, position), None)
        if standing is None:
            # Recorded as part of the update: this segment did not stand before it, whatever its creation time says.
            _insert_segment(rows, part, parent, position, Event.UPDATE, actor, now)
            continue
        source = replace(part.draft.source, parent_id=parent.id, position=position)
        names = (
            "text",
            "title",
            "metadata",
            "event_at",
            "valid_from",
            "valid_to",
            "expires_at",
            "importance",
            "pinned",
        )
        values: dict[str, Any] = {name: getattr(part.draft, name) for name in names}
        changed = replace(
            standing,
            source=source,
            content_hash=part.content_hash,
            token_count=part.token_count,
            sample=part.sample,
            sample_reasons=part.sample_reasons,
            information=part.information,
            **values,
        )
        _rewrite(rows, standing, changed, part.embedding, actor, now)
    bury(rows, list(by_id.values()), actor=actor, now=now)


def _rewrite(
    rows: Rows, old: Memory, new: Memory, embedding: Embedded | Unset | None, actor: str, now: datetime
) -> Memory:
    moved = not isinstance(embedding, Unset)
    vector = rows.vectors([old]).get(old.number) if moved else None
    new = replace(new, revision=rows.take_revision(), updated_at=now)
    rows.rewrite(new, embedding)
    entry = HistoryEntry(old.id, new.revision, now, Event.UPDATE, actor, old.text, new.text, differences(old, new))
    rows.record(Record(entry, old.partition, old, moved, vector))
    return new


def differences(old: Memory, new: Memory) -> dict[str, tuple[Any, Any]]:
    """field -> (old, new) as JSON values, without the text."""
    pairs = ((name, getattr(old, name), getattr(new, name)) for name in _RECORDED)
    return {name: (_json_value(before), _json_value(after)) for name, before, after in pairs if before != after}


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, tuple):
        return [ended_record(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


# --- delete -----------------------------------------------------------------------------------------------------


def delete_memories(rows: Rows, memories: Iterable[Memory], *, actor: str, now: datetime) -> int:
    """Delete memories with all their parts; how many rows went."""
    doomed = sorted(with_parts(rows.parts, memories), key=lambda memory: memory.number)
    bury(rows, doomed, actor=actor, now=now)
    return len(doomed)


def with_parts(parts: Callable[[Sequence[Memory]], Iterable[Memory]], memories: Iterable[Memory]) -> list[Memory]:
    """These memories, their parts, and theirs, each once; ``parts`` as ``Rows.parts``."""
    found = {memory.number: memory for memory in memories}
    level = list(found.values())
    while level:
        level = [part for part in parts(level) if part.number not in found]
        found |= {part.number: part for part in level}
    return list(found.values())


def bury(rows: Rows, memories: Sequence[Memory], *, actor: str, now: datetime) -> None:
    """Put a tombstone in each memory's place; its history keeps what it was (case 106)."""
    for start in range(0, len(memories), _BURIED_TOGETHER):
        some = memories[start : start + _BURIED_TOGETHER]
        vectors = rows.vectors(some)
        for memory in some:
            grave = tombstone(memory, revision=rows.take_revision(), now=now)
            rows.bury(grave)
            entry = HistoryEntry(memory.id, grave.revision, now, Event.DELETE, actor, memory.text, None)
            rows.record(Record(entry, memory.partition, memory, True, vectors.get(memory.number)))


def tombstone(memory: Memory, *, revision: int, now: datetime) -> Memory:
    """What is left of a deleted memory: where it was, not what it said.

    Session, parent and position stay, so that a session's next position is never one that was used before.
    """
    return Memory(
        id=memory.id,
        tenant=memory.tenant,
        user_id=memory.user_id,
        bank=memory.bank,
        kind=memory.kind,
        text="",
        created_at=memory.created_at,
        updated_at=now,
        content_hash="",
        revision=revision,
        session_id=memory.session_id,
        source=Source(parent_id=memory.source.parent_id, position=memory.source.position),
        state=MemoryState.DELETED,
        number=memory.number,
    )


# --- the past ---------------------------------------------------------------------------------------------------


def as_they_stood(
    current: Iterable[tuple[Memory, Vector | None]], later: Iterable[Record], instant: datetime
) -> list[tuple[Memory, Vector | None]]:
    """Undo what happened after ``instant``: the memories of one partition as they stood then, by number.

    Those that were deleted by then are left out.

    Args:    current: its memories with their vectors, as they are.
             later: its records with ``at`` > instant, by revision.
             Of some memories of it alone: with those that ended them (``enders``).
    A memory counts from its ``created_at``, also where it was written down later, and so does what it ended of
    others; of an id that was used twice, the first life counts until it was deleted.
    """
    standing = {memory.id: (memory, vector) for memory, vector in current}
    latest = {name: memory for name, (memory, _) in standing.items()}
    by_id: dict[str, list[Record]] = {}
    for record in later:
        if record.entry.event is not Event.ADD:
            by_id.setdefault(record.entry.memory_id, []).append(record)
    for memory_id, records in by_id.items():
        now = standing.pop(memory_id, None)
        if now is None:
            latest.update((memory_id, record.before) for record in records if record.before is not None)
        before = _undone(None if now is None else now[0], records)
        if before is not None:
            moved = next((record for record in records if record.moved), None)
            standing[memory_id] = (before, moved.vector if moved else now[1] if now else None)
    there = {name: pair for name, pair in standing.items() if pair[0].created_at <= instant}
    valid = ((_with_endings(memory, latest[name], there, instant), vector) for name, (memory, vector) in there.items())
    return sorted(valid, key=lambda pair: pair[0].number)


def enders(current: Iterable[Memory], later: Iterable[Record]) -> list[str]:
    """The ids of the memories that ended something of these; parameters as of ``as_they_stood``."""
    versions = (*current, *(record.before for record in later if record.before is not None))
    return sorted({each.new_id for memory in versions for each in memory.ended})


def _with_endings(then: Memory, latest: Memory, there: Container[str], instant: datetime) -> Memory:
    """The memory with what had ended of it by ``instant``, though that was found out later."""
    if then.ended == latest.ended or (then.number, then.text) != (latest.number, latest.text):
        return then
    ended = tuple(each for each in latest.ended if each.from_instant <= instant and each.new_id in there)
    if then.state is not MemoryState.ACTIVE or not set(ended) > set(then.ended):
        return then
    if latest.state is MemoryState.SUPERSEDED and ended == latest.ended:
        return replace(
            then, state=latest.state, superseded_by=latest.superseded_by, valid_to=latest.valid_to, ended=ended
        )
    return replace(then, ended=ended)


def _undone(memory: Memory | None, records: Sequence[Record]) -> Memory | None:
    """The memory before the first of its records."""
    for record in reversed(records):
        if record.undo is None:
            memory = record.before
        elif memory is not None:
            memory = replace(memory, **record.undo)
    return memory
