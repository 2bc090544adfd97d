"""What summaries are made of, what makes them stale, what overlaps; sentences and their centrality by hand."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from vimbank.domain.lexrank import centrality, chosen
from vimbank.domain.models import Memory, MemoryState, Partition, Source
from vimbank.domain.sentences import fitted, sentences
from vimbank.domain.summaries import (
    MAX_SOURCES,
    Plan,
    best_of,
    condensing_plans,
    day_plans,
    derived_of,
    is_source,
    kept_sentences,
    must_write,
    sources_hash,
    stale_ids,
    uncovered_groups,
)
from vimbank.errors import InvalidInput

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
PLACE = Partition("default", "ana", "dialog")


def memory(id: str, *, day: int = 1, hour: int = 9, **given: Any) -> Memory:
    at = datetime(2026, 1, day, hour, tzinfo=UTC)
    fields: dict[str, Any] = {
        "kind": "round", "text": id, "created_at": at, "updated_at": at, "content_hash": f"hash of {id}", "revision": 1,
    }  # fmt: skip
    return Memory(id=id, tenant="default", user_id="ana", bank="dialog", **(fields | given))


def written(plan: Plan, method: str = "extractive") -> Memory:
    derived = plan.derived(method, None)  # type: ignore[arg-type]
    return memory(
        plan.id, kind=plan.kind, event_at=plan.event_at, metadata=derived.metadata(), session_id=plan.session_id
    )


def stale(asked: Sequence[Memory], store: Sequence[Memory]) -> set[str]:
    by_id = {each.id: each for each in store}
    return set(stale_ids(asked, lambda ids: [by_id[each] for each in ids if each in by_id], now=NOW))


def test_a_day_is_utc_and_its_plan_has_one_id_in_every_run() -> None:
    late = memory("c", event_at=datetime(2026, 1, 2, 8, tzinfo=UTC).astimezone())
    plans = day_plans(PLACE, "summary", [memory("b", hour=10), memory("a"), late], {})
    assert [(plan.period, [each.id for each in plan.sources]) for plan in plans] == [
        ("2026-01-01", ["a", "b"]),
        ("2026-01-02", ["c"]),
    ]
    again = day_plans(PLACE, "summary", [memory("a")], {})
    assert again[0].id == plans[0].id != plans[1].id
    assert day_plans(PLACE, "portrait", [memory("a")], {})[0].id != plans[0].id
    assert day_plans(replace(PLACE, user_id="ben"), "summary", [memory("a")], {})[0].id != plans[0].id


def test_a_day_of_many_turns_has_several_summaries() -> None:
    turns = [memory(f"{place:04d}", number=place) for place in range(MAX_SOURCES + 3)]
    plans = day_plans(PLACE, "summary", turns, {})
    assert [(plan.period, len(plan.sources)) for plan in plans] == [("2026-01-01", MAX_SOURCES), ("2026-01-01 2", 3)]


def test_days_are_condensed_into_months_and_months_into_one() -> None:
    days = [written(plan) for plan in day_plans(PLACE, "summary", [memory("a"), memory("b", day=2)], {})]
    february = replace(days[0], id="f", event_at=datetime(2026, 2, 3, tzinfo=UTC))
    months = condensing_plans(PLACE, "summary", "month", [*days, february], {})
    assert [(plan.period, len(plan.sources)) for plan in months] == [("2026-01", 2), ("2026-02", 1)]
    (whole,) = condensing_plans(PLACE, "summary", "global", [written(plan) for plan in months], {})
    assert (whole.period, whole.level, len(whole.sources)) == ("all", "global", 2)
    assert condensing_plans(PLACE, "summary", "global", [], {}) == []


def test_groups_are_five_consecutive_turns_of_a_session_and_the_rest_waits() -> None:
    """I-28."""
    turns = [memory(f"s{place}", hour=place, session_id="s") for place in range(11)]
    other = [memory(f"t{place}", hour=place, session_id="t") for place in range(4)]
    groups = uncovered_groups([*turns, *other], ())
    assert [(session, [each.id for each in group]) for session, group in groups] == [
        ("s", ["s0", "s1", "s2", "s3", "s4"]),
        ("s", ["s5", "s6", "s7", "s8", "s9"]),
    ]
    known = [each.id for _, group in groups for each in group]
    assert uncovered_groups([*turns, *other], known) == []


def test_positions_order_the_turns_of_one_instant() -> None:
    turns = [memory(f"{5 - place}", number=place, source=Source(position=5 - place)) for place in range(5)]
    ((_, group),) = uncovered_groups(turns, ())
    assert [each.id for each in group] == ["1", "2", "3", "4", "5"]


def test_what_is_written_is_not_written_again_until_a_source_changes() -> None:
    (plan,) = day_plans(PLACE, "summary", [memory("a"), memory("b")], {})
    assert must_write(plan, "extractive")
    stored = {plan.id: written(plan)}
    (again,) = day_plans(PLACE, "summary", [memory("b"), memory("a")], stored)
    assert not must_write(again, "extractive")
    (changed,) = day_plans(PLACE, "summary", [memory("a"), memory("b", content_hash="other")], stored)
    assert must_write(changed, "extractive")
    (grown,) = day_plans(PLACE, "summary", [memory("a"), memory("b"), memory("c")], stored)
    assert must_write(grown, "extractive")


def test_a_model_replaces_what_was_extracted_and_not_the_other_way_round() -> None:
    (plan,) = day_plans(PLACE, "summary", [memory("a")], {})
    assert must_write(replace(plan, existing=written(plan)), "llm")
    assert not must_write(replace(plan, existing=written(plan, "llm")), "extractive")


def test_recalls_change_nothing_and_contents_do() -> None:
    first = memory("a")
    recalled = replace(first, recall_count=9, strength=5.0, revision=77, state=MemoryState.ARCHIVED)
    assert sources_hash([first, memory("b")]) == sources_hash([memory("b"), recalled])
    assert sources_hash([first]) != sources_hash([replace(first, content_hash="x")])


@pytest.mark.parametrize(
    "changes",
    [
        {"content_hash": "x"},
        {"state": MemoryState.SUPERSEDED},
        {"state": MemoryState.SUPPRESSED},
        {"expires_at": NOW},
        {"user_id": "ben"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_case_74_and_93_a_summary_is_stale_when_a_source_changes_or_goes(changes: dict[str, Any]) -> None:
    first, second = memory("a"), memory("b")
    (plan,) = day_plans(PLACE, "summary", [first, second], {})
    summary = written(plan)
    assert stale([summary, first], [first, second]) == set()
    assert stale([summary], [first]) == {summary.id}
    assert stale([summary], [first, replace(second, **changes)]) == {summary.id}
    archived = replace(second, state=MemoryState.ARCHIVED, recall_count=3)
    assert stale([summary], [first, archived]) == set()


def test_a_summary_of_summaries_is_stale_with_what_it_condenses() -> None:
    first, second = memory("a"), memory("b", day=2)
    days = [written(plan) for plan in day_plans(PLACE, "summary", [first, second], {})]
    (plan,) = condensing_plans(PLACE, "summary", "global", days, {})
    whole = written(plan)
    assert stale([whole, *days], [first, second, *days]) == set()
    assert stale([whole], [first, *days]) == {whole.id}
    assert stale([whole, *days], [first, *days]) == {whole.id, days[1].id}


def test_a_summary_that_names_itself_is_stale_and_ends() -> None:
    loop = memory("x", kind="summary")
    derived = replace(day_plans(PLACE, "summary", [loop], {})[0]).derived("llm", "m")
    assert stale([replace(loop, metadata=derived.metadata())], []) == {"x"}


def test_a_callers_own_summary_is_a_memory_like_any_other() -> None:
    own = memory("x", kind="summary", metadata={"sources": "none"})
    assert derived_of(own) is None
    assert is_source(own, NOW)
    assert stale([own], []) == set()
    assert not is_source(written(day_plans(PLACE, "summary", [memory("a")], {})[0]), NOW)
    assert not is_source(memory("s", kind="segment"), NOW)


def test_what_the_metadata_says_is_read_back() -> None:
    derived = day_plans(PLACE, "summary", [memory("a")], {})[0].derived("llm", "small")
    assert derived_of(memory("x", kind="summary", metadata=derived.metadata())) == derived


def test_similar_parts_are_overwritten_and_the_rest_stays() -> None:
    """I-29, I-30: cosines of the first old part are 1 and 0, of the second 0 and 0.6, of the third 0 and -1."""
    old = np.array([[1, 0], [0, 1], [0, -1]], dtype=np.float32)
    new = np.array([[1, 0], [0.8, 0.6]], dtype=np.float32)
    assert kept_sentences(old, new, threshold=0.6) == [2]
    assert kept_sentences(old, new, threshold=0.7) == [1, 2]
    assert kept_sentences(old, new[:0]) == [0, 1, 2]
    assert kept_sentences(old[:0], new) == []


def test_the_best_summary_is_the_nearest_by_cosine() -> None:
    """I-32."""
    vectors = np.array([[1, 0], [0.6, 0.8], [0.6, 0.8]], dtype=np.float32)
    best = best_of(np.array([0, 1], dtype=np.float32), vectors)
    assert best is not None
    assert best == (1, pytest.approx(0.8))
    assert best_of(np.array([0, 1], dtype=np.float32), vectors[:0]) is None


def test_sentences_of_english_and_chinese() -> None:
    assert sentences('Dr. Wu moved to St. Ives. "Really?" asked J. Ode at 3.5 p.m. on 2 Jan. 2026!\nYes') == [
        "Dr. Wu moved to St. Ives.",
        '"Really?"',
        "asked J. Ode at 3.5 p.m. on 2 Jan. 2026!",
        "Yes",
    ]
    assert sentences("我住在杭州。你呢？“我也是。”好！") == ["我住在杭州。", "你呢？", "“我也是。”", "好！"]
    assert sentences("  \n ") == []


def test_a_text_is_fitted_by_whole_sentences() -> None:
    def words(text: str) -> list[tuple[int, int]]:
        found, start = [], 0
        for word in text.split():
            start = text.index(word, start)
            found.append((start, start + len(word)))
            start += len(word)
        return found

    text = "One two. Three four. Five six."
    assert fitted(text, words, limit=6) == text
    assert fitted(text, words, limit=5) == "One two. Three four."
    assert fitted(text, words, limit=1) == "One"


def test_centrality_of_two_alike_and_one_alone() -> None:
    """The pair halves each other's share: p = 0.15/3 + 0.85 p; alone: the same. Each is 1/3.

    With a bias of 2 for the first, b = (1/2, 1/4, 1/4), and the pair shares what it has:
    p1 + p2 = 3/4, p1 = 0.15/2 + 0.85 * 0.375 = 0.39375, p2 = 0.0375 + 0.31875 = 0.35625.
    """
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert centrality(vectors) == pytest.approx([1 / 3] * 3)
    assert centrality(vectors, bias=np.array([2.0, 1.0, 1.0])) == pytest.approx([0.39375, 0.35625, 0.25])
    assert centrality(vectors[:0]).shape == (0,)
    with pytest.raises(InvalidInput):
        centrality(vectors, bias=np.array([1.0, 0.0, 1.0]))


def test_what_many_say_is_central() -> None:
    """The second is similar to both others, which are not similar to each other; a zero row shares nothing."""
    half = np.sqrt(0.5)
    vectors = np.array([[1, 0], [half, half], [0, 1], [0, 0]], dtype=np.float32)
    scores = centrality(vectors)
    assert scores.argmax() == 1
    assert scores.argmin() == 3
    assert scores.sum() == pytest.approx(1)


def test_the_choice_fits_repeats_nothing_and_keeps_the_order() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)
    scores = np.array([0.2, 0.3, 0.4, 0.1])
    assert chosen(scores, vectors, [5, 5, 5, 5], budget=15, most=3) == [1, 2, 3]
    assert chosen(scores, vectors, [5, 5, 5, 5], budget=10, most=3) == [1, 2]
    assert chosen(scores, vectors, [5, 5, 5, 5], budget=15, most=1) == [2]
    assert chosen(scores, vectors, [5, 5, 99, 5], budget=4, most=3) == [2]
    assert chosen(scores[:0], vectors[:0], [], budget=10, most=3) == []


def test_months_need_no_more_than_their_newest() -> None:
    days = [
        memory(f"d{place:03d}", event_at=NOW - timedelta(days=place), number=place) for place in range(MAX_SOURCES + 5)
    ]
    (plan,) = condensing_plans(PLACE, "summary", "global", days, {})
    assert len(plan.sources) == MAX_SOURCES
    assert plan.sources[-1].id == "d000"
