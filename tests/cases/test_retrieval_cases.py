"""Acceptance cases of ranking, on the read path alone: real indexes, the banks' own policies."""

import math
from datetime import timedelta
from typing import Any

import pytest

from tests.retrieval_kit import NOW, Library
from vimbank.domain.filters import Condition
from vimbank.domain.models import Source
from vimbank.encoders.hashing import HashingEncoder
from vimbank.encoders.onnx import OnnxEncoder
from vimbank.errors import InvalidInput

FUSIONS = ["convex", "rrf", "vimbank_eq4", "dense", "sparse"]


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder.open()


def first_axis(cosine: float, second: float = 0.0) -> list[float]:
    rest = (1.0 - cosine * cosine - second * second) ** 0.5
    return [cosine, second, rest, *([0.0] * 61)]


QUERY = first_axis(1.0)


def test_case_8_k_results_however_far_the_allowed_ones_are() -> None:
    library = Library()
    for i in range(15):
        library.add(f"bob{i}", "the very words of the query", agent_id="bob")
    for i in range(5):
        library.add(f"alice{i}", "something else entirely", agent_id="alice")
    for fusion in ("convex", "rrf", "dense"):
        found = library.search("the very words of the query", agent_id="alice", top_k=5, fusion=fusion)
        assert sorted(found) == [f"alice{i}" for i in range(5)]


def test_case_8_also_with_a_filter_and_few_candidates() -> None:
    library = Library(candidates=1)
    for i in range(20):
        library.add(f"m{i:02}", "same words", metadata={"rare": i % 4 == 0})
    assert len(library.search("same words", filter=Condition("metadata.rare", "eq", True), top_k=5)) == 5


def test_case_11_an_exact_match_is_over_the_threshold_and_an_unrelated_one_is_not() -> None:
    library = Library(HashingEncoder(384))
    library.add("exact", "the meeting is on Tuesday")
    library.add("unrelated", "zebras sleep standing up")
    free = library.recall("the meeting is on Tuesday").results
    assert [result.memory.id for result in free] == ["exact", "unrelated"]
    assert free[0].score > free[1].score
    assert library.search("the meeting is on Tuesday", threshold=0.5) == ["exact"]


def test_case_22_a_keyword_alone_comes_first(encoder: OnnxEncoder) -> None:
    library = Library(encoder)
    for i in range(50):
        library.add(f"m{i:02}", f"a note about garden number {i} and the weather there")
    library.add("pump", "error code ZX-4471 on the pump")
    assert library.search("ZX-4471")[0] == "pump"


def test_case_22_also_where_its_dense_score_is_nothing() -> None:
    library = Library()
    for i in range(50):
        library.add(f"m{i:02}", f"note {i}", vector=first_axis(0.4))
    library.add("pump", "error code ZX-4471 on the pump", vector=first_axis(-0.2))
    for fusion in ("convex", "sparse"):
        assert library.search("ZX-4471", vector=QUERY, fusion=fusion)[0] == "pump"


def test_case_23_meaning_without_a_shared_word_is_found(encoder: OnnxEncoder) -> None:
    library = Library(encoder)
    library.add("cat", "my feline is called Mochi")
    library.add("car", "the engine needs new oil")
    library.add("tax", "taxes are due in April")
    assert library.search("what is the cat's name")[0] == "cat"


def test_case_25_a_lone_irrelevant_result_scores_low(encoder: OnnxEncoder) -> None:
    library = Library(encoder)
    library.add("pizza", "I like pizza")
    assert all(result.score < 0.3 for result in library.recall("quantum chromodynamics").results)
    assert library.search("quantum chromodynamics", threshold=0.3) == []


def test_case_26_a_lone_exact_result_scores_near_1(encoder: OnnxEncoder) -> None:
    library = Library(encoder)
    library.add("pizza", "I like pizza")
    [result] = library.recall("I like pizza").results
    assert 0.8 < result.score <= 1.0


@pytest.mark.parametrize("fusion", FUSIONS)
def test_case_26_is_not_0_in_any_mode(fusion: str) -> None:
    library = Library()
    library.add("pizza", "I like pizza")
    assert library.recall("I like pizza", fusion=fusion).results[0].score >= 0.5


