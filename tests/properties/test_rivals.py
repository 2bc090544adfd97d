"""Recency among rivals, over any memories: the results stay the same ones, and no rival stands above a newer one."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.retrieval_kit import NOW, Library
from vimbank.domain.models import Recall
from vimbank.domain.news import Telling, telling
from vimbank.domain.superseding import said_at

WIDTH = 64
TEXTS = ("I live in Oslo", "I moved to Rome", "I used to live in Rome", "I live in Rome now")
QUESTIONS = ("Where do I live?", "Where do I live now?")

TOLD = st.lists(
    st.fixed_dictionaries(
        {
            "cosines": st.tuples(st.floats(0.05, 1.0), st.floats(-1.0, 1.0)),
            "day": st.integers(0, 3),
            "text": st.sampled_from(TEXTS),
            "session_id": st.sampled_from([None, "s", "t"]),
            "user_id": st.sampled_from(["u", "v"]),
        }
    ),
    min_size=2,
    max_size=7,
)


def unit(cosine: float, lean: float) -> np.ndarray:
    """A unit vector with this cosine to the first axis; the rest of its length between the next two."""
    rest = max(0.0, 1.0 - cosine * cosine) ** 0.5
    vector = np.zeros(WIDTH, dtype=np.float32)
    vector[:3] = cosine, rest * lean, rest * max(0.0, 1.0 - lean * lean) ** 0.5
    return vector


def asked(told: Sequence[dict[str, Any]], question: str, gap: float, **query: Any) -> Recall:
    made = Library(recency_gap=gap, half_life_days=None, neighbour_weight=0.0, information_weight=0.0, window=0)
    for place, each in enumerate(told):
        made.add(
            f"m{place}",
            each["text"],
            vector=unit(*each["cosines"]),
            event_at=NOW - timedelta(days=each["day"]),
            session_id=each["session_id"],
            user_id=each["user_id"],
        )
    return made.recall(question, users=("u", "v"), vector=unit(1.0, 0.0), explain=True, **query)


@settings(deadline=None)
@given(TOLD, st.sampled_from(QUESTIONS), st.floats(0.01, 1.0), st.integers(1, 8), st.floats(0.0, 0.6))
def test_rivals_change_the_order_alone(
    told: Sequence[dict[str, Any]], question: str, gap: float, top_k: int, threshold: float
) -> None:
    query = {"top_k": top_k, "threshold": threshold}
    plain, ordered = (asked(told, question, each, **query).results for each in (0.0, gap))
    before = {result.memory.id: result.score for result in plain}
    assert {result.memory.id for result in ordered} == set(before)
    assert [result.score for result in ordered] == sorted((result.score for result in ordered), reverse=True)
    for result in ordered:
        assert threshold <= result.score <= before[result.memory.id]
        assert result.explanation is not None
        factor = result.explanation.factors.get("recency", 1.0)
        assert result.score == pytest.approx(before[result.memory.id] * factor, abs=1e-12)
        assert 0.0 < factor <= 1.0


@settings(deadline=None)
@given(TOLD, st.sampled_from(QUESTIONS), st.floats(0.01, 1.0))
def test_no_rival_stands_above_a_newer_one(told: Sequence[dict[str, Any]], question: str, gap: float) -> None:
    before = {result.memory.id: result.score for result in asked(told, question, 0.0).results}
    ordered = [result.memory for result in asked(told, question, gap).results]
    bound = 0.5 if question.endswith("now?") else 0.8
    vectors = {f"m{place}": unit(*each["cosines"]).astype(np.float64) for place, each in enumerate(told)}
    for place, above in enumerate(ordered):
        for below in ordered[place + 1 :]:
            one_session = above.session_id is not None and above.session_id == below.session_id
            if above.user_id != below.user_id or one_session or said_at(above) >= said_at(below):
                continue
            share = min(1.0, gap * (4.0 if telling(below.text) is Telling.NEWS else 1.0))
            near = float(vectors[above.id] @ vectors[below.id]) >= bound + 1e-5
            close = before[below.id] > (1.0 - share) * before[above.id]
            assert not (near and close and telling(below.text) is not Telling.NOT_NOW)
