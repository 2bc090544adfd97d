"""Which memories take part in conflicts, and what becomes of one of which something has ended (V-9, V-10). Pure.

``domain.conflicts`` decides what contradicts what; this says what a store does about it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Protocol

from vimbank.domain.conflicts import Claim, claim_keys, claims_of, is_single_valued
from vimbank.domain.endings import Ended, Reason
from vimbank.domain.models import (
    PARENT_KIND,
    RUN_KIND,
    SEGMENT_KIND,
    Event,
    HistoryEntry,
    Memory,
    MemoryDraft,
    MemoryState,
)
from vimbank.domain.statements import OTHERS, Reading, read_memory
from vimbank.domain.summaries import DERIVED_KINDS
from vimbank.domain.times import parse_time

__all__ = [
    "ACTOR",
    "OUTSIDE",
    "after_endings",
    "as_said",
    "forget_readings",
    "is_outdated",
    "keys_of",
    "lookups",
    "merged",
    "own_claims",
    "said_at",
    "taken_back",
    "takes_part",
]

ACTOR: Final = "conflicts"
"""Who changes a memory because another one contradicts it, in its history."""

_KEPT_CHARS: Final = 1_000

OUTSIDE: Final = frozenset({PARENT_KIND, SEGMENT_KIND, RUN_KIND}) | DERIVED_KINDS
"""Kinds of memories that take no part in conflicts."""


def takes_part(memory: Memory | MemoryDraft) -> bool:
    """Whether a memory supersedes, and is superseded, by what it says: not a document, a summary or a portrait, nor
    what is a part of something (a segment, a step of a task run), since it stands and falls with that."""
    return memory.kind not in OUTSIDE and memory.source.parent_id is None


def keys_of(memory: Memory | MemoryDraft) -> tuple[tuple[str, str], ...]:
    """The (subject, attribute) pairs by which a store finds the memory's claims; () where it takes no part."""
    return claim_keys(read_memory(memory)) if takes_part(memory) else ()


def said_at(memory: Memory) -> datetime:
    """When what a memory says was said or became valid: what decides which of two is newer (``Claim.at``)."""
    return memory.valid_from or memory.event_at or memory.created_at


def own_claims(memory: Memory) -> list[Claim]:
    """``claims_of``, of a memory that takes part. What short texts state is kept for a while: a write compares itself
    with its neighbours, which it shares with the next write."""
    if not takes_part(memory):
        return []
    if len(memory.text) > _KEPT_CHARS:
        return claims_of(memory)
    role = str(memory.metadata.get("role", ""))
    said = memory.event_at or memory.created_at
    return claims_of(memory, _read(memory.text, memory.title, memory.speaker, role, memory.kind, said))


def forget_readings() -> None:
    """Keep nothing any more of what texts state: somebody was erased."""
    _read.cache_clear()


@lru_cache(maxsize=1024)
def _read(text: str, title: str | None, speaker: str | None, role: str, kind: str, said: datetime) -> Reading:
    """``read_memory``, of all that it looks at."""
    metadata = {"role": role}
    return read_memory(
        MemoryDraft(
            tenant="",
            user_id="",
            bank="",
            text=text,
            title=title,
            speaker=speaker,
            metadata=metadata,
            kind=kind,
            event_at=said,
        )
    )


def lookups(claims: Iterable[Claim]) -> list[tuple[str, str | None]]:
    """The keys of all memories that these claims can end, or be ended by; an attribute of None: any of the subject."""
    found: dict[tuple[str, str | None], None] = {}
    for claim in claims:
        if not claim.statement.current:
            continue
        for subject, attribute in claim_keys(Reading((claim.statement,), 0)):
            if attribute == OTHERS:
                found[subject, None] = None
                continue
            found[subject, attribute] = None
            if is_single_valued(attribute):
                found[subject, OTHERS] = None
    return [key for key in found if key[1] is None or (key[0], None) not in found]


def merged(recorded: Iterable[Ended], found: Iterable[Ended]) -> tuple[Ended, ...]:
    """What has ended by all that is known: of two endings of one statement the earlier, as validity has no gaps.

    At the same instant ``found`` is right, which knows what was written first. What one memory ended is told by
    ``found`` alone, should it have been dated anew.
    """
    found = list(found)
    dated = {(_told(each), each.new_id) for each in found}
    by_statement: dict[tuple[str, str, str | None, bool], Ended] = {}
    for each in (*(old for old in recorded if (_told(old), old.new_id) not in dated), *found):
        standing = by_statement.get(_told(each))
        if standing is None or each.from_instant <= standing.from_instant:
            by_statement[_told(each)] = each
    return tuple(sorted(by_statement.values(), key=_order))