def test_case_28_the_threshold_acts_on_the_final_score() -> None:
    """Scores .9, .6, .2 of one leg; and .5 after the time factor, where the leg gave more."""
    library = Library()
    for name, cosine in [("a", 0.9), ("b", 0.6), ("c", 0.2)]:
        library.add(name, "x", vector=first_axis(cosine))
    assert library.search("none", vector=QUERY, fusion="dense", threshold=0.5) == ["a", "b"]
    aged = Library(sparse_weight=0.0, half_life_days=1.0, time_weight=1.0, neighbour_weight=0.0, information_weight=0.0)
    aged.add("old", "x", vector=first_axis(0.9), event_at=NOW - timedelta(days=1))
    assert aged.search("none", vector=QUERY, threshold=0.5) == []
    assert aged.search("none", vector=QUERY, threshold=0.44) == ["old"]


def test_case_28_a_score_on_the_threshold_stays() -> None:
    library = Library()
    library.add("a", "x", vector=first_axis(0.6))
    [result] = library.recall("none", vector=QUERY, fusion="dense").results
    assert library.search("none", vector=QUERY, fusion="dense", threshold=result.score) == ["a"]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_case_30_nothing_of_another_user_or_agent_on_any_leg(fusion: str) -> None:
    library = Library()
    library.add("hers", "secret launch date", user_id="alice")
    library.add("his", "secret launch date", user_id="bob")
    library.add("other", "secret launch date", user_id="alice", agent_id="x")
    assert library.search("secret launch date", users=("alice",), fusion=fusion) == ["hers", "other"]
    assert library.search("secret launch date", users=("alice",), agent_id="x", fusion=fusion) == ["other"]


@pytest.mark.parametrize("leg", ["keyword", "meaning"])
def test_case_32_the_recalled_one_comes_first_and_the_time_term_shows(leg: str) -> None:
    library = Library()
    old = NOW - timedelta(days=200)
    text = "the violet key" if leg == "keyword" else "nothing shared"
    vector = first_axis(0.0) if leg == "keyword" else first_axis(0.8)
    library.add("a", text, vector=vector, created_at=old)
    library.add("b", text, vector=vector, created_at=old, last_recalled_at=NOW)
    first, second = library.recall("violet", vector=QUERY, explain=True).results
    assert (first.memory.id, second.memory.id) == ("b", "a")
    assert first.explanation is not None
    assert second.explanation is not None
    assert first.explanation.relevance == second.explanation.relevance
    assert first.explanation.factors["time"] == 1.0
    assert second.explanation.factors["time"] == pytest.approx(0.999, abs=1e-6)


def test_case_33_one_source_does_not_starve_another() -> None:
    library = Library(HashingEncoder(384))
    for i in range(1_000):
        library.add(f"k{i:03}", f"chapter {i} on the history of gardens, part {i % 13}", bank="knowledge")
    library.add("answer", "my wifi password is tangerine", session_id="s")
    library.add("d1", "hello there", session_id="s")
    library.add("d2", "see you", session_id="s")
    found = library.search("what is my wifi password", banks=["dialog", "knowledge", "task"], top_k=5)
    assert len(found) == 5
    assert "answer" in found


@pytest.mark.parametrize("fusion", FUSIONS)
def test_case_35_top_k_caps(fusion: str) -> None:
    library = Library()
    for i in range(40):
        library.add(f"m{i:02}", f"apple {i}")
    assert len(library.search("apple", top_k=3, fusion=fusion)) == 3
    assert len(library.search("apple", top_k=40, fusion=fusion)) == 40


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=1), timedelta(days=40_000)])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_cases_98_and_108_a_time_ahead_of_the_clock(ahead: timedelta, fusion: str) -> None:
    library = Library()
    library.add("ahead", "an apple", created_at=NOW + ahead, last_recalled_at=NOW + ahead, recall_count=10**9)
    library.add("now", "an apple")
    for result in library.recall("apple", fusion=fusion, explain=True).results:
        assert 0.0 <= result.score <= 1.0
        assert result.explanation is not None
        assert all(0.0 <= factor <= 1.0 for factor in result.explanation.factors.values())
        assert result.explanation.inputs.get("age_days", 0.0) >= 0.0


@pytest.mark.parametrize("half_life", [0.0, -7.0])
def test_case_98_a_half_life_that_is_none_is_refused(half_life: float) -> None:
    library = Library(half_life_days=half_life, time_weight=0.2)
    library.add("a", "x")
    with pytest.raises(InvalidInput, match="half_life_days"):
        library.search("x")


