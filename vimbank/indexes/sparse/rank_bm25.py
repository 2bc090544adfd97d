"""The reference sparse index: the library ``rank_bm25``, for small partitions and to check the others against."""

from collections.abc import Sequence
from itertools import pairwise
from math import log1p
from typing import Any, Final

import numpy as np
from rank_bm25 import BM25Okapi

from vimbank.domain.models import FloatArray
from vimbank.domain.text import analyzer_identity
from vimbank.errors import IndexCorrupt
from vimbank.indexes.sparse.parameters import check_parameters
from vimbank.ports import Arrays, SparseScores

__all__ = ["RankBM25Index"]

_FORMAT: Final = 1


class _LuceneBM25(BM25Okapi):  # type: ignore[misc]  # the library has no types
    """The library's BM25 with Lucene's idf, which is never negative, and without the constant factor k1 + 1."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {term: self.idf_of(found) for term, found in nd.items()}

    def idf_of(self, found: int) -> float:
        return log1p((self.corpus_size - found + 0.5) / (found + 0.5))

    def get_scores(self, query: Sequence[str]) -> FloatArray:
        if self.avgdl == 0:  # every document is empty; the library would divide by 0
            return np.zeros(self.corpus_size)
        with np.errstate(invalid="ignore"):  # where b = 1 the library divides 0 by 0 for an empty document
            scores: FloatArray = np.asarray(super().get_scores(query), np.float64) / (self.k1 + 1)
        scores[np.isnan(scores)] = 0.0
        return scores


class RankBM25Index:
    """BM25 over rows through the library ``rank_bm25`` (port ``SparseIndex``), built anew when used after a change."""

    def __init__(self, k1: float = 1.2, b: float = 0.75) -> None:
        """k1 > 0: saturation; b in [0, 1]: length normalisation. Raises InvalidInput outside."""
        check_parameters(k1, b)
        self._k1 = k1
        self._b = b
        self._documents: list[list[str]] = []
        self._built: Any = None

    def __len__(self) -> int:
        return len(self._documents)

    def append(self, documents: Sequence[Sequence[str]]) -> None:
        """Add rows at the end."""
        self._documents.extend(list(terms) for terms in documents)
        self._built = None

    def replace(self, row: int, terms: Sequence[str]) -> None:
        """Give a row other terms. Raises IndexError where there is no such row."""
        self._check(row)
        self._documents[row] = list(terms)
        self._built = None

    def remove(self, row: int) -> None:
        """Move the last row into ``row`` and drop the last. Raises IndexError where there is no such row."""
        self._check(row)
        self._documents[row] = self._documents[-1]
        self._documents.pop()
        self._built = None

    def _check(self, row: int) -> None:
        if not 0 <= row < len(self._documents):
            raise IndexError(f"row {row} of {len(self._documents)}")

    def score(self, terms: Sequence[str]) -> SparseScores:
        """BM25 of all rows; a term repeated in the query counts once; an unknown one adds to ``upper_bound`` alone."""
        distinct = list(dict.fromkeys(terms))
        if not self._documents:
            return SparseScores(np.zeros(0), sum(log1p(1.0) for _ in distinct))
        if self._built is None:
            self._built = _LuceneBM25(self._documents, k1=self._k1, b=self._b)
        unknown = self._built.idf_of(0)
        upper_bound = sum(self._built.idf.get(term, unknown) for term in distinct)
        return SparseScores(np.asarray(self._built.get_scores(distinct), np.float64), float(upper_bound))

    def dump(self) -> Arrays:
        """The distinct terms in one UTF-8 text with offsets, and each row's terms as numbers end to end."""
        vocabulary = {term: number for number, term in enumerate(dict.fromkeys(t for d in self._documents for t in d))}
        text = "".join(vocabulary)
        return {
            "format": _FORMAT,
            "analyzer": analyzer_identity(),
            "terms": np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8),
            "term_offsets": np.cumsum([0, *map(len, vocabulary)], dtype=np.int64),
            "row_terms": np.array([vocabulary[term] for terms in self._documents for term in terms], np.int32),
            "row_offsets": np.cumsum([0, *map(len, self._documents)], dtype=np.int64),
        }

    def restore(self, arrays: Arrays) -> None:
        """Take the state of a ``dump``. Raises IndexCorrupt where another version or analyzer made it."""
        if (arrays.get("format"), arrays.get("analyzer")) != (_FORMAT, analyzer_identity()):
            raise IndexCorrupt("rank-bm25", "saved by another version")
        text = arrays["terms"].tobytes().decode("utf-8", "surrogatepass")
        terms = [text[start:end] for start, end in pairwise(arrays["term_offsets"].tolist())]
        numbers = arrays["row_terms"].tolist()
        self._documents = [
            [terms[number] for number in numbers[start:end]] for start, end in pairwise(arrays["row_offsets"].tolist())
        ]
        self._built = None

    @property
    def nbytes(self) -> int:
        """About the memory held, bytes: a list entry and a share of a count for each term of each row."""
        return sum(56 + 108 * len(terms) for terms in self._documents)
