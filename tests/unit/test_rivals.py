"""Recency among rivals, over real indexes: numbers worked by hand. No word of the query is in a text, so that a
memory's relevance is half its cosine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import SettableClock
from tests.retrieval_kit import NOW, Library
from vimbank.domain.banks import BankPolicy
from vimbank.domain.endings import Ended, Reason
from vimbank.domain.models import Explanation, MemoryDraft, Query, ScoredMemory, Source, Vector
from vimbank.retrieval.legs import LocalDense
from vimbank.retrieval.pipeline import Pipeline
from vimbank.retrieval.rivals import near_pairs, nearness
from vimbank.settings import BankSettings, Settings
from vimbank.wiring import open_service

PLAIN: dict[str, Any] = {
    "neighbour_weight": 0.0,
    "temporal_weight": 0.0,
    "hop_weight": 0.0,
    "half_life_days": None,
    "failure_weight": 0.0,
    "information_weight": 0.0,
    "window": 0,
    "group_by_parent": False,
}
WIDTH = 64
QUERY = [1.0, *([0.0] * (WIDTH - 1))]
JANUARY, MARCH = NOW - timedelta(days=300), NOW - timedelta(days=200)


def leaning(cosine: float, towards: int = 1) -> list[float]:
    """A unit vector with this cosine to the query, and the rest of its length along one other axis."""
    vector = [0.0] * WIDTH
    vector[0], vector[towards] = cosine, (1.0 - cosine * cosine) ** 0.5
    return vector


def library(**policy: Any) -> Library:
    return Library(**(PLAIN | policy))


def two(made: Library, *, old: Mapping[str, Any] | None = None, new: Mapping[str, Any] | None = None) -> Library:
    """«old» (0.45) of January above «new» (0.4) of March: cos(0.9, 0.8) = 0.72 + 0.436 * 0.6 = 0.982 apart."""
    older: dict[str, Any] = {"vector": leaning(0.9), "event_at": JANUARY, **(old or {})}
    newer: dict[str, Any] = {"vector": leaning(0.8), "event_at": MARCH, **(new or {})}
    made.add("old", "pear", **older)
    made.add("new", "pear", **newer)
    return made


def order(made: Library, text: str = "apple", **asked: Any) -> list[str]:
    return made.search(text, vector=QUERY, **asked)


def explained(result: ScoredMemory) -> Explanation:
    """Its explanation, which must give its score (case 133)."""
    explanation = result.explanation
    assert explanation is not None
    product = math.prod(explanation.factors.values())
    assert sum(explanation.parts.values()) * product == pytest.approx(result.score, abs=1e-9)
    assert 0.0 < explanation.factors.get("recency", 0.5) < 1.0
    return explanation


def test_near_pairs_by_hand() -> None:
    vectors = np.array([[2, 0], [3, 4], [0, 0], [0, 1]], dtype=np.float32)
    # a.b = 0.6, b.d = 0.8, a.d = 0; c is near nothing
    assert near_pairs("abcd", vectors, cosine=0.8) == [("b", "d")]
    assert near_pairs("abcd", vectors, cosine=0.6) == [("a", "b"), ("b", "d")]
    assert near_pairs("abcd", vectors, cosine=0.81) == []
    assert near_pairs("abcd", vectors, cosine=0.0) == [("a", "b"), ("a", "d"), ("b", "d")]
    assert near_pairs("aa", np.full((2, 3), 0.1, dtype=np.float32), cosine=1.0) == [("a", "a")]
    assert near_pairs([], np.empty((0, 0), dtype=np.float32), cosine=0.5) == []


def test_a_question_for_the_present_takes_three_tenths_off() -> None:
    policy = BankPolicy(recency_cosine=0.8)
    assert nearness(policy, "Where does Ana live?") == 0.8
    assert nearness(policy, "Where does Ana live now?") == pytest.approx(0.5)


def test_the_newer_of_two_rivals_stands_first() -> None:
    made = two(library())
    made.add("between", "pear", vector=leaning(0.85, towards=2), event_at=JANUARY)
    results = made.recall("apple", vector=QUERY, explain=True).results
    assert [result.memory.id for result in results] == ["between", "new", "old"]
    between, new, old = results
    assert [between.score, new.score] == pytest.approx([0.425, 0.4])
    assert old.score == pytest.approx(new.score * (1 - 1e-6), abs=1e-12)
    assert explained(old).factors == {"recency": pytest.approx(0.4 / 0.45, abs=1e-5)}
    assert explained(old).relevance == pytest.approx(0.45)
    assert explained(new).factors == explained(between).factors == {}


def test_each_of_three_stands_below_the_next() -> None:
    made = two(library())
    made.add("newest", "pear", vector=leaning(0.75), event_at=MARCH + timedelta(days=1))
    assert order(made) == ["newest", "new", "old"]


@pytest.mark.parametrize(
    ("cosine", "expected"),
    # of the older 0.9: 1 - gap = 0.8 of it is 0.72
    [(0.73, ["new", "old"]), (0.71, ["old", "new"])],
)
def test_the_gap_by_hand(cosine: float, expected: Sequence[str]) -> None:
    assert order(two(library(), new={"vector": leaning(cosine)})) == expected


@pytest.mark.parametrize(("cosine", "expected"), [(0.37, ["new", "old"]), (0.15, ["old", "new"])])
def test_news_may_have_scored_much_lower(cosine: float, expected: Sequence[str]) -> None:
    """A gap of 4 * 0.2: from 0.18 of a cosine on. The one is 0.738 near to the old one, the other 0.566: both rival for
    a question for the present."""
    made = library()
    made.add("old", "pear", vector=leaning(0.9), event_at=JANUARY)
    made.add("new", "I moved", vector=leaning(cosine), event_at=MARCH)
    assert order(made, "apple now") == expected


def test_only_a_question_for_the_present_takes_what_is_less_near() -> None:
    """0.85 * 0.8 = 0.68, at right angles otherwise."""
    made = library()
    made.add("old", "pear", vector=leaning(0.85), event_at=JANUARY)
    made.add("new", "pear", vector=leaning(0.8, towards=2), event_at=MARCH)
    assert order(made) == ["old", "new"]
    assert order(made, "apple currently") == ["new", "old"]
    assert order(made, "which apple was current") == ["old", "new"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I used to live there", ["old", "new"]),
        ("I would live there", ["old", "new"]),
        ("do you live there?", ["old", "new"]),
        ("I live there", ["new", "old"]),
    ],
)
def test_what_does_not_tell_of_the_present_is_not_the_newer_one(text: str, expected: Sequence[str]) -> None:
    made = library()
    made.add("old", "pear", vector=leaning(0.9), event_at=JANUARY)
    made.add("new", text, vector=leaning(0.8), event_at=MARCH)
    assert order(made) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"speaker": "Ana"}, {"speaker": "Ben"}),
        ({"agent_id": "one"}, {}),
        ({"title": "Berlin"}, {"title": "Bonn"}),
        ({"session_id": "s"}, {"session_id": "s"}),
        ({}, {"event_at": JANUARY}),
        ({}, {"event_at": NOW + timedelta(days=1)}),
        ({}, {"kind": "summary"}),
        ({"kind": "segment", "source": Source(parent_id="d", position=0)}, {}),
        ({}, {"source": Source(parent_id="run", position=0)}),
        ({}, {"speaker": "assistant"}),
        ({}, {"metadata": {"role": "assistant"}}),
    ],
)
def test_what_is_no_rival(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Of others' words, of another text, of one session, of one time, of a time to come; parts and derivatives; what an
    assistant says."""
    if new.get("speaker") == "assistant":
        old = {"speaker": "assistant"}
    if "metadata" in new:
        old = {"metadata": new["metadata"]}
    assert order(two(library(derived_weight=1.0), old=old, new=new)) == ["old", "new"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"session_id": "s"}, {"session_id": "t"}),
        ({"speaker": "Ana", "title": "Berlin"}, {"speaker": "Ana", "title": "Berlin"}),
        ({"event_at": None, "created_at": JANUARY}, {"event_at": None, "created_at": MARCH}),
        ({"valid_from": JANUARY, "event_at": NOW}, {"valid_from": MARCH, "event_at": JANUARY}),
    ],
)
def test_what_is_a_rival(old: dict[str, Any], new: dict[str, Any]) -> None:
    """When it was said: the time from which it is valid, else of the event, else of writing (docs/adr/0012)."""
    assert order(two(library(), old=old, new=new)) == ["new", "old"]