@pytest.mark.parametrize("fusion", FUSIONS)
def test_case_133_the_parts_give_the_score(fusion: str) -> None:
    library = Library(hop_weight=0.5, neighbour_weight=0.6, temporal_weight=0.1, half_life_days=7.0, time_weight=0.2,
                      failure_weight=0.1)  # fmt: skip
    for i in range(60):
        given: dict[str, Any] = {"title": f"Title {i % 5}"} if i % 3 == 0 else {}
        library.add(
            f"m{i:02}", f"word{i % 7} said Title {i % 4} word{i % 5}", session_id=f"s{i % 2}",
            source=Source(position=i // 2), event_at=NOW - timedelta(days=i),
            metadata={"outcome": "failure" if i % 6 == 0 else "success"}, **given,
        )  # fmt: skip
    results = library.recall("word3 word4 last week", fusion=fusion, explain=True, top_k=60).results
    assert results
    names = set()
    for result in results:
        explanation = result.explanation
        assert explanation is not None
        assert explanation.fusion == fusion
        figures = [*explanation.parts.values(), *explanation.factors.values(), *explanation.inputs.values()]
        assert all(map(math.isfinite, figures))
        assert all(0.0 <= part <= 1.0 for part in explanation.parts.values())
        assert sum(explanation.parts.values()) == pytest.approx(explanation.relevance, abs=1e-6)
        assert explanation.relevance * math.prod(explanation.factors.values()) == pytest.approx(result.score, abs=1e-6)
        assert explanation.score == result.score
        assert 0.0 <= result.score <= 1.0
        names |= {name for name, part in explanation.parts.items() if part}
    if fusion in ("convex", "rrf", "vimbank_eq4"):
        assert names - {"information"} == {"sparse", "dense", "neighbour", "hop", "temporal"}
        assert ("information" in names) == (fusion != "vimbank_eq4"), "that one is shown as it was published"
    else:
        assert names == {fusion}


@pytest.mark.parametrize("leg", ["dense", "sparse"])
def test_case_143_a_single_leg_keeps_its_order_on_one_scale(leg: str) -> None:
    library = Library()
    for i in range(30):
        library.add(f"m{i:02}", " ".join(["apple"] * (i % 5) + ["pear"] * (i % 7)) + f" word{i}",
                    event_at=NOW - timedelta(days=i))  # fmt: skip
    results = library.recall("apple pear", fusion=leg, explain=True, top_k=30).results
    raw = [result.explanation.inputs["bm25" if leg == "sparse" else "cosine"] for result in results
           if result.explanation is not None]  # fmt: skip
    assert raw == sorted(raw, reverse=True)
    assert all(0.0 <= result.score <= 1.0 for result in results)


def test_case_144_a_fresh_exact_match_outranks_what_was_recalled_ten_thousand_times() -> None:
    library = Library(HashingEncoder(384))
    library.add("trivial", "okay, the garage, sure", strength=10.0, recall_count=10_000, last_recalled_at=NOW)
    library.add("fresh", "the code of the garage is 7291", created_at=NOW - timedelta(days=300))
    assert library.search("the code of the garage")[0] == "fresh"


def test_case_148_a_rare_match_is_found_among_common_words() -> None:
    common = "please tell me about the weekly report of sales"
    library = Library(HashingEncoder(64))
    for i in range(2_000):
        library.add(f"m{i:04}", f"{common} number {i}")
    library.add("rare", "Quetzalcoatl")
    assert "rare" in library.search(f"{common} Quetzalcoatl", top_k=5)


@pytest.mark.parametrize(("candidates", "first"), [(1, "near"), (2, "both")])
def test_case_148_the_pool_is_a_setting(candidates: int, first: str) -> None:
    """What is second on both legs is seen only by a pool of two."""
    library = Library(candidates=candidates, neighbour_weight=0.0)
    library.add("near", "x", vector=first_axis(0.9))
    library.add("word", "apple pie", vector=first_axis(0.1))
    library.add("both", "apple", vector=first_axis(0.8))
    assert library.search("apple pie", vector=QUERY, top_k=1) == [first]


def test_case_15_a_memory_without_signal_is_ranked_last_and_never_nan() -> None:
    library = Library()
    library.add("blank", "\u200b", vector=[0.0] * 64)
    library.add("apple", "apple", vector=first_axis(0.5))
    results = library.recall("apple", vector=QUERY).results
    assert [result.memory.id for result in results] == ["apple", "blank"]
    assert results[1].score == 0.0
