"""Forgetting curves behind one interface: what is left of memories, how long they last, what a signal does to one.

Pure. The exponential (MemoryBank, VIMBank) and the saturating curve (ILSTMA) stand here; FSRS-6, which needs a
library, is an adapter of the same protocol: ``vimbank.curves.fsrs``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np

from vimbank.domain.forgetting import days_until, retention, saturating_strength
from vimbank.domain.models import FloatArray, Signal
from vimbank.errors import InvalidInput

__all__ = [
    "CURVE_NAMES",
    "DEFAULT_FLOORS",
    "MAX_STRENGTH",
    "SIGNAL_WEIGHTS",
    "Curve",
    "CurveName",
    "ExponentialCurve",
    "SaturatingCurve",
    "Trace",
    "Traces",
    "reinforced",
]

CurveName: TypeAlias = Literal["exponential", "ilstma", "fsrs"]
CURVE_NAMES: Final[tuple[CurveName, ...]] = ("exponential", "ilstma", "fsrs")

DEFAULT_FLOORS: Final[Mapping[CurveName, float]] = {"exponential": 0.05, "ilstma": 0.05, "fsrs": 0.5}
"""The retention at which a memory is let go, where the policy names none.

0.05 is B16's. FSRS-6 falls as a power, not as an exponential: it would need millennia to reach 0.05, and reaches
0.5 after 208 days without a recall.
"""

SIGNAL_WEIGHTS: Final[Mapping[Signal, float]] = {
    Signal.RETURNED: 1.0,
    Signal.USED: 2.0,
    Signal.IGNORED: 0.0,
    Signal.WRONG: -2.0,
}
"""Steps of strength that each signal is worth: one recall is one step (V-31, M-16), use counts more (case 141).

