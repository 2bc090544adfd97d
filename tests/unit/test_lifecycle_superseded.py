"""When superseded memories go, by hand, and the law that a run takes what was foreseen."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.curves import ExponentialCurve, Traces
from vimbank.domain.lifecycle import (
    TARGETS,
    Departures,
    LifeColumns,
    LifecyclePolicy,
    Reason,
    departures,
    due,
    forecast,
)
from vimbank.domain.models import MemoryState
from vimbank.domain.units import heads, units
from vimbank.errors import InvalidInput

START = 1_767_225_600.0  # 2026-01-01
DAY = 86_400.0
NAN = math.nan
POLICY = LifecyclePolicy(superseded_grace_days=100.0, minimum_age_days=0.0, tau_days=10.0)


@dataclass(frozen=True)
class Life:
    """Days since the start: when it was superseded, and in which row what superseded it stands."""

    superseded: float = NAN
    by: int = -1
    archived: float = NAN
    pinned: bool = False


def columns(*lives: Life, unit: list[int] | None = None) -> LifeColumns:
    unknown = np.full(len(lives), NAN)
    given_ = {
        name: START + DAY * np.array([getattr(life, name) for life in lives]) for name in ("superseded", "archived")
    }
    made = {
        "created_at": np.full(len(lives), START),
        "recalled_at": unknown,
        "expires_at": unknown,
        "archived_at": given_["archived"],
        "importance": unknown,
        "pinned": np.array([life.pinned for life in lives], dtype=np.bool_),
        "traces": Traces.of_strength(np.ones(len(lives))),
        "superseded_at": given_["superseded"],
        "successor": np.array([life.by for life in lives], dtype=np.int64),
        "unit": None if unit is None else np.array(unit),
    }
    others = {name: unknown for name in LifeColumns.__dataclass_fields__ if name not in made}
    return LifeColumns(**made, **others)  # type: ignore[arg-type]


def decide(
    *lives: Life, policy: LifecyclePolicy = POLICY, day: float = 0.0, unit: list[int] | None = None
) -> Departures:
    curve = ExponentialCurve(tau_days=policy.tau_days)
    return departures(columns(*lives, unit=unit), policy, curve, now=START + day * DAY)


def days(leaving: Departures) -> list[float]:
    return [float(each) for each in (leaving.at - START) / DAY]


def test_it_goes_when_its_time_is_over_and_for_good() -> None:
    leaving = decide(Life(superseded=10.0))
    assert (days(leaving), leaving.reason(0)) == ([110.0], Reason.SUPERSEDED)
    assert TARGETS[Reason.SUPERSEDED] is MemoryState.DELETED
    assert due(leaving, now=START + 110 * DAY - 1).tolist() == [False]
    assert due(leaving, now=START + 110 * DAY).tolist() == [True]


def test_by_default_it_never_goes() -> None:
    """D9: what was true once stays."""
    assert LifecyclePolicy().superseded_grace_days is None
    leaving = decide(Life(superseded=10.0), policy=replace(POLICY, superseded_grace_days=None))
    assert (days(leaving), leaving.reason(0)) == ([math.inf], None)


def test_it_neither_fades_nor_counts_for_the_budget() -> None:
    """One active of a budget of one: the superseded one is not over it, and does not fade on day 30."""
    policy = replace(POLICY, capacity=1, forgets=False)
    leaving = decide(Life(), Life(superseded=0.0), policy=policy)
    assert [leaving.reason(row) for row in range(2)] == [None, Reason.SUPERSEDED]


def test_a_bank_that_does_not_forget_lets_go_of_what_is_outdated_where_it_says_so() -> None:
    leaving = decide(Life(archived=1.0), Life(superseded=1.0), policy=replace(POLICY, forgets=False))
    assert days(leaving) == [math.inf, 101.0]


def test_case_100_pinned_it_stays() -> None:
    assert days(decide(Life(superseded=1.0, pinned=True))) == [math.inf]


def test_it_goes_no_earlier_than_what_it_superseded() -> None:
    """0 was superseded by 1 on day 50 (it was changed since), 1 by 2 on day 20, 2 by the active 3 on day 30."""
    leaving = decide(Life(50.0, by=1), Life(20.0, by=2), Life(30.0, by=3), Life())
    assert days(leaving)[:3] == [150.0, 150.0, 150.0]
    assert leaving.reason(3) is Reason.FORGOTTEN


def test_what_a_pinned_one_names_stays_with_it() -> None:
    leaving = decide(Life(1.0, by=1, pinned=True), Life(2.0, by=2), Life(3.0, by=-1), Life(4.0, by=2))
    assert days(leaving) == [math.inf, math.inf, math.inf, 104.0]


def test_a_ring_ends() -> None:
    assert days(decide(Life(1.0, by=1), Life(5.0, by=0))) == [105.0, 105.0]


def test_an_unknown_successor_holds_nothing_up() -> None:
    assert days(decide(Life(1.0, by=-1), Life())) == [101.0, pytest.approx(29.957323, abs=1e-4)]


def test_a_unit_goes_with_its_last_row() -> None:
    leaving = decide(Life(1.0), Life(7.0), Life(3.0), Life(), unit=[0, 0, 2, 3])
    assert days(leaving)[:3] == [107.0, 107.0, 103.0]
    assert leaving.reason(3) is Reason.FORGOTTEN


@pytest.mark.parametrize("grace", [-1.0, NAN])
def test_a_grace_that_is_none_is_refused(grace: float) -> None:
    with pytest.raises(InvalidInput, match="superseded_grace_days"):
        LifecyclePolicy(superseded_grace_days=grace)


def test_parts_in_another_state_are_units_of_their_own() -> None:
    """Active, archived and superseded: 0, 1 and 2."""
    parents = [None, "run", "run", "run"]
    states = np.array([2, 2, 1, 0])
    assert heads(["run", "a", "b", "c"], parents, states, np.full(4, NAN)).tolist() == [0, 0, 2, 3]


def test_a_units_successor_is_the_unit_of_its_heads() -> None:
    """A document 0 with its segment 1 was superseded by the document 2 with its segment 3; 4 by a segment's id."""
    given_ = {
        "archived": np.zeros(5, dtype=np.bool_),
        "superseded": np.array([True, True, False, False, True]),
        "created_at": np.full(5, 1.0),
        "updated_at": np.array([10.0, 12.0, 13.0, 14.0, 15.0]),
        "recalled_at": np.full(5, NAN),
        "expires_at": np.full(5, NAN),
        "pinned": np.zeros(5, dtype=np.bool_),
        "traces": Traces.of_strength(np.ones(5)),
        "lasting": np.ones(5),
        "successor": np.array([2, 2, -1, -1, 3]),
    }
    others = {
        name: np.full(5, NAN)
        for name in LifeColumns.__dataclass_fields__
        if name not in given_ and name not in ("archived_at", "superseded_at", "unit")
    }
    made = units(np.array([0, 0, 2, 2, 4]), **given_, **others)  # type: ignore[arg-type]
    assert made.rows.tolist() == [0, 2, 4]
    assert made.columns.successor is not None
    assert made.columns.successor.tolist() == [1, -1, 1]
    assert made.columns.superseded_at is not None
    assert np.array_equal(made.columns.superseded_at, [12.0, NAN, 15.0], equal_nan=True)


