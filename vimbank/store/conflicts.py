"""What a write does to the memories that it contradicts, in the write's own transaction (V-9, V-10, docs/adr/0011)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from vimbank.domain.conflicts import Claim, decide
from vimbank.domain.endings import Ended
from vimbank.domain.models import AddResult, Event, HistoryEntry, Memory, MemoryState
from vimbank.domain.superseding import (
    ACTOR,
    after_endings,
    as_said,
    is_outdated,
    lookups,
    merged,
    own_claims,
    said_at,
    taken_back,
)
from vimbank.errors import Conflict
from vimbank.ports import Ending, PreparedDraft, PreparedPatch
from vimbank.store.changes import STATE_FIELDS, Record, Rows, add_draft, differences, update_memory

__all__ = ["NEAREST", "NOTHING", "add_memory", "change_memory", "end", "put_claims", "settle"]

NEAREST: Final = 16
"""Memories on each side in time, of one subject and attribute, that a write is compared with; the job sees all."""


NOTHING: Final = ("", "")
"""The claim of what was read and states nothing, so that it is not read again and again."""


def add_memory(rows: Rows, prepared: PreparedDraft, *, actor: str, now: datetime) -> AddResult:
    """``changes.add_draft``, and what follows from what the memory claims."""
    result = add_draft(rows, prepared, actor=actor, now=now)
    memory = rows.by_id(prepared.draft.tenant, result.id) if prepared.claims and not result.duplicate else None
    if memory is None:
        return result
    superseded = settle(rows, memory, now=now)
    return replace(result, superseded=superseded, revision=_standing(rows, memory).revision)


def change_memory(rows: Rows, prepared: PreparedPatch, *, tenant: str, actor: str, now: datetime) -> Memory:
    """``changes.update_memory``, and what follows from what the new text claims.

    What the old text had superseded stays so, until somebody restores it.
    """
    memory = update_memory(rows, prepared, tenant=tenant, actor=actor, now=now)
    if not prepared.claims:
        return memory
    settle(rows, memory, now=now)
    return _standing(rows, memory)


def settle(rows: Rows, memory: Memory, *, now: datetime) -> tuple[str, ...]:
    """End what a memory that was just written contradicts, and what of it is contradicted by a newer one already.

    Of the others only what this memory ends is written, unless what is recorded there ended it earlier: what a third
    one could end and has not is left for the job, since somebody may have taken it back. So is what ends after ``now``.

    Returns: the ids of the memories that are superseded by it, sorted.
    """
    mine = own_claims(memory)
    found = {memory.number: memory}
    for subject, attribute in lookups(mine):
        rivals = rows.rivals(memory, subject, attribute, limit=NEAREST)
        found |= {each.number: each for each in rivals if not _was_outdated(each, said_at(memory))}
    if len(found) == 1:
        return ()
    by_id = {each.id: each for each in found.values()}
    claims = {name: mine if name == memory.id else own_claims(each) for name, each in by_id.items()}
    superseded = []
    for decision in decide(claim for each in claims.values() for claim in each):
        old = by_id[decision.old_id]
        if set(decision.ended) <= set(old.ended):
            continue
        ended = decision.ended if old.id == memory.id else _ended_by(memory, old, claims)
        new = _carry_out(rows, old, ended, claims[old.id], now=now)
        if new is not None and new.superseded_by == memory.id:
            superseded.append(new.id)
    return tuple(sorted(superseded))


def _was_outdated(memory: Memory, instant: datetime) -> bool:
    """Whether all of it had ended before an instant: nothing said then ends it, and it ends nothing said then."""
    return is_outdated(memory) and memory.ended[-1].from_instant < instant


def _ended_by(memory: Memory, old: Memory, claims: Mapping[str, Sequence[Claim]]) -> list[Ended]:
    """What ``memory`` is the first to end of ``old``, of the memories that are recorded to have."""
    enders = {memory.id, old.id} | {each.new_id for each in old.ended}
    decisions = decide(claim for name in sorted(enders) for claim in claims.get(name, ()))
    return [
        each
        for decision in decisions
        if decision.old_id == old.id
        for each in decision.ended
        if each.new_id == memory.id
    ]


def put_claims(rows: Rows, read: Iterable[tuple[Memory, Sequence[tuple[str, str]]]]) -> int:
    """See ``ClaimStore.put_claims``."""
    kept = 0
    for memory, claims in read:
        standing = rows.by_id(memory.tenant, memory.id)
        if standing is not None and (standing.number, standing.content_hash) == (memory.number, memory.content_hash):
            rows.put_claims(standing, claims or [NOTHING])
            kept += 1
    return kept


def end(rows: Rows, endings: Iterable[Ending], *, dry_run: bool, now: datetime) -> list[Memory | Conflict | None]:
    """See ``ClaimStore.end``."""
    return [_end(rows, each, dry_run=dry_run, now=now) for each in endings]


def _end(rows: Rows, ending: Ending, *, dry_run: bool, now: datetime) -> Memory | Conflict | None:
    old = rows.by_id(ending.tenant, ending.id)
    for name, content_hash in ending.enders.items():
        if not _stands(rows.by_id(ending.tenant, name), content_hash):
            return Conflict(f"memory {name!r} was written meanwhile")
    if old is None or not _stands(old, ending.content_hash):
        return Conflict(f"memory {ending.id!r} was written meanwhile")
    undone = taken_back(record.entry for record in rows.history_of(old))
    ended = [each for each in ending.ended if each.new_id not in undone]
    return _carry_out(rows, old, ended, own_claims(old), now=now, dry_run=dry_run)


def _stands(memory: Memory | None, content_hash: str) -> bool:
    return memory is not None and memory.content_hash == content_hash and memory.state is not MemoryState.SUPPRESSED


def _carry_out(
    rows: Rows, old: Memory, ended: Iterable[Ended], claims: Sequence[Claim], *, now: datetime, dry_run: bool = False
) -> Memory | None:
    """Write what has ended of a memory by ``now``, beside what had; the memory then. None where that is nothing new."""
    due = [each for each in ended if each.from_instant <= now]
    if not due:
        return None
    known = merged(old.ended, due)
    was = old
    if old.state is MemoryState.SUPERSEDED:
        was = as_said(old, [record.entry for record in rows.history_of(old)])
    new = after_endings(was, known, claims)
    fields = ("state", "superseded_by", "valid_to", "ended")
    if new is was or all(getattr(old, name) == getattr(new, name) for name in fields):
        return None
    if dry_run:
        return new
    new = replace(new, updated_at=now, revision=rows.take_revision())
    rows.move(new)
    entry = HistoryEntry(old.id, new.revision, now, Event.STATE, ACTOR, None, None, differences(old, new))
    rows.record(Record(entry, old.partition, undo={name: getattr(old, name) for name in STATE_FIELDS}))
    return new


def _standing(rows: Rows, memory: Memory) -> Memory:
    return rows.by_id(memory.tenant, memory.id) or memory
