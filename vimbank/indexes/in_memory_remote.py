"""The reference of indexes outside the process, in dicts: what every ``RemoteIndex`` does, without an engine."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vimbank.domain.memory_text import lexical_text
from vimbank.domain.models import BoolArray, Change, FloatArray, IntArray, Partition
from vimbank.domain.text import analyze
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.ports import LexicalQuery, PartitionIndex, SparseLeg

__all__ = ["InMemoryRemote", "RemotePostings"]


@dataclass(slots=True)
class _Contents:
    """What was applied, by number, tombstones included; and what of it can be searched."""

    applied: dict[int, Change] = field(default_factory=dict)
    searchable: dict[int, Change] = field(default_factory=dict)
    cursor: int = 0


class InMemoryRemote:
    """``RemoteIndex`` in memory. Thread-safe; several followers may share one, as processes share an engine.

    Args:    name: the leg that it serves.  before: called ahead of each call with its name; may raise, or wait.
    """

    def __init__(self, name: str = "sparse", *, before: Callable[[str], None] = lambda _call: None) -> None:
        self.name = name
        self._before = before
        self._lock = threading.Lock()
        self._contents = _Contents()

    def cursor(self) -> int:
        """See ``RemoteIndex.cursor``."""
        self._before("cursor")
        with self._lock:
            return self._contents.cursor

    def apply(self, changes: Sequence[Change]) -> None:
        """See ``RemoteIndex.apply``."""
        self._before("apply")
        with self._lock:
            applied = self._contents.applied
            for change in changes:
                former = applied.get(change.number)
                if former is None or former.revision < change.revision:
                    applied[change.number] = change

    def advance(self, cursor: int) -> None:
        """See ``RemoteIndex.advance``. A cursor is never set back."""
        self._before("advance")
        with self._lock:
            contents = self._contents
            contents.searchable = {
                number: change
                for number, change in contents.applied.items()
                if change.memory is not None and change.memory.indexed
            }
            contents.cursor = max(contents.cursor, cursor)

    def holds(self, partition: Partition) -> Mapping[int, int]:
        """See ``RemoteIndex.holds``."""
        self._before("holds")
        return {change.number: change.revision for change in self.searchable(partition)}

    def reset(self) -> None:
        """See ``RemoteIndex.reset``."""
        self._before("reset")
        with self._lock:
            self._contents = _Contents()

    def searchable(self, partition: Partition) -> list[Change]:
        """The memories of a partition that a search finds, by number."""
        with self._lock:
            found = [each for each in self._contents.searchable.values() if each.partition == partition]
        return sorted(found, key=lambda change: change.number)


class RemotePostings:
    """``SparseSearch`` on an ``InMemoryRemote``: the postings are made anew for each search."""

    remote = True

    def __init__(
        self, remote: InMemoryRemote, *, k1: float = 1.2, b: float = 0.75, before: Callable[[], None] = lambda: None
    ) -> None:
        self._remote = remote
        self._k1 = k1
        self._b = b
        self._before = before

    def search(self, index: PartitionIndex, query: LexicalQuery, *, allowed: BoolArray | None, limit: int) -> SparseLeg:
        """See ``SparseSearch.search``."""
        self._before()
        held = self._remote.searchable(index.partition)
        postings = PostingsIndex(k1=self._k1, b=self._b)
        postings.append([analyze(lexical_text(each.memory)) for each in held if each.memory is not None])
        result = postings.score(query.terms)
        scores = np.zeros(len(index))
        rows = index.rows([each.id for each in held])
        scores[rows[rows >= 0]] = result.scores[rows >= 0]

        def score(wanted: IntArray) -> FloatArray:
            return scores[wanted]

        hits = np.flatnonzero(scores if allowed is None else np.where(allowed, scores, 0.0))
        best = hits[np.lexsort((index.column("number")[hits], -scores[hits]))][:limit]
        return SparseLeg(np.sort(best), score, float(scores[best].max(initial=0.0)), result.upper_bound)