def after_endings(memory: Memory, ended: Sequence[Ended], claims: Sequence[Claim]) -> Memory:
    """The memory once this has ended of it.

    All that it says: it is superseded by what ended the last of it, and valid until then, never longer than it said
    itself. Less than that, or it is pinned: it stays what it is and names what has ended. What is archived or
    suppressed is left alone until it comes back, and so is what somebody else superseded, as a duplicate of another.
    Nothing here makes a superseded memory current again.

    Args:    memory: as it stands, but with the ``valid_to`` that it had before it was superseded.
             ended: all that has, as ``merged`` gives it, not empty.  claims: of this memory.
    """
    if memory.state is not MemoryState.ACTIVE and not is_outdated(memory):
        return memory
    stale = {_told(each) for each in ended}
    whole = bool(claims) and all(claim.complete and _stated(claim) in stale for claim in claims)
    if whole and (not memory.pinned or memory.state is MemoryState.SUPERSEDED):
        # Of these alone: what a model calls stale supersedes nothing.
        last = [each for each in ended if _told(each) in {_stated(claim) for claim in claims}][-1]
        valid_to = last.from_instant if memory.valid_to is None else min(memory.valid_to, last.from_instant)
        return replace(
            memory, state=MemoryState.SUPERSEDED, superseded_by=last.new_id, valid_to=valid_to, ended=tuple(ended)
        )
    return memory if memory.state is MemoryState.SUPERSEDED else replace(memory, ended=tuple(ended))


def is_outdated(memory: Memory) -> bool:
    """Whether it is superseded because all that it says has ended, and not as a duplicate of another."""
    return memory.state is MemoryState.SUPERSEDED and memory.superseded_by in {each.new_id for each in memory.ended}


class _Entry(Protocol):
    """A history entry, or one of an export."""

    @property
    def event(self) -> Event: ...
    @property
    def changes(self) -> Mapping[str, Any]: ...


def as_said(memory: Memory, history: Sequence[_Entry] = ()) -> Memory:
    """The memory with the ``valid_to`` that its author gave it, where it was superseded since.

    Args:    history: of the memory, oldest first; without it an end that is that of a supersession was never said.
    """
    if memory.state is not MemoryState.SUPERSEDED:
        return memory
    valid_to = memory.valid_to
    for entry in reversed(history):
        before, _ = entry.changes.get("valid_to", (None, None))
        if entry.event is not Event.STATE and "valid_to" in entry.changes:
            return replace(memory, valid_to=valid_to)
        if "valid_to" in entry.changes:
            valid_to = None if before is None else parse_time(before, "valid_to")
        state = entry.changes.get("state", (None, None))
        if state[1] == MemoryState.SUPERSEDED != state[0]:
            return replace(memory, valid_to=valid_to)
    ours = is_outdated(memory) and memory.valid_to in {each.from_instant for each in memory.ended}
    return replace(memory, valid_to=None) if ours else memory


def taken_back(history: Iterable[HistoryEntry]) -> frozenset[str]:
    """Whose endings of a memory's present text somebody has undone: the ids of the memories that had ended it.

    Args:    history: of the memory, oldest first.
    """
    undone: set[str] = set()
    for entry in history:
        if entry.event is not Event.STATE:
            undone = set() if entry.old_text != entry.new_text else undone
        elif entry.actor != ACTOR and "ended" in entry.changes:
            before, after = ({each["new_id"] for each in side} for side in entry.changes["ended"])
            undone |= before - after
    return frozenset(undone)


def _told(ended: Ended) -> tuple[str, str, str | None, bool]:
    return ended.subject, ended.attribute, ended.value, ended.reason is not Reason.RESUMED


def _stated(claim: Claim) -> tuple[str, str, str | None, bool]:
    statement = claim.statement
    return statement.subject, statement.attribute, statement.value, statement.positive


def _order(ended: Ended) -> tuple[datetime, str, str, str, str]:
    return ended.from_instant, ended.new_id, ended.subject, ended.attribute, ended.value or ""
