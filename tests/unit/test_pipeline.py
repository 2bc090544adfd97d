"""The read path over real indexes, with vectors and dates set by hand."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from tests.retrieval_kit import NOW, TENANT, DeadEncoder, DeadLeg, Library
from vimbank.domain.filters import Condition
from vimbank.domain.models import Change, FloatArray, Memory, Partition, Query, Source, Vectors
from vimbank.domain.text import latin_share
from vimbank.encoders.hashing import HashingEncoder
from vimbank.errors import BackendUnavailable, InvalidInput, ModelError
from vimbank.ports import LexicalQuery
from vimbank.retrieval.expand import beside
from vimbank.retrieval.legs import LocalSparse
from vimbank.retrieval.rerank import MaxSimReranker

PLAIN: dict[str, Any] = {
    "information_weight": 0.0,
    "neighbour_weight": 0.0,
    "temporal_weight": 0.0,
    "hop_weight": 0.0,
    "half_life_days": None,
    "failure_weight": 0.0,
    "recency_gap": 0.0,
    "window": 0,
    "group_by_parent": False,
}
DIALOG = Partition(TENANT, "u", "dialog")


def axis(*figures: float) -> list[float]:
    """A unit vector of 64 dimensions that starts with these figures."""
    rest = max(0.0, 1.0 - sum(figure * figure for figure in figures))
    return [*figures, *([0.0] * (63 - len(figures))), rest**0.5]


QUERY = [1.0, *([0.0] * 63)]


# --- fusion -------------------------------------------------------------------------------------------------------


def test_convex_by_hand() -> None:
    library = Library(**PLAIN)
    library.add("both", "red apple", vector=axis(0.6))
    library.add("near", "green pear", vector=axis(0.9))
    [both, near] = library.recall("apple", vector=QUERY, explain=True).results
    # "apple" is in one of two equally long texts: idf = ln(1 + 1.5/1.5) = ln 2, score = ln 2 / (1 + 1.2)
    b = 0.5 + 0.5 / 2.2
    assert (both.memory.id, near.memory.id) == ("both", "near")
    assert both.score == pytest.approx(0.5 * b + 0.5 * 0.6, abs=1e-6)
    assert near.score == pytest.approx(0.45, abs=1e-6)
    assert both.explanation is not None
    assert both.explanation.inputs["bm25_upper_bound"] == pytest.approx(np.log(2))
    assert both.explanation.inputs["bm25"] == pytest.approx(np.log(2) / 2.2)


def test_rrf_by_hand() -> None:
    library = Library(**PLAIN)
    library.add("both", "red apple", vector=axis(0.6))
    library.add("near", "green pear", vector=axis(0.9))
    [both, near] = library.recall("apple", vector=QUERY, fusion="rrf", explain=True).results
    # first on sparse, second on dense: (1/61 + 1/62) / (2/61)
    assert (both.memory.id, near.memory.id) == ("both", "near")
    assert both.score == pytest.approx((1 / 61 + 1 / 62) / (2 / 61))
    assert near.score == pytest.approx(0.5)
    assert near.explanation is not None
    assert (near.explanation.inputs["sparse_rank"], near.explanation.inputs["dense_rank"]) == (0.0, 1.0)


def test_eq4_has_its_own_time_and_no_time_factor() -> None:
    library = Library(**(PLAIN | {"half_life_days": 7.0, "time_weight": 0.2}))
    library.add("m", "green pear", vector=axis(0.8), event_at=NOW - timedelta(days=7))
    [result] = library.recall("apple", vector=QUERY, fusion="vimbank_eq4", explain=True).results
    assert result.score == pytest.approx(0.4)  # omega = 1/2, no keyword
    assert result.explanation is not None
    assert dict(result.explanation.factors) == {}


def test_a_single_leg_is_shown_as_it_is() -> None:
    library = Library()  # with everything that dialog adds and takes
    for i, text in enumerate(["apple", "apple pie", "pear", "an apple a day keeps them away"]):
        library.add(f"m{i}", text, vector=axis(0.1 * (i + 1)), event_at=NOW - timedelta(days=100 * i),
                    session_id="s", source=Source(position=i))  # fmt: skip
    dense = library.recall("apple", vector=QUERY, fusion="dense").results
    assert [result.memory.id for result in dense] == ["m3", "m2", "m1", "m0"]
    assert [result.score for result in dense] == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=1e-6)
    assert library.search("apple", vector=QUERY, fusion="sparse") == ["m0", "m1", "m3"]


def test_ties_break_by_id_wherever_the_rows_stand() -> None:
    library = Library(**PLAIN)
    for name in ["c", "a", "d", "b"]:
        library.add(name, "same words", vector=axis(0.5))
    assert library.search("same", vector=QUERY, top_k=3) == ["a", "b", "c"]


def test_the_sparse_leg_breaks_ties_at_the_cut_by_number() -> None:
    library = Library(**PLAIN)
    for name in ["c", "a", "d", "b"]:
        library.add(name, "same words")
    leg = LocalSparse().search(library.partitions[DIALOG], LexicalQuery("same", ["same"]), allowed=None, limit=2)
    assert leg.rows.tolist() == [0, 1]
    assert len(set(leg.score(np.arange(4)).tolist())) == 1


@pytest.mark.parametrize("limit", [1, 3, 20, 400])
def test_the_sparse_leg_of_many_rows_is_what_sorting_gives(limit: int) -> None:
    library = Library(HashingEncoder(1), **PLAIN)
    for i in range(400):
        library.add(f"m{i}", " ".join(["apple"] * (i * 7 % 5) + [f"w{j}" for j in range(i % 3)]))
    index = library.partitions[DIALOG]
    leg = LocalSparse().search(index, LexicalQuery("apple", ["apple"]), allowed=None, limit=limit)
    scores = leg.score(np.arange(400))
    order = sorted(np.flatnonzero(scores).tolist(), key=lambda row: (-scores[row], row))
    assert leg.rows.tolist() == sorted(order[:limit])


# --- filters ------------------------------------------------------------------------------------------------------


def test_the_best_score_is_that_of_the_rows_allowed() -> None:
    library = Library(**PLAIN)
    library.add("short", "apple", metadata={"x": 1}, vector=axis(0.0))
    library.add("long", "apple and many other fruits that grow", metadata={"x": 2}, vector=axis(0.0))
    [result] = library.recall(
        "apple", vector=QUERY, filter=Condition("metadata.x", "eq", 2), fusion="sparse", explain=True
    ).results
    assert result.explanation is not None
    assert result.explanation.inputs["bm25"] == result.explanation.inputs["bm25_best"]


def test_what_is_filtered_out_contributes_nothing() -> None:
    library = Library(**(PLAIN | {"neighbour_weight": 0.6, "window": 1}))
    for i, topic in enumerate(["a", "b", "a"]):
        library.add(f"m{i}", "apple" if topic == "b" else f"word{i}", vector=axis(0.9 if topic == "b" else 0.3),
                    metadata={"topic": topic}, session_id="s", source=Source(position=i))  # fmt: skip
    free = library.recall("apple", vector=QUERY, explain=True).results
    kept = library.recall("apple", vector=QUERY, filter=Condition("metadata.topic", "eq", "a"), explain=True).results
    assert [result.memory.id for result in free] == ["m1", "m0", "m2"]
    assert [result.memory.id for result in kept] == ["m0", "m2"]
    for result in kept:
        assert result.explanation is not None
        assert result.explanation.parts["neighbour"] == 0.0
        assert result.score == pytest.approx(0.15, abs=1e-6)
        assert result.window == (), "no neighbour may be shown"


def test_nothing_allowed_is_nothing() -> None:
    library = Library()
    library.add("m", "apple")
    assert library.search("apple", filter=Condition("metadata.x", "eq", 1)) == []
    assert library.search("apple", users=("nobody",)) == []


def test_no_partition_is_nothing() -> None:
    recall = Library().pipeline.search(Query(tenant=TENANT, user_id="u", text="x"), [], now=NOW)
    assert (list(recall.results), recall.revision, list(recall.degraded)) == ([], 0, [])


# --- neighbours, windows ------------------------------------------------------------------------------------------


def test_neighbours_lend_a_share_of_what_is_missing() -> None:
    library = Library(**(PLAIN | {"neighbour_weight": 0.5}))
    library.add("before", "x", vector=axis(0.2), session_id="s", source=Source(position=0))
    library.add("hit", "y", vector=axis(0.8), session_id="s", source=Source(position=1))
    library.add("apart", "z", vector=axis(0.2), session_id="s", source=Source(position=7))
    scores = {r.memory.id: r.score for r in library.recall("none", vector=QUERY).results}
    # own: .1 .4 .1; before + .5 * .4 * .9 = .28; hit + .5 * .1 * .6 = .43
    assert scores == pytest.approx({"hit": 0.43, "before": 0.28, "apart": 0.1}, abs=1e-6)


def test_where_the_turn_beside_it_is_gone_the_next_but_one_is_the_neighbour() -> None:
    """As above, with one position empty between them; two empty ones part them."""
    library = Library(**(PLAIN | {"neighbour_weight": 0.5}))
    library.add("before", "x", vector=axis(0.2), session_id="s", source=Source(position=0))
    library.add("hit", "y", vector=axis(0.8), session_id="s", source=Source(position=2))
    library.add("apart", "z", vector=axis(0.2), session_id="s", source=Source(position=5))
    scores = {r.memory.id: r.score for r in library.recall("none", vector=QUERY).results}
    assert scores == pytest.approx({"hit": 0.43, "before": 0.28, "apart": 0.1}, abs=1e-6)


def test_the_turn_beside_it_is_the_neighbour_while_it_is_there() -> None:
    library = Library(**(PLAIN | {"neighbour_weight": 0.5}))
    for place, cosine in enumerate([0.2, 0.4, 0.8, 0.4, 0.2]):
        library.add(f"m{place}", "x", vector=axis(cosine), session_id="s", source=Source(position=place))
    index = library.partitions[DIALOG]
    rows = np.arange(5)
    assert beside(index, rows).tolist() == [[-1, 1], [0, 2], [1, 3], [2, 4], [3, -1]]
    index.apply([Change(99, DIALOG, "m1", None, None)])
    assert [index.ids(pair[pair >= 0]) for pair in beside(index, index.rows(["m0", "m2", "m4"]))] == [
        ["m2"], ["m0", "m3"], ["m3"]
    ]  # fmt: skip


def test_a_neighbour_beyond_the_candidates_is_found() -> None:
    library = Library(**(PLAIN | {"neighbour_weight": 0.9, "candidates": 2}))
    library.add("hit", "y", vector=axis(1.0), session_id="s", source=Source(position=0))
    library.add("beside", "x", vector=axis(-0.5), session_id="s", source=Source(position=1))
    for i in range(5):
        library.add(f"other{i}", "z", vector=axis(0.3))
    assert library.search("none", vector=QUERY, top_k=2) == ["hit", "beside"]


def test_the_window_is_in_order_and_loaded_in_one_call() -> None:
    library = Library(**(PLAIN | {"window": 1}))
    for i in [2, 0, 1, 3]:
        library.add(f"m{i}", f"word{i}", vector=axis(0.9 if i == 1 else 0.1), session_id="s",
                    source=Source(position=i))  # fmt: skip
    library.add("alone", "word9", vector=axis(0.8))
    first, second = library.recall("none", vector=QUERY, top_k=2).results
    assert [memory.id for memory in first.window] == ["m0", "m1", "m2"]
    assert second.window == ()
    assert len(library.asked) == 1
    assert sorted(library.asked[0]) == ["alone", "m0", "m1", "m2"]


# --- hop ----------------------------------------------------------------------------------------------------------


def linked(**policy: Any) -> Library:
    library = Library(**(PLAIN | policy))
    library.add("fight", "He lost to Badr Hari in May.", bank="knowledge", title="The Fight", vector=axis(0.8))
    library.add("hari", "A kick boxer.", bank="knowledge", title="Badr Hari", vector=axis(0.2))
    library.add("other", "A swimmer.", bank="knowledge", title="Ian Thorpe", vector=axis(0.3))
    return library


def test_a_hop_reaches_the_title_that_a_hit_mentions() -> None:
    found = linked(hop_weight=0.5).recall("none", banks=["knowledge"], vector=QUERY, explain=True).results
    assert [result.memory.id for result in found] == ["fight", "hari", "other"]
    assert found[1].explanation is not None
    # own .1, and half of the source's .4 on what is missing to 1
    assert found[1].explanation.parts["hop"] == pytest.approx(0.5 * 0.4 * 0.9, abs=1e-6)
    assert linked(hop_weight=0.0).search("none", banks=["knowledge"], vector=QUERY) == ["fight", "other", "hari"]


def test_a_hop_leads_to_rows_beyond_the_candidates_but_never_to_those_filtered_out() -> None:
    library = linked(hop_weight=0.5, candidates=1)
    assert library.search("none", banks=["knowledge"], vector=QUERY, top_k=2) == ["fight", "hari"]
    no_hari = Condition("title", "ne", "Badr Hari")
    found = library.search("none", banks=["knowledge"], vector=QUERY, top_k=2, filter=no_hari)
    assert found == ["fight", "other"]


def test_a_bank_without_titles_loads_nothing_for_the_hop() -> None:
    library = Library(**(PLAIN | {"hop_weight": 0.5}))
    library.add("m", "He lost to Badr Hari.", bank="knowledge")
    library.search("lost", banks=["knowledge"])
    assert library.asked == [["m"]]


# --- dates, time, outcome -----------------------------------------------------------------------------------------


def test_a_date_in_the_query_lifts_what_happened_then() -> None:
    library = Library(**(PLAIN | {"temporal_weight": 0.2}))
    for month in (3, 4, 5):
        library.add(f"m{month}", "x", vector=axis(0.4), event_at=datetime(2025, month, 2, tzinfo=UTC))
    found = library.recall("what was in April 2025", vector=QUERY, explain=True).results
    assert [result.memory.id for result in found] == ["m4", "m3", "m5"]
    assert found[0].score == pytest.approx(0.2 + 0.2 * 0.8, abs=1e-6)
    assert found[0].explanation is not None
    assert found[0].explanation.parts["temporal"] == pytest.approx(0.16, abs=1e-6)


def test_the_time_factor_by_hand() -> None:
    library = Library(**(PLAIN | {"half_life_days": 7.0, "time_weight": 0.2}))
    library.add("old", "x", vector=axis(1.0), event_at=NOW - timedelta(days=7))
    library.add("new", "x", vector=axis(1.0), event_at=NOW)
    new, old = library.recall("none", vector=QUERY, explain=True).results
    assert (new.score, old.score) == pytest.approx((0.5, 0.5 * 0.9), abs=1e-6)
    assert old.explanation is not None
    assert old.explanation.inputs["age_days"] == pytest.approx(7.0)


def test_a_failed_task_comes_after_an_equal_one_that_succeeded() -> None:
    library = Library(**(PLAIN | {"failure_weight": 0.1}))
    library.add("a", "x", bank="task", vector=axis(0.8), metadata={"outcome": "failure"})
    library.add("b", "x", bank="task", vector=axis(0.8), metadata={"outcome": "success"})
    library.add("c", "x", bank="task", vector=axis(0.8))
    found = library.recall("none", banks=["task"], vector=QUERY, explain=True).results
    assert [result.memory.id for result in found] == ["b", "c", "a"]
    assert found[2].score == pytest.approx(0.4 * 0.9, abs=1e-6)
    assert found[2].explanation is not None
    assert dict(found[2].explanation.factors) == pytest.approx({"outcome": 0.9})


# --- groups -------------------------------------------------------------------------------------------------------


def task_runs(library: Library, runs: int, steps: int) -> None:
    for run in range(runs):
        library.add(f"run{run}", "do it", bank="task", vector=axis(0.1), source=Source(parent_id=f"run{run}"))
        for step in range(steps):
            library.add(f"run{run}:{step}", "step", bank="task", vector=axis(0.9 - 0.01 * run - 0.001 * step),
                        source=Source(parent_id=f"run{run}", position=step))  # fmt: skip


def test_only_the_best_of_each_task_is_returned_with_its_neighbouring_steps() -> None:
    library = Library(**(PLAIN | {"group_by_parent": True, "window": 1}))
    task_runs(library, runs=3, steps=3)
    found = library.recall("none", banks=["task"], vector=QUERY, top_k=5).results
    assert [result.memory.id for result in found] == ["run0:0", "run1:0", "run2:0"]
    assert [memory.id for memory in found[0].window] == ["run0:0", "run0:1"]


def test_k_tasks_come_back_however_many_steps_crowd_the_candidates() -> None:
    library = Library(**(PLAIN | {"group_by_parent": True, "candidates": 5}))
    task_runs(library, runs=6, steps=20)
    assert len(library.search("none", banks=["task"], vector=QUERY, top_k=6)) == 6


# --- merge and load -----------------------------------------------------------------------------------------------


def test_partitions_merge_by_score_and_id() -> None:
    library = Library(**PLAIN)
    library.add("b", "x", bank="dialog", vector=axis(0.5))
    library.add("a", "x", bank="knowledge", vector=axis(0.5))
    library.add("c", "x", bank="task", vector=axis(0.9))
    library.add("theirs", "x", bank="dialog", user_id="v", vector=axis(1.0))
    assert library.search("none", banks=["dialog", "knowledge", "task"], vector=QUERY) == ["c", "a", "b"]


def test_what_has_vanished_is_replaced_by_the_next() -> None:
    library = Library(**PLAIN)
    for i in range(9):
        library.add(f"m{i}", "x", vector=axis(0.9 - 0.1 * i))
    for gone in ("m0", "m2", "m3", "m4"):
        del library.memories[gone]
    assert library.search("none", vector=QUERY, top_k=3) == ["m1", "m5", "m6"]
    assert library.search("none", vector=QUERY, top_k=9) == ["m1", "m5", "m6", "m7", "m8"]


def test_the_revision_is_what_all_of_the_answer_reflects() -> None:
    library = Library(**PLAIN)
    library.add("a", "x", bank="dialog")
    library.add("b", "x", bank="knowledge")
    assert library.recall("x", banks=["dialog", "knowledge"]).revision == 1


def test_an_explanation_comes_only_where_asked_for() -> None:
    library = Library()
    library.add("a", "x")
    assert library.recall("x").results[0].explanation is None


# --- what fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("leg", "other"), [("sparse", "dense"), ("dense", "sparse")])
def test_the_other_leg_answers_for_one_that_is_down(leg: str, other: str) -> None:
    library = Library()
    library.add("a", "apple")
    index = library.partitions[DIALOG]
    setattr(index, leg, DeadLeg(getattr(index, leg)))
    recall = library.recall("apple")
    assert [result.memory.id for result in recall.results] == ["a"]
    assert list(recall.degraded) == [leg]
    assert list(library.recall("apple", fusion=other).degraded) == []
    with pytest.raises(BackendUnavailable):
        library.recall("apple", fusion=leg)


def test_both_legs_down_is_an_error() -> None:
    library = Library()
    library.add("a", "apple")
    index: Any = library.partitions[DIALOG]
    index.sparse, index.dense = DeadLeg(index.sparse), DeadLeg(index.dense)
    with pytest.raises(BackendUnavailable):
        library.recall("apple")


@pytest.mark.parametrize("error", [ModelError("no"), BackendUnavailable("model", "no")])
def test_without_an_encoder_the_sparse_leg_answers(error: Exception) -> None:
    library = Library(DeadEncoder(error))
    library.add("a", "apple")
    recall = library.recall("apple")
    assert [result.memory.id for result in recall.results] == ["a"]
    assert list(recall.degraded) == ["dense"]
    assert list(library.recall("apple", fusion="sparse").degraded) == []
    with pytest.raises(type(error)):
        library.recall("apple", fusion="dense")


@pytest.mark.parametrize("vector", [[1.0, 0.0], [0.0] * 64, [float("nan")] * 64, [float("inf")] * 64])
def test_a_vector_that_cannot_be_used_is_refused(vector: list[float]) -> None:
    with pytest.raises(InvalidInput, match="vector"):
        Library().recall("x", vector=vector)


def test_a_vector_of_another_length_is_made_unit() -> None:
    library = Library(**PLAIN)
    library.add("a", "x", vector=axis(0.8))
    [result] = library.recall("none", vector=[5.0, *([0.0] * 63)], fusion="dense").results
    assert result.score == pytest.approx(0.8, abs=1e-6)


def test_an_unknown_bank_is_refused() -> None:
    with pytest.raises(InvalidInput, match="banks"):
        Library().recall("x", banks=["diary"])


def test_a_query_without_words_goes_through_the_dense_leg() -> None:
    library = Library()
    library.add("a", "apple", vector=axis(0.5))
    assert library.search("*", vector=QUERY) == ["a"]
    assert library.search("*", vector=QUERY, fusion="sparse") == []


# --- rerank -------------------------------------------------------------------------------------------------------


class Tokens:
    """A token encoder whose query has one token, on the first axis."""

    def encode_query_tokens(self, text: str) -> Vectors:
        return np.array([[1.0, 0.0]], dtype=np.float32)

    def encode_document_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        raise AssertionError("stored vectors are used")


def maxsim_reranker(stored: dict[str, list[list[float]]]) -> MaxSimReranker:
    arrays = {name: np.array(rows, dtype=np.float32).reshape(-1, 2) for name, rows in stored.items()}
    return MaxSimReranker(Tokens(), lambda tenant, ids: {name: arrays[name] for name in ids if name in arrays})


def test_reranking_is_half_relevance_half_maxsim() -> None:
    reranker = maxsim_reranker({"a": [[0.6, 0.8], [0.0, 1.0]], "b": [[1.0, 0.0]], "d": []})
    library = Library(reranker=reranker, **PLAIN)
    for name, cosine in [("a", 0.8), ("b", 0.4), ("c", 0.6), ("d", 0.2)]:
        library.add(name, "x", vector=axis(cosine))
    found = library.recall("none", vector=QUERY, explain=True).results
    # relevance .4 .2 .3 .1; a: (.4 + .6)/2, b: (.2 + 1)/2; c and d have no token vectors and stay
    assert [(r.memory.id, round(r.score, 5)) for r in found] == [("b", 0.6), ("a", 0.5), ("c", 0.3), ("d", 0.1)]
    assert found[0].explanation is not None
    assert dict(found[0].explanation.parts) == pytest.approx({"sparse": 0.0, "dense": 0.1, "rerank": 0.5}, abs=1e-6)


def test_only_the_best_are_reranked_and_single_legs_never() -> None:
    reranker = maxsim_reranker({"a": [[0.0, 1.0]], "b": [[1.0, 0.0]]})
    library = Library(reranker=reranker, **(PLAIN | {"rerank": 1}))
    library.add("a", "x", vector=axis(0.8))
    library.add("b", "x", vector=axis(0.6))
    assert [round(r.score, 5) for r in library.recall("none", vector=QUERY).results] == [0.3, 0.2]
    assert library.search("none", vector=QUERY, fusion="dense") == ["a", "b"]


def test_maxsim_of_nothing_is_unknown() -> None:
    assert maxsim_reranker({}).rerank("q", []).tolist() == []
    memory = Library().add("a", "x")
    scores: FloatArray = maxsim_reranker({}).rerank("q", [memory])
    assert np.isnan(scores).all()


# --- the past -----------------------------------------------------------------------------------------------------


def test_as_of_answers_from_the_past_with_the_age_of_then() -> None:
    library = Library(**(PLAIN | {"half_life_days": 7.0, "time_weight": 0.2, "window": 1}))
    now_memory = library.add("a", "likes coffee")
    then = NOW - timedelta(days=30)
    before: Memory = replace(now_memory, text="likes tea", created_at=then, expires_at=NOW - timedelta(days=1))
    library.past = [(before, None)]
    asked: dict[str, Any] = {"as_of": then + timedelta(days=7), "explain": True}
    [result] = library.recall("likes tea", **asked).results
    assert result.memory.text == "likes tea"
    assert result.window == ()
    assert result.explanation is not None
    assert result.explanation.factors["time"] == pytest.approx(0.9)
    assert library.search("likes coffee", as_of=then - timedelta(days=1)) == []
    assert library.search("likes", as_of=NOW) == []  # expired by then
    assert library.recall("likes").results[0].memory.text == "likes coffee"


def test_as_of_uses_the_vectors_that_are_kept() -> None:
    library = Library(**PLAIN)
    memory = library.add("a", "x")
    library.past = [(memory, np.array(axis(0.8), dtype=np.float32)), (replace(memory, id="b"), None)]
    found = library.recall("none", vector=QUERY, as_of=NOW, fusion="dense").results
    assert found[0].memory.id == "a"
    assert found[0].score == pytest.approx(0.8, abs=1e-6)


# --- size ---------------------------------------------------------------------------------------------------------


def test_a_large_partition_with_its_legs_in_two_threads_ranks_like_a_small_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library(HashingEncoder(64))
    for i in range(60):
        library.add(f"m{i}", f"word{i % 7} word{i % 11} word{i}", session_id="s", source=Source(position=i))
    inline = library.recall("word3 word5 word40", explain=True)
    monkeypatch.setattr("vimbank.retrieval.ranking._THREADED_FROM_ROWS", 1)
    threaded = library.recall("word3 word5 word40", explain=True)
    assert list(inline.results) == list(threaded.results)


class EnglishOnly(HashingEncoder):
    """Vectors as ever, and the statement that only Latin letters mean anything to it."""

    def understood(self, text: str) -> float:
        return latin_share(text)


@pytest.mark.parametrize(("query", "weight"), [("咖啡", 1.0), ("咖啡 tea", 0.7), ("tea", 0.5), ("日本", 0.5)])
def test_a_leg_that_cannot_read_the_query_does_not_drag_the_fusion_down(query: str, weight: float) -> None:
    """w moves to 1 with the share of letters the model cannot read; not where no word of the query was found."""
    library = Library(EnglishOnly(64), **PLAIN)
    library.add("right", "我喜欢喝咖啡", vector=axis(0.1))
    library.add("wrong", "tea at five", vector=axis(0.9))
    results = library.recall(query, vector=QUERY, explain=True).results
    assert {result.explanation.inputs["sparse_weight"] for result in results if result.explanation} == {weight}
    if query == "咖啡":
        assert results[0].memory.id == "right"
        assert results[0].score > 0.5