Being ignored says little, since a list holds more than its reader needs. Being wrong takes back what one use gave.
"""

MAX_STRENGTH: Final = 20.0
"""Where strength stops growing: a memory that every search returns would otherwise never fade."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What one memory remembers of its recalls.

    Attributes:
        strength: 1 at the first mention, then grown by signals, >= 1 (V-30, M-15). Every curve keeps it, so that
            a bank can change its curve.
        stability_days: FSRS's stability, > 0: days until R is 0.9; None: never reviewed by FSRS.
        difficulty: FSRS's difficulty, in [1, 10]; None: never reviewed by FSRS.
    """

    strength: float = 1.0
    stability_days: float | None = None
    difficulty: float | None = None


@dataclass(frozen=True, slots=True)
class Traces:
    """Many traces as columns, (n,) float64 each; NaN is the None of ``Trace``."""

    strength: FloatArray
    stability_days: FloatArray

    @classmethod
    def of_strength(cls, strength: FloatArray) -> "Traces":
        """Traces that FSRS never reviewed."""
        return cls(strength, np.full(strength.shape, np.nan))


class Curve(Protocol):
    """How memories fade. Deterministic; knows ages, no instants.

    Ages are days since the last signal that ``restarts`` the clock, or since the creation. A negative or unknown
    age (a clock that was set back) counts as 0, a strength below 1 or unknown as 1.
    """

    @property
    def name(self) -> CurveName: ...

    def retention(self, traces: Traces, age_days: FloatArray) -> FloatArray:
        """(n,) float64 in [0, 1]; highest at age 0; never rises with age, never falls with strength or stability."""
        ...

    def lasting_days(self, traces: Traces, floor: float) -> FloatArray:
        """(n,) float64 days, >= 0: the age at which retention has fallen to ``floor``; inf where it never does."""
        ...

    def restarts(self, signal: Signal) -> bool:
        """Whether the signal is a recall: it counts as one, and age starts again at 0 (V-31, M-16)."""
        ...

    def review(self, trace: Trace, signal: Signal, age_days: float) -> Trace:
        """The trace after one signal, given at this age. A signal that says nothing leaves it as it is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialCurve:
    """R = R0 * exp(-t / (tau * S)), S = 1 + weighted recalls, capped (V-29 to V-31, M-14 to M-16; B16, B21).

    Attributes:
        tau_days: unit scale, > 0: 1 is the papers', 5 the intent of MemoryBank's code; B16 proposes 5 to 10.
        initial: R0, in (0, 1].
        max_strength: >= 1.
    """

    tau_days: float = 10.0
    initial: float = 1.0
    max_strength: float = MAX_STRENGTH

    def __post_init__(self) -> None:
        """Raises InvalidInput: what is outside the bounds."""
        _require("tau_days", self.tau_days > 0.0, "must be above 0")
        _require("initial", 0.0 < self.initial <= 1.0, "must be in (0, 1]")
        _require("max_strength", self.max_strength >= 1.0, "must be at least 1")

    @property
    def name(self) -> CurveName:
        """``exponential``."""
        return "exponential"

    def retention(self, traces: Traces, age_days: FloatArray) -> FloatArray:
        """See ``Curve``; R0 at age 0."""
        return retention(_ages(age_days), self._strength(traces), tau_days=self.tau_days, initial=self.initial)

    def lasting_days(self, traces: Traces, floor: float) -> FloatArray:
        """See ``Curve``: tau * S * ln(R0 / floor)."""
        return days_until(floor, self._strength(traces), tau_days=self.tau_days, initial=self.initial)

    def restarts(self, signal: Signal) -> bool:
        """Returned and used."""
        return SIGNAL_WEIGHTS[signal] > 0.0

    def review(self, trace: Trace, signal: Signal, age_days: float) -> Trace:  # noqa: ARG002 - at any age the same
        """See ``Curve``: S + 1 when returned, + 2 when used, - 2 when wrong."""
        return reinforced(trace, signal, max_strength=self.max_strength)

    def _strength(self, traces: Traces) -> FloatArray:
        return np.minimum(_strengths(traces), self.max_strength)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturatingCurve:
    """ILSTMA: R = exp(-t / S), S = beta + alpha / (1 + exp(xi * (n - mu))) days (I-34 to I-38; B2, B3, B5).

    n is the strength: the creation is the first exposure (B3). S saturates by itself, so n needs no cap for it.

    Attributes:
        alpha, beta, xi, mu: the constants of eq. 2, alpha >= 0, xi <= 0, and S(1) > 0.
        whole_days: t is rounded down to whole days, as the paper has it; blind within a day (B5).
        max_strength: where n stops growing, >= 1.
    """

    alpha: float = 37.0
    beta: float = -13.5
    xi: float = -1.5
    mu: float = 1.0
    whole_days: bool = False
    max_strength: float = MAX_STRENGTH

    def __post_init__(self) -> None:
        """Raises InvalidInput: constants with which retention would rise with age or fall with recalls."""
        _require("alpha", self.alpha >= 0.0, "must not be negative")
        _require("xi", self.xi <= 0.0, "must not be above 0")
        _require("beta", float(self._days(np.ones(1))[0]) > 0.0, "must leave the first strength above 0")
        _require("max_strength", self.max_strength >= 1.0, "must be at least 1")

    @property
    def name(self) -> CurveName:
        """``ilstma``."""
        return "ilstma"

    def retention(self, traces: Traces, age_days: FloatArray) -> FloatArray:
        """See ``Curve``; 1 at age 0."""
        ages = _ages(age_days)
        return np.exp(-(np.floor(ages) if self.whole_days else ages) / self._days(_strengths(traces)))

    def lasting_days(self, traces: Traces, floor: float) -> FloatArray:
        """See ``Curve``: S * ln(1 / floor)."""
        days = days_until(floor, self._days(_strengths(traces)))
        return np.ceil(days) if self.whole_days else days

    def restarts(self, signal: Signal) -> bool:
        """Returned and used."""
        return SIGNAL_WEIGHTS[signal] > 0.0

    def review(self, trace: Trace, signal: Signal, age_days: float) -> Trace:  # noqa: ARG002 - at any age the same
        """See ``Curve``: n + 1 when returned, + 2 when used, - 2 when wrong."""
        return reinforced(trace, signal, max_strength=self.max_strength)

    def _days(self, strength: FloatArray) -> FloatArray:
        return saturating_strength(strength, alpha=self.alpha, beta=self.beta, xi=self.xi, mu=self.mu)


def reinforced(trace: Trace, signal: Signal, *, max_strength: float) -> Trace:
    """The trace with the strength that the signal leaves: S + weight, between 1 and the cap.

    A strength already above the cap (the cap was lowered) does not fall by being recalled.
    Source: V-30, V-31, M-15, M-16; weights: ``SIGNAL_WEIGHTS``.
    """
    top = max(max_strength, trace.strength)
    strength = min(top, max(1.0, trace.strength + SIGNAL_WEIGHTS[signal]))
    return Trace(strength, trace.stability_days, trace.difficulty)


def _ages(age_days: FloatArray) -> FloatArray:
    return np.fmax(age_days, 0.0)


def _strengths(traces: Traces) -> FloatArray:
    return np.fmax(traces.strength, 1.0)


def _require(field: str, holds: bool, message: str) -> None:
    if not holds:
        raise InvalidInput.of(field, message)
