"""FSRS-6 as a curve: numbers worked by hand from its formulas, and agreement with the library."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from fsrs import Card, Rating, Scheduler, State

from vimbank.curves.catalogue import open_curve
from vimbank.curves.fsrs import FsrsCurve
from vimbank.domain.curves import CURVE_NAMES, Trace, Traces
from vimbank.domain.models import Signal
from vimbank.errors import InvalidInput

START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = 2.3065  # w2: stability after a first Good, days


def figures(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


@pytest.fixture
def curve() -> FsrsCurve:
    return FsrsCurve()


def test_retention_is_the_power_curve(curve: FsrsCurve) -> None:
    """Figures C8: at S = 2.307 R = .947 (1 d), .808 (7), .668 (30), .568 (90), .459 (365); 1 at 0, .9 at S."""
    ages = figures(0, FIRST, 1, 7, 30, 90, 365)
    got = curve.retention(Traces(np.ones(7), np.full(7, FIRST)), ages)
    assert got == pytest.approx([1.0, 0.9, 0.947, 0.808, 0.668, 0.568, 0.459], abs=6e-4)


def test_retention_agrees_with_the_library_on_whole_days(curve: FsrsCurve) -> None:
    scheduler = Scheduler(enable_fuzzing=False)
    for days in (0, 1, 30, 400):
        for stability in (0.3, 2.3, 60.0):
            card = Card(
                card_id=1, state=State.Review, stability=stability, difficulty=5.0, due=START, last_review=START
            )
            want = scheduler.get_card_retrievability(card, START + timedelta(days=days))
            assert curve.retention(Traces(figures(1), figures(stability)), figures(days)) == pytest.approx([want])


def test_lasting_is_the_inverse(curve: FsrsCurve) -> None:
    """0.9 after S days by definition; 0.5: 2.3065 / 0.98036 * (0.5^(-1 / 0.1542) - 1) = 208.4 days."""
    first = Traces.of_strength(figures(1))
    factor = 0.9 ** (-1 / 0.1542) - 1
    assert curve.lasting_days(first, 0.9) == pytest.approx([FIRST])
    assert curve.lasting_days(first, 0.5) == pytest.approx([FIRST / factor * (2 ** (1 / 0.1542) - 1)])
    assert curve.lasting_days(first, 0.5) == pytest.approx([208.4], abs=0.05)
    assert curve.lasting_days(first, 1.0).tolist() == [0.0]
    assert curve.lasting_days(first, 0.0).tolist() == [math.inf]
    with pytest.raises(InvalidInput):
        curve.lasting_days(first, 1.5)


def test_a_use_is_a_good_review(curve: FsrsCurve) -> None:
    """S' = S (1 + e^w8 (11 - D) S^-w9 (e^((1 - R) w10) - 1)), from S = 2.3065, D = w4 - e^(2 w5) + 1, after 7 days."""
    difficulty = 6.4133 - math.exp(2 * 0.8334) + 1
    left = (1 + (0.9 ** (-1 / 0.1542) - 1) * 7 / FIRST) ** -0.1542
    want = FIRST * (1 + math.exp(1.8722) * (11 - difficulty) * FIRST**-0.1666 * (math.exp((1 - left) * 0.796) - 1))
    used = curve.review(Trace(), Signal.USED, 7.0)
    assert used.stability_days == pytest.approx(want)
    assert used.difficulty == pytest.approx(difficulty, abs=0.01)
    assert used.strength == 3.0  # kept up for the other curves


def test_being_wrong_is_a_lapse_that_does_not_restart_the_clock(curve: FsrsCurve) -> None:
    """S' = min(w11 D^-w12 ((S + 1)^w13 - 1) e^((1 - R) w14), S / e^(w17 w18)); from S = 10, D = 5 after 10 days."""
    before = Trace(strength=4.0, stability_days=10.0, difficulty=5.0)
    wrong = curve.review(before, Signal.WRONG, 10.0)
    want = 1.4835 * 5**-0.0614 * (11**0.2629 - 1) * math.exp(0.1 * 1.6483)
    assert want < 10 / math.exp(0.5425 * 0.0912)
    assert wrong.stability_days == pytest.approx(want)
    assert wrong.strength == 2.0
    assert wrong.difficulty is not None
    assert wrong.difficulty > 5.0
    assert [signal for signal in Signal if curve.restarts(signal)] == [Signal.USED]


