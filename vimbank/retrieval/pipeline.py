"""The read path: one query over several partitions, one ranked answer.

Each partition is ranked for itself (``ranking``); here the query is prepared once, the partitions' answers are
merged by score, ties by id, and the memories that are returned are loaded in one call.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np

from vimbank.domain.banks import BankPolicy
from vimbank.domain.curves import Curve
from vimbank.domain.models import Explanation, Memory, Partition, Query, Recall, ScoredMemory, Vector, Vectors
from vimbank.domain.temporal import time_expressions
from vimbank.domain.text import analyze_query
from vimbank.errors import BackendUnavailable, ConfigError, InvalidInput, ModelError
from vimbank.ports import (
    DenseSearch,
    Encoder,
    LexicalQuery,
    MemoryStore,
    PartitionIndex,
    PartitionIndexes,
    Reranker,
    ScriptBound,
    SparseSearch,
)
from vimbank.retrieval.as_of import MakePartition, PastView
from vimbank.retrieval.legs import LocalDense, LocalSparse
from vimbank.retrieval.ranking import Ask, Ranking, SearchLegs, rank_partition
from vimbank.retrieval.records import RecordCache
from vimbank.retrieval.rivals import COMPARED, Near, near_pairs, nearness, newer_rivals
from vimbank.retrieval.standing import current_first, labelled, recalled

__all__ = ["Analyzer", "Pipeline", "StoredVectors"]

Analyzer: TypeAlias = Callable[[str], Sequence[str]]
"""Gives the distinct terms of a query, as the sparse index knows them."""

StoredVectors: TypeAlias = Callable[[str, Sequence[str]], Mapping[str, Vector]]
"""Gives the vectors of a tenant's memories by id, of those that have one."""

_LEG_THREADS: Final = 8


@runtime_checkable
class _Remembering(Protocol):
    """An encoder that keeps queries."""

    def clear(self) -> None: ...


class _View(Protocol):
    """What a search reads: the indexes and records of now, or those of a moment in the past."""

    def read(self, partition: Partition) -> AbstractContextManager[PartitionIndex]: ...

    def load(self, revisions: Mapping[str, int]) -> Mapping[str, Memory]: ...


@dataclass(frozen=True, slots=True)
class _LiveView:
    indexes: PartitionIndexes
    records: RecordCache
    query: Query

    def read(self, partition: Partition) -> AbstractContextManager[PartitionIndex]:
        return self.indexes.read(partition, consistency=self.query.consistency)

    def load(self, revisions: Mapping[str, int]) -> Mapping[str, Memory]:
        return self.records.load(self.query.tenant, revisions)


