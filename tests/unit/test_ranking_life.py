"""What the life of a memory does to its rank: retention, derived kinds, what has ended, labels."""

import math
from dataclasses import replace
from datetime import datetime, timedelta
from math import exp
from typing import Any

import pytest

from tests.retrieval_kit import NOW, Library
from vimbank.curves.fsrs import FsrsCurve
from vimbank.domain.curves import ExponentialCurve
from vimbank.domain.endings import Ended
from vimbank.domain.endings import Reason as ReasonEnded
from vimbank.domain.filters import And, Condition, Filter, Not, Or
from vimbank.domain.models import Explanation, MemoryDraft, Query, ScoredMemory, Source
from vimbank.encoders.hashing import HashingEncoder
from vimbank.errors import ConfigError, IndexCorrupt
from vimbank.indexes.roster import Roster
from vimbank.settings import Settings
from vimbank.wiring import open_service

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
QUERY = [1.0, *([0.0] * 63)]
NEAR = [0.8, 0.6, *([0.0] * 62)]
"""Cosine 0.8 to the query: relevance 0.4 where no word is shared."""


def fading(*, weight: float = 0.2, **policy: Any) -> Library:
    """Memories fade as exp(-t / (10 S)), t in days."""
    return Library(curve=ExponentialCurve(tau_days=10.0), **(PLAIN | {"retention_weight": weight} | policy))


def days_ago(days: float) -> Any:
    return NOW - timedelta(days=days)


def explained(result: ScoredMemory) -> Explanation:
    """Its explanation, which must give its score (case 133)."""
    explanation = result.explanation
    assert explanation is not None
    score = sum(explanation.parts.values())
    for factor in explanation.factors.values():
        score *= factor
    assert score == pytest.approx(result.score, abs=1e-6)
    return explanation


SUMMARY = {
    "level": "day",
    "period": "2026-01-31",
    "method": "extractive",
    "model": None,
    "sources": ["turn"],
    "sources_hash": "0",
}


# --- retention ----------------------------------------------------------------------------------------------------


def test_retention_by_hand() -> None:
    library = fading()
    library.add("weak", "pear", vector=NEAR, event_at=days_ago(20))
    library.add("strong", "pear", vector=NEAR, event_at=days_ago(20), strength=4.0)
    library.add("recalled", "pear", vector=NEAR, event_at=days_ago(20), strength=2.0, last_recalled_at=NOW)
    results = library.recall("apple", vector=QUERY, explain=True).results
    assert [result.memory.id for result in results] == ["recalled", "strong", "weak"]
    assert [result.score for result in results] == pytest.approx(
        [0.4, 0.4 * (0.8 + 0.2 * exp(-20 / 40)), 0.4 * (0.8 + 0.2 * exp(-2))], abs=1e-6
    )
    weak = explained(results[2])
    assert weak.factors == {"retention": pytest.approx(0.8 + 0.2 * exp(-2))}
    assert (weak.inputs["retention"], weak.inputs["strength"], weak.inputs["age_days"]) == pytest.approx(
        (exp(-2), 1.0, 20.0)
    )


def test_of_what_fits_alike_the_one_that_tells_more_stands_higher_by_hand() -> None:
    """0.5 i r (1 - r); a memory that nobody has looked at counts as one that tells half of what can be told."""
    library = Library(**(PLAIN | {"information_weight": 0.5}))
    library.add("talk", "pear", vector=NEAR, information=0.0)
    library.add("unknown", "pear", vector=NEAR, information=None)
    library.add("told", "pear", vector=NEAR, information=0.75)
    results = library.recall("apple", vector=QUERY, explain=True).results
    assert [result.memory.id for result in results] == ["told", "unknown", "talk"]
    assert [result.score for result in results] == pytest.approx([0.49, 0.46, 0.4], abs=1e-6)
    told, unknown = explained(results[0]), explained(results[1])
    assert told.parts == pytest.approx({"sparse": 0.0, "dense": 0.4, "information": 0.09})
    assert (told.inputs["information"], unknown.inputs["information"]) == (0.75, 0.5)