@pytest.mark.parametrize("signal", [Signal.RETURNED, Signal.IGNORED])
def test_what_is_returned_or_ignored_is_not_reviewed(curve: FsrsCurve, signal: Signal) -> None:
    """D10: used = Good, retrieved and ignored = no review (case 141: the rule of this curve)."""
    trace = Trace(strength=2.0, stability_days=3.0, difficulty=4.0)
    assert curve.review(trace, signal, 5.0) is trace


def test_a_use_right_after_the_answer_that_returned_it_counts_in_full(curve: FsrsCurve) -> None:
    """The return does not restart the clock, so the use is a review after seven days, not after seconds."""
    returned = curve.review(Trace(), Signal.RETURNED, 7.0)
    assert curve.review(returned, Signal.USED, 7.0) == curve.review(Trace(), Signal.USED, 7.0)


def test_reviews_agree_with_the_library_over_a_life(curve: FsrsCurve) -> None:
    scheduler = Scheduler(enable_fuzzing=False, learning_steps=(), relearning_steps=())
    card, _ = scheduler.review_card(Card(card_id=1, due=START), Rating.Good, START)
    trace, at = Trace(), START
    for days in (1, 0, 4, 30, 200):
        at += timedelta(days=days)
        card, _ = scheduler.review_card(card, Rating.Good, at)
        trace = curve.review(trace, Signal.USED, float(days))
        assert trace.stability_days == pytest.approx(card.stability)
        assert trace.difficulty == pytest.approx(card.difficulty)


def test_a_memory_that_another_curve_strengthened_starts_stronger(curve: FsrsCurve) -> None:
    """S = w2 * strength, so R = 0.9 at 3 * 2.3065 days for strength 3; below 1 counts as 1."""
    got = curve.retention(Traces.of_strength(figures(3, 0)), figures(3 * FIRST, FIRST))
    assert got == pytest.approx([0.9, 0.9])
    assert curve.review(Trace(strength=3.0), Signal.USED, 0.5).stability_days == pytest.approx(3 * FIRST, rel=1e-3)


@pytest.mark.parametrize("age", [-3.0, math.nan])
def test_a_clock_set_back_is_age_0_case_108(curve: FsrsCurve, age: float) -> None:
    assert curve.review(Trace(), Signal.USED, age) == curve.review(Trace(), Signal.USED, 0.0)
    assert curve.retention(Traces.of_strength(figures(1)), figures(age)).tolist() == [1.0]


def test_an_age_beyond_the_calendar_is_a_century(curve: FsrsCurve) -> None:
    assert curve.review(Trace(), Signal.USED, 1e9) == curve.review(Trace(), Signal.USED, 36_500.0)


def test_the_same_life_gives_the_same_trace() -> None:
    """Nothing is random: fuzz belongs to due dates, which are not used."""
    lives = {FsrsCurve().review(FsrsCurve().review(Trace(), Signal.USED, 30.0), Signal.WRONG, 90.0) for _ in range(20)}
    assert len(lives) == 1


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InvalidInput, match="parameters"):
        FsrsCurve([0.5] * 20)


def test_the_catalogue_opens_every_curve_under_its_name() -> None:
    opened = [open_curve(name, tau_days=3.0, max_strength=5.0) for name in CURVE_NAMES]
    assert [curve.name for curve in opened] == list(CURVE_NAMES)
    assert {curve.review(Trace(strength=4.5), Signal.USED, 1.0).strength for curve in opened} == {5.0}
    # tau is the exponential's: exp(-3 / 3) at strength 1
    assert opened[0].retention(Traces.of_strength(figures(1)), figures(3)) == pytest.approx([1 / math.e])
