"""What folding the access log obeys: order of arrival, parts and whole, bounds; as store and service fold it."""

import itertools
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.curves.catalogue import open_curve
from vimbank.domain.curves import CURVE_NAMES, Curve, Trace, Traces
from vimbank.domain.models import Signal
from vimbank.domain.reinforcement import Standing, reinforce

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2027, 1, 1, tzinfo=UTC)
CURVES = {name: open_curve(name, tau_days=10.0) for name in CURVE_NAMES}
EVERY_CURVE = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)

Noted = tuple[datetime, Signal]
# Before the creation, on it, and after now; often at one instant.
TIMES = st.one_of(
    st.integers(-5, 380).map(lambda days: CREATED + timedelta(days=days)),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),
)
NOTED = st.lists(st.tuples(TIMES, st.sampled_from(Signal)), max_size=30)
STANDINGS = st.builds(
    Standing,
    st.builds(Trace, st.floats(1.0, 20.0))
    | st.builds(Trace, st.floats(1.0, 20.0), st.floats(0.01, 1e3), st.floats(1.0, 10.0)),
    st.integers(0, 1_000),
    st.none() | st.datetimes(datetime(2026, 1, 1), datetime(2026, 6, 1), timezones=st.just(UTC)),
)


def fold(standing: Standing, noted: Sequence[Noted], curve: Curve) -> Standing:
    return reinforce(standing, noted, curve, created_at=CREATED, now=NOW)


def columns(standing: Standing) -> Traces:
    known = standing.trace.stability_days
    return Traces(np.array([standing.trace.strength]), np.array([math.nan if known is None else known]))


@EVERY_CURVE
@given(standing=STANDINGS, noted=NOTED, data=st.data())
def test_the_order_of_arrival_does_not_matter(
    curve: Curve, standing: Standing, noted: list[Noted], data: st.DataObject
) -> None:
    assert fold(standing, data.draw(st.permutations(noted)), curve) == fold(standing, noted, curve)


@EVERY_CURVE
@given(standing=STANDINGS, noted=NOTED, cuts=st.lists(st.integers(0, 30), max_size=4))
def test_parts_one_after_the_other_leave_what_the_whole_leaves(
    curve: Curve, standing: Standing, noted: list[Noted], cuts: list[int]
) -> None:
    """So that it does not matter how many lines one transaction folds, nor where a process dies."""
    order = list(Signal)
    noted = sorted(noted, key=lambda each: (each[0], order.index(each[1])))
    folded = standing
    for start, end in itertools.pairwise(sorted([0, *cuts, len(noted)])):
        folded = fold(folded, noted[start:end], curve)
    assert folded == fold(standing, noted, curve)


@pytest.mark.parametrize("name", ["exponential", "ilstma"])
@given(
    standing=STANDINGS,
    parts=st.lists(
        st.lists(st.tuples(TIMES, st.sampled_from([Signal.RETURNED, Signal.USED, Signal.IGNORED])), max_size=8),
        max_size=5,
    ),
)
def test_where_nothing_was_wrong_parts_in_any_order_leave_the_same(
    name: str, standing: Standing, parts: list[list[Noted]]
) -> None:
    curve = CURVES[name]  # type: ignore[index]
    folded = standing
    for part in parts:
        folded = fold(folded, part, curve)
    whole = fold(standing, [each for part in parts for each in part], curve)
    assert folded.trace.strength == pytest.approx(whole.trace.strength, rel=1e-12)
    assert (folded.recall_count, folded.last_recalled_at) == (whole.recall_count, whole.last_recalled_at)


@EVERY_CURVE
@given(standing=STANDINGS, noted=NOTED, ages=st.lists(st.floats(0.0, 1e5), min_size=2, max_size=10))
def test_what_was_folded_stays_in_its_bounds_and_fades(
    curve: Curve, standing: Standing, noted: list[Noted], ages: list[float]
) -> None:
    folded = fold(standing, noted, curve)
    assert 1.0 <= folded.trace.strength <= 20.0
    counted = sum(signal in (Signal.RETURNED, Signal.USED) for _, signal in noted)
    assert folded.recall_count == standing.recall_count + counted
    if folded.last_recalled_at is not None:
        assert folded.last_recalled_at <= NOW
        assert standing.last_recalled_at is None or folded.last_recalled_at >= standing.last_recalled_at
    if folded.trace.stability_days is not None:
        assert 0.0 < folded.trace.stability_days < math.inf
        assert folded.trace.difficulty is not None
        assert 1.0 <= folded.trace.difficulty <= 10.0
    left = np.concatenate([curve.retention(columns(folded), np.array([age])) for age in sorted(ages)])
    assert ((left >= 0.0) & (left <= 1.0)).all()
    assert (np.diff(left) <= 0.0).all()


@EVERY_CURVE
@given(standing=STANDINGS, noted=NOTED, age=st.floats(0.0, 1e4))
def test_one_more_use_at_the_end_never_leaves_less_and_one_more_wrong_never_more(
    curve: Curve, standing: Standing, noted: list[Noted], age: float
) -> None:
    def left(*more: Noted) -> float:
        folded = fold(standing, [*noted, *more], curve)
        start = max(CREATED, folded.last_recalled_at or CREATED)
        since_days = (NOW - start).total_seconds() / 86_400 + age
        return float(curve.retention(columns(folded), np.array([since_days]))[0])

    last = NOW + timedelta(days=20)  # whoever notes it later than all others: it counts as now
    assert left((last, Signal.USED)) >= left() * (1 - 1e-12)
    assert left((last, Signal.WRONG)) <= left() * (1 + 1e-12)
    assert left((last, Signal.IGNORED)) == left()
