"""Vectors in Elasticsearch rank like the exact reference: the same rows in order, cosines to 1e-5, under every mask.

The server scans all vectors, so what is compared is our side: filters, scores, order, pages. How much of the nearest
a real HNSW graph finds is not measured here (docs/adr/0006).
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from tests.conftest import SettableClock
from tests.services import service_url
from tests.vectors_kit import NOW, Shelf, change, shelf, units
from vimbank.domain.banks import DEFAULT_POLICIES
from vimbank.domain.filters import Condition
from vimbank.domain.models import BoolArray, FusionName, MemoryDraft, Partition, Query, Vector
from vimbank.domain.text import analyze, analyze_query
from vimbank.encoders.hashing import HashingEncoder
from vimbank.eval.synthetic import Corpus
from vimbank.feed.follow import Follower
from vimbank.indexes.absent import AbsentDense
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.ports import LexicalQuery
from vimbank.retrieval.legs import LocalDense, LocalSparse
from vimbank.retrieval.pipeline import Pipeline
from vimbank.retrieval.ranking import Ask, SearchLegs, rank_partition
from vimbank.service import MemoryService
from vimbank.store.sql import SqlStore

ROWS, DIMENSION, QUERIES = 400, 64, 4
OTHER = Partition("t", "v", "dialog")
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def filled() -> Iterator[Shelf]:
    """400 vectors of one user, and 20 of another one, near to the same queries."""
    with shelf(service_url("ELASTICSEARCH_A"), DIMENSION) as made:
        made.fill(units(ROWS, DIMENSION, seed=1))
        made.put([change(1_000 + at, vector, partition=OTHER) for at, vector in enumerate(_queries())])
        yield made


def _queries() -> list[Vector]:
    return list(units(QUERIES, DIMENSION, seed=2))


def agree(filled: Shelf, vector: Vector, allowed: BoolArray | None, limit: int, *, most_terms: int = 65_536) -> None:
    """Both forms bring the same rows, in the same order, with the same cosines, and score all rows alike."""
    index = filled.index()
    exact = ExactIndex(DIMENSION)
    exact.append(index.dense.vectors(np.arange(len(index))))
    expected = exact.search(vector, allowed=allowed, top_k=limit)
    leg = filled.search(most_terms=most_terms).search(index, vector, allowed=allowed, limit=limit)
    possible = len(index) if allowed is None else int(np.count_nonzero(allowed))
    assert leg.rows.tolist() == sorted(expected.tolist())
    assert len(leg.rows) == min(limit, possible)
    scores = leg.score(leg.rows)
    assert leg.rows[np.argsort(-scores, kind="stable")].tolist() == expected.tolist()
    everything = np.arange(len(index))
    np.testing.assert_allclose(leg.score(everything), exact.score(vector, everything), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("limit", [1, 10, 200, 1_000])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.5, 0.99, 1.0])
def test_rows_order_and_cosines_are_those_of_the_reference_case_8(filled: Shelf, share: float, limit: int) -> None:
    """0.1 % of 400 is one row; above a half the rows left out are named instead."""
    generator = np.random.default_rng(3)
    for vector in _queries():
        allowed: BoolArray | None = None
        if share < 1.0:
            allowed = np.zeros(ROWS, dtype=np.bool_)
            allowed[generator.choice(ROWS, max(1, round(share * ROWS)), replace=False)] = True
        agree(filled, vector, allowed, limit)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_lists_longer_than_a_clause_may_be_change_nothing(filled: Shelf, share: float) -> None:
    allowed = np.random.default_rng(4).random(ROWS) < share
    for vector in _queries():
        agree(filled, vector, allowed, 10, most_terms=7)


def test_more_than_one_answer_can_hold_is_scored_in_pages(filled: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vimbank.indexes.elasticsearch.dense.MOST_CANDIDATES", 50)
    allowed = np.random.default_rng(5).random(ROWS) < 0.5
    for vector in _queries():
        agree(filled, vector, None, 120)
        agree(filled, vector, allowed, 120)
        agree(filled, vector, allowed, 1_000)


def test_a_walk_of_the_graph_is_asked_for_where_more_may_be_returned_than_candidates(
    filled: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vimbank.indexes.elasticsearch.dense.MOST_CANDIDATES", 300)
    for vector in _queries():
        agree(filled, vector, None, 10)


def test_a_score_is_the_same_in_any_company_case_12(filled: Shelf) -> None:
    index, vector = filled.index(), _queries()[0]
    few = filled.dense.search(index, vector, allowed=None, limit=1)
    many = filled.dense.search(index, vector, allowed=None, limit=ROWS)
    rows = np.array([17, 3, 399, 3])
    assert few.score(rows).tolist() == many.score(rows).tolist()
    assert [float(few.score(rows[at : at + 1])[0]) for at in range(4)] == few.score(rows).tolist()
    itself = index.dense.vectors(rows[:1])[0]
    [own] = filled.dense.search(index, itself, allowed=None, limit=1).score(rows[:1])
    assert 1.0 - TOLERANCE < own <= 1.0


def test_nothing_of_another_user_case_30(filled: Shelf) -> None:
    """The other user's vectors are the queries themselves."""
    for vector in _queries():
        agree(filled, vector, None, 50)
        leg = filled.dense.search(filled.index(OTHER), vector, allowed=None, limit=50)
        assert len(leg.rows) == QUERIES
        assert leg.score(leg.rows).max() > 1.0 - TOLERANCE