def test_an_exact_match_and_what_does_not_fit_keep_their_scores() -> None:
    library = Library(**(PLAIN | {"information_weight": 1.0, "sparse_weight": 0.0}))
    library.add("exact", "pear", vector=QUERY, information=0.9)
    library.add("far", "pear", vector=[0.0, 1.0, *([0.0] * 62)], information=0.9)
    assert [result.score for result in library.recall("apple", vector=QUERY).results] == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("fusion", ["dense", "sparse", "vimbank_eq4"])
def test_single_legs_and_the_published_fusion_are_shown_as_they_are(fusion: Any) -> None:
    library = Library(**(PLAIN | {"information_weight": 0.5}))
    library.add("talk", "apple", vector=NEAR, information=0.0)
    [result] = library.recall("apple", vector=QUERY, fusion=fusion, explain=True).results
    assert "information" not in explained(result).parts


def test_without_an_event_age_counts_from_the_creation() -> None:
    library = fading()
    library.add("m", "pear", vector=NEAR, created_at=days_ago(10))
    [result] = library.recall("apple", vector=QUERY, explain=True).results
    assert explained(result).inputs["retention"] == pytest.approx(exp(-1))


def test_fsrs_reads_the_stability() -> None:
    library = Library(curve=FsrsCurve(), **(PLAIN | {"retention_weight": 1.0}))
    library.add("lasting", "pear", vector=NEAR, event_at=days_ago(30), stability_days=30.0)
    library.add("fresh", "pear", vector=NEAR, event_at=days_ago(30))
    results = library.recall("apple", vector=QUERY, explain=True).results
    assert [result.memory.id for result in results] == ["lasting", "fresh"]
    # R is 0.9 at the age of the stability
    assert results[0].score == pytest.approx(0.9 * 0.4, abs=1e-6)


def test_time_and_retention_multiply() -> None:
    library = fading(half_life_days=7.0, time_weight=0.2)
    library.add("m", "pear", vector=NEAR, event_at=days_ago(7))
    [result] = library.recall("apple", vector=QUERY, explain=True).results
    factors = explained(result).factors
    assert factors == {"time": pytest.approx(0.9), "retention": pytest.approx(0.8 + 0.2 * exp(-0.7))}


def test_what_has_faded_away_is_still_found() -> None:
    library = fading(weight=0.999)
    library.add("old", "pear", vector=NEAR, event_at=days_ago(30_000))
    [result] = library.recall("apple", vector=QUERY).results
    assert 0.0 < result.score < 0.001


@pytest.mark.parametrize("fusion", ["dense", "sparse", "vimbank_eq4"])
def test_a_leg_as_it_is_and_eq4_know_no_retention(fusion: Any) -> None:
    library = fading()
    library.add("m", "apple", vector=NEAR, event_at=days_ago(20))
    [result] = library.recall("apple", vector=QUERY, fusion=fusion, explain=True).results
    assert explained(result).factors == {}
    assert "retention" not in explained(result).inputs


def test_a_search_of_the_past_knows_no_later_recall() -> None:
    """A memory recalled since then fades as one that was never recalled; an earlier recall counts."""
    library = fading(half_life_days=7.0, time_weight=0.2)
    earlier = library.add("m", "pear", vector=NEAR, created_at=days_ago(60), strength=3.0, last_recalled_at=days_ago(1))
    library.past = [(earlier, library.encoder.encode_documents(["apple"])[0])]
    [then] = library.recall("apple", as_of=days_ago(30), explain=True).results
    inputs = explained(then).inputs
    assert (inputs["age_days"], inputs["strength"], inputs["retention"]) == pytest.approx((30.0, 1.0, exp(-3)))
    known = replace(earlier, last_recalled_at=days_ago(40))
    library.past = [(known, library.past[0][1])]
    [then] = library.recall("apple", as_of=days_ago(30), explain=True).results
    inputs = explained(then).inputs
    assert (inputs["age_days"], inputs["strength"], inputs["retention"]) == pytest.approx((10.0, 3.0, exp(-1 / 3)))


