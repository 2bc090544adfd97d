"""One partition's in-process index: roster, dense and sparse index, row for row the same memories."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

import numpy as np

from vimbank.domain.filters import And, Condition, Filter
from vimbank.domain.memory_text import lexical_text
from vimbank.domain.models import BoolArray, Change, FloatArray, IntArray, Memory, Partition, Vector
from vimbank.domain.times import to_seconds
from vimbank.errors import IndexCorrupt
from vimbank.indexes.absent import AbsentSparse
from vimbank.indexes.roster import Roster, content_number
from vimbank.ports import Arrays, DenseIndex, SparseIndex

__all__ = ["LocalPartition"]

_T = TypeVar("_T")

_LEGS: Final = ("roster", "dense", "sparse")
_COMPARED_ROWS: Final = 4_096
_COMPARED_TERMS: Final = 256
_VECTOR_TOLERANCE: Final = 1e-5
_SCORE_TOLERANCE: Final = 1e-9


class LocalPartition:
    """A ``PartitionIndex`` that the feed writes.

    Args:    dense, sparse: empty indexes, owned from now on; one that lives elsewhere is ``AbsentDense`` or
                 ``AbsentSparse``.  analyze: text to terms, the same as the queries'.
    Attributes:
        cursor: the revision up to which the feed has applied changes; the feed sets it.
    """

    def __init__(
        self,
        partition: Partition,
        dense: DenseIndex,
        sparse: SparseIndex,
        analyze: Callable[[str], Sequence[str]],
    ) -> None:
        self._partition = partition
        self.dense = dense
        self.sparse = sparse
        self.cursor = 0
        self._analyze = analyze
        self._empty_dense, self._empty_sparse = copy.deepcopy(dense), copy.deepcopy(sparse)  # for copies
        self._roster = Roster()

    @property
    def partition(self) -> Partition:
        return self._partition

    def __len__(self) -> int:
        return len(self._roster)

    @property
    def nbytes(self) -> int:
        """About the memory held, bytes."""
        return self._roster.nbytes + self.dense.nbytes + self.sparse.nbytes

    # -- reading --

    def ids(self, rows: IntArray) -> list[str]:
        return self._roster.ids(rows)

    def rows(self, ids: Sequence[str]) -> IntArray:
        return self._roster.rows(ids)

    def column(self, name: str) -> FloatArray:
        return self._roster.column(name)

    def neighbours(self, rows: IntArray, radius: int) -> IntArray:
        return self._roster.neighbours(rows, radius)

    def titles(self) -> Mapping[str, Sequence[int]]:
        return self._roster.titles()

    def select(
        self, filter: Filter | None, *, now: datetime, session_id: str | None = None, agent_id: str | None = None
    ) -> BoolArray | None:
        """Mask of rows that may be returned; a memory expires at ``expires_at`` and is valid before ``valid_to``."""
        scopes = {"session_id": session_id, "agent_id": agent_id}
        parts: list[Filter] = [Condition(name, "eq", value) for name, value in scopes.items() if value is not None]
        if filter is not None:
            parts.append(filter)
        gone = self._gone(to_seconds(now))
        if not parts and not gone.any():
            return None
        mask = self._roster.select(And(parts)) & ~gone
        return None if mask.all() else mask

    def _gone(self, now: float) -> BoolArray:
        """Rows that have expired or are not valid at this instant; NaN, no bound, compares false."""
        gone: BoolArray = self.column("expires_at") <= now
        gone |= self.column("valid_to") <= now
        gone |= self.column("valid_from") > now
        return gone

    # -- writing: the feed alone --

    def apply(self, changes: Sequence[Change]) -> None:
        """Bring the index to the state that the changes describe, the newest of each id.

        A memory that is indexed replaces its former state; one that is not, and a tombstone, leaves. A change that
        is not newer than the row it speaks of is skipped, so applying twice changes nothing.

        Raises:  InvalidInput: a vector of another dimension, or not finite. What came before it may be applied, the
                     legs agree, and the changes can be applied again once it is mended.
        """
        newest: dict[str, Change] = {}
        for change in changes:
            if change.id not in newest or newest[change.id].revision <= change.revision:
                newest[change.id] = change
        wanted = [change for change in newest.values() if not self._is_stale(change)]
        added = [change for change in wanted if _is_indexed(change) and self._roster.row(change.id) is None]
        # New rows go in together, which each leg does much faster than one by one.
        self._append(added)
        fresh = {change.id for change in added}
        for change in wanted:
            if change.id not in fresh:
                self._apply_one(change)

    def _is_stale(self, change: Change) -> bool:
        row = self._roster.row(change.id)
        return row is not None and change.revision <= self.column("revision")[row]

    def _append(self, changes: Sequence[Change]) -> None:
        if not changes:
            return
        memories = [change.memory for change in changes if change.memory is not None]
        vectors = np.stack([self._vector(change) for change in changes])
        terms = [self._terms(memory) for memory in memories]
        self.dense.append(vectors)
        self.sparse.append(terms)
        self._roster.append(memories)

    def _apply_one(self, change: Change) -> None:
        row = self._roster.row(change.id)
        if row is None:
            return
        if change.memory is not None and _is_indexed(change):
            # A recall or a new expiry says nothing new to the legs; most changes after the first are of that kind.
            if self.column("content")[row] != content_number(change.memory):
                terms = self._terms(change.memory)
                self.dense.replace(row, self._vector(change))
                self.sparse.replace(row, terms)
            self._roster.replace(row, change.memory)
        else:
            self.dense.remove(row)
            self.sparse.remove(row)
            self._roster.remove(row)

    def _vector(self, change: Change) -> Vector:
        """The change's vector; zeros, which no query is near to, where the memory has none."""
        if change.vector is not None:
            return change.vector
        dimension = self.dense.vectors(np.empty(0, dtype=np.int64)).shape[1]
        return np.zeros(dimension, dtype=np.float32)

    def _terms(self, memory: Memory) -> Sequence[str]:
        if isinstance(self.sparse, AbsentSparse):
            return ()  # nobody reads them
        return self._analyze(lexical_text(memory))

    # -- saved form --

    def dump(self) -> Arrays:
        """The three legs' arrays, named ``leg.array``; views, valid until the next change."""
        parts = {"roster": self._roster.dump(), "dense": self.dense.dump(), "sparse": self.sparse.dump()}
        return {f"{leg}.{name}": array for leg, arrays in parts.items() for name, array in arrays.items()}

    def restore(self, arrays: Arrays) -> None:
        """Take the state of a ``dump``. Raises IndexCorrupt where the legs do not hold the same number of rows."""
        parts: dict[str, Arrays] = {leg: {} for leg in _LEGS}
        for name, array in arrays.items():
            leg, _, rest = name.partition(".")
            parts.setdefault(leg, {})[rest] = array
        try:
            self._roster.restore(parts["roster"])
            self.dense.restore(parts["dense"])
            self.sparse.restore(parts["sparse"])
        except (KeyError, ValueError) as exc:
            raise IndexCorrupt("partition", f"the saved arrays cannot be used: {exc}") from exc
        if not len(self._roster) == len(self.dense) == len(self.sparse):
            raise IndexCorrupt("partition", "the saved legs hold different numbers of rows")

    def copy(self) -> "LocalPartition":
        """The same, apart: it stays as it is, whatever becomes of this one. Without what is built lazily."""
        made = LocalPartition(
            self._partition, copy.deepcopy(self._empty_dense), copy.deepcopy(self._empty_sparse), self._analyze
        )
        made.dense.restore(_copied(self.dense.dump()))
        made.sparse.restore(_copied(self.sparse.dump()))
        made._roster = self._roster.copy()
        made.cursor = self.cursor
        return made

    # -- checking --

    def compare(self, live: Iterable[Change]) -> list[str]:
        """Differences to what the store holds, [] where there are none. Of a leg that lives elsewhere only the count.

        Args:    live: every indexed memory of the partition, with its vector.
        """
        known = {change.id: change for change in live if _is_indexed(change)}
        counts = {"roster": len(self._roster), "dense": len(self.dense), "sparse": len(self.sparse)}
        problems = [
            f"{leg}: {count} rows, the store has {len(known)} memories"
            for leg, count in counts.items()
            if count != len(known)
        ]
        here = self._roster.all_ids()
        problems += [f"{one}: missing from the index" for one in known if self._roster.row(one) is None]
        problems += [f"{one}: in the index but not in the store" for one in here if one not in known]
        shared = [(row, known[one]) for row, one in enumerate(here) if one in known]
        problems += self._stale_rows(shared)
        if len(self.dense) == len(here) and self.dense.nbytes:  # none: an engine keeps the vectors
            problems += self._wrong_vectors(shared)
        # Each row's score depends on all rows: where ids differ there is nothing to compare it with.
        comparable = len(self.sparse) == len(here) == len(shared) == len(known)
        if comparable and not isinstance(self.sparse, AbsentSparse):
            problems += self._wrong_terms(shared)
        return problems

    def _stale_rows(self, rows: Sequence[tuple[int, Change]]) -> list[str]:
        revisions = self.column("revision")
        return [
            f"{change.id}: indexed at revision {revisions[row]:.0f}, the store has {change.revision}"
            for row, change in rows
            if revisions[row] != change.revision
        ]

    def _wrong_vectors(self, rows: Sequence[tuple[int, Change]]) -> list[str]:
        problems = []
        for batch in _batches(rows, _COMPARED_ROWS):
            held = self.dense.vectors(np.array([row for row, _ in batch], dtype=np.int64))
            wanted = np.stack([self._vector(change) for _, change in batch])
            lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
            wrong = np.abs(held * np.where(lengths > 0, lengths, 1) - wanted).max(axis=1) > _VECTOR_TOLERANCE
            problems += [
                f"{change.id}: the dense leg holds another vector"
                for (_, change), is_wrong in zip(batch, wrong.tolist(), strict=True)
                if is_wrong
            ]
        return problems

    def _wrong_terms(self, rows: Sequence[tuple[int, Change]]) -> list[str]:
        """Compares the scores of every term with those of an index made anew of the same rows in the same order.

        Many terms share a query, so that the work grows with the rows and not with rows times terms.
        """
        documents = [self._terms(change.memory) for _, change in rows if change.memory is not None]
        anew = copy.deepcopy(self._empty_sparse)
        anew.append(documents)
        vocabulary = list(dict.fromkeys(term for document in documents for term in document))
        wrong = np.zeros(len(rows), dtype=np.bool_)
        for terms in _batches(vocabulary, _COMPARED_TERMS):
            wrong |= np.abs(self.sparse.score(terms).scores - anew.score(terms).scores) > _SCORE_TOLERANCE
        return [f"{rows[at][1].id}: the sparse leg holds other terms" for at in np.flatnonzero(wrong).tolist()]


def _batches(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _copied(arrays: Arrays) -> Arrays:
    return {name: each.copy() if isinstance(each, np.ndarray) else each for name, each in arrays.items()}


def _is_indexed(change: Change) -> bool:
    return change.memory is not None and change.memory.indexed
