"""The part of the job `conflicts` in which a chat model reads what the rules do not (V-9, V-10).

A memory that nobody has compared is compared with those near it, once for the text that it has (``COMPARED``).
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np

from vimbank.domain.comparing import (
    COMPARED,
    NEAR,
    NEAREST,
    Relation,
    can_be_compared,
    endings,
    in_order,
    is_newer,
    is_settled,
)
from vimbank.domain.conflicts import claim_keys
from vimbank.domain.models import BoolArray, IntArray, Memory, Partition, Vector
from vimbank.domain.statements import read_memory, testimony
from vimbank.domain.superseding import said_at
from vimbank.errors import BackendRejected, Conflict, ModelError
from vimbank.jobs.context import JobContext
from vimbank.jobs.failures import Failures
from vimbank.llm.compare import Answer, ChatComparer, Told
from vimbank.llm.writer import Spent
from vimbank.ports import Ending

__all__ = ["compare"]

T = TypeVar("T")

_CHUNK: Final = 2_000
"""Memories whose neighbours are looked for in one pass over the partition."""
_READ: Final = 1_000
_SHOWN: Final = 100
_CONFLICTS: Final = frozenset({Relation.UPDATE, Relation.CONTRADICTION})


@dataclass(slots=True)
class _Tally:
    """What a run has done so far."""

    compared: int = 0
    asked: int = 0
    ended: int = 0
    skipped: int = 0
    relations: dict[Relation, int] = field(default_factory=lambda: dict.fromkeys(Relation, 0))
    pairs: list[Mapping[str, Any]] = field(default_factory=list)
    failures: Failures = field(default_factory=Failures)


def compare(context: JobContext, partitions: Sequence[Partition], *, dry_run: bool) -> Mapping[str, Any] | None:
    """Ask about what the rules left, memory by memory; the report, None where no model is set.

    What is done of a memory is written before the next one is begun, so a run that was killed, or has spent its
    tokens, is gone on with by the next one. Unusable output of the model changes nothing (case 89), and that memory is
    compared again in the next run. ``dry_run`` asks, and writes nothing.
    """
    make = context.around.comparer
    if make is None:
        return None
    comparer = make(context.check)
    tally = _Tally()
    try:
        with tally.failures.ending_the_run():
            for partition in partitions:
                _Comparing(context, comparer, tally, partition, dry_run=dry_run).run()
    finally:
        if tally.ended and not dry_run:
            context.service.announce()
    return _report(comparer.model, comparer.spent, tally)


def _report(model: str, spent: Spent, tally: _Tally) -> Mapping[str, Any]:
    return {
        "model": model,
        "compared": tally.compared,
        "asked": tally.asked,
        "relations": {relation.value: count for relation, count in tally.relations.items()},
        "ended": tally.ended,
        "skipped": tally.skipped,
        **tally.failures.record(),
        **spent.record(),
        "pairs": tally.pairs,
    }


@dataclass(order=True, slots=True)
class _Neighbour:
    """One near a memory: the nearer the greater, of equally near ones that which was written first."""

    cosine: float
    minus_number: int
    memory: Memory = field(compare=False)


@dataclass(slots=True)
class _Subject:
    """A memory to be compared, and the nearest that were found so far, as a heap."""

    memory: Memory
    vector: Vector
    near: list[_Neighbour] = field(default_factory=list)

    @property
    def floor(self) -> float:
        """What is further away is none of the nearest."""
        return self.near[0].cosine if len(self.near) == NEAREST else NEAR

    def offer(self, cosine: float, other: Memory) -> None:
        neighbour = _Neighbour(cosine, -other.number, other)
        if len(self.near) < NEAREST:
            heapq.heappush(self.near, neighbour)
        else:
            heapq.heappushpop(self.near, neighbour)


class _Meeting:
    """Which memories of a partition these are compared with. ``left``: numbers of those nobody has compared."""

    def __init__(self, memories: Sequence[Memory], left: frozenset[int]) -> None:
        self._left = left
        self._agent_codes = _codes(each.agent_id for each in memories)
        self._content_codes = _codes(each.content_hash for each in memories)
        self._numbers, self._agents, self._contents = self._columns(memories)

    def allowed(self, others: Sequence[Memory]) -> BoolArray:
        """Whether each of these is compared with each of the others, shape (these, others).

        With those of its agent that were written before it, or are compared already, and say something else.
        """
        numbers, agents, contents = self._columns(others)
        compared = np.array([each.number not in self._left for each in others], dtype=np.bool_)
        before = numbers[None, :] < self._numbers[:, None]
        earlier: BoolArray = before | (compared[None, :] & (numbers[None, :] != self._numbers[:, None]))
        earlier &= agents[None, :] == self._agents[:, None]
        earlier &= contents[None, :] != self._contents[:, None]
        return earlier

    def _columns(self, memories: Sequence[Memory]) -> tuple[IntArray, IntArray, IntArray]:
        """Numbers, and codes of agents and contents; -1: as none of these."""
        return (
            np.array([each.number for each in memories], dtype=np.int64),
            np.array([self._agent_codes.get(each.agent_id, -1) for each in memories], dtype=np.int64),
            np.array([self._content_codes.get(each.content_hash, -1) for each in memories], dtype=np.int64),
        )


def _codes(values: Iterable[T]) -> dict[T, int]:
    return {value: code for code, value in enumerate(dict.fromkeys(values))}


class _Comparing:
    """The memories of one partition in one run."""

    def __init__(
        self, context: JobContext, comparer: ChatComparer, tally: _Tally, partition: Partition, *, dry_run: bool
    ) -> None:
        self._context = context
        self._comparer = comparer
        self._tally = tally
        self._partition = partition
        self._dry_run = dry_run
        self._store = context.service.store
        self._now = context.around.clock()
        self._left: frozenset[int] = frozenset()

    def run(self) -> None:
        """Compare what nobody has, in the order in which it was written."""
        numbers = self._store.uncompared(self._partition)
        self._left = frozenset(numbers)
        for start in range(0, len(numbers), _CHUNK):
            subjects, done = self._subjects(frozenset(numbers[start : start + _CHUNK]))
            self._find(subjects)
            for subject in sorted(subjects, key=lambda each: each.memory.number):
                if not subject.near:
                    done.append(subject.memory)
                elif self._ask(subject):
                    self._mark([*done, subject.memory])
                    done = []
            self._mark(done)
            self._context.check()

    def _subjects(self, numbers: frozenset[int]) -> tuple[list[_Subject], list[Memory]]:
        """Those of these numbers that can be compared; and those which never can with this text."""
        found: list[_Subject] = []
        never: list[Memory] = []
        for memory, vector in (each for batch in self._live() for each in batch):
            if memory.number not in numbers:
                continue
            if can_be_compared(memory, now=self._now):
                found.append(_Subject(memory, vector))
            elif said_at(memory) <= self._now:
                never.append(memory)
        return found, never

    def _live(self) -> Iterator[Sequence[tuple[Memory, Vector]]]:
        for batch in self._store.live(self._partition, batch=_READ):
            found = [(each.memory, each.vector) for each in batch]
            known = [(memory, vector) for memory, vector in found if memory is not None and vector is not None]
            if known:
                yield known
            self._context.check()

    def _find(self, subjects: Sequence[_Subject]) -> None:
        """Give each the nearest that it may meet: of two that nobody has compared the later one asks, so that each
        pair is asked about once.
        """
        if not subjects:
            return
        vectors = np.stack([each.vector for each in subjects])
        meeting = _Meeting([each.memory for each in subjects], self._left)
        for batch in self._live():
            others = [(memory, vector) for memory, vector in batch if can_be_compared(memory, now=self._now)]
            allowed = meeting.allowed([memory for memory, _ in others])
            if not allowed.any():
                continue
            cosines = np.where(allowed, vectors @ np.stack([vector for _, vector in others]).T, -1.0)
            floors = np.array([each.floor for each in subjects])
            better = np.flatnonzero((cosines >= floors[:, None]).any(axis=1))
            for place in better.tolist():
                for column in np.argsort(-cosines[place], kind="stable")[:NEAREST].tolist():
                    if cosines[place, column] >= NEAR:
                        subjects[place].offer(float(cosines[place, column]), others[column][0])

    def _ask(self, subject: _Subject) -> bool:
        """Ask about a memory's pairs, nearest first, and write what has ended. Whether all were answered."""
        failed = False
        for neighbour in sorted(subject.near, reverse=True):
            present = self._present(subject.memory, neighbour.memory)
            if len(present) < 2:
                continue
            old, new = in_order(*present)
            if is_settled(old, new):
                continue
            try:
                answer = self._comparer.compare(_told(old), _told(new))
            except (ModelError, BackendRejected) as error:
                failed = True
                self._tally.asked += 1
                self._tally.failures.note(error, older=old.id, newer=new.id)
                continue
            self._tally.asked += 1
            self._tally.failures.note_success()
            self._tally.relations[answer.relation] += 1
            self._note(old, new, neighbour.cosine, answer, self._end(old, new, answer.relation))
        self._tally.compared += not failed
        self._context.report(self._tally.compared, None, "memories compared")
        return not failed

    def _present(self, *memories: Memory) -> list[Memory]:
        """The memories as they stand, answers of this run included; without what was changed or went since."""
        read = {memory.id: memory.content_hash for memory in memories}
        found = self._store.get(self._partition.tenant, list(read))
        return [each for each in found if each.content_hash == read[each.id] and can_be_compared(each, now=self._now)]

    def _end(self, old: Memory, new: Memory, relation: Relation) -> bool:
        """Whether something of the old one has ended by this answer, or would (``dry_run``)."""
        ended = endings(old, new, relation)
        if not ended:
            return False
        ending = Ending(self._partition.tenant, old.id, old.content_hash, ended, {new.id: new.content_hash})
        [result] = self._store.end([ending], dry_run=self._dry_run, now=self._context.around.clock())
        self._tally.ended += isinstance(result, Memory)
        self._tally.skipped += isinstance(result, Conflict)
        return isinstance(result, Memory)

    def _note(self, old: Memory, new: Memory, cosine: float, answer: Answer, ended: bool) -> None:
        if len(self._tally.pairs) >= _SHOWN or not (self._dry_run or answer.relation in _CONFLICTS):
            return
        self._tally.pairs.append(
            {
                "tenant": self._partition.tenant,
                "user_id": self._partition.user_id,
                "bank": self._partition.bank,
                "older": old.id,
                "newer": new.id,
                "dated": is_newer(new, old),
                "cosine": round(cosine, 4),
                "relation": answer.relation.value,
                "reason": answer.reason,
                "ended": ended,
            }
        )

    def _mark(self, memories: Sequence[Memory]) -> None:
        """Note that these were compared."""
        if not self._dry_run and memories:
            self._store.put_claims([(each, [*claim_keys(read_memory(each)), COMPARED]) for each in memories])


def _told(memory: Memory) -> Told:
    return Told(said_at(memory), testimony(memory) or "", memory.speaker, memory.title)