def test_a_recall_in_the_future_is_age_0_now() -> None:
    """Case 108: a clock set back makes memories younger."""
    library = fading()
    library.add("m", "pear", vector=NEAR, event_at=days_ago(20), last_recalled_at=NOW + timedelta(days=1))
    [result] = library.recall("apple", vector=QUERY, explain=True).results
    assert explained(result).inputs["age_days"] == 0.0


def test_retention_needs_a_curve() -> None:
    with pytest.raises(ConfigError, match=r"retention_weight needs a forgetting curve, which .*dialog.* has not"):
        Library(retention_weight=0.1)


def test_the_curve_is_that_of_the_banks_life(tmp_path: Any) -> None:
    life = {"curve": "exponential", "tau_days": 2.0}
    settings = Settings(data_dir=tmp_path, banks={"dialog": {"retention_weight": 0.5, "lifecycle": life}})
    with open_service(settings, encoder=HashingEncoder(64), clock=lambda: NOW) as service:
        service.add(MemoryDraft(tenant="t", user_id="u", bank="dialog", text="red apple", created_at=days_ago(2)))
        [result] = service.search(Query(tenant="t", user_id="u", text="apple", explain=True)).results
    assert explained(result).factors["retention"] == pytest.approx(0.5 + 0.5 * exp(-1))


def test_a_snapshot_of_the_former_columns_is_refused_so_that_it_is_rebuilt() -> None:
    saved = Roster().dump()
    saved["columns"] = [name for name in saved["columns"] if name != "stability_days"]
    with pytest.raises(IndexCorrupt, match="other columns"):
        Roster().restore(saved | {"format": 2})


# --- summaries and portraits --------------------------------------------------------------------------------------


def with_a_summary() -> Library:
    library = Library(**(PLAIN | {"derived_weight": 0.5}))
    library.add("summary", "pear", vector=QUERY, kind="summary", metadata=SUMMARY)
    library.add("portrait", "pear", vector=NEAR, kind="portrait", metadata=SUMMARY)
    library.add("turn", "pear", vector=NEAR)
    library.add("note", "pear", vector=NEAR, kind="summary", metadata={"level": "of water"})
    return library


def test_what_is_derived_keeps_a_part_of_its_score() -> None:
    """Half of 0.5 and of 0.4; somebody's own memory of that kind was made of nothing, and keeps all."""
    results = with_a_summary().recall("apple", vector=QUERY, explain=True).results
    assert [result.memory.id for result in results] == ["note", "turn", "summary", "portrait"]
    assert [result.score for result in results] == pytest.approx([0.4, 0.4, 0.25, 0.2], abs=1e-6)
    assert [explained(result).factors["derived"] for result in results] == [1.0, 1.0, 0.5, 0.5]


@pytest.mark.parametrize(
    "asked",
    [
        Condition("kind", "eq", "summary"),
        And((Condition("id", "exists", True), Or((Not(Condition("kind", "eq", "turn")),)))),
    ],
)
def test_who_filters_by_kind_gets_summaries_as_they_are(asked: Filter) -> None:
    results = with_a_summary().recall("apple", vector=QUERY, filter=asked, explain=True).results
    assert results[0].memory.id == "summary"
    assert results[0].score == pytest.approx(0.5, abs=1e-6)
    assert "derived" not in explained(results[0]).factors


def test_another_filter_lets_summaries_rank_lower() -> None:
    asked = Condition("id", "ne", "note")
    assert with_a_summary().search("apple", vector=QUERY, filter=asked) == ["turn", "summary", "portrait"]


