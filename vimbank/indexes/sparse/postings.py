"""The default sparse index: an inverted index of one partition, in process (V-17).

Each term has two growing arrays, the rows that hold it and how often; each row has the ids of its terms, so that a
removal finds its postings. A restored index keeps the saved arrays and copies a term's part when it first changes.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import log1p
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vimbank.domain.models import FloatArray
from vimbank.domain.text import analyzer_identity
from vimbank.errors import IndexCorrupt
from vimbank.indexes.sparse.parameters import check_parameters
from vimbank.ports import Arrays, SparseScores

__all__ = ["PostingsIndex"]

_FORMAT: Final = 1
_COLUMN_SHARE: Final = 8  # a term that stands in one row of 8 or more is kept as a column of scores ...
_COLUMNS_FROM: Final = 1_024  # rows
_MAX_COLUMNS: Final = 32  # ... for this many terms, until the next change

_SAVED_ARRAYS: Final = frozenset(
    ["terms", "term_offsets", "rows", "frequencies", "posting_offsets", "row_terms", "row_offsets", "lengths"]
)

Int32Array = NDArray[np.int32]
Ints: TypeAlias = "array[int]"  # of type i; the class cannot be subscripted when it runs


class _Postings:
    """The rows that hold one term, in any order, and its frequency in each."""

    __slots__ = ("frequencies", "rows")

    def __init__(self, rows: Ints, frequencies: Ints) -> None:
        self.rows = rows
        self.frequencies = frequencies


class PostingsIndex:
    """BM25 over rows, exact after every change (port ``SparseIndex``)::

        score(q, d) = sum over distinct t of q:  idf(t) * tf / (tf + k1 * (1 - b + b * dl / avgdl))
        idf(t)      = ln(1 + (N - n + 0.5) / (n + 0.5))

    N rows, n of them with t; dl the row's number of terms with repeats, avgdl its mean. Source: Robertson and
    Zaragoza 2009, as Lucene computes it, without the constant factor k1 + 1. Equal states give bit-equal scores,
    whatever the history of changes. Not thread-safe: the owner guards writes.
    """

    def __init__(self, k1: float = 1.2, b: float = 0.75) -> None:
        """k1 > 0: saturation; b in [0, 1]: length normalisation. Raises InvalidInput outside."""
        check_parameters(k1, b)
        self._k1 = k1
        self._b = b
        self._clear()

    def _clear(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self._terms: list[str] = []  # by id, as are the postings
        self._postings: list[_Postings | None] = []  # None: still where it was restored from
        self._free: list[int] = []  # ids of terms that no row holds any more
        self._forward: list[Ints | int] = []  # a row's term ids; an int: the restored row of that number
        self._lengths = array("i")
        self._total = 0
        self._pairs = 0  # of a term and a row
        self._saved_offsets = self._saved_row_offsets = np.zeros(1, np.int64)
        self._saved_rows = self._saved_frequencies = self._saved_terms = np.zeros(0, np.int32)
        self._forget_scores()

    def _forget_scores(self) -> None:
        self._norms: FloatArray | None = None
        self._columns: dict[int, FloatArray] = {}
        self._asked_once: set[int] = set()

    def __len__(self) -> int:
        return len(self._forward)

    # -- changes --

    def append(self, documents: Sequence[Sequence[str]]) -> None:
        """Add rows at the end; each document is its analysed terms with repeats, and may be empty."""
        for terms in documents:
            row = len(self._forward)
            self._forward.append(self._post(row, terms))
            self._lengths.append(len(terms))
            self._total += len(terms)
        self._forget_scores()

    def replace(self, row: int, terms: Sequence[str]) -> None:
        """Give a row other terms. Raises IndexError where there is no such row."""
        self._check(row)
        self._unpost(row)
        self._forward[row] = self._post(row, terms)
        self._total += len(terms) - self._lengths[row]
        self._lengths[row] = len(terms)
        self._forget_scores()

    def remove(self, row: int) -> None:
        """Move the last row into ``row`` and drop the last. Raises IndexError where there is no such row."""
        self._check(row)
        last = len(self._forward) - 1
        self._unpost(row)
        self._total -= self._lengths[row]
        if row != last:
            for term in self._terms_of(last):
                postings = self._own(term)
                postings.rows[_position(postings.rows, last)] = row
            self._forward[row] = self._forward[last]
            self._lengths[row] = self._lengths[last]
        self._forward.pop()
        self._lengths.pop()
        self._forget_scores()

    def _check(self, row: int) -> None:
        if not 0 <= row < len(self._forward):
            raise IndexError(f"row {row} of {len(self._forward)}")

    def _post(self, row: int, terms: Sequence[str]) -> Ints:
        ids = array("i")
        for term, frequency in Counter(terms).items():
            term_id = self._vocabulary.get(term)
            if term_id is None:
                term_id = self._new_term(term)
            postings = self._postings[term_id] or self._own(term_id)
            postings.rows.append(row)
            postings.frequencies.append(frequency)
            ids.append(term_id)
        self._pairs += len(ids)
        return ids

    def _new_term(self, term: str) -> int:
        if self._free:
            term_id = self._free.pop()
        else:
            term_id = len(self._postings)
            self._postings.append(_Postings(array("i"), array("i")))
            self._terms.append("")
        self._terms[term_id] = term
        self._vocabulary[term] = term_id
        return term_id

    def _unpost(self, row: int) -> None:
        for term_id in self._terms_of(row):
            postings = self._own(term_id)
            at = _position(postings.rows, row)
            for values in (postings.rows, postings.frequencies):
                values[at] = values[-1]
                values.pop()
            self._pairs -= 1
            if not postings.rows:
                del self._vocabulary[self._terms[term_id]]
                self._free.append(term_id)

    def _own(self, term_id: int) -> _Postings:
        """The term's postings, copied out of the restored arrays where they are still there."""
        postings = self._postings[term_id]
        if postings is None:
            rows, frequencies = self._saved(term_id)
            postings = _Postings(array("i", rows.tobytes()), array("i", frequencies.tobytes()))
            self._postings[term_id] = postings
        return postings

    def _saved(self, term_id: int) -> tuple[Int32Array, Int32Array]:
        part = slice(int(self._saved_offsets[term_id]), int(self._saved_offsets[term_id + 1]))
        return self._saved_rows[part], self._saved_frequencies[part]

    def _terms_of(self, row: int) -> Ints:
        terms = self._forward[row]
        if isinstance(terms, int):
            start, end = self._saved_row_offsets[terms : terms + 2]
            return array("i", self._saved_terms[start:end].tobytes())
        return terms

    # -- scores --

    def score(self, terms: Sequence[str]) -> SparseScores:
        """BM25 of all rows; a term repeated in the query counts once; an unknown one adds to ``upper_bound`` alone."""
        count = len(self._forward)
        scores = np.zeros(count)
        upper_bound = 0.0
        for term in dict.fromkeys(terms):
            term_id = self._vocabulary.get(term)
            found = 0 if term_id is None else self._document_frequency(term_id)
            idf = log1p((count - found + 0.5) / (found + 0.5))
            upper_bound += idf
            if term_id is not None:
                self._add_scores(scores, term_id, idf, is_common=found * _COLUMN_SHARE >= count >= _COLUMNS_FROM)
        return SparseScores(scores, upper_bound)

    def _document_frequency(self, term_id: int) -> int:
        postings = self._postings[term_id]
        if postings is None:
            return int(self._saved_offsets[term_id + 1] - self._saved_offsets[term_id])
        return len(postings.rows)

    def _add_scores(self, scores: FloatArray, term_id: int, idf: float, *, is_common: bool) -> None:
        # A column holds 0 where the term is missing, so that both ways give the same bits.
        column = self._columns.get(term_id)
        if column is not None:
            scores += column
            return
        rows, values = self._term_scores(term_id, idf)
        np.add.at(scores, rows, values)
        if is_common:
            self._keep_column(term_id, rows, values)

    def _keep_column(self, term_id: int, rows: NDArray[np.intp], values: FloatArray) -> None:
        # At the second use only: where changes and searches alternate, no column would ever be read.
        if term_id not in self._asked_once:
            self._asked_once.add(term_id)
            return
        if len(self._columns) >= _MAX_COLUMNS:
            self._columns.clear()
        column = np.zeros(len(self._forward))
        column[rows] = values
        self._columns[term_id] = column

    def _term_scores(self, term_id: int, idf: float) -> tuple[NDArray[np.intp], FloatArray]:
        """The rows that hold the term, and what it adds to the score of each."""
        rows, frequencies = self._read(term_id)
        wide_rows = rows.astype(np.intp)  # numpy's fast path for take and add.at
        values = self._length_norms().take(wide_rows)
        values += frequencies
        np.divide(frequencies, values, out=values)
        values *= idf
        return wide_rows, values

    def _read(self, term_id: int) -> tuple[Int32Array, Int32Array]:
        postings = self._postings[term_id]
        if postings is None:
            return self._saved(term_id)
        return np.frombuffer(postings.rows, np.int32), np.frombuffer(postings.frequencies, np.int32)

    def _buffers(self, term_id: int) -> "tuple[Ints, Ints] | tuple[Int32Array, Int32Array]":
        postings = self._postings[term_id]
        return self._saved(term_id) if postings is None else (postings.rows, postings.frequencies)

    def _length_norms(self) -> FloatArray:
        norms = self._norms
        if norms is None:
            average = self._total / len(self._lengths)
            lengths: Int32Array = np.frombuffer(self._lengths, np.int32)
            norms = np.multiply(lengths, self._k1 * self._b / average, dtype=np.float64)
            norms += self._k1 * (1 - self._b)
            self._norms = norms
        return norms

    # -- saved form --

    def dump(self) -> Arrays:
        """Plain arrays and numbers: the terms in one UTF-8 text, postings and row terms end to end with offsets."""
        kept = [term_id for term_id in range(len(self._terms)) if self._document_frequency(term_id)]
        renumbered = np.zeros(len(self._terms), np.int32)
        renumbered[kept] = np.arange(len(kept), dtype=np.int32)
        postings = [self._buffers(term_id) for term_id in kept]
        row_terms = [self._terms_of(row) for row in range(len(self))]
        blob, blob_offsets = _join([self._terms[term_id] for term_id in kept])
        return {
            "format": _FORMAT,
            "analyzer": analyzer_identity(),
            "terms": blob,
            "term_offsets": blob_offsets,
            "rows": _concatenate([rows for rows, _ in postings]),
            "frequencies": _concatenate([frequencies for _, frequencies in postings]),
            "posting_offsets": _offsets([len(rows) for rows, _ in postings]),
            "row_terms": renumbered[_concatenate(row_terms)],
            "row_offsets": _offsets([len(ids) for ids in row_terms]),
            "lengths": np.array(self._lengths, np.int32),
        }

    def restore(self, arrays: Arrays) -> None:
        """Take the state of a ``dump``, in place of what is held; arrays may be read-only memory maps.

        Raises IndexCorrupt where they do not fit together or were made by another version of the analyzer.
        """
        _check_saved(arrays)
        self._clear()
        self._terms = _split(arrays["terms"], arrays["term_offsets"])
        self._vocabulary = {term: term_id for term_id, term in enumerate(self._terms)}
        self._postings = [None] * len(self._terms)
        self._saved_offsets, self._saved_row_offsets = arrays["posting_offsets"], arrays["row_offsets"]
        self._saved_rows, self._saved_frequencies = arrays["rows"], arrays["frequencies"]
        self._saved_terms = arrays["row_terms"]
        self._lengths = array("i", arrays["lengths"].tobytes())
        self._forward = list(range(len(self._lengths)))
        self._total = int(arrays["lengths"].sum(dtype=np.int64))
        self._pairs = len(self._saved_rows)

    @property
    def nbytes(self) -> int:
        """About the memory held, bytes; restored arrays count as if they were read in whole."""
        columns = sum(column.nbytes for column in list(self._columns.values()))
        return 12 * self._pairs + 400 * len(self._vocabulary) + 120 * len(self._forward) + columns


