"""When memories go, and why: decisions worked by hand."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest

from vimbank.domain.curves import ExponentialCurve, Traces
from vimbank.domain.lifecycle import (
    DEFAULT_LIFECYCLES,
    TARGETS,
    Departures,
    LifeColumns,
    LifecyclePolicy,
    Reason,
    departures,
    due,
    forecast,
    retained,
    share_guard,
    tally,
)
from vimbank.domain.models import MemoryState
from vimbank.domain.times import format_time, from_micros, parse_time, to_seconds
from vimbank.errors import InvalidInput

DAY = 86_400.0
START = to_seconds(datetime(2026, 1, 1, tzinfo=UTC))
CURVE = ExponentialCurve(tau_days=10.0)
POLICY = LifecyclePolicy(tau_days=10.0, minimum_age_days=0.0)
LASTS = math.ceil(10 * math.log(20) * DAY)  # 29.957 days, as whole seconds
ZONES = ["UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati"]


@dataclass(frozen=True, slots=True)
class Life:
    """One memory; days are counted from START, None is unknown."""

    created: float = 0.0
    recalled: float | None = None
    expires: float | None = None
    archived: float | None = None
    importance: float | None = None
    information: float | None = None
    pinned: bool = False
    strength: float = 1.0


def columns(*lives: Life, unit: list[int] | None = None) -> LifeColumns:
    def instants(*days: float | None) -> np.ndarray:
        return np.array([math.nan if day is None else START + day * DAY for day in days], dtype=np.float64)

    return LifeColumns(
        created_at=instants(*(life.created for life in lives)),
        recalled_at=instants(*(life.recalled for life in lives)),
        expires_at=instants(*(life.expires for life in lives)),
        archived_at=instants(*(life.archived for life in lives)),
        importance=np.array([math.nan if life.importance is None else life.importance for life in lives]),
        information=np.array([math.nan if life.information is None else life.information for life in lives]),
        pinned=np.array([life.pinned for life in lives], dtype=np.bool_),
        unit=None if unit is None else np.array(unit),
        traces=Traces.of_strength(np.array([life.strength for life in lives], dtype=np.float64)),
    )


def at_day(day: float) -> float:
    return START + day * DAY


def decide(
    *lives: Life, policy: LifecyclePolicy = POLICY, day: float = 0.0, unit: list[int] | None = None
) -> Departures:
    curve = ExponentialCurve(tau_days=policy.tau_days)
    return departures(columns(*lives, unit=unit), policy, curve, now=at_day(day))


def gone(leaving: Departures, day: float) -> list[int]:
    return np.flatnonzero(due(leaving, now=at_day(day))).tolist()


def days(leaving: Departures) -> list[float]:
    return ((leaving.at - START) / DAY).tolist()


def test_a_memory_is_forgotten_when_retention_reaches_the_floor() -> None:
    """tau 10, strength 1, floor 0.05: 10 ln 20 = 29.957 days after the last recall, to the second."""
    leaving = decide(Life(), Life(recalled=5.0), Life(strength=2.0))
    assert leaving.at.tolist() == [
        START + LASTS,
        START + math.ceil(5 * DAY + 10 * math.log(20) * DAY),
        START + math.ceil(20 * math.log(20) * DAY),
    ]
    assert [leaving.reason(row) for row in range(3)] == [Reason.FORGOTTEN] * 3
    assert gone(leaving, 29.9) == []
    assert gone(leaving, 30.0) == [0]


def test_no_memory_is_forgotten_before_its_minimum_age() -> None:
    """The later of both conditions: 29.957 days of fading against 40 days of age."""
    assert days(decide(Life(), policy=replace(POLICY, minimum_age_days=40.0))) == [40.0]


def test_the_age_that_counts_is_the_memorys_and_fading_starts_anew_at_a_recall() -> None:
    """Recalled on day 35: of age on day 40, faded on day 64.957."""
    leaving = decide(Life(recalled=35.0), policy=replace(POLICY, minimum_age_days=40.0))
    assert days(leaving) == pytest.approx([35 + 29.957323], abs=1e-4)


def test_case_102_what_is_older_than_a_year_is_eligible() -> None:
    """400 d, never recalled, low importance, in every bank by default."""
    for bank, policy in DEFAULT_LIFECYCLES.items():
        assert gone(decide(Life(importance=0.1), policy=policy), 400.0) == [0], bank


def test_case_100_a_pinned_memory_stays_ten_years_and_over_budget() -> None:
    policy = replace(POLICY, capacity=1)
    leaving = decide(Life(pinned=True), Life(pinned=True), Life(pinned=True, archived=1.0), policy=policy)
    assert gone(leaving, 3_650.0) == []
    assert [leaving.reason(row) for row in range(3)] == [None, None, None]
    assert forecast(leaving, until=math.inf).tolist() == []


def test_importance_stretches_time_and_the_unknown_is_in_the_middle_case_135() -> None:
    """Stretch 4: importance 1 lasts 4 x 29.957 days, 0.75 twice, 0.5 and unknown once, 0 a quarter."""
    leaving = decide(*(Life(importance=each) for each in (1.0, 0.75, 0.5, None, 0.0)))
    assert days(leaving) == pytest.approx([29.957323 * each for each in (4, 2, 1, 1, 0.25)], abs=1e-4)


def test_what_tells_little_goes_long_before_what_tells_much() -> None:
    """Stretch 100: information 1 lasts 100 x 29.957 days, 0.75 ten times, 0.5 and unknown once, 0 a hundredth."""
    policy = replace(POLICY, information_stretch=100.0)
    leaving = decide(*(Life(information=each) for each in (1.0, 0.75, 0.5, None, 0.0)), policy=policy)
    assert days(leaving) == pytest.approx([29.957323 * each for each in (100, 10, 1, 1, 0.01)], abs=1e-3)


def test_what_was_recalled_lasts_no_shorter_for_telling_little() -> None:
    policy = replace(POLICY, information_stretch=100.0)
    lives = (Life(information=0.0, recalled=5.0), Life(information=1.0, recalled=5.0), Life(information=0.0))
    assert days(decide(*lives, policy=policy)) == pytest.approx([5 + 29.957323, 5 + 2995.7323, 0.29957], abs=1e-3)


def test_where_importance_is_known_information_does_not_count() -> None:
    policy = replace(POLICY, information_stretch=100.0)
    leaving = decide(Life(information=0.0, importance=0.5), Life(information=1.0, importance=0.0), policy=policy)
    assert days(leaving) == pytest.approx([29.957323, 29.957323 / 4], abs=1e-4)


def test_importance_outside_its_bounds_counts_as_the_bound() -> None:
    assert (
        decide(Life(importance=7.0), Life(importance=-1.0)).at.tolist()
        == decide(Life(importance=1.0), Life(importance=0.0)).at.tolist()
    )


def test_unknown_importance_goes_after_the_unimportant_case_135() -> None:
    leaving = decide(Life(), Life(importance=0.2), Life(importance=0.8))
    assert forecast(leaving, until=math.inf).tolist() == [1, 0, 2]


def test_the_archived_are_deleted_after_their_grace() -> None:
    leaving = decide(Life(archived=10.0), policy=replace(POLICY, grace_days=90.0))
    assert (days(leaving), leaving.reason(0)) == ([100.0], Reason.GRACE)


def test_what_is_forgotten_is_archived_first() -> None:
    """Promise 5: forgetting never destroys by surprise."""
    assert {reason for reason, state in TARGETS.items() if state is MemoryState.ARCHIVED} == {
        Reason.EXPIRED,
        Reason.FORGOTTEN,
        Reason.CAPACITY,
    }
    assert set(TARGETS) == set(Reason)


def test_a_ttl_holds_for_active_archived_and_pinned_alike() -> None:
    leaving = decide(Life(expires=2.0), Life(expires=2.0, archived=1.0), Life(expires=2.0, pinned=True))
    assert days(leaving) == [2.0, 2.0, 2.0]
    assert {leaving.reason(row) for row in range(3)} == {Reason.EXPIRED}


def test_forgetting_can_be_off_while_ttl_and_budget_hold() -> None:
    """M-19."""
    policy = replace(POLICY, forgets=False, capacity=2)
    leaving = decide(Life(), Life(archived=0.0), Life(expires=9.0), Life(created=1.0), policy=policy)
    assert [leaving.reason(row) for row in range(4)] == [None, None, Reason.CAPACITY, None]
    assert leaving.reason(0) is None
    assert gone(decide(Life(expires=9.0), policy=replace(POLICY, forgets=False)), 9.0) == [0]


def test_over_budget_the_first_to_fade_go_first() -> None:
    """Four active, budget 2: the two that would be forgotten first, not the archived and not the pinned."""
    lives = (
        Life(strength=5.0),
        Life(),
        Life(pinned=True),
        Life(recalled=1.0),
        Life(archived=0.0),
        Life(importance=0.0, created=2.0),
    )
    leaving = decide(*lives, policy=replace(POLICY, capacity=3), day=3.0)
    assert gone(leaving, 3.0) == [1, 5]
    assert [leaving.reason(row) for row in (1, 5)] == [Reason.CAPACITY] * 2
    assert days(leaving)[1] == 3.0
    assert gone(decide(*lives, policy=replace(POLICY, capacity=5), day=3.0), 3.0) == []


def test_ties_for_the_budget_go_to_the_longest_unrecalled_then_the_lowest_number() -> None:
    """With floor 0 nothing fades, so all tie; row 1 was recalled, rows 0 and 2 are equal."""
    policy = replace(POLICY, floor=0.0, capacity=1)
    assert gone(decide(Life(), Life(recalled=3.0), Life(), policy=policy), 0.0) == [0, 2]
    assert gone(decide(Life(), Life(recalled=3.0), Life(), policy=replace(policy, capacity=2)), 0.0) == [0]


def test_a_document_is_forgotten_with_its_last_segment() -> None:
    """Parent 0 and segments 1, 2: segment 2 was recalled on day 50; note 3 stands alone."""
    leaving = decide(Life(), Life(), Life(recalled=50.0), Life(), unit=[0, 0, 0, 3])
    assert days(leaving) == pytest.approx([79.957323] * 3 + [29.957323], abs=1e-4)
    assert gone(leaving, 60.0) == [3]


def test_a_pinned_document_holds_its_segments() -> None:
    leaving = decide(Life(pinned=True), Life(), Life(), unit=[7, 7, 2])
    assert gone(leaving, 1_000.0) == [2]


def test_over_budget_a_document_goes_whole() -> None:
    """Three rows of one document and one note, budget 3: the document fades first, and goes with all its rows."""
    leaving = decide(Life(), Life(), Life(), Life(created=1.0), unit=[5, 5, 5, 8], policy=replace(POLICY, capacity=3))
    assert gone(leaving, 0.0) == [0, 1, 2]


def test_the_forecast_lists_the_first_first_and_the_tally_counts_by_reason() -> None:
    leaving = decide(Life(strength=2.0), Life(), Life(expires=3.0), Life(archived=0.0), Life(), Life(pinned=True))
    assert forecast(leaving, until=at_day(90)).tolist() == [2, 1, 4, 0, 3]
    assert forecast(leaving, until=at_day(30)).tolist() == [2, 1, 4]
    assert tally(leaving, until=at_day(90)) == {Reason.EXPIRED: 1, Reason.FORGOTTEN: 3, Reason.GRACE: 1}
    assert tally(leaving, until=START) == {}


def test_an_empty_partition_decides_nothing() -> None:
    for unit in (None, []):
        leaving = decide(policy=replace(POLICY, capacity=1), unit=unit)
        assert (len(leaving.at), forecast(leaving, until=math.inf).tolist()) == (0, [])
        assert tally(leaving, until=math.inf) == {}


def test_what_would_go_after_the_year_9999_stays() -> None:
    """A century of tau: every instant can be printed."""
    leaving = decide(Life(strength=20.0), policy=replace(POLICY, tau_days=1e6))
    assert (leaving.at[0], leaving.reason(0)) == (math.inf, None)


def test_an_instant_survives_being_printed() -> None:
    """What is shown as the instant is the instant of the decision."""
    leaving = decide(Life(), Life(expires=1.23456789))
    for at in leaving.at.tolist():
        shown = format_time(from_micros(round(at * 1_000_000)))
        assert to_seconds(parse_time(shown, "at")) == pytest.approx(at, abs=1e-6)
    assert leaving.at[0] == float(int(leaving.at[0]))


def test_retention_as_the_decision_sees_it() -> None:
    """exp(-10 / 10); with importance 1 time runs at a quarter: exp(-2.5 / 10)."""
    got = retained(columns(Life(), Life(importance=1.0)), POLICY, CURVE, now=at_day(10))
    assert got == pytest.approx([math.exp(-1), math.exp(-0.25)])


def test_case_108_a_clock_set_back_makes_no_age_negative() -> None:
    ahead = columns(Life(created=1.0), Life(recalled=1.0))
    assert retained(ahead, POLICY, CURVE, now=START).tolist() == [1.0, 1.0]
    assert due(departures(ahead, POLICY, CURVE, now=START), now=START).tolist() == [False, False]


def test_case_135_a_run_over_the_share_stops_and_says_so() -> None:
    """20 of 20 at 40 days, without importance and recalls, in dialog by default."""
    leaving = decide(*[Life()] * 20, policy=DEFAULT_LIFECYCLES["dialog"])
    guard = share_guard(tally(leaving, until=at_day(40)), 20)
    assert (guard.taken, guard.total, guard.stops) == (20, 20, True)
    assert str(guard) == "20 of 20 memories (100.0%; at most 20.0% in one run)"


@pytest.mark.parametrize(
    ("taken", "total", "share", "stops"),
    [
        (20, 100, 0.2, False),
        (21, 100, 0.2, True),
        (29, 100, 0.29, False),
        (0, 0, 0.2, False),
        (1, 3, 0.2, True),
        (5, 5, 1.0, False),
        (1, 5, 0.0, True),
        (0, 5, 0.0, False),
    ],
)
def test_exactly_the_share_is_allowed(taken: int, total: int, share: float, stops: bool) -> None:
    """0.29 * 100 is 28.999999999999996 in floating point, and 29 is still 29 %."""
    assert share_guard({Reason.FORGOTTEN: taken}, total, max_share=share).stops is stops


def test_what_expires_does_not_stop_a_run_and_all_else_counts() -> None:
    assert not share_guard({Reason.EXPIRED: 90, Reason.FORGOTTEN: 10}, 100).stops
    assert share_guard({Reason.CAPACITY: 10, Reason.FORGOTTEN: 10, Reason.GRACE: 1}, 100).taken == 21
    with pytest.raises(InvalidInput, match="max_share"):
        share_guard({}, 1, max_share=1.5)


def test_knowledge_forgets_slowest() -> None:
    forgotten = {bank: days(decide(Life(), policy=policy))[0] for bank, policy in DEFAULT_LIFECYCLES.items()}
    assert forgotten == pytest.approx({"knowledge": 120 * math.log(20), "dialog": 30.0, "task": 30.0}, abs=1e-4)


def test_a_policys_floor_is_its_own_or_its_curves() -> None:
    assert LifecyclePolicy().lowest == 0.05
    assert LifecyclePolicy(curve="fsrs").lowest == 0.5
    assert LifecyclePolicy(curve="fsrs", floor=0.0).lowest == 0.0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("curve", "linear"),
        ("tau_days", 0.0),
        ("tau_days", math.inf),
        ("floor", 1.1),
        ("floor", math.nan),
        ("minimum_age_days", -1.0),
        ("grace_days", -1.0),
        ("capacity", 0),
        ("importance_stretch", 0.5),
        ("importance_stretch", math.inf),
        ("information_stretch", 0.5),
        ("information_stretch", math.inf),
        ("max_strength", 0.0),
    ],
)
def test_a_policy_refuses_what_has_no_meaning_case_98(field: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=field):
        LifecyclePolicy(**{field: value})


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_case_105_an_expiry_is_the_same_instant_in_every_zone(zone: str) -> None:
    """2026-03-01T23:30Z is already 2 March on Kiritimati: alive a second before, gone at the instant."""
    instant = to_seconds(parse_time("2026-03-01T23:30:00Z", "expires_at"))
    one = replace(columns(Life()), expires_at=np.array([instant]))
    policy = replace(POLICY, forgets=False)
    for now, taken in ((instant - 1, False), (instant, True), (instant + 1, True)):
        assert due(departures(one, policy, CURVE, now=now), now=now).tolist() == [taken], zone


def test_days_are_86_400_seconds_over_every_change_of_the_clocks(zone: str) -> None:
    """Los Angeles lost an hour on 2026-03-08; the memory of 1 March is 30 days old on 31 March at the same UTC time."""
    born = to_seconds(parse_time("2026-03-01T00:30:00", "created_at"))
    one = replace(columns(Life()), created_at=np.array([born]))
    leaving = departures(one, replace(POLICY, minimum_age_days=30.0), CURVE, now=born)
    assert format_time(from_micros(round(float(leaving.at[0]) * 1_000_000))) == "2026-03-31T00:30:00Z", zone


def test_a_pass_over_100_000_memories_is_a_matter_of_a_moment() -> None:
    """The bar of a whole pass is 5 s; the decision takes some 0.05 s of it, and is held to 1 s."""
    n = 100_000
    chance = np.random.default_rng(4)
    unknown = np.full(n, math.nan)
    many = LifeColumns(
        created_at=START - chance.random(n) * 400 * DAY,
        recalled_at=np.where(chance.random(n) < 0.5, math.nan, START - chance.random(n) * 90 * DAY),
        expires_at=unknown,
        archived_at=np.where(chance.random(n) < 0.9, math.nan, START - chance.random(n) * 90 * DAY),
        importance=np.where(chance.random(n) < 0.5, math.nan, chance.random(n)),
        information=np.where(chance.random(n) < 0.1, math.nan, chance.random(n)),
        pinned=chance.random(n) < 0.1,
        unit=np.arange(n) // 3,
        traces=Traces.of_strength(chance.integers(1, 20, n).astype(np.float64)),
    )
    started = time.perf_counter()
    leaving = departures(many, replace(POLICY, capacity=60_000), CURVE, now=START)
    foreseen = forecast(leaving, until=at_day(90))
    took = time.perf_counter() - started
    print(f"a decision over {n} memories: {took:.3f} s")
    assert 0 < len(foreseen) <= n
    assert took < 1.0
