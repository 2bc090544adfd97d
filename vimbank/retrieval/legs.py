"""The two legs of a search on the in-process indexes, and what stands in for a leg that is not asked."""

from typing import Final

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray, Vector
from vimbank.errors import BackendUnavailable
from vimbank.ports import DenseLeg, LexicalQuery, PartitionIndex, SparseLeg, SparseSearch

__all__ = ["NO_DENSE_LEG", "NO_SPARSE_LEG", "LocalDense", "LocalSparse", "SubstitutedSparse"]

_NO_ROWS: Final = np.empty(0, dtype=np.int64)
_SAMPLE_STEP: Final = 16


def _zeros(rows: IntArray) -> FloatArray:
    return np.zeros(len(rows))


NO_SPARSE_LEG: Final = SparseLeg(_NO_ROWS, _zeros, 0.0, 0.0)
"""The leg of a query without terms, or of one that does not ask it."""

NO_DENSE_LEG: Final = DenseLeg(_NO_ROWS, _zeros, asked=False)
"""The leg of a query without a vector, or of one that does not ask it."""


class LocalSparse:
    """``SparseSearch`` on the partition's own sparse index, which scores every row at once."""

    remote: Final = False

    def search(self, index: PartitionIndex, query: LexicalQuery, *, allowed: BoolArray | None, limit: int) -> SparseLeg:
        """See ``SparseSearch.search``."""
        if not query.terms:
            return NO_SPARSE_LEG
        result = index.sparse.score(query.terms)
        hits = _hits(result.scores if allowed is None else np.where(allowed, result.scores, 0.0), limit)
        if not len(hits):
            return SparseLeg(_NO_ROWS, result.scores.__getitem__, 0.0, result.upper_bound)
        scores = result.scores[hits]
        best = float(scores.max())
        return SparseLeg(_best_rows(index, hits, scores, limit), result.scores.__getitem__, best, result.upper_bound)


class LocalDense:
    """``DenseSearch`` on the partition's own dense index."""

    remote: Final = False

    def search(self, index: PartitionIndex, vector: Vector, *, allowed: BoolArray | None, limit: int) -> DenseLeg:
        """See ``DenseSearch.search``. A zero vector is near nothing: no rows."""
        if not len(index) or not vector.any():
            return NO_DENSE_LEG

        def score(rows: IntArray) -> FloatArray:
            return index.dense.score(vector, rows) if len(rows) else np.zeros(0)

        return DenseLeg(np.sort(index.dense.search(vector, allowed=allowed, top_k=limit)), score)


class SubstitutedSparse:
    """``SparseSearch`` on an engine, with the in-process index in its place while the engine is down.

    The answer says so (``degraded``), as the two may differ in the statistics they score by.
    """

    def __init__(self, engine: SparseSearch, substitute: SparseSearch) -> None:
        self._engine = engine
        self._substitute = substitute

    @property
    def remote(self) -> bool:
        """As the engine is."""
        return self._engine.remote

    def search(self, index: PartitionIndex, query: LexicalQuery, *, allowed: BoolArray | None, limit: int) -> SparseLeg:
        """See ``SparseSearch.search``."""
        try:
            return self._engine.search(index, query, allowed=allowed, limit=limit)
        except BackendUnavailable:
            leg = self._substitute.search(index, query, allowed=allowed, limit=limit)
            return SparseLeg(leg.rows, leg.score, leg.best, leg.upper_bound, degraded=True)


def _hits(scores: FloatArray, limit: int) -> IntArray:
    """Rows above 0, ascending; of many rows only those that can be among the ``limit`` best, ties included.

    The limit-th best of a sample is never above the limit-th best of all, and much cheaper to find.
    """
    sample = scores[::_SAMPLE_STEP]
    if len(sample) <= limit:
        return np.flatnonzero(scores)
    bound = np.partition(sample, len(sample) - limit)[len(sample) - limit]
    return np.flatnonzero(scores >= bound) if bound > 0.0 else np.flatnonzero(scores)


def _best_rows(index: PartitionIndex, rows: IntArray, scores: FloatArray, limit: int) -> IntArray:
    if len(rows) <= limit:
        return rows
    cut = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    above, ties = rows[scores > cut], rows[scores == cut]
    first = ties[np.argsort(index.column("number")[ties], kind="stable")]
    return np.sort(np.concatenate([above, first[: limit - len(above)]]))