@st.composite
def lived(draw: st.DrawFn) -> list[Life]:
    count = draw(st.integers(1, 8))
    at = st.floats(0.0, 300.0)
    return [
        Life(
            superseded=draw(at) if state == "superseded" else NAN,
            archived=draw(at) if state == "archived" else NAN,
            by=draw(st.integers(-1, count - 1)) if state == "superseded" else -1,
            pinned=draw(st.booleans()),
        )
        for state in draw(
            st.lists(st.sampled_from(["active", "archived", "superseded"]), min_size=count, max_size=count)
        )
    ]


@given(lived(), st.none() | st.floats(0.0, 200.0), st.floats(0.0, 600.0))
def test_case_101_a_run_takes_what_was_foreseen(lives: list[Life], grace: float | None, day: float) -> None:
    policy = replace(POLICY, superseded_grace_days=grace)
    foreseen = forecast(decide(*lives, policy=policy), until=START + day * DAY)
    assert set(foreseen.tolist()) == set(
        np.flatnonzero(due(decide(*lives, policy=policy, day=day), now=START + day * DAY))
    )


@given(lived(), st.floats(0.0, 200.0))
def test_nothing_names_what_went_before_it(lives: list[Life], grace: float) -> None:
    leaving = decide(*lives, policy=replace(POLICY, superseded_grace_days=grace))
    for row, life in enumerate(lives):
        if not math.isnan(life.superseded):
            reason = leaving.reason(row)
            assert reason in (None, Reason.SUPERSEDED)
            assert (reason is None) is (not math.isfinite(leaving.at[row]))
            if life.by >= 0 and not math.isnan(lives[life.by].superseded):
                assert leaving.at[life.by] >= leaving.at[row]