def test_nothing_of_another_user_or_bank_is_a_rival() -> None:
    made = two(library(), new={"user_id": "v"})
    assert order(made, users=("u", "v")) == ["old", "new"]
    made = two(library(), new={"bank": "knowledge"})
    assert order(made, banks=("dialog", "knowledge")) == ["old", "new"]


def test_each_partition_has_its_rivals() -> None:
    made = two(library())
    made.add("old v", "pear", user_id="v", vector=leaning(0.85), event_at=JANUARY)
    made.add("new v", "pear", user_id="v", vector=leaning(0.75), event_at=MARCH)
    assert order(made, users=("u", "v")) == ["new", "old", "new v", "old v"]


def test_the_results_are_the_same_ones() -> None:
    """The newer one is not fetched from below; the older one does not fall out at a threshold (case 28)."""
    made = two(library())
    assert order(made, top_k=1) == ["old"]
    assert order(made, top_k=2) == ["new", "old"]
    lowest = made.recall("apple", vector=QUERY).results[0].score
    results = made.recall("apple", vector=QUERY, threshold=lowest).results
    assert {result.memory.id for result in results} == {"old", "new"}
    assert all(result.score >= lowest for result in results)


@pytest.mark.parametrize("fusion", ["dense", "sparse"])
def test_one_leg_is_shown_as_it_is_case_143(fusion: str) -> None:
    made = library()
    made.add("old", "apple apple", vector=leaning(0.9), event_at=JANUARY)
    made.add("new", "apple pear", vector=leaning(0.8), event_at=MARCH)
    assert order(made, fusion=fusion) == ["old", "new"]
    assert order(made, fusion="rrf") == ["new", "old"]