class Pipeline:
    """Searches partitions. Thread-safe; it keeps nothing between two searches.

    Args:    encoder: for queries that bring no vector of their own.
             indexes: the live partition indexes.  store: the records, and the past for ``as_of``.
             policies: by bank; what is not named there cannot be searched.
             curves: by bank, how its memories fade; needed where a policy has a ``retention_weight``.
             make_partition: makes the empty index that an ``as_of`` search fills.
             sparse, dense: the legs of a search of now; one of the past has the in-process ones.
             reranker: scores the best candidates of each partition again; None: no reranking.
             stored_vectors: where a ``dense`` leg that lives elsewhere leaves the vectors of the results to be read;
                 None: such a leg's results are not compared with each other.
             records_cached: how many records are kept in memory, each as long as its revision stands; 0: none.
             analyze_query: text -> terms of the sparse leg.
    Raises:  ConfigError: retention shall count in a bank without a curve.
    """

    def __init__(
        self,
        *,
        encoder: Encoder,
        indexes: PartitionIndexes,
        store: MemoryStore,
        policies: Mapping[str, BankPolicy],
        make_partition: MakePartition,
        curves: Mapping[str, Curve] | None = None,
        sparse: SparseSearch | None = None,
        dense: DenseSearch | None = None,
        reranker: Reranker | None = None,
        stored_vectors: StoredVectors | None = None,
        records_cached: int = 10_000,
        analyze_query: Analyzer = analyze_query,
    ) -> None:
        missing = [bank for bank, policy in policies.items() if policy.retention_weight and bank not in (curves or {})]
        if missing:
            raise ConfigError(f"retention_weight needs a forgetting curve, which {', '.join(missing)} has not")
        self._encoder = encoder
        self._indexes = indexes
        self._store = store
        self._records = RecordCache(store, records_cached)
        self._policies = policies
        self._curves = curves or {}
        self._analyze_query = analyze_query
        self._make_partition = make_partition
        self._reranker = reranker
        self._stored_vectors = stored_vectors
        self._understood = encoder.understood if isinstance(encoder, ScriptBound) else _all
        self._threads = ThreadPoolExecutor(_LEG_THREADS, thread_name_prefix="vimbank-leg")
        self._partitions = ThreadPoolExecutor(_LEG_THREADS, thread_name_prefix="vimbank-partition")
        self._past_legs = SearchLegs(LocalSparse(), LocalDense(), self._threads)
        self._legs = SearchLegs(sparse or LocalSparse(), dense or LocalDense(), self._threads)

    def search(self, query: Query, partitions: Sequence[Partition], *, now: datetime) -> Recall:
        """The ``top_k`` best memories of these partitions, best first, ties by id.

        Scores are in [0, 1] on one scale for all partitions; ``threshold`` acts on them (case 28). A memory that
        vanishes while the search runs is replaced by the next. With ``as_of`` everything, also age, expiry and
        validity, is as of that instant.

        Args:    now: aware UTC.
        Returns: ``revision``: the newest that all of the answer reflects; ``degraded``: ``dense`` or ``sparse``
                 where a leg was out of reach and the other one answered.
        Raises:  InvalidInput: a bank without a policy; a vector of another dimension, not finite, or without length.
                 BackendUnavailable, ModelError: no leg that the fusion needs could answer.
        """
        started = time.perf_counter()
        view, moment = self._view(query, now)
        policies = [self._policy(partition.bank) for partition in partitions]
        encoding = time.perf_counter()
        vector, degraded = self._vector(query, policies)
        encode_ms = (time.perf_counter() - encoding) * 1_000.0
        lexical = LexicalQuery(query.text, () if query.fusion == "dense" else self._analyze_query(query.text))
        dates = time_expressions(query.text, now=moment)
        understood = self._understood(query.text)
        depth = query.top_k
        while True:
            ask = Ask(query, moment, lexical, vector, dates, depth, understood)
            ranked = self._rank_all(view, list(zip(partitions, policies, strict=True)), ask)
            rankings = [ranking for ranking, _ in ranked]
            found, missing = _answer(rankings, query, view)
            if not missing or not any(ranking.full for ranking in rankings):
                break
            depth *= 2  # some of the best are gone from the store: look further down
        results = self._in_order(found, [pair for _, pairs in ranked for pair in pairs], query, moment)
        if query.labels:
            results = labelled(results, self._policies, moment=moment)
        return Recall(
            results if query.explain else [replace(result, explanation=None) for result in results],
            min((ranking.revision for ranking in rankings), default=0),
            (time.perf_counter() - started) * 1_000.0,
            tuple(sorted(degraded.union(*(ranking.degraded for ranking in rankings)))),
            encode_ms,
        )

    def recalled(self, recall: Recall) -> list[str]:
        """The ids of the results that count as recalled (``standing.recalled``)."""
        return recalled(recall.results, self._policies)

    def forget(self) -> None:
        """Keep nothing of earlier searches: no record, no query."""
        self._records.clear()
        if isinstance(self._encoder, _Remembering):
            self._encoder.clear()

    def close(self) -> None:
        """End the threads; a search after that fails."""
        self._partitions.shutdown()
        self._threads.shutdown()

    def _view(self, query: Query, now: datetime) -> tuple[_View, datetime]:
        if query.as_of is None:
            return _LiveView(self._indexes, self._records, query), now
        return PastView(self._store, self._encoder, self._make_partition, query.as_of), query.as_of

    def _policy(self, bank: str) -> BankPolicy:
        try:
            return self._policies[bank]
        except KeyError as exc:
            raise InvalidInput.of("banks", f"there is no bank {bank!r}") from exc

    def _vector(self, query: Query, policies: Sequence[BankPolicy]) -> tuple[Vector | None, frozenset[str]]:
        """The query's vector, None where no partition needs it or the encoder fails and the sparse leg can answer."""
        fusions = {query.fusion or policy.fusion for policy in policies}
        if fusions <= {"sparse"}:
            return None, frozenset()
        if query.vector is not None:
            return _checked(query.vector, self._encoder.identity.dimension), frozenset()
        try:
            return self._encoder.encode_queries([query.text])[0], frozenset()
        except (ModelError, BackendUnavailable):
            if "dense" in fusions:
                raise
            return None, frozenset({"dense"})

    def _in_order(self, found: "_Found", near: Sequence[Near], query: Query, moment: datetime) -> list[ScoredMemory]:
        """The results in their final order, at or above the query's threshold.

        What is not the newest falls last, once it is known who is in the answer.
        """
        results = current_first(
            found.results,
            moment=moment,
            newer=newer_rivals(found.results, near, self._policies, moment=moment),
            as_they_are=found.single_leg,
            threshold=query.threshold or 0.0,
        )
        return [result for result in results if query.threshold is None or result.score >= query.threshold]

    def _rank_all(
        self, view: _View, places: Sequence[tuple[Partition, BankPolicy]], ask: Ask
    ) -> list[tuple[Ranking, list[Near]]]:
        """Each partition's ranking, and which of its best are near each other."""
        legs = self._legs if ask.query.as_of is None else self._past_legs

        def rank(place: tuple[Partition, BankPolicy]) -> tuple[Ranking, list[Near]]:
            partition, policy = place
            with view.read(partition) as index:
                ranking = rank_partition(
                    index,
                    ask,
                    policy,
                    load=view.load,
                    search=legs,
                    reranker=self._reranker,
                    curve=self._curves.get(partition.bank),
                )
                ids = ranking.ids[:COMPARED]
                if not policy.recency_gap or ranking.single_leg or len(ids) < 2:
                    return ranking, []
                held = None if legs.dense.remote else index.dense.vectors(index.rows(ids))
            ids, vectors = self._read_vectors(partition.tenant, ids) if held is None else (ids, held)
            return ranking, near_pairs(ids, vectors, cosine=nearness(policy, ask.query.text))

        if len(places) > 1 and (legs.sparse.remote or legs.dense.remote):
            return list(self._partitions.map(rank, places))
        return [rank(place) for place in places]

    def _read_vectors(self, tenant: str, ids: Sequence[str]) -> tuple[Sequence[str], Vectors]:
        """The vectors of these memories in the store, (n, d), with their ids; one without a vector is left out."""
        known = {} if self._stored_vectors is None else self._stored_vectors(tenant, ids)
        return list(known), np.stack(list(known.values())) if known else np.empty((0, 0), dtype=np.float32)