# --- the current above the stale ----------------------------------------------------------------------------------


def ended_by(new_id: str, since: datetime | None = None, *, value: str = "pears") -> Ended:
    return Ended("user", "likes", value, new_id, NOW if since is None else since, ReasonEnded.ENDED)


def near(cosine: float) -> list[float]:
    return [cosine, (1.0 - cosine * cosine) ** 0.5, *([0.0] * 62)]


def test_what_has_ended_falls_just_below_what_ended_it() -> None:
    library = Library(**PLAIN)
    library.add("old", "pear", vector=near(0.9), ended=(ended_by("new"), ended_by("newer")))
    library.add("other", "pear", vector=near(0.8))
    library.add("new", "pear", vector=near(0.7))
    library.add("newer", "pear", vector=near(0.6))
    library.add("last", "pear", vector=near(0.2))
    results = library.recall("apple", vector=QUERY, explain=True).results
    assert [result.memory.id for result in results] == ["other", "new", "newer", "old", "last"]
    newer, old = results[2:4]
    assert old.score == pytest.approx(0.3, abs=1e-6)
    assert old.score < newer.score
    explanation = explained(old)
    assert explanation.relevance == pytest.approx(0.45, abs=1e-6)
    assert explanation.factors["currency"] == pytest.approx(0.3 / 0.45, abs=1e-5)
    assert "currency" not in explained(newer).factors


def test_what_has_ended_stays_where_its_successor_is_not_in_the_answer() -> None:
    library = Library(**PLAIN)
    library.add("old", "pear", vector=near(0.9), ended=(ended_by("new"),))
    library.add("other", "pear", vector=near(0.8))
    library.add("new", "pear", vector=near(0.1))
    assert library.search("apple", vector=QUERY, top_k=2) == ["old", "other"]
    assert library.search("apple", vector=QUERY) == ["other", "new", "old"]
    assert library.search("apple", vector=QUERY, fusion="dense") == ["old", "other", "new"], "a leg as it is"


def test_what_ends_later_has_not_ended_yet() -> None:
    library = Library(**PLAIN)
    library.add("old", "pear", vector=near(0.9), ended=(ended_by("new", NOW + timedelta(seconds=1)),))
    library.add("new", "pear", vector=near(0.8))
    assert library.search("apple", vector=QUERY) == ["old", "new"]
    assert library.search("apple", vector=QUERY, now=NOW + timedelta(seconds=1)) == ["new", "old"]


def test_a_part_stands_for_the_document_that_ended_it() -> None:
    library = Library(**PLAIN)
    library.add("old", "pear", vector=near(0.9), ended=(ended_by("document"),))
    for place, cosine in enumerate((0.8, 0.4)):
        library.add(f"part{place}", "pear", vector=near(cosine), kind="segment",
                    source=Source(parent_id="document", position=place))  # fmt: skip
    assert library.search("apple", vector=QUERY) == ["part0", "part1", "old"]


def test_what_falls_below_the_threshold_is_not_returned() -> None:
    """Case 28: the threshold acts on the final score."""
    library = Library(**PLAIN)
    library.add("old", "pear", vector=near(0.9), ended=(ended_by("new"),))
    library.add("new", "pear", vector=near(0.8))
    score = library.recall("apple", vector=QUERY).results[0].score
    assert library.search("apple", vector=QUERY, threshold=score) == ["new"]


# --- labels -------------------------------------------------------------------------------------------------------


def labels_of(library: Library, **asked: Any) -> dict[str, str | None]:
    return {each.memory.id: each.label for each in library.recall("apple", vector=QUERY, labels=True, **asked).results}