def _position(rows: Ints, row: int) -> int:
    if rows[-1] == row:
        return len(rows) - 1
    return int((np.frombuffer(rows, np.int32) == row).argmax())


def _concatenate(parts: "Sequence[Ints | Int32Array]") -> Int32Array:
    return np.frombuffer(b"".join(parts), np.int32)  # type: ignore[arg-type]  # arrays are buffers


def _offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _join(terms: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """One UTF-8 text of all terms, and their offsets in it, in characters."""
    blob = np.frombuffer("".join(terms).encode("utf-8", "surrogatepass"), np.uint8)
    return blob, _offsets([len(term) for term in terms])


def _split(blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[str]:
    text = blob.tobytes().decode("utf-8", "surrogatepass")
    return [text[start:end] for start, end in pairwise(offsets.tolist())]


def _check_saved(arrays: Arrays) -> None:
    if arrays.get("format") != _FORMAT:
        raise IndexCorrupt("postings", f"saved in format {arrays.get('format')}, expected {_FORMAT}")
    if arrays.get("analyzer") != analyzer_identity():
        raise IndexCorrupt("postings", f"terms of analyzer {arrays.get('analyzer')}, expected {analyzer_identity()}")
    missing = _SAVED_ARRAYS - arrays.keys()
    if missing:
        raise IndexCorrupt("postings", f"saved without {', '.join(sorted(missing))}")
    fits = (
        len(arrays["term_offsets"]) == len(arrays["posting_offsets"])
        and len(arrays["row_offsets"]) == len(arrays["lengths"]) + 1
        and len(arrays["rows"]) == len(arrays["frequencies"]) == int(arrays["posting_offsets"][-1])
        and len(arrays["row_terms"]) == int(arrays["row_offsets"][-1]) == len(arrays["rows"])
    )
    if not fits:
        raise IndexCorrupt("postings", "saved arrays do not fit together")
