"""One contiguous float32 block of vectors with spare room, shared by the dense indexes."""

from typing import Final

import numpy as np

from vimbank.domain.models import FloatArray, IntArray, Vector, Vectors
from vimbank.errors import InvalidInput

__all__ = ["VectorBlock", "best_rows", "unit_rows"]

_GROWTH: Final = 1.5
_UNIT_TOLERANCE: Final = 1e-4  # of the squared length; float32 rounding of a unit vector stays below


def unit_rows(vectors: Vectors, dimension: int) -> Vectors:
    """The rows at unit length, zero rows as they are; a row that is unit already keeps its bits (cases 10, 15).

    Raises:  InvalidInput: not (n, dimension), or a value that is not finite.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise InvalidInput.of("vector", f"must have {dimension} dimensions, has shape {rows.shape}")
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    if not np.isfinite(squares).all():
        raise InvalidInput.of("vector", "must hold finite numbers")
    off = (np.abs(squares - 1.0) > _UNIT_TOLERANCE) & (squares > 0.0)
    if off.any():
        rows = rows.copy()
        rows[off] /= np.sqrt(squares[off])[:, None]
    return rows


def best_rows(scores: Vectors, top_k: int) -> IntArray:
    """Indices of the ``top_k`` highest scores, best first, equal ones by index; none for top_k <= 0."""
    if top_k <= 0:
        return np.empty(0, dtype=np.int64)
    if top_k < len(scores):
        chosen = np.argpartition(scores, len(scores) - top_k)[len(scores) - top_k :]
        chosen.sort()
    else:
        chosen = np.arange(len(scores))
    return chosen[np.argsort(-scores[chosen], kind="stable")].astype(np.int64, copy=False)


class VectorBlock:
    """Rows of unit float32 vectors; appends in amortised constant time, removal by swap-with-last.

    A block given to ``restore`` may be memory-mapped and read-only: it is copied on the first write.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._data: Vectors = np.empty((0, dimension), dtype=np.float32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Vectors:
        """(n, d) view, valid until the next change."""
        return self._data[: self._count]

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    def append(self, vectors: Vectors) -> None:
        self._reserve(self._count + len(vectors))
        self._data[self._count : self._count + len(vectors)] = vectors
        self._count += len(vectors)

    def replace(self, row: int, vector: Vector) -> None:
        self._reserve(self._count)
        self._data[row] = vector

    def remove(self, row: int) -> None:
        self._reserve(self._count)
        self._count -= 1
        self._data[row] = self._data[self._count]

    def restore(self, vectors: Vectors) -> None:
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension or vectors.dtype != np.float32:
            raise ValueError(f"not a float32 block of {self.dimension} dimensions: {vectors.dtype} {vectors.shape}")
        self._data, self._count = np.asarray(vectors), len(vectors)

    def cosines(self, vector: Vector, rows: IntArray) -> FloatArray:
        """Cosine in [-1, 1] with each row, summed in float64, bit-equal wherever the row stands (case 12)."""
        products = self._data[rows].astype(np.float64)
        products *= vector.astype(np.float64)
        sums: FloatArray = products.sum(axis=1)
        return np.clip(sums, -1.0, 1.0, out=sums)

    def _reserve(self, count: int) -> None:
        """Room for ``count`` rows, in memory of our own."""
        capacity = len(self._data)
        if count <= capacity and self._data.flags.writeable:
            return
        grown = np.empty(
            (max(count, int(capacity * _GROWTH)) if count > capacity else capacity, self.dimension), np.float32
        )
        grown[: self._count] = self._data[: self._count]
        self._data = grown