@pytest.mark.parametrize("policy", [{"recency_gap": 0.0}, {"recency_cosine": 0.99}])
def test_a_bank_may_do_without(policy: dict[str, float]) -> None:
    assert order(two(library(**policy))) == ["old", "new"]


def test_the_task_bank_does_without() -> None:
    """There a success of last week is worth more than a failure of today: its own factors say how much age counts."""
    made = Library(**{name: value for name, value in PLAIN.items() if name != "failure_weight"})
    made = two(made, old={"bank": "task"}, new={"bank": "task"})
    assert order(made, banks=("task",)) == ["old", "new"]


def test_as_of_the_time_before_the_newer_one_there_is_no_rival() -> None:
    made = library()
    for name, cosine, at in (("old", 0.9, JANUARY), ("new", 0.8, MARCH)):
        memory = made.add(name, "pear", vector=leaning(cosine), created_at=at)
        made.past.append((memory, np.array(leaning(cosine), dtype=np.float32)))
    assert order(made, as_of=MARCH - timedelta(days=1)) == ["old"]
    assert order(made, as_of=MARCH + timedelta(days=1)) == ["new", "old"]


def test_a_newer_one_that_has_ended_by_a_third_takes_both_down() -> None:
    """old (0.45) rivals new (0.4), of which something has been ended by last (0.2): new falls below it, old too."""
    ended = Ended("user", "likes", "pears", "last", NOW, Reason.ENDED)
    made = two(library(), new={"ended": (ended,)})
    made.add("last", "pear", vector=leaning(0.4, towards=2), event_at=MARCH + timedelta(days=1))
    results = made.recall("apple", vector=QUERY, explain=True).results
    assert [result.memory.id for result in results] == ["last", "new", "old"]
    assert [set(explained(result).factors) for result in results] == [set(), {"currency"}, {"recency"}]


class Elsewhere(LocalDense):
    """The dense leg of an engine, as far as its vectors are out of reach."""

    remote = True  # type: ignore[misc]


def test_vectors_that_live_elsewhere_are_read_from_the_store() -> None:
    made = two(library())
    asked: list[Sequence[str]] = []

    def stored(tenant: str, ids: Sequence[str]) -> Mapping[str, Vector]:
        asked.append(list(ids))
        return {name: np.array(leaning(cosine), dtype=np.float32) for name, cosine in (("old", 0.9), ("new", 0.8))}

    expected = [(result.memory.id, result.score) for result in made.recall("apple", vector=QUERY).results]
    for given, wanted in ((stored, ["new", "old"]), (None, ["old", "new"]), (lambda *_: {}, ["old", "new"])):
        made.pipeline = Pipeline(
            encoder=made.encoder,
            indexes=made,
            store=made,  # type: ignore[arg-type]
            policies=made.policies,
            make_partition=made._make_partition,
            dense=Elsewhere(),
            stored_vectors=given,
        )
        assert order(made) == wanted
        if given is stored:
            assert [
                (result.memory.id, result.score) for result in made.recall("apple", vector=QUERY).results
            ] == expected
    assert asked == [["old", "new"]] * 2


def test_a_change_that_no_rule_reads_stands_above_what_was(tmp_path: Path, clock: SettableClock) -> None:
    """By the real encoder, through the service: nothing is superseded, the order alone tells. Off, the words decide."""
    january, march = clock() - timedelta(days=120), clock() - timedelta(days=60)
    for gap, expected in ((0.2, ["new", "old"]), (0.0, ["old", "new"])):
        banks = {bank: BankSettings(recency_gap=gap) for bank in ("dialog", "knowledge")}
        with open_service(Settings(data_dir=tmp_path / str(gap), banks=banks), clock=clock) as service:
            for bank in banks:
                for name, at, text in (
                    ("new", march, "Rob Miller signed with Google."),
                    ("old", january, "Rob Miller works at Nokia."),
                ):
                    draft = MemoryDraft(
                        tenant="t", user_id="u", bank=bank, text=text, id=f"{bank}-{name}", created_at=at, event_at=at
                    )
                    assert service.add(draft).superseded == ()
                asked = Query(
                    tenant="t", user_id="u", text="Whom does Rob Miller work for now?", banks=(bank,), explain=True
                )
                results = service.search(asked).results
                assert [each.memory.id for each in results] == [f"{bank}-{name}" for name in expected]
                assert ["recency" in explained(each).factors for each in results] == [False, gap > 0.0]
                before = service.search(replace(asked, as_of=march - timedelta(days=1))).results
                assert [each.memory.id for each in before] == [f"{bank}-old"]
                assert [each.memory.id for each in service.search(replace(asked, top_k=1)).results] == [f"{bank}-old"]
