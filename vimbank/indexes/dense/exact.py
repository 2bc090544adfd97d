"""The reference dense index: numpy, every row, nothing approximated."""

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray, Vector, Vectors
from vimbank.indexes.dense.block import VectorBlock, best_rows, unit_rows
from vimbank.ports import Arrays

__all__ = ["ExactIndex"]


class ExactIndex:
    """A ``DenseIndex`` that multiplies the whole block with the query. Vectors of another length are made unit."""

    def __init__(self, dimension: int) -> None:
        self._block = VectorBlock(dimension)

    def __len__(self) -> int:
        return len(self._block)

    @property
    def nbytes(self) -> int:
        return self._block.nbytes

    def append(self, vectors: Vectors) -> None:
        self._block.append(unit_rows(vectors, self._block.dimension))

    def replace(self, row: int, vector: Vector) -> None:
        self._block.replace(row, unit_rows(vector[None], self._block.dimension)[0])

    def remove(self, row: int) -> None:
        self._block.remove(row)

    def search(self, vector: Vector, *, allowed: BoolArray | None, top_k: int) -> IntArray:
        rows = np.arange(len(self)) if allowed is None else np.flatnonzero(allowed)
        query = unit_rows(vector[None], self._block.dimension)[0]
        scores = self._block.rows[rows].astype(np.float64) @ query.astype(np.float64)
        return rows[best_rows(scores, top_k)]

    def score(self, vector: Vector, rows: IntArray) -> FloatArray:
        return self._block.cosines(unit_rows(vector[None], self._block.dimension)[0], rows)

    def vectors(self, rows: IntArray) -> Vectors:
        return self._block.rows[rows]

    def dump(self) -> Arrays:
        """``vectors``, a view valid until the next change."""
        return {"vectors": self._block.rows}

    def restore(self, arrays: Arrays) -> None:
        self._block.restore(arrays["vectors"])
