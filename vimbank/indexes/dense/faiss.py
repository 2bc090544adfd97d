"""The dense index on FAISS: exact scans, and for large partitions an int8 scan whose best are re-ranked in float32.

A flat block a partition, not one shared or graph index: a graph loses recall under filters, and one thread scans
100,000 int8 rows in about 2 ms. FAISS is held to one thread a query: searches run in parallel with each other.
"""

from typing import Any, Final

import faiss as _faiss
import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray, Vector, Vectors
from vimbank.indexes.dense.block import VectorBlock, best_rows, unit_rows
from vimbank.ports import Arrays

__all__ = ["FaissIndex"]

faiss: Any = _faiss  # its stubs lag behind the library
faiss.omp_set_num_threads(1)

_CODE_MAX: Final = 127
_HEADROOM: Final = 1.25  # codes are made anew when a component outgrows the scale: rarely, with this much room
# Measured with 100,000 x 384: gathering and scanning rows in float32 beats the masked int8 scan up to about n/40
# rows, and below 2,000 rows nothing else is worth its overhead.
_GATHER_SHARE: Final = 40
_GATHER_ROWS: Final = 2_000
_RERANK_FACTOR: Final = 2
_RERANK_ROWS: Final = 400


class FaissIndex:
    """A ``DenseIndex``. Vectors of another length are made unit; threads may search at the same time.

    Args:    dimension: of the vectors.  int8_from_rows: partitions of this many rows are scanned in int8.
    """

    def __init__(self, dimension: int, int8_from_rows: int = 50_000) -> None:
        self._block = VectorBlock(dimension)
        self._int8_from_rows = int8_from_rows
        self._codes: _Codes | None = None

    def __len__(self) -> int:
        return len(self._block)

    @property
    def nbytes(self) -> int:
        return self._block.nbytes + (self._codes.nbytes if self._codes else 0)

    def append(self, vectors: Vectors) -> None:
        rows = unit_rows(vectors, self._block.dimension)
        self._block.append(rows)
        if self._codes is not None and self._codes.fits(rows):
            self._codes.append(rows)
        elif len(self._block) >= self._int8_from_rows:
            self._codes = _Codes.of(self._block.rows)

    def replace(self, row: int, vector: Vector) -> None:
        rows = unit_rows(vector[None], self._block.dimension)
        self._block.replace(row, rows[0])
        if self._codes is not None:
            if self._codes.fits(rows):
                self._codes.replace(row, rows)
            else:
                self._codes = _Codes.of(self._block.rows)

    def remove(self, row: int) -> None:
        self._block.remove(row)
        if self._codes is not None:
            self._codes.remove(row)
            if len(self._block) < self._int8_from_rows // 2:  # half, so that a count at the border does not flip
                self._codes = None

    def search(self, vector: Vector, *, allowed: BoolArray | None, top_k: int) -> IntArray:
        query = unit_rows(vector[None], self._block.dimension)[0]
        count = len(self) if allowed is None else int(np.count_nonzero(allowed))
        if count == 0 or top_k <= 0:
            return np.empty(0, dtype=np.int64)
        if self._codes is None or count <= max(_GATHER_ROWS, len(self) // _GATHER_SHARE):
            return self._scan(query, allowed, count, top_k)
        return self._scan_codes(self._codes, query, allowed, min(top_k, count))

    def score(self, vector: Vector, rows: IntArray) -> FloatArray:
        query = unit_rows(vector[None], self._block.dimension)[0]
        scores = np.empty(len(rows), dtype=np.float32)
        places = np.ascontiguousarray(rows, dtype=np.int64)
        # Row by row in one order of additions, so a row's score does not depend on where or beside which it stands.
        faiss.fvec_inner_products_by_idx(
            faiss.swig_ptr(scores),
            faiss.swig_ptr(query),
            faiss.swig_ptr(self._block.rows),
            faiss.swig_ptr(places),
            self._block.dimension,
            1,
            len(rows),
        )
        return np.clip(scores.astype(np.float64), -1.0, 1.0)

    def vectors(self, rows: IntArray) -> Vectors:
        return self._block.rows[rows]

    def dump(self) -> Arrays:
        """``vectors``, and in int8 also ``codes`` and ``scale``; views, valid until the next change."""
        arrays: Arrays = {"vectors": self._block.rows}
        if self._codes is not None:
            arrays |= {"codes": self._codes.rows, "scale": self._codes.scale}
        return arrays

    def restore(self, arrays: Arrays) -> None:
        self._block.restore(arrays["vectors"])
        self._codes = None
        if len(self) >= self._int8_from_rows:
            known = "codes" in arrays
            self._codes = _Codes.restored(arrays["codes"], arrays["scale"]) if known else _Codes.of(self._block.rows)

    def _scan(self, query: Vector, allowed: BoolArray | None, count: int, top_k: int) -> IntArray:
        """Every allowed row in float32. Many of them: the whole block, which is cheaper than copying them out."""
        block = self._block.rows
        if allowed is None:
            return best_rows(_inner_products(block, query), top_k)
        if count * 4 > len(block):
            scores = _inner_products(block, query)
            scores[~allowed] = -np.inf
            return best_rows(scores, min(top_k, count))
        rows = np.flatnonzero(allowed)
        return rows[best_rows(_inner_products(block[rows], query), top_k)]

    def _scan_codes(self, codes: "_Codes", query: Vector, allowed: BoolArray | None, top_k: int) -> IntArray:
        candidates = codes.search(query, allowed, max(_RERANK_FACTOR * top_k, _RERANK_ROWS))
        candidates.sort()  # equal scores by row
        return candidates[best_rows(_inner_products(self._block.rows[candidates], query), top_k)]


def _inner_products(block: Vectors, query: Vector) -> Vectors:
    """(n,) float32; one thread, unlike numpy's product, whose threads would fight those of other requests."""
    scores = np.empty(len(block), dtype=np.float32)
    faiss.fvec_inner_products_ny(
        faiss.swig_ptr(scores), faiss.swig_ptr(query), faiss.swig_ptr(block), block.shape[1], len(block)
    )
    return scores


class _Codes:
    """int8 codes of the rows, rint(x * scale), scanned by FAISS with integer products.

    FAISS stores a code as an unsigned byte, 128 above its value.
    """

    def __init__(self, dimension: int, scale: float) -> None:
        self.scale = scale
        self._index: Any = faiss.IndexScalarQuantizer(
            dimension, faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
        )

    @classmethod
    def of(cls, rows: Vectors) -> "_Codes":
        largest = float(max(rows.max(initial=0.0), -rows.min(initial=0.0)))
        codes = cls(rows.shape[1], _CODE_MAX / min(1.0, largest * _HEADROOM) if largest else float(_CODE_MAX))
        codes.append(rows)
        return codes

    @classmethod
    def restored(cls, rows: np.ndarray[Any, Any], scale: float) -> "_Codes":
        codes = cls(rows.shape[1], float(scale))
        codes._index.add_sa_codes(np.ascontiguousarray(rows))
        return codes

    @property
    def rows(self) -> np.ndarray[Any, Any]:
        """(n, d) uint8 view of FAISS's own memory, valid until the next change."""
        count, dimension = self._index.ntotal, self._index.d
        codes: np.ndarray[Any, Any] = faiss.rev_swig_ptr(self._index.codes.data(), count * dimension)
        return codes.reshape(count, dimension)

    @property
    def nbytes(self) -> int:
        return int(self._index.codes.size())

    def fits(self, rows: Vectors) -> bool:
        return not len(rows) or float(np.abs(rows).max()) * self.scale <= _CODE_MAX + 0.5

    def append(self, rows: Vectors) -> None:
        self._index.add(np.rint(rows * np.float32(self.scale)))

    def replace(self, row: int, vector: Vectors) -> None:
        self.rows[row] = (np.rint(vector[0] * np.float32(self.scale)) + 128).astype(np.uint8)

    def remove(self, row: int) -> None:
        rows = self.rows
        rows[row] = rows[-1]
        self._index.ntotal -= 1  # the next `add` writes over the last row

    def search(self, query: Vector, allowed: BoolArray | None, top_k: int) -> IntArray:
        """Rows of the ``top_k`` largest integer products."""
        largest = float(np.abs(query).max())
        # The integer scan rounds the query too: stretched to the full range it keeps the most.
        scaled = np.rint(query * (_CODE_MAX / largest)) if largest else query
        if allowed is None:
            _, found = self._index.search(scaled[None], top_k)
        else:
            bits = np.packbits(allowed, bitorder="little")
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bits))
            _, found = self._index.search(scaled[None], top_k, params=parameters)
        rows: IntArray = found[0]
        return rows[rows >= 0]
