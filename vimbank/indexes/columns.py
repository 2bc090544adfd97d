"""Columns over rows: dictionary-encoded values, and filter conditions evaluated on the distinct ones."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vimbank.domain.filters import Condition, identity, predicate
from vimbank.domain.models import BoolArray

__all__ = ["CodedColumn", "Codes", "grown"]

Codes = NDArray[np.int32]

_GROWTH: Final = 1.5
_SLACK: Final = 1_024
_COMPOUND: Final = (list, tuple, dict)


def grown(array: NDArray[Any], count: int) -> NDArray[Any]:
    """The array with room for ``count`` entries on its last axis, in memory that can be written."""
    capacity = array.shape[-1]
    if count <= capacity:
        return array
    larger = np.empty((*array.shape[:-1], max(count, int(capacity * _GROWTH) + 16)), dtype=array.dtype)
    larger[..., :capacity] = array
    return larger


class CodedColumn:
    """One value a row as an int32 code into the distinct values; -1 where there is none.

    Equal values, as ``domain.filters`` understands equality, share a code.
    """

    def __init__(self, values: Iterable[object] = ()) -> None:
        self._codes: Codes = np.empty(0, dtype=np.int32)
        self._count = 0
        self._values: list[object] = []
        self._known: dict[Hashable, int] | None = {}  # code by identity; None: not built since the restore
        self._compound: list[int] = []  # codes of lists and objects: eq may hold for a part of them
        self.extend(values)

    def __len__(self) -> int:
        return self._count

    @property
    def codes(self) -> Codes:
        """(n,) int32 view, valid until the next change."""
        return self._codes[: self._count]

    @property
    def values(self) -> Sequence[object]:
        """The distinct values by code; some may not be borne by any row any more."""
        return self._values

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + 150 * len(self._values)

    def extend(self, values: Iterable[object]) -> None:
        """Add rows at the end; None is no value."""
        new = [self._code(value) for value in values]
        self._codes = grown(self._codes, self._count + len(new))
        self._codes[self._count : self._count + len(new)] = new
        self._count += len(new)

    def replace(self, row: int, value: object) -> None:
        self._codes[row] = self._code(value)
        self._compact()

    def remove(self, row: int) -> None:
        """Swap-with-last."""
        self._count -= 1
        self._codes[row] = self._codes[self._count]
        self._compact()

    def value(self, row: int) -> object:
        code = self._codes[row]
        return self._values[code] if code >= 0 else None

    def code(self, value: object) -> int:
        """The code of a value, -1 where no row ever bore it."""
        return self._by_identity.get(identity(value), -1)

    def restore(self, codes: Codes, values: list[object]) -> None:
        """Take codes (copied) and their values."""
        self._codes, self._count = np.array(codes, dtype=np.int32), len(codes)
        self._values = values
        self._known = None
        self._compound = [code for code, value in enumerate(values) if isinstance(value, _COMPOUND)]

    @property
    def _by_identity(self) -> dict[Hashable, int]:
        known = self._known
        if known is None:
            known = self._known = {identity(value): code for code, value in enumerate(self._values)}
        return known

    def select(self, condition: Condition) -> BoolArray:
        """(n,) mask of the rows whose value passes, by the condition's own predicate."""
        if condition.op in ("eq", "ne", "in", "nin"):
            mask = self._select_equal(condition)
            return ~mask if condition.op in ("ne", "nin") else mask
        test = predicate(condition)
        table = np.fromiter(map(test, [*self._values, None]), dtype=np.bool_, count=len(self._values) + 1)
        return self._gather(table)

    def _select_equal(self, condition: Condition) -> BoolArray:
        several = condition.op in ("in", "nin")
        operands = condition.value if several else (condition.value,)
        test = predicate(Condition(condition.field, "in" if several else "eq", condition.value))
        wanted = {self.code(operand) for operand in operands} - {-1}
        wanted.update(code for code in self._compound if test(self._values[code]))
        if len(wanted) <= 1:
            return self.codes == wanted.pop() if wanted else np.zeros(self._count, dtype=np.bool_)
        table = np.zeros(len(self._values) + 1, dtype=np.bool_)
        table[list(wanted)] = True
        return self._gather(table)

    def _gather(self, table: BoolArray) -> BoolArray:
        """``table`` by code; its last entry stands for no value, which is where -1 points."""
        return table[self.codes]

    def _code(self, value: object) -> int:
        if value is None:
            return -1
        key = identity(value)
        known = self._by_identity
        code = known.get(key)
        if code is None:
            code = known[key] = len(self._values)
            self._values.append(value)
            if isinstance(value, _COMPOUND):
                self._compound.append(code)
        return code

    def _compact(self) -> None:
        """Drop values that no row bears once they are the larger part."""
        if len(self._values) > 2 * self._count + _SLACK:
            values = [self.value(row) for row in range(self._count)]
            self._codes, self._count = np.empty(0, dtype=np.int32), 0
            self._values, self._known, self._compound = [], {}, []
            self.extend(values)
