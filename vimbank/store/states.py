"""What a change of a memory's state means, once for all stores (see ``MemoryStore.change_states``)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from vimbank.domain.models import Event, HistoryEntry, Memory, MemoryState, Partition, StateChange, StateResult, Unset
from vimbank.domain.superseding import as_said, is_outdated
from vimbank.errors import Conflict, InvalidInput, NotFound
from vimbank.store.changes import STATE_FIELDS, Record, Rows, bury, differences, with_parts

__all__ = ["REFUSALS", "change_states"]

REFUSALS: Final = (NotFound, Conflict, InvalidInput)
"""What may become of one change while the others are done."""

_READ_TOGETHER: Final = 500

_SOURCES: Final[Mapping[MemoryState, Sequence[MemoryState]]] = {
    MemoryState.ACTIVE: (MemoryState.ARCHIVED, MemoryState.SUPPRESSED, MemoryState.SUPERSEDED),
    MemoryState.ARCHIVED: (MemoryState.ACTIVE,),
    MemoryState.SUPPRESSED: (MemoryState.ACTIVE,),
    MemoryState.SUPERSEDED: (MemoryState.ACTIVE, MemoryState.SUPERSEDED),
    MemoryState.DELETED: (MemoryState.ARCHIVED, MemoryState.SUPERSEDED),
}
"""From where each state is reached: nothing is deleted before it has left the searches for another reason."""


def change_states(
    rows: Rows, changes: Sequence[StateChange], *, tenant: str, actor: str, now: datetime
) -> list[StateResult | Exception]:
    """Each change, one after the other; a refused one is its own result and has written nothing."""
    results: list[StateResult | Exception] = []
    for start in range(0, len(changes), _READ_TOGETHER):
        some = changes[start : start + _READ_TOGETHER]
        units = _Units(rows, tenant, [change.id for change in some])
        for change in some:
            try:
                results.append(_change(rows, change, units.of(change.id), actor=actor, now=now))
            except REFUSALS as refusal:
                results.append(refusal)
    return results


class _Units:
    """Memories with their parts, read together; those that a change may have written to are read again."""

    def __init__(self, rows: Rows, tenant: str, ids: Sequence[str]) -> None:
        self._rows: Final = rows
        self._tenant: Final = tenant
        memories = rows.by_ids(tenant, ids)
        self._by_id: Final = {memory.id: memory for memory in memories}
        self._given: Final[set[int]] = set()
        self._parts: Final[dict[tuple[Partition, str | None], list[Memory]]] = {}
        for each in sorted(with_parts(rows.parts, memories), key=lambda memory: memory.number):
            self._parts.setdefault((each.partition, each.source.parent_id), []).append(each)

    def of(self, memory_id: str) -> Sequence[Memory]:
        """The memory and its parts, to be changed; empty where there is no such memory."""
        memory = self._by_id.get(memory_id)
        unit = [] if memory is None else with_parts(self._parts_of, [memory])
        numbers = {each.number for each in unit}
        if numbers & self._given:
            unit = with_parts(self._rows.parts, self._rows.by_ids(self._tenant, [memory_id]))
        self._given.update(numbers)
        return unit

    def _parts_of(self, memories: Sequence[Memory]) -> Iterator[Memory]:
        for memory in memories:
            yield from self._parts.get((memory.partition, memory.id), ())


def _change(rows: Rows, change: StateChange, unit: Sequence[Memory], *, actor: str, now: datetime) -> StateResult:
    """Move one memory with its parts. Raises NotFound, Conflict, InvalidInput."""
    if not unit:
        raise NotFound(f"no memory {change.id!r}")
    old = unit[0]
    if change.expected_revision not in (None, old.revision):
        raise Conflict(f"memory {old.id!r} is at revision {old.revision}, not {change.expected_revision}")
    if _stands(old, change):
        return StateResult(old.id, old.revision, 0)
    if old.state not in _sources(old, change):
        raise Conflict(f"memory {old.id!r} is {old.state.value}")
    _check_successor(rows, old, change)
    if change.seen is not None and any(each.revision > change.seen for each in unit):
        raise Conflict(f"memory {old.id!r} was written after revision {change.seen}")
    if change.to is MemoryState.DELETED:
        bury(rows, sorted(unit, key=lambda memory: memory.number), actor=actor, now=now)
        return StateResult(old.id, old.revision, len(unit))
    moved = [_move(rows, each, change, actor, now) for each in unit if each.state is old.state]
    return StateResult(old.id, moved[0].revision, len(moved))


def _sources(memory: Memory, change: StateChange) -> Sequence[MemoryState]:
    allowed = [each for each in _SOURCES[change.to] if not change.sources or each in change.sources]
    return [*allowed, MemoryState.ACTIVE] if _takes_back(memory, change) else allowed


def _takes_back(memory: Memory, change: StateChange) -> bool:
    """Whether nothing of an active memory is to count as ended any more: a part of a supersession, undone."""
    asked = not change.sources or MemoryState.SUPERSEDED in change.sources
    return asked and bool(memory.ended) and memory.state is change.to is MemoryState.ACTIVE


def _stands(memory: Memory, change: StateChange) -> bool:
    """Whether the memory is what the change would make of it."""
    named = (change.superseded_by, _valid_to(memory, change))
    if _takes_back(memory, change):
        return False
    return memory.state is change.to and (memory.superseded_by, memory.valid_to) == named


def _valid_to(memory: Memory, change: StateChange) -> datetime | None:
    return memory.valid_to if isinstance(change.valid_to, Unset) else change.valid_to


def _check_successor(rows: Rows, memory: Memory, change: StateChange) -> None:
    name = change.superseded_by
    if (name is None) is (change.to is MemoryState.SUPERSEDED):
        raise InvalidInput.of("superseded_by", "goes with the state superseded, and with no other")
    if name is None:
        return
    successor = rows.by_id(memory.tenant, name)
    if successor is None or successor.partition != memory.partition or successor.number == memory.number:
        raise InvalidInput.of("superseded_by", f"{name!r} is no other memory of the same user and bank")
    if change.successor_revision not in (None, successor.revision):
        raise Conflict(f"memory {name!r} is at revision {successor.revision}, not {change.successor_revision}")


def _move(rows: Rows, old: Memory, change: StateChange, actor: str, now: datetime) -> Memory:
    # The content hash stays: it stands for what the author said, and a repeated add has to find it.
    recalled_at, valid_to, ended = old.last_recalled_at, _valid_to(old, change), old.ended
    if change.to is MemoryState.ACTIVE:
        # Its clock starts again, or the next run would send it back to where it came from.
        recalled_at = now if recalled_at is None else max(now, recalled_at)
        if is_outdated(old) or _takes_back(old, change):
            ended = ()
        if old.state is MemoryState.SUPERSEDED and isinstance(change.valid_to, Unset):
            # Or no search would find it.
            valid_to = as_said(old, [record.entry for record in rows.history_of(old)]).valid_to
    new = replace(
        old,
        state=change.to,
        superseded_by=change.superseded_by,
        valid_to=valid_to,
        ended=ended,
        last_recalled_at=recalled_at,
        updated_at=now,
        revision=rows.take_revision(),
    )
    rows.move(new)
    entry = HistoryEntry(old.id, new.revision, now, Event.STATE, actor, None, None, differences(old, new))
    rows.record(Record(entry, old.partition, undo={name: getattr(old, name) for name in STATE_FIELDS}))
    return new