def test_labels_by_hand() -> None:
    """V-9: relevance 0.4 and 0.3 around the bank's 0.35; what two say otherwise conflicts, and so does what ended."""
    library = Library(**(PLAIN | {"relevant_from": 0.35}))
    library.add("answer", "We talked about pears.", vector=near(0.8))
    library.add("topic", "We talked about plums.", vector=near(0.6))
    library.add("ended", "We talked about figs.", vector=near(0.5), ended=(ended_by("elsewhere"),))
    library.add("oslo", "Ana lives in Oslo.", vector=near(0.9))
    library.add("rome", "Ana lives in Rome.", vector=near(0.4))
    found = labels_of(library)
    assert found == {
        "answer": "relevant", "topic": "irrelevant", "ended": "conflicting", "oslo": "conflicting",
        "rome": "conflicting",
    }  # fmt: skip
    assert labels_of(library, top_k=1) == {"oslo": "relevant"}, "nothing beside it says otherwise"


def test_the_current_one_of_two_is_no_conflict() -> None:
    """V-10: it is known which of both holds."""
    library = Library(**(PLAIN | {"relevant_from": 0.35}))
    library.add("oslo", "Ana lives in Oslo and has a dog.", vector=near(0.9), ended=(ended_by("rome"),))
    library.add("rome", "Ana lives in Rome.", vector=near(0.8))
    assert labels_of(library) == {"rome": "relevant", "oslo": "conflicting"}


def test_age_makes_nothing_irrelevant() -> None:
    library = fading(weight=0.9, relevant_from=0.35)
    library.add("old", "pear", vector=near(0.8), event_at=days_ago(1_000))
    [result] = library.recall("apple", vector=QUERY, labels=True).results
    assert result.score < 0.05
    assert (result.label, result.explanation) == ("relevant", None)


@pytest.mark.parametrize("bank", ["knowledge", "dialog", "task"])
def test_every_bank_has_labels(bank: str) -> None:
    """V-11: the task bank carries the same three labels, each bank with its own threshold."""
    library = Library(**(PLAIN | {"relevant_from": 0.2}))
    library.add("near", "pear", vector=near(0.5), bank=bank)
    library.add("far", "pear", vector=near(0.3), bank=bank)
    assert labels_of(library, banks=[bank]) == {"near": "relevant", "far": "irrelevant"}


def test_nobody_is_labelled_unasked() -> None:
    library = Library(**PLAIN)
    library.add("m", "pear", vector=NEAR)
    [result] = library.recall("apple", vector=QUERY).results
    assert result.label is None


# --- what counts as recalled --------------------------------------------------------------------------------------


def test_what_is_as_good_as_a_share_of_the_best_counts_as_recalled() -> None:
    """Scores .5, .4, .375 and .3: three quarters of the best are .375."""
    library = Library(**(PLAIN | {"recalled_from": 0.75}))
    for name, cosine in [("best", 1.0), ("good", 0.8), ("edge", 0.75), ("poor", 0.6)]:
        library.add(name, "pear", vector=[cosine, math.sqrt(1 - cosine**2), *([0.0] * 62)])
    recall = library.recall("apple", vector=QUERY)
    assert len(recall.results) == 4
    assert library.pipeline.recalled(recall) == ["best", "good", "edge"]


def test_each_bank_has_its_own_share() -> None:
    library = Library(**PLAIN)
    assert (library.policies["dialog"].recalled_from, library.policies["knowledge"].recalled_from) == (0.75, 0.0)
    library.add("best", "pear", vector=QUERY)
    library.add("talk", "pear", vector=[0.1, math.sqrt(0.99), *([0.0] * 62)])
    library.add("known", "pear", vector=[0.1, math.sqrt(0.99), *([0.0] * 62)], bank="knowledge")
    recall = library.recall("apple", vector=QUERY, banks=("dialog", "knowledge"))
    assert sorted(library.pipeline.recalled(recall)) == ["best", "known"]


def test_without_results_nothing_is_recalled() -> None:
    library = Library(**PLAIN)
    assert library.pipeline.recalled(library.recall("apple", vector=QUERY)) == []
