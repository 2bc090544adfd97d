"""The keyword leg on Elasticsearch: BM25 over our own terms, and the sum of their idf for the score's scale."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import log1p
from typing import Any, Final

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray
from vimbank.errors import BackendUnavailable
from vimbank.indexes.elasticsearch.client import BACKEND, ElasticsearchClient
from vimbank.indexes.elasticsearch.mappings import indexed_term, sparse_document, sparse_plans
from vimbank.indexes.elasticsearch.naming import bank_alias, partition_key
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex
from vimbank.ports import LexicalQuery, PartitionIndex, SparseLeg

__all__ = ["ElasticsearchSparse", "sparse_index"]

MOST_FILTERED_ROWS: Final = 10_000
"""A mask is sent as a filter while the rows it lets by, or those it does not, are no more than this; else the hits are
read in pages and sifted here. Of 20,000 rows, a filter of 2,000 took a quarter of the time of pages, of 6,000 half, of
10,000 as long."""
MOST_HITS: Final = 10_000
"""Of one answer: ``index.max_result_window`` as Elasticsearch has it by default."""

_NO_ROWS: Final = np.empty(0, dtype=np.int64)
_LEAST_PAGE: Final = 500
_THREADS: Final = 16
_STATISTICS: Final = "term_vectors.terms.field_statistics.doc_count,term_vectors.terms.terms.*.doc_freq"

Clauses = list[Mapping[str, Any]]
Hits = Sequence[Mapping[str, Any]]


def sparse_index(
    client: ElasticsearchClient,
    *,
    banks: Iterable[str],
    prefix: str,
    store_id: str,
    k1: float = 1.2,
    b: float = 0.75,
    batch_size: int = 1_000,
) -> ElasticsearchIndex:
    """The ``RemoteIndex`` that ``ElasticsearchSparse`` searches; ``k1`` and ``b`` are BM25's.

    Raises:  ConfigError: a bank's name is too long.
    """
    plans = sparse_plans(banks, prefix=prefix, store_id=store_id, k1=k1, b=b)
    return ElasticsearchIndex(client, "sparse", plans, sparse_document, batch_size=batch_size)


class ElasticsearchSparse:
    """``SparseSearch`` on Elasticsearch.

    A query's terms are asked for as they are, so what is found is what the in-process index finds. Scores are
    Lucene's, divided by k1 + 1, with each term weighed so that its idf is that of the partition, though the index holds
    all partitions of a bank. They differ from the in-process ones by the average length, which is the index's, and by
    lengths above 40 terms (docs/adr/0005).

    A search is two rounds: the terms' frequencies in the partition and, beside it, in the index; then the hits, with
    the scores of the rows that the query names beside. Scores of other rows are asked for by number, unless the hits
    were all there are. Together they may wait for ``client.search_timeout_s``.
    """

    remote: Final = True

    def __init__(
        self,
        client: ElasticsearchClient,
        *,
        prefix: str,
        k1: float = 1.2,
        most_filtered_rows: int = MOST_FILTERED_ROWS,
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._factor = k1 + 1.0
        self._most_filtered_rows = most_filtered_rows
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="vimbank-elasticsearch")

    def search(self, index: PartitionIndex, query: LexicalQuery, *, allowed: BoolArray | None, limit: int) -> SparseLeg:
        """See ``SparseSearch.search``. Raises BackendRejected, too, where the cluster refuses the search."""
        if not query.terms or not len(index):
            return SparseLeg(_NO_ROWS, lambda rows: np.zeros(len(rows)), 0.0, 0.0)
        question = _Question(
            self._client, self._prefix, index, query.terms, factor=self._factor, filtered=self._most_filtered_rows
        )
        later = self._threads.submit(question.frequencies_there)
        try:
            here = question.frequencies_here()
            upper_bound = question.weigh(here, *later.result(question.seconds_left()))
        except TimeoutError as exc:
            raise BackendUnavailable(BACKEND, "no statistics in time") from exc
        finally:
            later.cancel()
        rows = question.best(allowed, limit, also=_NO_ROWS if query.also is None else query.also)
        best = float(question.known[rows].max(initial=0.0))
        # Requests may see the index before and after a refresh.
        return SparseLeg(np.sort(rows), question.score, best, max(upper_bound, best))

    def close(self) -> None:
        """End the threads; a search after that fails."""
        self._threads.shutdown()


class _Question:
    """One query, asked of one partition. ``known``: scores by row, NaN where not known yet."""

    def __init__(
        self,
        client: ElasticsearchClient,
        prefix: str,
        index: PartitionIndex,
        terms: Sequence[str],
        *,
        factor: float,
        filtered: int,
    ) -> None:
        self._client = client
        self._index = index
        self._terms = [indexed_term(term) for term in terms]
        self._factor = factor
        self._filtered = filtered
        self._alias = bank_alias(prefix, index.partition.bank)
        self._key = partition_key(index.partition)
        self._numbers = index.column("number")
        self._weights: list[float] = []
        self._seconds_left = client.search_timeout_s
        self.known: FloatArray = np.full(len(index), np.nan)

    def seconds_left(self) -> float:
        """Of the patience with the cluster, not below 0; what this process does in between does not count."""
        return max(0.0, self._seconds_left)

    # -- hits --

    def best(self, allowed: BoolArray | None, limit: int, *, also: IntArray = _NO_ROWS) -> IntArray:
        """The ``limit`` best rows among those allowed, best first, ties by number.

        Args:    also: rows whose scores are known afterwards, whether they are among the best or not.
        """
        if not self._terms:
            self.known[:] = 0.0
        if limit < 1 or not self._terms:
            return _NO_ROWS
        clauses = self._clauses(allowed)
        if clauses is None:
            return self._sifted(allowed, limit, [], also)
        return self._sifted(None, limit, clauses, also)

    def _clauses(self, allowed: BoolArray | None) -> Clauses | None:
        """The mask as a filter; None where it is too large for one."""
        if allowed is None:
            return []
        count = int(np.count_nonzero(allowed))
        if count <= self._filtered:
            return [self._among(np.flatnonzero(allowed))]
        if len(allowed) - count <= self._filtered:
            return [{"bool": {"must_not": self._among(np.flatnonzero(~allowed))}}]
        return None

    def _sifted(self, allowed: BoolArray | None, limit: int, clauses: Clauses, also: IntArray) -> IntArray:
        """Hits page by page until enough of them pass: known to this process, and allowed."""
        passing: list[IntArray] = []
        missing = limit
        after: Sequence[Any] | None = None
        while missing > 0:
            page = min(MOST_HITS, missing if allowed is None else max(2 * missing, _LEAST_PAGE))
            hits = self._ask(self._body(clauses, page, after) | {"docvalue_fields": ["id"]}, () if passing else also)
            rows = self._note(hits)
            kept = rows if allowed is None else rows[allowed[rows]]
            passing.append(kept[:missing])
            missing -= len(passing[-1])
            if len(hits) < page:
                if not clauses:
                    self.known[np.isnan(self.known)] = 0.0  # these were all that share a term
                break
            after = hits[-1]["sort"]
        return np.concatenate(passing)

    def _note(self, hits: Hits) -> IntArray:
        """The rows of the hits that this process knows, their scores noted."""
        rows = self._index.rows([hit["fields"]["id"][0] for hit in hits])
        numbers, scores = _sort_values(hits)
        # Memories that are newer than this process's roster, or older: an id can be given again, a number cannot.
        ours = (rows >= 0) & (self._numbers[rows] == numbers)
        mine: IntArray = rows[ours]
        self.known[mine] = scores[ours] / self._factor
        return mine

    def _ask(self, body: Mapping[str, Any], also: IntArray | tuple[()] = ()) -> Hits:
        """The hits of one search; the scores of ``also`` are noted on the way, at most ``MOST_HITS`` of them."""
        if not self.seconds_left():
            raise BackendUnavailable(BACKEND, "no time left for the rest of the search")
        started = time.monotonic()
        try:
            if not len(also):
                return self._client.search(self._alias, body, routing=self._key)
            rows = np.unique(also)[:MOST_HITS]
            bodies = [body, self._body_of(rows)]
            hits, others = self._client.searches(self._alias, bodies, routing=self._key)
        finally:
            self._seconds_left -= time.monotonic() - started
        self._note_all(rows, others)
        return hits

    def _body(self, clauses: Clauses, size: int, after: Sequence[Any] | None = None) -> dict[str, Any]:
        body: dict[str, Any] = {
            "size": size,
            "query": {
                "bool": {
                    # An inner query of its own: the filters must not count against the most clauses of one (case 57).
                    "must": {"bool": {"should": self._weighted()}},
                    "filter": [{"term": {"partition": self._key}}, *clauses],
                }
            },
            "stored_fields": "_none_",  # decompressing them for each hit takes longer than the search itself
            "sort": ["_score", "number"],
            "track_total_hits": False,
        }
        return body if after is None else body | {"search_after": after}

    def _weighted(self) -> list[Mapping[str, Any]]:
        return [
            {"term": {"terms": {"value": term, "boost": weight}}}
            for term, weight in zip(self._terms, self._weights, strict=True)
        ]

    def _body_of(self, rows: IntArray) -> dict[str, Any]:
        """Asks for the scores of these rows."""
        return self._body([self._among(rows)], len(rows))

    def _among(self, rows: IntArray) -> Mapping[str, Any]:
        return {"terms": {"number": self._numbers[rows].astype(np.int64).tolist()}}

    # -- scores of other rows --

    def score(self, rows: IntArray) -> FloatArray:
        """BM25 of any rows; those not known yet are asked for. Raises BackendUnavailable."""
        unknown = np.unique(rows[np.isnan(self.known[rows])])
        for start in range(0, len(unknown), MOST_HITS):
            part = unknown[start : start + MOST_HITS]
            self._note_all(part, self._ask(self._body_of(part)))
        return self.known[rows]

    def _note_all(self, rows: IntArray, hits: Hits) -> None:
        """Of these rows, which are distinct, the hits are all that share a term; they are told by number alone."""
        numbers = self._numbers[rows]
        order = np.argsort(numbers)
        hit_numbers, scores = _sort_values(hits)
        self.known[rows] = 0.0
        self.known[rows[order[np.searchsorted(numbers, hit_numbers, sorter=order)]]] = scores / self._factor

    # -- statistics --

    def weigh(self, here: Sequence[int], there: Sequence[int], count: int) -> float:
        """Weigh each term so that its idf becomes the partition's; the upper bound, the sum of these.

        A name that is in every other memory of one user and in nobody else's tells little of that user's memories and
        much of the index: scored by the index's idf it would outweigh what was asked for.

        Args:    here, there: in how many memories of the partition and of the whole index each term is.
                 count: memories of the whole index.
        """
        rows = len(self._index)
        own = [_idf(rows, n) for n in here]
        # The index counts memories that are deleted, too; a refresh between the requests can make it count fewer.
        common = [_idf(max(count, n), max(n, m)) for n, m in zip(here, there, strict=True)]
        kept = [at for at, n in enumerate(here) if n]
        self._weights = [own[at] / common[at] for at in kept]
        self._terms = [self._terms[at] for at in kept]
        return sum(own)

    def frequencies_here(self) -> Sequence[int]:
        """In how many memories of the partition each term is."""
        body = {
            "size": 0,
            "query": {"term": {"partition": self._key}},
            "aggs": {"terms": {"filters": {"filters": [{"term": {"terms": term}} for term in self._terms]}}},
            "track_total_hits": False,
        }
        started = time.monotonic()
        buckets = self._client.counts(self._alias, body, routing=self._key)
        self._seconds_left -= time.monotonic() - started
        return buckets

    def frequencies_there(self) -> tuple[Sequence[int], int]:
        """In how many memories of the index each term is, and how many have terms, as the index scores with them."""
        body = {
            "doc": {"terms": " ".join(self._terms)},
            "fields": ["terms"],
            "term_statistics": True,
            "positions": False,
            "offsets": False,
            "payloads": False,
        }
        params = {"routing": self._key, "preference": self._key, "filter_path": _STATISTICS}
        path = f"/{self._alias}/_termvectors"
        answer = self._client.ask("POST", path, body, params=params, patience="search", private=True)
        found = answer.get("term_vectors", {}).get("terms", {})
        count = found.get("field_statistics", {}).get("doc_count", 0)
        return [found.get("terms", {}).get(term, {}).get("doc_freq", 0) for term in self._terms], count


def _idf(count: int, n: int) -> float:
    """ln(1 + (N - n + 0.5) / (n + 0.5)), Lucene's; > 0 as n is at most N."""
    return log1p((max(count, n) - n + 0.5) / (n + 0.5))


def _sort_values(hits: Hits) -> tuple[FloatArray, FloatArray]:
    """Numbers and scores of the hits."""
    values = np.array([hit["sort"] for hit in hits], dtype=np.float64).reshape(-1, 2)
    return values[:, 1], values[:, 0]
