"""The legs of a search on indexes outside the process: followed first, and left alone while their engine is down."""

from typing import Final

from vimbank.domain.models import BoolArray, FloatArray, IntArray, Vector
from vimbank.feed.remote import RemoteFollower
from vimbank.ports import DenseLeg, DenseSearch, LexicalQuery, PartitionIndex, SparseLeg, SparseSearch

__all__ = ["FollowedDense", "FollowedSparse"]


class FollowedSparse:
    """``SparseSearch`` on an index that holds at least what the roster holds when it is asked."""

    remote: Final = True

    def __init__(self, follower: RemoteFollower, search: SparseSearch) -> None:
        self._follower = follower
        self._search = search

    def search(self, index: PartitionIndex, query: LexicalQuery, *, allowed: BoolArray | None, limit: int) -> SparseLeg:
        """See ``SparseSearch.search``."""
        with self._follower.answering(index.cursor):
            leg = self._search.search(index, query, allowed=allowed, limit=limit)

        def score(rows: IntArray) -> FloatArray:
            with self._follower.answering(index.cursor):
                return leg.score(rows)

        return SparseLeg(leg.rows, score, leg.best, leg.upper_bound, leg.degraded)


class FollowedDense:
    """``DenseSearch`` on an index that holds at least what the roster holds when it is asked."""

    remote: Final = True

    def __init__(self, follower: RemoteFollower, search: DenseSearch) -> None:
        self._follower = follower
        self._search = search

    def search(self, index: PartitionIndex, vector: Vector, *, allowed: BoolArray | None, limit: int) -> DenseLeg:
        """See ``DenseSearch.search``."""
        with self._follower.answering(index.cursor):
            leg = self._search.search(index, vector, allowed=allowed, limit=limit)

        def score(rows: IntArray) -> FloatArray:
            with self._follower.answering(index.cursor):
                return leg.score(rows)

        return DenseLeg(leg.rows, score, leg.asked)
