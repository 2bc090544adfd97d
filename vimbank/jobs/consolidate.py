"""Fold near-duplicates: memories that say the same step back behind one of them, and can be brought back (D14).

Nothing is deleted: what is folded is ``superseded`` by the one that stays, and ``restore`` brings it back; whatever
somebody brought back is not folded again (cases 86, 88, 92).
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from vimbank.domain.duplicates import FLAGGED_FROM, THRESHOLD, Flag, Fold, flags, fold_key, folds, was_brought_back
from vimbank.domain.json_values import flag_value
from vimbank.domain.models import (
    PARENT_KIND,
    RUN_KIND,
    SEGMENT_KIND,
    IntArray,
    Memory,
    MemoryState,
    Partition,
    StateChange,
    Vector,
)
from vimbank.domain.summaries import DERIVED_KINDS
from vimbank.errors import InvalidInput
from vimbank.ingestion.dialog import ROUND_KIND, TURN_KIND
from vimbank.jobs.context import JobContext
from vimbank.jobs.guarding import reversible_guard
from vimbank.jobs.params import only, positive, tenant_and_share

__all__ = ["ACTOR", "PARAMS", "consolidate", "validate"]

ACTOR: Final = "consolidate"

PARAMS: Final[Mapping[str, str]] = {
    "dry_run": "true: only say what would be folded",
    "tenant": "only this tenant's memories; left out: all",
    "threshold": f"cosine from which two may be folded, above {FLAGGED_FROM:g}, at most 1; left out: {THRESHOLD:g}",
    "max_share": "what the run may fold at most, 0 to 1; left out: as the settings say, or a handful",
}

_LEFT_OUT: Final = frozenset({*DERIVED_KINDS, PARENT_KIND, SEGMENT_KIND, RUN_KIND})
_EVENTS: Final = frozenset({ROUND_KIND, TURN_KIND})
"""Said twice is two events, and what stands beside each is its context: they are flagged alone."""
_READ: Final = 1_000
"""Memories between two looks for a cancellation while reading."""
_HELD: Final = 10_000
"""Memories held with their vectors at once, unless more are alike; about 5 kB each."""
_BATCH: Final = 500
"""Folded in one transaction."""
_SHOWN: Final = 100


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """See ``PARAMS``."""
    only(params, *PARAMS)
    checked: dict[str, Any] = {"dry_run": flag_value(params.get("dry_run", False), "params.dry_run")}
    checked |= tenant_and_share(params)
    if params.get("threshold") is not None:
        checked["threshold"] = positive(params["threshold"], "params.threshold", most=1)
        if checked["threshold"] <= FLAGGED_FROM:
            raise InvalidInput.of("params.threshold", f"must be above {FLAGGED_FROM:g}")
    return checked


@dataclass(frozen=True, slots=True)
class _Planned:
    """One memory to be folded; ``keep_revision`` is that of the one which stays, as it was read."""

    id: str
    keep_id: str
    keep_revision: int
    cosine: float


@dataclass(slots=True)
class _Survey:
    """What a run would fold, before it folds any of it."""

    memories: int = 0
    planned: list[tuple[Partition, int, list[_Planned]]] = field(default_factory=list)
    flagged: int = 0
    shown: list[Mapping[str, Any]] = field(default_factory=list)
    spared: int = 0

    @property
    def due(self) -> int:
        return sum(len(each) for _, _, each in self.planned)


def consolidate(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fold what says the same, a partition after the other; every partition is looked at before the first fold.

    Idempotent: what was folded is no longer active, and what it was folded into keeps its place, so a second run, or
    one that goes on where another was killed, folds what is left of the same. Whoever was written, or whose kept one
    was written, between the decision and the fold stays (``skipped``).
    """
    survey = _Survey()
    partitions = context.service.store.partitions(params.get("tenant"))
    for done, partition in enumerate(partitions, 1):
        _Look(context, partition, params.get("threshold", THRESHOLD)).into(survey)
        context.report(done, len(partitions), "partitions looked at")
    guard = reversible_guard(context, params, taken=survey.due, total=survey.memories)
    folded, skipped = 0, 0
    if not params.get("dry_run", False) and not guard.stops:
        for partition, seen, planned in survey.planned:
            for start in range(0, len(planned), _BATCH):
                refused = _fold(context, partition, seen, planned[start : start + _BATCH])
                skipped += refused
                folded += len(planned[start : start + _BATCH]) - refused
                context.report(folded + skipped, survey.due, "memories")
                context.check()
    pairs = [_pair(partition, each) for partition, _, planned in survey.planned for each in planned[:_SHOWN]]
    return {
        "dry_run": params.get("dry_run", False),
        "stopped": f"it would fold {guard}" if guard.stops else None,
        "memories": survey.memories,
        "due": survey.due,
        "folded": folded,
        "skipped": skipped,
        "spared": survey.spared,
        "flagged": survey.flagged,
        "pairs": pairs[:_SHOWN],
        "flagged_pairs": survey.shown,
    }


def _fold(context: JobContext, partition: Partition, seen: int, planned: Sequence[_Planned]) -> int:
    """How many stayed, since somebody wrote to them or to what they were to be folded into."""
    changes = [
        StateChange(
            id=each.id,
            to=MemoryState.SUPERSEDED,
            sources=(MemoryState.ACTIVE,),
            seen=seen,
            superseded_by=each.keep_id,
            successor_revision=each.keep_revision,
        )
        for each in planned
    ]
    results = context.service.change_states(partition.tenant, changes, actor=ACTOR)
    return sum(isinstance(result, Exception) for result in results)


