"""The curves' numbers, worked by hand from the papers' formulas and their errata."""

import math
import subprocess
import sys

import numpy as np
import pytest

from vimbank.domain.curves import DEFAULT_FLOORS, SIGNAL_WEIGHTS, ExponentialCurve, SaturatingCurve, Trace, Traces
from vimbank.domain.forgetting import days_until, saturating_strength
from vimbank.domain.models import Signal
from vimbank.errors import InvalidInput


def figures(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def traces(*strengths: float) -> Traces:
    return Traces.of_strength(figures(*strengths))


def test_exponential_is_the_papers_with_tau_1_case_94() -> None:
    """B16: at t = 1 for S = 1, 2, 3: exp(-1), exp(-1/2), exp(-1/3)."""
    curve = ExponentialCurve(tau_days=1.0)
    got = curve.retention(traces(1, 2, 3), figures(1, 1, 1))
    assert got == pytest.approx([0.367879, 0.606531, 0.716531], abs=1e-6)


def test_exponential_with_tau_5_is_what_memorybanks_code_meant() -> None:
    """B21: t = 7, exp(-7 / (5 S)) for S = 1, 2, 5, 10: .247 .497 .756 .869; case 94: never the code's .061 at S = 2."""
    got = ExponentialCurve(tau_days=5.0).retention(traces(1, 2, 5, 10), figures(7, 7, 7, 7))
    assert got == pytest.approx([0.247, 0.497, 0.756, 0.869], abs=5e-4)


def test_a_stronger_memory_fades_slower_case_94() -> None:
    """Age 10 d at tau 10: exp(-1) at strength 1, exp(-1/5) at strength 5."""
    got = ExponentialCurve(tau_days=10.0).retention(traces(1, 5), figures(10, 10))
    assert got == pytest.approx([0.367879, 0.818731], abs=1e-6)


def test_each_bank_has_its_own_rate_case_97() -> None:
    """Age 30 d: tau 10 gives exp(-3) = 0.0498, tau 480 gives exp(-1/16) = 0.9394."""
    age = figures(30)
    assert ExponentialCurve(tau_days=10.0).retention(traces(1), age) == pytest.approx([0.0498], abs=5e-5)
    assert ExponentialCurve(tau_days=480.0).retention(traces(1), age) == pytest.approx([0.9394], abs=5e-5)


def test_exponential_starts_at_its_initial_retention() -> None:
    """V-29: R0 * exp(-t / (tau S)) = 0.8 * exp(0), 0.8 * exp(-1)."""
    got = ExponentialCurve(tau_days=10.0, initial=0.8).retention(traces(1, 1), figures(0, 10))
    assert got == pytest.approx([0.8, 0.8 / math.e])


def test_exponential_strength_is_capped_case_98() -> None:
    """A billion recalls count as 19: S = 20, R(20 d) = exp(-20 / (1 * 20))."""
    curve = ExponentialCurve(tau_days=1.0)
    assert curve.retention(traces(1e9, 20), figures(20, 20)) == pytest.approx([1 / math.e, 1 / math.e])
    assert curve.lasting_days(traces(1e9), 0.05) == pytest.approx([20 * math.log(20)])


@pytest.mark.parametrize("curve", [ExponentialCurve(), SaturatingCurve()], ids=lambda curve: curve.name)
def test_a_clock_set_back_is_age_0_and_no_strength_is_1_cases_98_and_108(
    curve: ExponentialCurve | SaturatingCurve,
) -> None:
    assert curve.retention(traces(1, 1), figures(-5, np.nan)).tolist() == [1.0, 1.0]
    weak = curve.retention(traces(0, -3, np.nan, 1), figures(4, 4, 4, 4))
    assert weak.tolist() == [weak[3]] * 4


def test_exponential_lasts_tau_s_ln_of_one_over_the_floor() -> None:
    """10 * ln 20 = 29.957 days without a recall, twice that at strength 2."""
    got = ExponentialCurve(tau_days=10.0).lasting_days(traces(1, 2), 0.05)
    assert got == pytest.approx([29.957323, 59.914645])


def test_what_starts_below_the_floor_lasts_0_days_and_floor_0_is_never_reached() -> None:
    assert ExponentialCurve(initial=0.04).lasting_days(traces(1, 9), 0.05).tolist() == [0.0, 0.0]
    assert days_until(0.0, figures(1, 2)).tolist() == [math.inf, math.inf]
    assert days_until(1.0, figures(1, 2)).tolist() == [0.0, 0.0]


def test_saturating_strength_spans_5_to_23_not_25() -> None:
    """B2: S(1 … 5) = 5.000, 16.751, 21.745, 23.093, 23.409; the asymptote is 23.5. I-37: gains fall."""
    got = saturating_strength(figures(1, 2, 3, 4, 5, 10, 1e6))
    assert got == pytest.approx([5.0, 16.751, 21.745, 23.093, 23.409, 23.50, 23.5], abs=1e-3)
    assert np.diff(got)[:4] == pytest.approx([11.75, 4.99, 1.35, 0.32], abs=5e-3)


def test_saturating_strength_reaches_25_with_the_errata_constants() -> None:
    """B2: alpha 40, beta -15 give S(5) = 24.90; alpha 40.199, beta -15.099 give exactly 25."""
    assert saturating_strength(figures(5), alpha=40.0, beta=-15.0) == pytest.approx([24.90], abs=5e-3)
    assert saturating_strength(figures(5), alpha=40.199, beta=-15.099) == pytest.approx([25.0], abs=1e-3)


def test_saturating_strength_is_never_negative() -> None:
    """B3: S(0) would be -6.75, and retention would grow; the creation is the first exposure."""
    assert saturating_strength(figures(0, 0.5, 1)).tolist() == [5.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("age", "retained"),
    [
        (1.0, [0.819, 0.942, 0.955, 0.958, 0.958]),
        (7.0, [0.247, 0.658, 0.725, 0.739, 0.742]),
        (30.0, [0.002, 0.167, 0.252, 0.273, 0.278]),
    ],
)
def test_ilstma_retention_by_age_and_recall_times(age: float, retained: list[float]) -> None:
    """The table of B2, recallTimes 1 to 5."""
    got = SaturatingCurve().retention(traces(1, 2, 3, 4, 5), np.full(5, age))
    assert got == pytest.approx(retained, abs=5e-4)


def test_ilstma_equals_its_combined_equation() -> None:
    """I-38: R = exp(-t (1 + E) / (alpha + beta (1 + E))), E = exp(xi (n - mu))."""
    for n in (1, 2, 5):
        e = math.exp(-1.5 * (n - 1))
        want = math.exp(-7 * (1 + e) / (37 - 13.5 * (1 + e)))
        assert SaturatingCurve().retention(traces(n), figures(7)) == pytest.approx([want], rel=1e-12)


def test_ilstma_in_whole_days_is_blind_within_a_day() -> None:
    """B5: S = 5 and 6 h give R = 0.951, in whole days 1.000; 23:59 to 00:01 is no day."""
    six_hours = figures(0.25)
    assert SaturatingCurve().retention(traces(1), six_hours) == pytest.approx([0.951], abs=5e-4)
    whole = SaturatingCurve(whole_days=True)
    assert whole.retention(traces(1, 1, 1), figures(0.25, 0.999, 1.0)) == pytest.approx([1.0, 1.0, math.exp(-0.2)])
    assert whole.lasting_days(traces(1), 0.05).tolist() == [15.0]  # 5 ln 20 = 14.98


@pytest.mark.parametrize("curve", [ExponentialCurve(), SaturatingCurve()], ids=lambda curve: curve.name)
def test_each_signal_has_its_weight_case_141(curve: ExponentialCurve | SaturatingCurve) -> None:
    """Returned counts once, explicit use more; being wrong takes one use back, and is no recall."""
    after = {signal: curve.review(Trace(strength=5.0), signal, 3.0).strength for signal in Signal}
    assert after == {Signal.RETURNED: 6.0, Signal.USED: 7.0, Signal.IGNORED: 5.0, Signal.WRONG: 3.0}
    assert [signal for signal in Signal if curve.restarts(signal)] == [Signal.RETURNED, Signal.USED]


def test_every_signal_has_a_weight() -> None:
    assert set(SIGNAL_WEIGHTS) == set(Signal)


def test_strength_stays_between_1_and_the_cap() -> None:
    curve = ExponentialCurve(max_strength=20.0)
    assert curve.review(Trace(strength=19.5), Signal.USED, 0.0).strength == 20.0
    assert curve.review(Trace(strength=1.0), Signal.WRONG, 0.0).strength == 1.0
    assert curve.review(Trace(strength=30.0), Signal.USED, 0.0).strength == 30.0  # from before the cap was lowered


def test_a_curve_keeps_what_another_one_learnt() -> None:
    fsrs = Trace(strength=2.0, stability_days=8.0, difficulty=3.0)
    assert ExponentialCurve().review(fsrs, Signal.RETURNED, 1.0) == Trace(3.0, 8.0, 3.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tau_days", 0.0),
        ("tau_days", -1.0),
        ("tau_days", math.nan),
        ("initial", 0.0),
        ("initial", 1.1),
        ("max_strength", 0.5),
    ],
)
def test_exponential_refuses_what_has_no_meaning_case_98(field: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=field):
        ExponentialCurve(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"), [("alpha", -1.0), ("xi", 0.5), ("beta", -18.5), ("beta", math.nan), ("max_strength", 0.0)]
)
def test_saturating_refuses_constants_that_turn_it_round(field: str, value: float) -> None:
    """beta = -18.5 gives S(1) = -18.5 + 37 / 2 = 0."""
    with pytest.raises(InvalidInput, match=field):
        SaturatingCurve(**{field: value})


@pytest.mark.parametrize("floor", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize("curve", [ExponentialCurve(), SaturatingCurve()], ids=lambda curve: curve.name)
def test_a_floor_is_a_retention(curve: ExponentialCurve | SaturatingCurve, floor: float) -> None:
    with pytest.raises(InvalidInput):
        curve.lasting_days(traces(1), floor)


def test_curves_know_no_library() -> None:
    """The papers' curves work where ``fsrs`` is not installed."""
    code = "import sys, vimbank.domain.lifecycle; sys.exit('fsrs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert set(DEFAULT_FLOORS) == {"exponential", "ilstma", "fsrs"}
