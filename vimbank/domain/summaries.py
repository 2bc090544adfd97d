"""Summaries and portraits: which memories belong to which, which are stale, what overlaps. Decisions alone.

A summary is a memory of kind ``summary`` (a portrait: ``portrait``) whose metadata says what it was made of::

    level         group (five turns of a session, I-28), day (M-3, M-6), month, global (M-4, M-7)
    period        the session and first source of a group; 2026-01-31, 2026-01 or all
    method        extractive or llm;  model: its name, null for extractive
    sources       ids of the memories it was made of: turns, or for month and global other summaries
    sources_hash  of those memories as they were read

It is *stale* when a source has changed, gone or become stale itself: told at read by comparing hashes, so that no
write has to know of summaries. Recalls change no content hash, and an archived source still stands: a summary
survives that its turns fade (M-21), but not that one is deleted, superseded, suppressed or expires (cases 74, 93).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import numpy as np

from vimbank.domain.models import SEGMENT_KIND, Memory, MemoryState, Partition, Vector, Vectors

__all__ = [
    "DERIVED_KINDS",
    "FAN_IN",
    "GROUP_SIZE",
    "MAX_SOURCES",
    "PORTRAIT_KIND",
    "SIMILAR",
    "SUMMARY_KIND",
    "Derived",
    "DerivedKind",
    "Level",
    "Method",
    "Plan",
    "best_of",
    "condensing_plans",
    "day_plans",
    "derived_of",
    "eligible",
    "happened_at",
    "is_source",
    "kept_sentences",
    "marked",
    "must_write",
    "sources_hash",
    "stale_ids",
    "uncovered_groups",
]

DerivedKind: TypeAlias = Literal["summary", "portrait"]
Level: TypeAlias = Literal["group", "day", "month", "global"]
Method: TypeAlias = Literal["extractive", "llm"]

SUMMARY_KIND: Final[DerivedKind] = "summary"
PORTRAIT_KIND: Final[DerivedKind] = "portrait"
DERIVED_KINDS: Final = frozenset({SUMMARY_KIND, PORTRAIT_KIND})

GROUP_SIZE: Final = 5
"""Turns summarised together (I-28)."""
SIMILAR: Final = 0.6
"""Cosine from which two parts of summaries speak of the same (I-29); the paper gives none."""
MAX_SOURCES: Final = 200
"""Sources of one summary; a day of more turns has several summaries. Their ids have room in a memory's metadata."""
FAN_IN: Final = 60
"""Days condensed into the global summary at once; where there are more, months stand between."""

_STANDING: Final = (MemoryState.ACTIVE, MemoryState.ARCHIVED)


@dataclass(frozen=True, slots=True)
class Derived:
    """What the metadata of a summary or portrait says it was made of."""

    level: Level
    period: str
    method: Method
    model: str | None
    sources: tuple[str, ...]
    sources_hash: str

    def metadata(self) -> dict[str, Any]:
        """The same as the metadata of a memory; ``derived_of`` reads it back."""
        return {
            "level": self.level,
            "period": self.period,
            "method": self.method,
            "model": self.model,
            "sources": list(self.sources),
            "sources_hash": self.sources_hash,
        }