def _pair(partition: Partition, planned: _Planned) -> Mapping[str, Any]:
    return {
        "tenant": partition.tenant,
        "user_id": partition.user_id,
        "bank": partition.bank,
        "kept": planned.keep_id,
        "folded": planned.id,
        "cosine": round(planned.cosine, 4),
    }


class _Look:
    """What of one partition would be folded.

    Read twice: first for the keys alone, eight bytes a memory, then the memories that share theirs with another one,
    so many at a time as may be held.
    """

    def __init__(self, context: JobContext, partition: Partition, threshold: float) -> None:
        self._context = context
        self._partition = partition
        self._threshold = threshold
        self._store = context.service.store
        self._revision = self._store.state().revision

    def into(self, survey: _Survey) -> None:
        """Add what was found."""
        count, alike = self._alike()
        survey.memories += count
        planned: list[_Planned] = []
        if alike:
            sources = self._folded_before()
            for numbers in _parts(alike):
                for memories, vectors in self._read(numbers):
                    self._group(memories, vectors, sources, planned, survey)
                    self._context.check()
        if planned:
            survey.planned.append((self._partition, self._revision, planned))

    def _alike(self) -> tuple[int, list[IntArray]]:
        """How many memories may be folded at all, and the numbers of those that share a key, group by group."""
        keys, numbers = array("q"), array("q")
        for memory, _ in self._foldable():
            keys.append(fold_key(memory))
            numbers.append(memory.number)
        return len(numbers), _groups(np.array(keys, dtype=np.int64), np.array(numbers, dtype=np.int64))

    def _foldable(self, wanted: Callable[[int], bool] = lambda _number: True) -> Iterator[tuple[Memory, Vector]]:
        read = 0
        for batch in self._store.live(self._partition, batch=_READ):
            for change in batch:
                memory = change.memory
                if memory is None or change.vector is None or not wanted(memory.number):
                    continue
                if memory.kind not in _LEFT_OUT and memory.source.parent_id is None:
                    yield memory, change.vector
            read += len(batch)
            self._context.report(read, None, "memories read")
            self._context.check()

    def _folded_before(self) -> Mapping[str, Sequence[str]]:
        """Ids of what was folded into each memory: the more it speaks for, the rather it stays."""
        found: dict[str, list[str]] = {}
        for page in self._context.pages(self._partition, state=MemoryState.SUPERSEDED, size=_READ):
            for memory in page:
                if memory.superseded_by is not None:
                    found.setdefault(memory.superseded_by, []).append(memory.id)
        return found

    def _read(self, numbers: Mapping[int, int]) -> Iterator[tuple[list[Memory], list[Vector]]]:
        """The memories of these numbers, by the group that each stands in."""
        groups: dict[int, tuple[list[Memory], list[Vector]]] = {}
        for memory, vector in self._foldable(numbers.__contains__):
            memories, vectors = groups.setdefault(numbers[memory.number], ([], []))
            memories.append(memory)
            vectors.append(vector)
        yield from groups.values()

    def _group(
        self,
        memories: Sequence[Memory],
        vectors: Sequence[Vector],
        sources: Mapping[str, Sequence[str]],
        planned: list[_Planned],
        survey: _Survey,
    ) -> None:
        rows = np.stack(vectors)
        by_id = {memory.id: memory for memory in memories}
        found, spared = self._folds(memories, rows, sources)
        survey.spared += len(spared)
        for fold in found:
            revision = by_id[fold.keep_id].revision
            planned += [
                _Planned(name, fold.keep_id, revision, cosine)
                for name, cosine in zip(fold.folded, fold.cosines, strict=True)
            ]
        gone = {name for fold in found for name in fold.folded}
        left = [place for place, memory in enumerate(memories) if memory.id not in gone]
        near = flags([memories[place] for place in left], rows[left])
        survey.flagged += len(near)
        survey.shown += [self._flag(each) for each in near[: _SHOWN - len(survey.shown)]]

    def _folds(
        self, memories: Sequence[Memory], rows: Any, sources: Mapping[str, Sequence[str]]
    ) -> tuple[list[Fold], set[str]]:
        """The folds, and what would be among them had not somebody brought it back."""
        spared: set[str] = set()
        asked: set[str] = set()
        events = {memory.id for memory in memories if memory.kind in _EVENTS}
        while True:
            found = folds(memories, rows, threshold=self._threshold, sources=sources, spared=spared | events)
            new = {name for fold in found for name in fold.folded} - asked
            asked |= new
            back = {name for name in new if was_brought_back(self._store.history(self._partition.tenant, name))}
            if not back:
                return found, spared
            spared |= back

    def _flag(self, flag: Flag) -> Mapping[str, Any]:
        return {
            "tenant": self._partition.tenant,
            "user_id": self._partition.user_id,
            "bank": self._partition.bank,
            "ids": [flag.near_id, flag.id],
            "cosine": round(flag.cosine, 4),
        }


def _groups(keys: IntArray, numbers: IntArray) -> list[IntArray]:
    """The numbers of each key that several have."""
    order = np.argsort(keys, kind="stable")
    _, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
    several = counts > 1
    return [
        numbers[order[start : start + count]]
        for start, count in zip(starts[several].tolist(), counts[several].tolist(), strict=True)
    ]


def _parts(groups: Sequence[IntArray]) -> Iterator[Mapping[int, int]]:
    """number -> place of its group, of as many groups as may be held at once."""
    part: dict[int, int] = {}
    for place, group in enumerate(groups):
        if part and len(part) + len(group) > _HELD:
            yield part
            part = {}
        part.update(dict.fromkeys(group.tolist(), place))
    if part:
        yield part