def _all(_text: str) -> float:
    return 1.0


def _checked(vector: Vector, dimension: int) -> Vector:
    if vector.shape != (dimension,):
        raise InvalidInput.of("vector", f"must have {dimension} dimensions, has shape {vector.shape}")
    wide = vector.astype(np.float64)  # the square of a large float32 is none
    length = math.sqrt(float(wide @ wide))
    if not math.isfinite(length) or length == 0.0:
        raise InvalidInput.of("vector", "must be finite and not all zero")
    return vector if abs(length - 1.0) < 1e-6 else (vector / length).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Place:
    """One line of one partition's ranking."""

    id: str
    score: float
    window: Sequence[str]
    single_leg: bool
    explain: Callable[[], Explanation]


@dataclass(frozen=True, slots=True)
class _Found:
    """Results by their partitions' scores, best first. ``single_leg``: the ids of those whose scores are one leg's."""

    results: Sequence[ScoredMemory]
    single_leg: frozenset[str]


def _answer(rankings: Sequence[Ranking], query: Query, view: _View) -> tuple[_Found, bool]:
    """The ``top_k`` best that still exist, and whether some that vanished leave a gap at the end."""
    places = _merged(rankings)
    wanted = places[: query.top_k]
    known = {name: revision for ranking in rankings for name, revision in ranking.revisions.items()}
    loaded: dict[str, Memory] = {}
    found: list[_Place] = []
    while wanted:
        named = {name for place in wanted for name in (place.id, *place.window)}
        loaded |= view.load({name: known[name] for name in named})
        found += [place for place in wanted if place.id in loaded]
        places = places[len(wanted) :]
        wanted = places[: query.top_k - len(found)]
    vanished = len(found) < query.top_k and len(found) < sum(len(ranking.ids) for ranking in rankings)
    single_leg = frozenset(place.id for place in found if place.single_leg)
    return _Found([_scored(place, query, loaded) for place in found], single_leg), vanished


def _merged(rankings: Sequence[Ranking]) -> list[_Place]:
    places = [
        _Place(name, score, window, ranking.single_leg, partial(ranking.explain, i))
        for ranking in rankings
        for i, (name, score, window) in enumerate(zip(ranking.ids, ranking.scores, ranking.windows, strict=True))
    ]
    return sorted(places, key=lambda place: (-place.score, place.id)) if len(rankings) > 1 else places


def _scored(place: _Place, query: Query, loaded: Mapping[str, Memory]) -> ScoredMemory:
    return ScoredMemory(
        loaded[place.id],
        place.score,
        tuple(loaded[name] for name in place.window if name in loaded),
        place.explain() if query.explain or query.labels else None,
    )
