"""The in-process stand-in for vectors that an engine keeps: it counts rows, so that they stay those of the roster."""

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray, Vector, Vectors
from vimbank.indexes.dense.block import unit_rows
from vimbank.ports import Arrays

__all__ = ["ElsewhereIndex"]


class ElsewhereIndex:
    """A ``DenseIndex`` without vectors: every row's is zero, which is near nothing.

    It takes no memory. What it is given is checked all the same, so that both forms refuse the same vectors.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return 0

    def append(self, vectors: Vectors) -> None:
        self._count += len(unit_rows(vectors, self._dimension))

    def replace(self, row: int, vector: Vector) -> None:  # noqa: ARG002
        unit_rows(vector[None], self._dimension)

    def remove(self, row: int) -> None:  # noqa: ARG002
        self._count -= 1

    def search(self, vector: Vector, *, allowed: BoolArray | None, top_k: int) -> IntArray:  # noqa: ARG002
        rows = np.arange(self._count) if allowed is None else np.flatnonzero(allowed)
        return rows[:top_k]

    def score(self, vector: Vector, rows: IntArray) -> FloatArray:  # noqa: ARG002
        return np.zeros(len(rows))

    def vectors(self, rows: IntArray) -> Vectors:
        return np.zeros((len(rows), self._dimension), dtype=np.float32)

    def dump(self) -> Arrays:
        """``rows``, how many there are."""
        return {"rows": np.array([self._count], dtype=np.int64)}

    def restore(self, arrays: Arrays) -> None:
        self._count = int(arrays["rows"][0])
