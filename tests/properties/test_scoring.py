"""What every factor and lift obeys."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.forgetting import retention
from vimbank.domain.scoring import age_days, best_first, currency_factors, lift, retention_factor, time_factor

UNIT = st.floats(0.0, 1.0)
AGES = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30).map(np.array)
SECONDS = st.one_of(st.floats(-1e11, 1e11), st.just(float("nan")))
RELEVANCE = st.lists(UNIT, min_size=1, max_size=30).map(np.array)


@given(AGES, st.floats(1e-6, 1e4), UNIT)
def test_time_factor_is_bounded_and_falls_with_age(ages: np.ndarray, half_life: float, weight: float) -> None:
    """B12: g in [1 - rho, 1]; at equal relevance newer >= older."""
    factor = time_factor(np.sort(ages), half_life_days=half_life, weight=weight)
    assert (factor <= 1.0).all()
    assert (factor >= 1.0 - weight).all()
    assert (np.diff(factor) <= 0).all()


@given(RELEVANCE, UNIT)
def test_retention_is_a_prior_and_never_a_gate(retained: np.ndarray, weight: float) -> None:
    """D11: in [1 - rho, 1], rises with R; above 0 where rho is below 1."""
    factor = retention_factor(np.sort(retained), weight=weight)
    assert (factor <= 1.0).all()
    assert (factor >= 1.0 - weight).all()
    assert (np.diff(factor) >= 0).all()
    assert weight == 1.0 or (factor > 0).all()


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=20), st.floats(-1e11, 1e11))
def test_ages_are_finite_and_never_negative(moments: list[tuple[float, float]], now: float) -> None:
    """Cases 98, 108: whatever the clock says."""
    event, recalled = np.array(moments).T
    age = age_days(now, event, recalled)
    assert np.isfinite(age).all()
    assert (age >= 0).all()


@given(RELEVANCE, st.data())
def test_lifts_keep_relevance_in_0_1(relevance: np.ndarray, data: st.DataObject) -> None:
    lifted = relevance
    for _ in range(4):
        support = np.array(data.draw(st.lists(UNIT, min_size=len(relevance), max_size=len(relevance))))
        lifted = lifted + lift(lifted, support, weight=data.draw(UNIT))
    assert (lifted >= relevance - 1e-12).all()
    assert (lifted <= 1.0 + 1e-12).all()


@given(UNIT, UNIT, UNIT)
def test_two_that_support_each_other_never_turn_round(one: float, other: float, weight: float) -> None:
    """Two turns side by side: the better one stays the better one."""
    two = np.array([one, other])
    smooth = two + lift(two, two[::-1], weight=weight)
    assert (smooth[0] - smooth[1]) * (one - other) >= -1e-12


@given(AGES, st.floats(1.0, 1e6), st.floats(0.0, 1e6), st.floats(1e-3, 1e3))
def test_retention_falls_with_age_and_rises_with_strength(
    ages: np.ndarray, strength: float, more: float, tau: float
) -> None:
    """B16, B21: R in [0, 1], never decreasing in S."""
    ages = np.sort(ages)
    weak = retention(ages, np.full(len(ages), strength), tau_days=tau)
    strong = retention(ages, np.full(len(ages), strength + more), tau_days=tau)
    assert ((weak >= 0) & (weak <= 1)).all()
    assert (np.diff(weak) <= 0).all()
    assert (strong >= weak).all()


@given(RELEVANCE, st.integers(1, 40))
def test_best_first_holds_every_possible_winner(scores: np.ndarray, top_k: int) -> None:
    kept = set(best_first(scores, top_k=top_k).tolist())
    cut = np.sort(scores)[::-1][min(top_k, len(scores)) - 1]
    assert kept == set(np.flatnonzero(scores >= cut).tolist()) or len(scores) <= top_k


SUCCESSION = st.integers(2, 8).flatmap(
    lambda n: st.tuples(
        st.lists(UNIT, min_size=n, max_size=n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=12)
    )
)


@given(SUCCESSION)
def test_the_stale_ends_below_the_current(drawn: tuple[list[float], list[tuple[int, int]]]) -> None:
    """V-10, over any successions without a circle: below each successor, nobody above where they were."""
    scores = {str(place): score for place, score in enumerate(drawn[0])}
    pairs = [(str(min(pair)), str(max(pair))) for pair in drawn[1] if pair[0] != pair[1]]
    successors = {name: {new for old, new in pairs if old == name} for name in scores}
    factors = currency_factors(scores, successors)
    final = {name: score * factors.get(name, 1.0) for name, score in scores.items()}
    assert all(0.0 <= factor < 1.0 for factor in factors.values())
    assert all(final[old] < final[new] or final[new] < 1e-300 for old, new in pairs)
    assert all(name in factors or final[name] == scores[name] for name in scores)
    assert set(factors) <= {old for old, _ in pairs}


def test_a_circle_of_successions_ends() -> None:
    factors = currency_factors({"a": 0.9, "b": 0.5}, {"a": {"b"}, "b": {"a"}})
    assert set(factors) == {"a"}


def test_a_thousand_successions_in_a_row() -> None:
    names = [str(place) for place in range(1_000)]
    factors = currency_factors(dict.fromkeys(names, 0.5), {old: {new} for old, new in pairwise(names)})
    assert len(factors) == 999
    assert factors["0"] == pytest.approx((1 - 1e-6) ** 999)
