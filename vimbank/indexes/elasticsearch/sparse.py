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
    Lucene's, divided by k1 + 1. They differ from the in-process ones by the statistics of the index, which holds all
    partitions of a bank, and by lengths above 40 terms (docs/adr/0005).

    A search is up to three requests side by side: the hits, the terms' statistics, and the scores of the rows that the
    query names beside. Scores of other rows are asked for by number, unless the hits were all there are. Together they
    may wait for ``client.search_timeout_s``.
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
        bound = self._threads.submit(question.upper_bound)
        others = self._threads.submit(question.find_out, query.also) if query.also is not None else None
        try:
            rows = question.best(allowed, limit)
            upper_bound = bound.result(question.seconds_left())
            if others is not None:
                others.result(question.seconds_left())
        except TimeoutError as exc:
            raise BackendUnavailable(BACKEND, "no statistics in time") from exc
        finally:
            bound.cancel()
            if others is not None:
                others.cancel()
        best = float(question.known[rows].max(initial=0.0))
        # Two requests may see the index before and after a refresh.
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
        self._deadline = time.monotonic() + client.search_timeout_s
        self.known: FloatArray = np.full(len(index), np.nan)

    def seconds_left(self) -> float:
        """Until the search is given up; not below 0."""
        return max(0.0, self._deadline - time.monotonic())

    # -- hits --

    def best(self, allowed: BoolArray | None, limit: int) -> IntArray:
        """The ``limit`` best rows among those allowed, best first, ties by number."""
        if limit < 1:
            return _NO_ROWS
        clauses = self._clauses(allowed)
        if clauses is None:
            return self._sifted(allowed, limit)
        return self._sifted(None, limit, clauses)

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

    def _sifted(self, allowed: BoolArray | None, limit: int, clauses: Clauses | None = None) -> IntArray:
        """Hits page by page until enough of them pass: known to this process, and allowed."""
        passing: list[IntArray] = []
        missing = limit
        after: list[Any] | None = None
        while missing > 0:
            page = min(MOST_HITS, missing if allowed is None else max(2 * missing, _LEAST_PAGE))
            hits = self._hits(clauses or [], page, after)
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

    def _note(self, hits: Sequence[Mapping[str, Any]]) -> IntArray:
        """The rows of the hits that this process knows, their scores noted."""
        rows = self._index.rows([hit["fields"]["id"][0] for hit in hits])
        numbers = np.array([hit["sort"][1] for hit in hits], dtype=np.float64)
        scores = np.array([hit["sort"][0] for hit in hits], dtype=np.float64)
        # Memories that are newer than this process's roster, or older: an id can be given again, a number cannot.
        ours = (rows >= 0) & (self._numbers[rows] == numbers)
        mine: IntArray = rows[ours]
        self.known[mine] = scores[ours] / self._factor
        return mine

    def _hits(self, clauses: Clauses, size: int, after: Sequence[Any] | None = None) -> Sequence[Mapping[str, Any]]:
        if not self.seconds_left():
            raise BackendUnavailable(BACKEND, "no time left for the rest of the search")
        body: dict[str, Any] = {
            "size": size,
            "query": {
                "bool": {
                    # An inner query of its own: the filters must not count against the most clauses of one (case 57).
                    "must": {"match": {"terms": " ".join(self._terms)}},
                    "filter": [{"term": {"partition": self._key}}, *clauses],
                }
            },
            "stored_fields": "_none_",  # decompressing them for each hit takes longer than the search itself
            "docvalue_fields": ["id"],
            "sort": ["_score", "number"],
            "track_total_hits": False,
        }
        if after is not None:
            body["search_after"] = after
        return self._client.search(self._alias, body, routing=self._key)

    def _among(self, rows: IntArray) -> Mapping[str, Any]:
        return {"terms": {"number": self._numbers[rows].astype(np.int64).tolist()}}

    # -- scores of other rows --

    def score(self, rows: IntArray) -> FloatArray:
        """BM25 of any rows; those not known yet are asked for. Raises BackendUnavailable."""
        self.find_out(rows)
        return self.known[rows]

    def find_out(self, rows: IntArray) -> None:
        """Ask for the scores of these rows that are not known yet."""
        unknown = np.unique(rows[np.isnan(self.known[rows])])
        for start in range(0, len(unknown), MOST_HITS):
            part = unknown[start : start + MOST_HITS]
            self._note(self._hits([self._among(part)], len(part)))
            self.known[part] = np.nan_to_num(self.known[part], nan=0.0)

    # -- statistics --

    def upper_bound(self) -> float:
        """The sum of the terms' idf = ln(1 + (N - n + 0.5) / (n + 0.5)), N and n as the index scores with them."""
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
        frequencies = [found.get("terms", {}).get(term, {}).get("doc_freq", 0) for term in self._terms]
        return sum(log1p((count - n + 0.5) / (n + 0.5)) for n in frequencies)
