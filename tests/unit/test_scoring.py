"""Scoring: numbers worked by hand."""

import numpy as np
import pytest

from vimbank.domain.forgetting import retention
from vimbank.domain.scoring import age_days, best_first, lift, outcome_factor, time_factor
from vimbank.errors import InvalidInput

DAY = 86_400.0


def figures(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_age_counts_from_the_later_of_event_and_recall() -> None:
    """Case 32: recalled today counts as today, whatever its own time."""
    got = age_days(10 * DAY, figures(0.0, 0.0, 9 * DAY), figures(np.nan, 10 * DAY, 4 * DAY))
    assert got.tolist() == [10.0, 0.0, 1.0]


def test_age_is_never_negative() -> None:
    """Cases 98, 108: a time ahead of the clock is age 0."""
    assert age_days(DAY, figures(2 * DAY, 1e12)).tolist() == [0.0, 0.0]


def test_age_of_unknown_moments_is_0() -> None:
    assert age_days(DAY, figures(np.nan), figures(np.nan)).tolist() == [0.0]


def test_time_factor_halves_its_share_a_half_life() -> None:
    got = time_factor(figures(0.0, 7.0, 14.0, 1e9), half_life_days=7.0, weight=0.2)
    # 0.8 + 0.2 * (1, 1/2, 1/4, 0)
    assert got == pytest.approx([1.0, 0.9, 0.85, 0.8])


def test_time_factor_without_half_life_is_1() -> None:
    assert time_factor(figures(0.0, 1e6), half_life_days=None, weight=0.5).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("half_life", [0.0, -1.0, float("nan")])
def test_time_factor_refuses_a_half_life_that_is_none(half_life: float) -> None:
    """Case 98."""
    with pytest.raises(InvalidInput, match="half_life_days"):
        time_factor(figures(1.0), half_life_days=half_life, weight=0.2)


def test_outcome_factor_takes_from_failures_only() -> None:
    assert outcome_factor(np.array([True, False]), weight=0.1).tolist() == [0.9, 1.0]


def test_lift_gives_a_share_of_what_is_missing_to_1() -> None:
    got = lift(figures(0.5, 1.0, 0.0), figures(0.8, 0.8, 0.0), weight=0.5)
    assert got == pytest.approx([0.5 * 0.8 * 0.5, 0.0, 0.0])


def test_best_first_keeps_all_that_tie_with_the_last() -> None:
    assert sorted(best_first(figures(0.2, 0.9, 0.5, 0.5, 0.1), top_k=2).tolist()) == [1, 2, 3]
    assert best_first(figures(0.2, 0.9), top_k=5).tolist() == [0, 1]


def test_retention_at_one_strength_is_1_over_e() -> None:
    """B16: at t = 1 for S = 1, 2, 3: .368 .607 .717; a week at tau 5 for S = 1, 2: .247 .497 (B21)."""
    assert retention(figures(1, 1, 1), figures(1, 2, 3)) == pytest.approx([0.368, 0.607, 0.717], abs=5e-4)
    assert retention(figures(7, 7), figures(1, 2), tau_days=5.0) == pytest.approx([0.247, 0.497], abs=5e-4)


@pytest.mark.parametrize(("age", "strength", "tau"), [(-1.0, 1.0, 1.0), (1.0, 0.5, 1.0), (1.0, 1.0, 0.0)])
def test_retention_refuses_what_has_no_meaning(age: float, strength: float, tau: float) -> None:
    with pytest.raises(InvalidInput):
        retention(figures(age), figures(strength), tau_days=tau)
