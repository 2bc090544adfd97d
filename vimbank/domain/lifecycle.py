"""When each memory goes, and why: one decision behind the run, the dry run and the forecast. Pure.

``departures`` gives every memory the instant at which it leaves the state it is in. A run takes what is ``due``
now, a dry run shows the same rows, a forecast lists what is due until a later instant: they cannot disagree, since
there is no second rule (case 101).

All instants are epoch seconds (``times.to_seconds``), so that no machine's zone plays a part (case 105).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from vimbank.domain.curves import DEFAULT_FLOORS, MAX_STRENGTH, Curve, CurveName, Traces
from vimbank.domain.models import BoolArray, FloatArray, IntArray, MemoryState
from vimbank.domain.scoring import SECONDS_A_DAY, age_days
from vimbank.errors import InvalidInput

__all__ = [
    "DEFAULT_LIFECYCLES",
    "DEFAULT_MAX_SHARE",
    "TARGETS",
    "Departures",
    "LifeColumns",
    "LifecyclePolicy",
    "Reason",
    "ShareGuard",
    "departures",
    "due",
    "forecast",
    "retained",
    "share_guard",
    "tally",
]

DEFAULT_MAX_SHARE: Final = 0.2
"""A run that would take more than this share of the memories it looks at stops (case 135)."""

_LAST_INSTANT: Final = 253_402_300_799.0  # the end of the year 9999; later is never
_ROUNDING: Final = 1e-9
_Column = TypeVar("_Column", FloatArray, BoolArray)


def _require(field: str, holds: bool, message: str) -> None:
    if not holds:
        raise InvalidInput.of(field, message)


class Reason(StrEnum):
    """Why a memory leaves its state."""

    EXPIRED = "expired"
    """Its own end of life (ttl) has come. A pin does not hold it: both are its owner's word, this one has a date."""
    FORGOTTEN = "forgotten"
    """Active, its retention has fallen to the floor, and it is past the minimum age."""
    CAPACITY = "capacity"
    """Active, and its partition holds more than its budget."""
    GRACE = "grace"
    """Archived, and its time there is over."""
    SUPERSEDED = "superseded"
    """Superseded, for longer than its bank keeps what is."""


TARGETS: Final[Mapping[Reason, MemoryState]] = {
    Reason.EXPIRED: MemoryState.ARCHIVED,
    Reason.FORGOTTEN: MemoryState.ARCHIVED,
    Reason.CAPACITY: MemoryState.ARCHIVED,
    Reason.GRACE: MemoryState.DELETED,
    Reason.SUPERSEDED: MemoryState.DELETED,
}
"""The state it leaves for: nothing is deleted at once, only after its grace, also what has expired."""

