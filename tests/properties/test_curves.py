"""What every forgetting curve obeys, and that run, dry run and forecast cannot disagree."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.curves.catalogue import open_curve
from vimbank.domain.curves import CURVE_NAMES, Curve, Trace, Traces
from vimbank.domain.lifecycle import (
    LifeColumns,
    LifecyclePolicy,
    Reason,
    departures,
    due,
    forecast,
    retained,
    tally,
)
from vimbank.domain.models import Signal

DAY = 86_400.0
NOW = 1_800_000_000.0
CURVES = {name: open_curve(name, tau_days=10.0) for name in CURVE_NAMES}
EVERY_CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
AGES = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30).map(lambda ages: np.sort(np.array(ages)))
STRENGTHS = st.floats(1.0, 1e9)
STABILITIES = st.one_of(st.just(math.nan), st.floats(0.001, 1e5))


def same(n: int, strength: float, stability: float = math.nan) -> Traces:
    return Traces(np.full(n, strength), np.full(n, stability))


@EVERY_CURVE
@given(ages=AGES, strength=STRENGTHS, stability=STABILITIES)
def test_retention_is_1_at_age_0_and_falls_within_0_and_1(
    curve: Curve, ages: np.ndarray, strength: float, stability: float
) -> None:
    left = curve.retention(same(len(ages), strength, stability), ages)
    assert ((left >= 0.0) & (left <= 1.0)).all()
    assert (np.diff(left) <= 0.0).all()
    assert curve.retention(same(2, strength, stability), np.array([0.0, -5.0])).tolist() == [1.0, 1.0]


@EVERY_CURVE
@given(ages=AGES, strength=STRENGTHS, more=st.floats(0.0, 1e6))
def test_retention_rises_with_strength(curve: Curve, ages: np.ndarray, strength: float, more: float) -> None:
    """Case 94, B16, B21: never decreasing in S."""
    weak, strong = (curve.retention(same(len(ages), each), ages) for each in (strength, strength + more))
    assert (strong >= weak).all()


@EVERY_CURVE
def test_a_memory_recalled_once_retains_more_than_one_never_recalled(curve: Curve) -> None:
    """The strict form, at an age of 20 days."""
    one, two = curve.retention(Traces.of_strength(np.array([1.0, 2.0])), np.array([20.0, 20.0]))
    assert two > one * 1.05


@EVERY_CURVE
@given(strength=STRENGTHS, stability=STABILITIES, floor=st.floats(0.3, 1.0))
def test_lasting_is_the_age_at_which_retention_is_the_floor(
    curve: Curve, strength: float, stability: float, floor: float
) -> None:
    traces = same(1, strength, stability)
    days = curve.lasting_days(traces, floor)
    assert days[0] >= 0.0
    assert curve.retention(traces, days) == pytest.approx([floor], rel=1e-6)


@EVERY_CURVE
@given(
    strength=st.floats(1.0, 20.0),
    stability=st.one_of(st.none(), st.floats(0.001, 1e4)),
    difficulty=st.floats(1.0, 10.0),
    age=st.floats(0.0, 1e4),
)
def test_a_use_never_weakens_and_wrong_never_strengthens(
    curve: Curve, strength: float, stability: float | None, difficulty: float, age: float
) -> None:
    """The second holds for the instant of forgetting, too, since wrong does not restart the clock."""
    trace = Trace(strength, stability, difficulty)

    def lasting(after: Trace) -> float:
        known = math.nan if after.stability_days is None else after.stability_days
        return float(curve.lasting_days(same(1, after.strength, known), 0.5)[0])

    before = lasting(trace)
    assert lasting(curve.review(trace, Signal.USED, age)) >= before * (1 - 1e-12)
    assert lasting(curve.review(trace, Signal.RETURNED, age)) >= before
    assert lasting(curve.review(trace, Signal.IGNORED, age)) == before
    assert lasting(curve.review(trace, Signal.WRONG, age)) <= before * (1 + 1e-12)
    assert not curve.restarts(Signal.WRONG)


@st.composite
def lives(draw: st.DrawFn) -> LifeColumns:
    """Up to 12 memories of one partition; times up to two years back, and a little ahead of the clock."""
    n = draw(st.integers(0, 12))

    def column(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype=np.float64)

    unknown = st.just(math.nan)
    times = st.floats(NOW - 730 * DAY, NOW + 2 * DAY)
    units = np.array(draw(st.lists(st.integers(0, 8), min_size=n, max_size=n)), dtype=np.int64)
    return LifeColumns(
        created_at=column(times),
        recalled_at=column(times | unknown),
        expires_at=column(unknown | st.floats(NOW - 30 * DAY, NOW + 300 * DAY)),
        archived_at=column(unknown | unknown | times),
        importance=column(unknown | st.floats(0.0, 1.0)),
        information=column(unknown | st.floats(0.0, 1.0)),
        pinned=np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=np.bool_),
        unit=draw(st.sampled_from([None, units])),
        traces=Traces(column(st.floats(1.0, 20.0)), column(unknown | st.floats(0.1, 100.0))),
    )


POLICIES = st.builds(
    LifecyclePolicy,
    forgets=st.booleans(),
    curve=st.sampled_from(CURVE_NAMES),
    floor=st.none() | st.floats(0.0, 1.0),
    minimum_age_days=st.floats(0.0, 100.0),
    grace_days=st.floats(0.0, 100.0),
    capacity=st.none() | st.integers(1, 10),
    importance_stretch=st.floats(1.0, 100.0),
    information_stretch=st.floats(1.0, 1e5),
)


@given(lives(), POLICIES, st.floats(0.0, 1_000.0))
def test_a_run_takes_exactly_what_the_forecast_said_case_101(
    columns: LifeColumns, policy: LifecyclePolicy, days: float
) -> None:
    """A run at t archives exactly those whose forecast instant is at or before t, and both count alike."""
    curve, later = CURVES[policy.curve], NOW + days * DAY
    foreseen = departures(columns, policy, curve, now=NOW)
    run = departures(columns, policy, curve, now=later)
    assert due(foreseen, now=later).tolist() == due(run, now=later).tolist()
    rows = forecast(foreseen, until=later)
    assert sorted(rows.tolist()) == np.flatnonzero(due(run, now=later)).tolist()
    assert (np.diff(foreseen.at[rows]) >= 0).all()
    assert sum(tally(foreseen, until=later).values()) == len(rows)


@given(lives(), POLICIES)
def test_a_run_at_the_very_instant_takes_it_and_a_second_before_does_not(
    columns: LifeColumns, policy: LifecyclePolicy
) -> None:
    leaving = departures(columns, policy, CURVES[policy.curve], now=NOW)
    for row in forecast(leaving, until=math.inf)[:5]:
        if math.isfinite(at := float(leaving.at[row])) and at > NOW:
            assert due(departures(columns, policy, CURVES[policy.curve], now=at), now=at)[row]
            assert not due(departures(columns, policy, CURVES[policy.curve], now=at - 1), now=at - 1)[row]


@given(lives(), POLICIES)
def test_forgotten_is_below_the_floor_past_the_minimum_age_active_and_not_pinned(
    columns: LifeColumns, policy: LifecyclePolicy
) -> None:
    """The decision by instants against the rule as architecture and B16 state it, without rounding at the edge."""
    columns = replace(columns, expires_at=np.full_like(columns.expires_at, np.nan), unit=None)
    policy = replace(policy, forgets=True, capacity=None)
    curve = CURVES[policy.curve]
    gone = due(departures(columns, policy, curve, now=NOW), now=NOW)
    early, late = (retained(columns, policy, curve, now=each) for each in (NOW - 2, NOW + 2))
    for row in range(len(gone)):
        if not math.isnan(columns.archived_at[row]):
            continue
        age = (NOW - columns.created_at[row]) / DAY - policy.minimum_age_days
        # A floor of 0 is never reached, whatever the floating point makes of a long time.
        if policy.lowest > 0 and early[row] <= policy.lowest * (1 - 1e-9) and age > 1 / DAY and not columns.pinned[row]:
            assert gone[row]
        if late[row] > policy.lowest * (1 + 1e-9) or age < 0 or columns.pinned[row]:
            assert not gone[row]


@given(lives(), POLICIES)
def test_the_pinned_leave_by_their_own_date_alone_case_100(columns: LifeColumns, policy: LifecyclePolicy) -> None:
    leaving = departures(columns, policy, CURVES[policy.curve], now=NOW)
    held = columns.pinned
    if columns.unit is not None:
        held = np.isin(columns.unit, columns.unit[columns.pinned])
    reasons = {leaving.reason(int(row)) for row in np.flatnonzero(held)}
    assert reasons <= {None, Reason.EXPIRED}


@given(lives(), POLICIES, st.integers(1, 10))
def test_no_partition_stays_over_its_budget_but_for_the_pinned_case_100(
    columns: LifeColumns, policy: LifecyclePolicy, capacity: int
) -> None:
    columns = replace(columns, unit=None)
    active = np.isnan(columns.archived_at)
    leaving = departures(columns, replace(policy, capacity=capacity), CURVES[policy.curve], now=NOW)
    stay = active & ~due(leaving, now=NOW)
    assert stay.sum() <= max(capacity, (stay & columns.pinned).sum())
    if active.sum() <= capacity:
        assert Reason.CAPACITY not in tally(leaving, until=math.inf)


@given(lives(), POLICIES)
def test_active_rows_of_a_unit_go_together(columns: LifeColumns, policy: LifecyclePolicy) -> None:
    """Where none has a date of its own, and all are in one state."""
    unknown = np.full_like(columns.expires_at, np.nan)
    columns = replace(columns, expires_at=unknown, archived_at=unknown)
    leaving = departures(columns, policy, CURVES[policy.curve], now=NOW)
    if columns.unit is not None:
        for unit in set(columns.unit.tolist()):
            rows = np.flatnonzero(columns.unit == unit)
            assert len({(leaving.at[row], leaving.code[row]) for row in rows.tolist()}) == 1


@given(lives(), POLICIES, st.floats(0.0, 400.0))
def test_a_clock_set_back_takes_nothing_more_case_108(
    columns: LifeColumns, policy: LifecyclePolicy, days: float
) -> None:
    curve, earlier = CURVES[policy.curve], NOW - days * DAY
    taken = due(departures(columns, policy, curve, now=earlier), now=earlier)
    assert not (taken & ~due(departures(columns, policy, curve, now=NOW), now=NOW)).any()
    assert (retained(columns, policy, curve, now=earlier) >= retained(columns, policy, curve, now=NOW)).all()
