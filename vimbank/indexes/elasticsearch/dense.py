"""The vector leg of a search on vectors that Elasticsearch keeps: kNN with a filter, one request a partition."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray, Vector
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.indexes.elasticsearch.naming import partition_key
from vimbank.indexes.elasticsearch.vectors import vector_json, vectors_alias
from vimbank.ports import DenseLeg, EncoderIdentity, PartitionIndex

__all__ = ["ElasticsearchDense", "row_clauses"]

MOST_CANDIDATES: Final = 10_000
"""Elasticsearch's bound of ``k``, of ``num_candidates`` and of the hits of one answer."""
MOST_TERMS: Final = 65_536
"""How many values one ``terms`` clause may hold: ``index.max_terms_count`` as Elasticsearch has it by default."""
_CANDIDATES_A_HIT: Final = 4
_LEAST_CANDIDATES: Final = 1_000
"""Of a walk through the graph. Of the nearest 200 of 20,000 a graph of this kind (FAISS, m = 16, construction 100, 384
dimensions) found 98.6 % with 400 candidates and 99.9 % with 1,000."""

_NO_ROWS: Final = np.empty(0, dtype=np.int64)

Clauses = list[dict[str, Any]]


class ElasticsearchDense:
    """``DenseSearch`` on vectors in Elasticsearch.

    **Exactness.** Lucene scans the documents that pass the filter, every one, where they are no more than
    ``num_candidates``. So up to 10,000 rows that may be returned are searched exactly; above, the HNSW graph of
    each segment is walked with four candidates a hit, at least 1,000 and at most 10,000.

    **Filters.** The mask over rows becomes a filter on ``number`` inside the kNN search, which acts before the
    nearest are chosen: see ``row_clauses``.

    **Scores.** Elasticsearch answers (1 + cosine) / 2 in float32, so cosines are right to 1e-6.

    A memory without a vector is not in Elasticsearch. Its cosine is 0, and where fewer vectors than ``limit`` may be
    returned it takes one of the places that are left, as it does in process.

    Args:    identity: the encoder whose query vectors ``search`` gets.
             most_terms: how many values one ``terms`` clause may hold, where ``index.max_terms_count`` was changed.
    """

    remote: Final = True

    def __init__(
        self, client: ElasticsearchClient, *, prefix: str, identity: EncoderIdentity, most_terms: int = MOST_TERMS
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._identity = identity
        self._most_terms = most_terms

    def search(self, index: PartitionIndex, vector: Vector, *, allowed: BoolArray | None, limit: int) -> DenseLeg:
        """See ``DenseSearch.search``. A zero vector is near nothing: no rows.

        Raises:  BackendUnavailable; BackendRejected: a vector of another dimension than the index's.
        """
        if not len(index) or not vector.any():
            return DenseLeg(_NO_ROWS, lambda rows: np.zeros(len(rows)), asked=False)
        alias = vectors_alias(self._prefix, index.partition.bank, self._identity)
        question = _Question(index, vector, self._client, alias, self._most_terms)
        rows = np.arange(len(index)) if allowed is None else np.flatnonzero(allowed)
        found = question.best(rows, limit)
        return DenseLeg(np.sort(found.rows), lambda wanted: question.cosines(wanted, found))


def row_clauses(numbers: IntArray, allowed: IntArray, *, most_terms: int = MOST_TERMS) -> Clauses:
    """Filter clauses that let through the allowed positions of ``numbers`` alone.

    None where all are allowed. Else the shorter list decides: the allowed ones as ``terms``, or the others as
    ``must_not``. A list that is longer than one ``terms`` clause may be goes into several, any of which may match.

    Args:    numbers: (n,) of all rows of the partition.  allowed: positions in it, distinct.
    """
    if len(allowed) == len(numbers):
        return []
    others = np.ones(len(numbers), dtype=np.bool_)
    others[allowed] = False
    if len(numbers) - len(allowed) < len(allowed):
        return [{"bool": {"must_not": _terms(numbers[others], most_terms)}}]
    return [_any_of(numbers[allowed], most_terms)]


def _any_of(numbers: IntArray, most_terms: int) -> dict[str, Any]:
    clauses = _terms(numbers, most_terms)
    return clauses[0] if len(clauses) == 1 else {"bool": {"should": clauses, "minimum_should_match": 1}}


def _terms(numbers: IntArray, most_terms: int) -> Clauses:
    values = numbers.tolist()
    starts = range(0, len(values), most_terms)
    return [{"terms": {"number": values[start : start + most_terms]}} for start in starts]


@dataclass(frozen=True, slots=True)
class _Found:
    """Distinct rows with their cosines. ``strangers``: some hits were of memories that the process does not know."""

    rows: IntArray
    cosines: FloatArray
    strangers: bool = False


class _Question:
    """One vector, asked of one partition."""

    def __init__(
        self, index: PartitionIndex, vector: Vector, client: ElasticsearchClient, alias: str, most_terms: int
    ) -> None:
        self._index = index
        self._key = partition_key(index.partition)
        self._vector = vector_json(vector)
        self._client = client
        self._alias = alias
        self._most_terms = most_terms
        self._numbers = index.column("number").astype(np.int64)

    def best(self, allowed: IntArray, limit: int) -> _Found:
        """The ``limit`` nearest of the rows allowed, and rows without a vector where places are left."""
        count = min(limit, len(allowed))
        if count < 1:
            return _Found(_NO_ROWS, np.empty(0))
        if count > MOST_CANDIDATES:  # more than one answer can hold: each row is scored
            cosines = self._exactly(allowed)
            best = np.lexsort((self._numbers[allowed], -cosines))[:count]
            return _Found(allowed[best], cosines[best])
        found = self._nearest(row_clauses(self._numbers, allowed, most_terms=self._most_terms), count, len(allowed))
        if found.strangers and len(found.rows) < count:
            # Memories that only another process knows yet took places: name the rows, so that they cannot.
            found = self._nearest([_any_of(self._numbers[allowed], self._most_terms)], count, len(allowed))
        return self._filled(found, allowed, count)

    def cosines(self, rows: IntArray, found: _Found) -> FloatArray:
        """Of any rows; those found are known, the others are asked for."""
        values = np.full(len(self._index), np.nan)
        values[found.rows] = found.cosines
        unknown = np.unique(rows[np.isnan(values[rows])])
        values[unknown] = self._exactly(unknown)
        return values[rows]

    def _exactly(self, rows: IntArray) -> FloatArray:
        """Cosines of these rows, 0 for one without a vector.

        A kNN search too, not ``script_score``: with as many candidates as rows it scans them all by the very function
        that ranks, which gives the very same figures, and works where scripts or expensive queries are switched off.
        """
        values = np.zeros(len(self._index))
        page = min(MOST_CANDIDATES, self._most_terms)
        for start in range(0, len(rows), page):
            part = rows[start : start + page]
            found = self._nearest(_terms(self._numbers[part], self._most_terms), len(part), len(part))
            values[found.rows] = found.cosines
        return values[rows]

    def _nearest(self, clauses: Clauses, count: int, possible: int) -> _Found:
        """The ``count`` <= 10,000 nearest of the ``possible`` rows that pass the clauses, best first."""
        candidates = possible if possible <= MOST_CANDIDATES else max(_CANDIDATES_A_HIT * count, _LEAST_CANDIDATES)
        body = {
            "knn": {
                "field": "vector",
                "query_vector": self._vector,
                "k": count,
                "num_candidates": min(candidates, MOST_CANDIDATES),
                "filter": [{"term": {"partition": self._key}}, *clauses],
            },
            "size": count,
            # A sort by score alone is no sort to Elasticsearch, and hits come without their sort values.
            "sort": [{"_score": "desc"}, {"number": "asc"}],
            "_source": False,
            "stored_fields": "_none_",
            "docvalue_fields": ["id", "number"],
        }
        hits = self._client.search(self._alias, body, routing=self._key)
        rows = self._index.rows([hit["fields"]["id"][0] for hit in hits])
        cosines = 2.0 * np.array([hit["sort"][0] for hit in hits], dtype=np.float64) - 1.0
        # An id that was deleted and given again is another memory, with another number.
        known = (rows >= 0) & (self._numbers[rows] == [hit["fields"]["number"][0] for hit in hits])
        return _Found(rows[known], np.clip(cosines[known], -1.0, 1.0), not known.all())

    def _filled(self, found: _Found, allowed: IntArray, count: int) -> _Found:
        left = count - len(found.rows)
        if not left:
            return found
        others = np.setdiff1d(allowed, found.rows, assume_unique=True)
        others = others[np.argsort(self._numbers[others], kind="stable")][:left]
        return _Found(
            np.concatenate([found.rows, others]), np.concatenate([found.cosines, np.full(len(others), np.nan)])
        )
