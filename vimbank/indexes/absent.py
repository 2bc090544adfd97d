"""Stand-ins for a leg that lives in an engine outside the process: they count rows, and hold nothing.

A partition keeps its roster in step with its legs by row. Where a leg lives elsewhere, its place is taken by one of
these, and a search of it is a mistake in the program.
"""

from collections.abc import Sequence
from typing import Final, NoReturn

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray, Vector, Vectors
from vimbank.errors import IndexCorrupt
from vimbank.ports import Arrays, SparseScores

__all__ = ["AbsentDense", "AbsentSparse"]

_COUNT: Final = "count"


class _RowCount:
    """How many rows there are."""

    def __init__(self) -> None:
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def remove(self, row: int) -> None:
        """One row fewer. Raises IndexError where there is no such row."""
        self._check(row)
        self._count -= 1

    def dump(self) -> Arrays:
        """The count."""
        return {_COUNT: self._count}

    def restore(self, arrays: Arrays) -> None:
        """Take the count of a ``dump``. Raises IndexCorrupt where it is the dump of an index that holds something."""
        if set(arrays) != {_COUNT}:
            raise IndexCorrupt("absent", "the saved leg holds data, but it lives elsewhere now")
        self._count = int(arrays[_COUNT])

    @property
    def nbytes(self) -> int:
        """Nothing worth counting."""
        return 0

    def _check(self, row: int) -> None:
        if not 0 <= row < self._count:
            raise IndexError(f"row {row} of {self._count}")


class AbsentDense(_RowCount):
    """``DenseIndex`` of a partition whose vectors live elsewhere.

    Args:    dimension: of the vectors, for whoever asks an empty index for their shape.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self._dimension = dimension

    def append(self, vectors: Vectors) -> None:
        """As many rows more."""
        self._count += len(vectors)

    def replace(self, row: int, vector: Vector) -> None:  # noqa: ARG002
        """Nothing but a check of the row."""
        self._check(row)

    def search(self, vector: Vector, *, allowed: BoolArray | None, top_k: int) -> IntArray:  # noqa: ARG002
        """Raises RuntimeError."""
        _absent("vectors")

    def score(self, vector: Vector, rows: IntArray) -> FloatArray:  # noqa: ARG002
        """Raises RuntimeError."""
        _absent("vectors")

    def vectors(self, rows: IntArray) -> Vectors:
        """(0, d) for no rows. Raises RuntimeError for any."""
        if len(rows):
            _absent("vectors")
        return np.empty((0, self._dimension), dtype=np.float32)


class AbsentSparse(_RowCount):
    """``SparseIndex`` of a partition whose terms live elsewhere."""

    def append(self, documents: Sequence[Sequence[str]]) -> None:
        """As many rows more."""
        self._count += len(documents)

    def replace(self, row: int, terms: Sequence[str]) -> None:  # noqa: ARG002
        """Nothing but a check of the row."""
        self._check(row)

    def score(self, terms: Sequence[str]) -> SparseScores:  # noqa: ARG002
        """Raises RuntimeError."""
        _absent("terms")


def _absent(what: str) -> NoReturn:
    raise RuntimeError(f"the {what} of this partition live in another engine: the in-process index cannot be asked")
