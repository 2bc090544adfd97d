"""The two legs of a search in one partition: which rows each of them brings, among those that may be returned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray, Vector
from vimbank.ports import PartitionIndex

__all__ = ["DenseLeg", "SparseLeg", "dense_leg", "no_dense_leg", "no_sparse_leg", "sparse_leg"]


@dataclass(frozen=True, slots=True)
class SparseLeg:
    """The rows the keyword search brings, ascending, and what it knows of all rows.

    ``scores`` is the BM25 of every row of the partition; ``best`` the largest among the rows allowed; both figures
    and ``upper_bound`` are 0 where the query has no term in the partition.
    """

    rows: IntArray
    scores: FloatArray
    best: float
    upper_bound: float


@dataclass(frozen=True, slots=True)
class DenseLeg:
    """The rows the vector search brings, ascending, and the vector; None: there was no vector to search with."""

    rows: IntArray
    vector: Vector | None

    def score(self, index: PartitionIndex, rows: IntArray) -> FloatArray:
        """Cosine of any rows; 0 where there is no vector."""
        if self.vector is None or not len(rows):
            return np.zeros(len(rows))
        return index.dense.score(self.vector, rows)


_NO_ROWS: Final = np.empty(0, dtype=np.int64)
_SAMPLE_STEP: Final = 16


def sparse_leg(index: PartitionIndex, terms: Sequence[str], *, allowed: BoolArray | None, limit: int) -> SparseLeg:
    """The ``limit`` best rows by BM25 among those allowed; a row that shares no term is no hit.

    Of rows that tie at the cut those with the smallest ``number`` stay, so the answer does not depend on where a
    row stands.
    """
    if not terms:
        return no_sparse_leg(index)
    result = index.sparse.score(terms)
    hits = _hits(result.scores if allowed is None else np.where(allowed, result.scores, 0.0), limit)
    if not len(hits):
        return SparseLeg(_NO_ROWS, result.scores, 0.0, result.upper_bound)
    scores = result.scores[hits]
    best = float(scores.max())
    return SparseLeg(_best_rows(index, hits, scores, limit), result.scores, best, result.upper_bound)


def dense_leg(index: PartitionIndex, vector: Vector | None, *, allowed: BoolArray | None, limit: int) -> DenseLeg:
    """The ``limit`` nearest rows among those allowed. A zero vector is near nothing: no rows."""
    if vector is None or not len(index) or not vector.any():
        return no_dense_leg()
    return DenseLeg(np.sort(index.dense.search(vector, allowed=allowed, top_k=limit)), vector)


def no_sparse_leg(index: PartitionIndex) -> SparseLeg:
    """The leg of a query without terms, or of one that does not ask it."""
    return SparseLeg(_NO_ROWS, np.zeros(len(index)), 0.0, 0.0)


def no_dense_leg() -> DenseLeg:
    """The leg of a query without a vector, or of one that does not ask it."""
    return DenseLeg(_NO_ROWS, None)


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