_REASONS: Final = tuple(Reason)
_CODES: Final = {reason: code for code, reason in enumerate(_REASONS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecyclePolicy:
    """How the memories of one bank live and go. Building one raises InvalidInput for a value outside its bounds.

    Attributes:
        forgets: whether fading and grace take anything at all (M-19). Budget, expiry and ``superseded_grace_days``
            hold without it.
        curve: which forgetting curve.
        tau_days: unit scale of the exponential curve, > 0 (B16, B21); the other curves have their own days.
        floor: the retention at which an active memory is archived, in [0, 1]; 0: never; None: the curve's own,
            ``DEFAULT_FLOORS`` (V-32, B16).
        minimum_age_days: no memory younger than this is archived for fading, >= 0 (B16).
        grace_days: how long an archived memory can be restored before it is deleted, >= 0.
        superseded_grace_days: how long what was superseded, as outdated or as a duplicate, can be restored before it is
            deleted, >= 0; None: for ever (D9). Searches of the past find it still.
        capacity: most active memories of one partition, >= 1; None: no budget.
        importance_stretch: how many times as long the most important memory (1) lasts, >= 1; the least important
            (0) lasts that much shorter, importance 0.5 and unknown importance neither (M-17, case 135).
        information_stretch: likewise by how much a memory tells (``domain.information``), >= 1; 1: that does not count.
            What was recalled has shown its worth, and lasts no shorter for telling little. Where its author has said
            how important a memory is, that counts alone.
        max_strength: where strength stops growing, >= 1.
    """

    forgets: bool = True
    curve: CurveName = "exponential"
    tau_days: float = 10.0
    floor: float | None = None
    minimum_age_days: float = 30.0
    grace_days: float = 90.0
    superseded_grace_days: float | None = None
    capacity: int | None = None
    importance_stretch: float = 4.0
    information_stretch: float = 1.0
    max_strength: float = MAX_STRENGTH

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        _require("curve", self.curve in DEFAULT_FLOORS, f"must be one of {', '.join(DEFAULT_FLOORS)}")
        _require("tau_days", 0.0 < self.tau_days < math.inf, "must be above 0 and finite")
        _require("floor", self.floor is None or 0.0 <= self.floor <= 1.0, "must be in [0, 1]")
        _require("minimum_age_days", self.minimum_age_days >= 0.0, "must not be negative")
        _require("grace_days", self.grace_days >= 0.0, "must not be negative")
        superseded = self.superseded_grace_days
        _require("superseded_grace_days", superseded is None or superseded >= 0.0, "must not be negative")
        _require("capacity", self.capacity is None or self.capacity >= 1, "must be at least 1")
        _require("importance_stretch", 1.0 <= self.importance_stretch < math.inf, "must be at least 1 and finite")
        _require("information_stretch", 1.0 <= self.information_stretch < math.inf, "must be at least 1 and finite")
        _require("max_strength", self.max_strength >= 1.0, "must be at least 1")

    @property
    def lowest(self) -> float:
        """The floor that holds: the policy's, or else its curve's own."""
        return DEFAULT_FLOORS[self.curve] if self.floor is None else self.floor


DEFAULT_LIFECYCLES: Final[Mapping[str, LifecyclePolicy]] = {
    # Without a recall knowledge lasts 120 * ln 20 = 360 days, dialog 30, a task 15 (and then to its minimum age).
    "knowledge": LifecyclePolicy(tau_days=120.0, minimum_age_days=90.0, grace_days=365.0),
    # And of what is said in a dialog, what tells half as much as can be told; the rest far shorter or far longer.
    "dialog": LifecyclePolicy(tau_days=10.0, information_stretch=100.0),
    "task": LifecyclePolicy(tau_days=5.0),
}
"""By bank; a declared bank starts from ``LifecyclePolicy()``. Knowledge does not age as talk does: it goes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeColumns:
    """The active and archived memories of one partition, and the superseded ones where those go, too: (n,) each.

    In ascending order of their number.

    Attributes:
        created_at: epoch seconds.
        recalled_at: epoch seconds of the last signal that restarts the curve's clock, or of the last restore from
            the archive, whichever is later; NaN: neither.
        expires_at: epoch seconds; NaN: no end.
        archived_at: epoch seconds since when it is archived; NaN: it is active.
        importance: in [0, 1]; NaN: unknown.
        information: how much each tells, in [0, 1]; NaN: unknown.
        pinned: bool.
        unit: an integer each: rows of the same unit, a document and its segments or a task run and its steps, are
            recalled one by one and go together (a hole in a document helps nobody); None: each on its own.
        traces: strength and, for FSRS, stability.
        superseded_at: epoch seconds since when it is superseded; NaN: it is not; None: none of them is.
        successor: the row of what superseded it; -1: nothing did, or that is not among them; None: none of them.
    """

    created_at: FloatArray
    recalled_at: FloatArray
    expires_at: FloatArray
    archived_at: FloatArray
    importance: FloatArray
    information: FloatArray
    pinned: BoolArray
    traces: Traces
    unit: IntArray | None = None
    superseded_at: FloatArray | None = None
    successor: IntArray | None = None

    @property
    def active(self) -> BoolArray:
        """Which are neither archived nor superseded."""
        active = np.isnan(self.archived_at)
        return active if self.superseded_at is None else active & np.isnan(self.superseded_at)


@dataclass(frozen=True, slots=True)
class Departures:
    """When each memory leaves its state and why: (n,) each, in the order of the columns.

    ``at`` is epoch seconds, inf: it stays. ``code`` is a number to be read by ``reason``, -1 where it stays.
    """

    at: FloatArray
    code: NDArray[np.int8]

    def reason(self, row: int) -> Reason | None:
        """Why this one goes; None: it stays."""
        code = int(self.code[row])
        return None if code < 0 else _REASONS[code]


def departures(columns: LifeColumns, policy: LifecyclePolicy, curve: Curve, *, now: float) -> Departures:
    """The instant at which each memory leaves its state if nothing happens to it until then, and the reason.

    ::

        expired     expires_at
        forgotten   max(created_at + minimum age, start + stretch * lasting(trace, floor)), active, not pinned,
                    start the later of creation and last recall: never before the memory was last seen
        capacity    now, for the active and not pinned that would go first of all, as many as are over the budget
        grace       archived_at + grace, archived, not pinned
        superseded  superseded_at + grace, not pinned, and not before what it superseded itself

    The earliest of them holds. A unit is forgotten when the last of its rows would be, and is pinned by any of them.
    Instants that come of arithmetic are rounded up to the second, so what is printed is
    what decides. ``now`` is only the instant of what goes at once: what else goes, and when, does not depend on it.
    Hence a run at t takes exactly what an earlier forecast has at t or before, as long as nothing changed.

    Args:    now: epoch seconds; a clock set back makes memories younger, never more likely to go (case 108).
    Source:  B16 (floor, age, pin), V-28 (old and rarely recalled), M-17 (old, unimportant, rarely recalled).
    """
    active, archived = columns.active, ~np.isnan(columns.archived_at)
    start = np.fmax(columns.created_at, columns.recalled_at)
    fading = _fading(columns, start, policy, curve)
    restored_until = columns.archived_at + policy.grace_days * SECONDS_A_DAY
    outdated_until = _outdated_until(columns, policy)
    goes_outdated = ~np.isnan(outdated_until)
    pinned, unit = columns.pinned, columns.unit
    if unit is not None:
        unit = np.unique(unit, return_inverse=True)[1]
        pinned = _latest(pinned, unit)
        start, fading, restored_until = (_latest(each, unit) for each in (start, fading, restored_until))
        outdated_until = _latest(outdated_until, unit)
    expired = np.where(np.isnan(columns.expires_at), np.inf, columns.expires_at)
    leaves = np.minimum(fading, expired)
    over = _over_budget(leaves, start, active & ~pinned, unit, excess=_excess(active, policy.capacity))
    never = np.inf
    by_reason = {
        Reason.EXPIRED: expired,
        Reason.FORGOTTEN: np.where(active & ~pinned & policy.forgets, fading, never),
        Reason.CAPACITY: np.where(over, now, never),
        Reason.GRACE: np.where(archived & ~pinned & policy.forgets, _instants(restored_until), never),
        Reason.SUPERSEDED: _after_what_names_it(
            np.where(goes_outdated & ~pinned, _instants(outdated_until), never), columns.successor
        ),
    }
    instants = np.stack([by_reason[reason] for reason in _REASONS])
    code = instants.argmin(axis=0)
    at = instants[code, np.arange(len(code))]
    return Departures(at, np.where(np.isfinite(at), code, -1).astype(np.int8))


def retained(columns: LifeColumns, policy: LifecyclePolicy, curve: Curve, *, now: float) -> FloatArray:
    """Retention of each memory at ``now`` (epoch seconds) as the decision sees it.

    What is important, or tells much, ages more slowly.

    Returns: (n,) float64 in [0, 1]; times after ``now`` are age 0 (case 108).
    """
    ages = age_days(now, columns.created_at, columns.recalled_at)
    return curve.retention(columns.traces, ages / _stretch(columns, policy))


def due(leaving: Departures, *, now: float) -> BoolArray:
    """Mask of what a run at ``now`` (epoch seconds; inf: whenever) takes: (n,)."""
    return (leaving.at <= now) & np.isfinite(leaving.at)


def forecast(leaving: Departures, *, until: float) -> IntArray:
    """Rows of all that goes until then, the first to go first; rows that go together keep their order."""
    rows = np.flatnonzero(due(leaving, now=until))
    return rows[np.argsort(leaving.at[rows], kind="stable")]


def tally(leaving: Departures, *, until: float) -> Mapping[Reason, int]:
    """How many go until then (epoch seconds) for each reason that takes any."""
    counts = np.bincount(leaving.code[due(leaving, now=until)], minlength=len(_REASONS))
    return {reason: int(counts[code]) for reason, code in _CODES.items() if counts[code]}


@dataclass(frozen=True, slots=True)
class ShareGuard:
    """Whether a run may go on: it would take ``taken`` of ``total``, and ``max_share`` is allowed."""

    taken: int
    total: int
    max_share: float

    @property
    def share(self) -> float:
        """In [0, 1]; 0 of nothing."""
        return self.taken / self.total if self.total else 0.0

    @property
    def stops(self) -> bool:
        """The run takes more than its share: it changes nothing and reports."""
        return self.taken > self.total * self.max_share + _ROUNDING

    def __str__(self) -> str:
        return f"{self.taken} of {self.total} memories ({self.share:.1%}; at most {self.max_share:.1%} in one run)"


def share_guard(taken: Mapping[Reason, int], total: int, *, max_share: float = DEFAULT_MAX_SHARE) -> ShareGuard:
    """Whether a run that would take these (``tally``, summed over its partitions) takes too much (case 135).

    Expired memories do not count: their owners fixed their end one by one, so it is no surprise.

    Args:    total: all memories the run looked at, active and archived.  max_share: in [0, 1]; 1: no guard.
    Raises:  InvalidInput: a share outside [0, 1].
    """
    _require("max_share", 0.0 <= max_share <= 1.0, "must be in [0, 1]")
    return ShareGuard(sum(count for reason, count in taken.items() if reason is not Reason.EXPIRED), total, max_share)


def _fading(columns: LifeColumns, start: FloatArray, policy: LifecyclePolicy, curve: Curve) -> FloatArray:
    """When each would be forgotten, were it active and not pinned."""
    lasting = curve.lasting_days(columns.traces, policy.lowest)
    with np.errstate(over="ignore"):  # what lasts longer than there are numbers stays
        days = lasting * _stretch(columns, policy)
        faded = start + days * SECONDS_A_DAY
    return _instants(np.maximum(columns.created_at + policy.minimum_age_days * SECONDS_A_DAY, faded))


def _stretch(columns: LifeColumns, policy: LifecyclePolicy) -> FloatArray:
    """How many times as long as an ordinary one each lasts: by its importance, else by what it tells."""
    of_importance = _power(policy.importance_stretch, columns.importance)
    of_information = _power(policy.information_stretch, columns.information)
    of_information = np.where(np.isnan(columns.recalled_at), of_information, np.maximum(of_information, 1.0))
    return np.where(np.isnan(columns.importance), of_information, of_importance)


def _power(most: float, share: FloatArray) -> FloatArray:
    """most^(2 * share - 1): ``most`` for 1, its inverse for 0, 1 for 0.5 and for the unknown."""
    known = np.where(np.isnan(share), 0.5, np.clip(share, 0.0, 1.0))
    return np.power(most, 2.0 * known - 1.0)


def _outdated_until(columns: LifeColumns, policy: LifecyclePolicy) -> FloatArray:
    """Until when each is kept as superseded; NaN where it is not, or is kept for ever."""
    if columns.superseded_at is None or policy.superseded_grace_days is None:
        return np.full_like(columns.created_at, np.nan)
    return columns.superseded_at + policy.superseded_grace_days * SECONDS_A_DAY


def _after_what_names_it(until: FloatArray, successor: IntArray | None) -> FloatArray:
    """No earlier than what each superseded: who reads of that by what it was superseded can look it up."""
    if successor is None:
        return until
    rows = np.flatnonzero(successor >= 0)
    while True:
        later = until.copy()
        np.maximum.at(later, successor[rows], until[rows])
        if np.array_equal(later, until):
            return until
        until = later


def _latest(column: _Column, unit: IntArray) -> _Column:
    """The largest figure of each row's unit; of flags, whether any is set."""
    most = np.zeros_like(column, shape=int(unit.max(initial=-1)) + 1)
    if most.dtype != np.bool_:
        most.fill(-np.inf)
    np.fmax.at(most, unit, column)
    return most[unit]


def _excess(active: BoolArray, capacity: int | None) -> int:
    return 0 if capacity is None else max(0, int(active.sum()) - capacity)


def _over_budget(
    leaves: FloatArray, start: FloatArray, may_go: BoolArray, unit: IntArray | None, *, excess: int
) -> BoolArray:
    """Who goes for the budget: those that would leave first anyhow, ties by the last recall, then by number."""
    rows = np.flatnonzero(may_go)
    over = np.zeros(len(leaves), dtype=np.bool_)
    if excess == 0:
        return over
    ties = rows if unit is None else unit[rows]
    first = rows[np.lexsort((ties, start[rows], leaves[rows]))][:excess]
    over[first] = True
    # A unit that begins to go goes whole, even if that frees more than was asked.
    return over if unit is None else over | (may_go & np.isin(unit, unit[first]))


def _instants(moments: FloatArray) -> FloatArray:
    """Rounded up to the second; inf where there is none, or none that a calendar knows."""
    moments = np.ceil(moments)
    return np.where(moments <= _LAST_INSTANT, moments, np.inf)