def test_wide_vectors_agree() -> None:
    with shelf(service_url("ELASTICSEARCH_A"), 1_536) as made:
        made.fill(units(30, 1_536, seed=6))
        vector = units(1, 1_536, seed=7)[0]
        leg = made.dense.search(made.index(), vector, allowed=None, limit=10)
        rows = made.index().dense.search(vector, allowed=None, top_k=10)
        assert leg.rows.tolist() == sorted(rows.tolist())
        np.testing.assert_allclose(leg.score(rows), made.index().dense.score(vector, rows), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("fusion", ["convex", "rrf", "vimbank_eq4", "dense"])
def test_whole_rankings_are_the_same(fusion: FusionName) -> None:
    """300 memories with texts, vectors in clusters and filters: ids in order, scores to 1e-5, by both forms."""
    corpus = Corpus(300, dimension=DIMENSION)
    with shelf(service_url("ELASTICSEARCH_A"), DIMENSION) as made, ThreadPoolExecutor(2) as threads:
        made.put(
            [
                change(number + 1, draft.vector, text=draft.text, metadata=draft.metadata, session_id=draft.session_id)
                for number, draft in enumerate(corpus.drafts())
            ]
        )
        local = SearchLegs(LocalSparse(), LocalDense(), threads)
        remote = SearchLegs(LocalSparse(), made.dense, threads)
        for name in ("all", "tenth", "percent"):
            for query in corpus.queries(5, filter=Condition(f"metadata.{name}", "eq", True)):
                ask = Ask(
                    replace(query, fusion=fusion), NOW, LexicalQuery(query.text, analyze_query(query.text)),
                    query.vector, (), 10,
                )  # fmt: skip
                for policy in (DEFAULT_POLICIES["dialog"], replace(DEFAULT_POLICIES["dialog"], candidates=10)):
                    expected = rank_partition(made.index(), ask, policy, load=lambda _: {}, search=local)
                    found = rank_partition(made.index(), ask, policy, load=lambda _: {}, search=remote)
                    assert len(found.ids) > 0
                    assert found.ids == expected.ids
                    assert found.scores == pytest.approx(expected.scores, abs=TOLERANCE)
                    assert found.degraded == frozenset()


@contextmanager
def scaled_out(service: MemoryService, made: Shelf) -> Iterator[Pipeline]:
    """A read path on the service's store whose process holds no vectors: they are in Elasticsearch alone."""
    store = service.store
    assert isinstance(store, SqlStore)
    made.put(store.changes(0, limit=10_000), locally=False)
    follower = Follower(
        store,
        lambda partition: LocalPartition(partition, AbsentDense(384), PostingsIndex(), analyze),
        snapshots=None,
        configuration="",
        memory_bytes=1 << 30,
        snapshot_every=1 << 30,
    )
    pipeline = Pipeline(
        encoder=HashingEncoder(384),
        indexes=follower,
        store=store,
        policies=DEFAULT_POLICIES,
        make_partition=lambda partition: LocalPartition(partition, ExactIndex(384), PostingsIndex(), analyze),
        dense=made.dense,
        stored_vectors=store.vectors,
    )
    try:
        yield pipeline
    finally:
        pipeline.close()
        follower.close()


def same(service: MemoryService, pipeline: Pipeline, query: Query, now: datetime) -> None:
    """Both forms give the same ids in order and the same scores."""
    users = [query.user_id, *(["shared"] if query.include_shared else [])]
    banks = query.banks or sorted(DEFAULT_POLICIES)
    found = pipeline.search(query, [Partition(query.tenant, user, bank) for bank in banks for user in users], now=now)
    expected = service.search(query)
    assert found.degraded == expected.degraded == ()
    assert [each.memory.id for each in found.results] == [each.memory.id for each in expected.results]
    scores = [each.score for each in expected.results]
    assert [each.score for each in found.results] == pytest.approx(scores, abs=TOLERANCE)


FUSIONS: tuple[FusionName, ...] = ("convex", "rrf", "vimbank_eq4", "dense", "sparse")


def test_the_dozen_memories_answer_alike_in_both_forms(
    service: MemoryService, memories: list[MemoryDraft], clock: SettableClock
) -> None:
    service.add_many(memories)
    with (
        shelf(service_url("ELASTICSEARCH_A"), 384, banks=tuple(DEFAULT_POLICIES)) as made,
        scaled_out(service, made) as pipeline,
    ):
        for draft in memories:
            for fusion in FUSIONS:
                for user in ("ana", "ben"):
                    asked = Query(tenant="default", user_id=user, text=draft.text, fusion=fusion, reinforce=False)
                    same(service, pipeline, asked, clock())
                    same(service, pipeline, replace(asked, top_k=3, session_id="s1"), clock())
                    same(service, pipeline, replace(asked, filter=Condition("metadata.topic", "eq", "health")), clock())


def test_three_hundred_memories_answer_alike_in_both_forms(service: MemoryService, clock: SettableClock) -> None:
    corpus = Corpus(300, users=2)
    service.add_many(list(corpus.drafts()))
    with (
        shelf(service_url("ELASTICSEARCH_A"), 384, banks=tuple(DEFAULT_POLICIES)) as made,
        scaled_out(service, made) as pipeline,
    ):
        for name in ("all", "tenth", "percent"):
            for query in corpus.queries(6, filter=Condition(f"metadata.{name}", "eq", True)):
                for fusion in FUSIONS:
                    same(service, pipeline, replace(query, fusion=fusion, reinforce=False), clock())


def test_of_two_rivals_the_newer_one_stands_first_in_both_forms(service: MemoryService, clock: SettableClock) -> None:
    """What is near to what is read from the store, where the process holds no vectors."""
    said = ("the climbing hall is open on Mondays", "the climbing hall is open on Fridays, it seems")
    for bank in ("dialog", "knowledge"):
        for days, text in enumerate(said):
            at = clock() - timedelta(days=10 - days)
            service.add(
                MemoryDraft(tenant="default", user_id="ana", bank=bank, text=text, id=f"{bank}{days}", event_at=at)
            )
    asked = Query(
        tenant="default",
        user_id="ana",
        text="on which day is the climbing hall open now",
        reinforce=False,
        explain=True,
    )
    with (
        shelf(service_url("ELASTICSEARCH_A"), 384, banks=tuple(DEFAULT_POLICIES)) as made,
        scaled_out(service, made) as pipeline,
    ):
        for bank in ("dialog", "knowledge"):
            query = replace(asked, banks=(bank,))
            newer, older = service.search(query).results
            assert [newer.memory.id, older.memory.id] == [f"{bank}1", f"{bank}0"]
            assert older.explanation is not None
            assert older.explanation.factors["recency"] < 1.0
            same(service, pipeline, query, clock())
        same(service, pipeline, asked, clock())