def derived_of(memory: Memory) -> Derived | None:
    """What a summary was made of; None for any other memory, though somebody calls its kind a summary."""
    if memory.kind not in DERIVED_KINDS:
        return None
    data = memory.metadata
    sources = data.get("sources")
    texts = [data.get(name) for name in ("level", "period", "method", "sources_hash")]
    if not isinstance(sources, list | tuple) or not all(isinstance(each, str) for each in [*texts, *sources]):
        return None
    level, period, method, digest = cast(list[str], texts)
    if level not in get_args(Level) or method not in get_args(Method):
        return None
    model = data.get("model")
    return Derived(
        cast(Level, level),
        period,
        cast(Method, method),
        model if isinstance(model, str) else None,
        tuple(sources),
        digest,
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """One summary or portrait as it should be: of what it is made, and what stands in its place now.

    ``sources`` are in order of time. ``id`` is the same in every run, so that a second run, or the same run delivered
    twice, finds what the first wrote.
    """

    partition: Partition
    kind: DerivedKind
    level: Level
    period: str
    sources: tuple[Memory, ...]
    session_id: str | None = None
    existing: Memory | None = None

    @property
    def id(self) -> str:
        """``kind-level-`` and 24 hexadecimal digits of partition, session and period."""
        if self.existing is not None:
            return self.existing.id
        named = [self.partition.user_id, self.partition.bank, self.session_id, self.period]
        digest = hashlib.blake2b(json.dumps(named).encode(), digest_size=12).hexdigest()
        return f"{self.kind}-{self.level}-{digest}"

    @property
    def event_at(self) -> datetime:
        """When the newest source happened."""
        return max(happened_at(memory) for memory in self.sources)

    def derived(self, method: Method, model: str | None) -> Derived:
        """What the written memory says of itself."""
        ids = tuple(memory.id for memory in self.sources)
        return Derived(self.level, self.period, method, model, ids, sources_hash(self.sources))


def happened_at(memory: Memory) -> datetime:
    """When what it tells of happened: its event, else its creation."""
    return memory.created_at if memory.event_at is None else memory.event_at


def eligible(memory: Memory, now: datetime) -> bool:
    """Whether it stands, so that a summary may speak of it: active or archived, and not expired."""
    return memory.state in _STANDING and (memory.expires_at is None or memory.expires_at > now)


def is_source(memory: Memory, now: datetime) -> bool:
    """Whether summaries are made of it: it stands, and is whole and no summary itself."""
    return eligible(memory, now) and memory.kind != SEGMENT_KIND and derived_of(memory) is None


def sources_hash(sources: Iterable[Memory]) -> str:
    """32 hexadecimal digits over ids and contents, whatever their order; recalls change nothing."""
    parts = sorted((memory.id, memory.content_hash) for memory in sources)
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


# --- planning ---------------------------------------------------------------------------------------------------


def day_plans(
    partition: Partition, kind: DerivedKind, sources: Sequence[Memory], existing: Mapping[str, Memory]
) -> list[Plan]:
    """One plan a day (UTC) on which something happened, in order; several for a day of more than ``MAX_SOURCES``.

    Args:    sources: any order.  existing: the memories that are there, by id.
    Source:  MemoryBank M-3 and M-6.
    """
    plans = []
    for day, memories in groupby(_in_order(sources), key=lambda memory: _day(memory)):
        of_day = tuple(memories)
        for part, start in enumerate(range(0, len(of_day), MAX_SOURCES), 1):
            period = day if part == 1 else f"{day} {part}"
            plans.append(_placed(Plan(partition, kind, "day", period, of_day[start : start + MAX_SOURCES]), existing))
    return plans


def condensing_plans(
    partition: Partition,
    kind: DerivedKind,
    level: Literal["month", "global"],
    sources: Sequence[Memory],
    existing: Mapping[str, Memory],
) -> list[Plan]:
    """What the finer summaries are condensed into: one plan a month, or one for all.

    Args:    sources: fresh summaries of days (for ``global`` of months, where there are months), at most
             ``MAX_SOURCES`` a plan are taken, the newest.  existing: as in ``day_plans``.
    Source:  MemoryBank M-4 and M-7.
    """
    ordered = _in_order(sources)

    def period(memory: Memory) -> str:
        return _day(memory)[:7] if level == "month" else "all"

    grouped = [(name, tuple(memories)) for name, memories in groupby(ordered, key=period)]
    return [
        _placed(Plan(partition, kind, level, name, memories[-MAX_SOURCES:]), existing) for name, memories in grouped
    ]


def uncovered_groups(
    sources: Sequence[Memory], covered: Iterable[str], *, size: int = GROUP_SIZE
) -> list[tuple[str | None, tuple[Memory, ...]]]:
    """Consecutive turns that no group's summary tells of yet: session, and ``size`` memories in order.

    What is left of a session below ``size`` waits for more.
    """
    known = frozenset(covered)
    fresh = [memory for memory in sources if memory.id not in known]
    by_session: dict[str | None, list[Memory]] = {}
    for memory in _in_order(fresh):
        by_session.setdefault(memory.session_id, []).append(memory)
    return [
        (session_id, tuple(memories[start : start + size]))
        for session_id, memories in by_session.items()
        for start in range(0, len(memories) - size + 1, size)
    ]


def must_write(plan: Plan, method: Method) -> bool:
    """Whether the plan is not carried out yet: nothing is there, it tells of other sources, or a model may do better.

    An extractive summary is made anew by a model; one by a model stays until its sources change.
    """
    written = None if plan.existing is None else derived_of(plan.existing)
    if written is None:
        return True
    changed = written.sources_hash != sources_hash(plan.sources)
    return changed or (written.method == "extractive" and method == "llm")


def _placed(plan: Plan, existing: Mapping[str, Memory]) -> Plan:
    return replace(plan, existing=existing.get(plan.id))


def _in_order(memories: Iterable[Memory]) -> list[Memory]:
    return sorted(memories, key=lambda each: (happened_at(each), each.source.position or 0, each.number))


def _day(memory: Memory) -> str:
    return happened_at(memory).astimezone(UTC).date().isoformat()


# --- staleness --------------------------------------------------------------------------------------------------


def stale_ids(
    memories: Iterable[Memory], load: Callable[[Sequence[str]], Sequence[Memory]], *, now: datetime
) -> frozenset[str]:
    """The ids of those summaries and portraits among ``memories`` that are stale.

    Args:    load: the memories of these ids, every state but deleted, unknown ids left out; called once a level.
    """
    asked = {memory.id: memory for memory in memories if derived_of(memory) is not None}
    known = dict(asked)
    missing = _unread(asked.values(), known)
    while missing:
        loaded = load(missing)
        known.update((memory.id, memory) for memory in loaded)
        missing = [each for each in _unread(loaded, known) if each not in missing]
    verdicts: dict[str, bool] = {}
    return frozenset(memory_id for memory_id in asked if _stale(asked[memory_id], known, verdicts, now))


def marked(memory: Memory, *, stale: bool) -> Memory:
    """A summary with ``stale`` in its metadata, for whoever reads it; never stored."""
    return replace(memory, metadata={**memory.metadata, "stale": stale})


def _unread(memories: Iterable[Memory], known: Mapping[str, Memory]) -> list[str]:
    named = (source for memory in memories if (derived := derived_of(memory)) for source in derived.sources)
    return list(dict.fromkeys(source for source in named if source not in known))


def _stale(memory: Memory, known: Mapping[str, Memory], verdicts: dict[str, bool], now: datetime) -> bool:
    derived = derived_of(memory)
    if derived is None:
        return False
    if memory.id not in verdicts:
        verdicts[memory.id] = True  # what names itself as its source is no summary
        sources = [known[each] for each in derived.sources if each in known]
        standing = all(eligible(each, now) and each.partition == memory.partition for each in sources)
        verdicts[memory.id] = (
            len(sources) < len(derived.sources)
            or not standing
            or sources_hash(sources) != derived.sources_hash
            or any(_stale(each, known, verdicts, now) for each in sources)
        )
    return verdicts[memory.id]


# --- overlap, and the best one ----------------------------------------------------------------------------------


def kept_sentences(old: Vectors, new: Vectors, *, threshold: float = SIMILAR) -> list[int]:
    """Which parts of the old summary stay beside the new one: those that no part of the new one is similar to.

    Args:    old, new: (n, d) and (m, d), unit rows, a sentence each.
    Returns: positions in ``old``, ascending; all of them where m = 0.
    Source:  ILSTMA I-29: similar parts are overwritten by the new summary, the rest is combined.
    """
    if not len(old) or not len(new):
        return list(range(len(old)))
    nearest = (old.astype(np.float64) @ new.astype(np.float64).T).max(axis=1)
    return [int(place) for place in np.flatnonzero(nearest < threshold)]


def best_of(query: Vector, vectors: Vectors) -> tuple[int, float] | None:
    """The summary nearest to a question by plain cosine, and the cosine; ties go to the first; None of none (I-32)."""
    if not len(vectors):
        return None
    cosines = vectors.astype(np.float64) @ query.astype(np.float64)
    place = int(cosines.argmax())
    return place, float(cosines[place])
