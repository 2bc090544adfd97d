"""FSRS-6 by the ``fsrs`` library, as a forgetting curve. The only module that imports the library.

Intervals and due dates are flash cards' business and not used here, so neither is their fuzz: nothing is random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from fsrs import Card, Rating, Scheduler, State
from fsrs.scheduler import DEFAULT_PARAMETERS

from vimbank.domain.curves import MAX_STRENGTH, CurveName, Trace, Traces, reinforced
from vimbank.domain.models import FloatArray, Signal
from vimbank.errors import InvalidInput

__all__ = ["FsrsCurve"]

_GRADES: Final[Mapping[Signal, Rating]] = {Signal.USED: Rating.Good, Signal.WRONG: Rating.Again}
_BASE: Final = 0.9  # stability is the age at which R is this
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_DAYS: Final = 36_500.0


class FsrsCurve:
    """R = (1 + F * t / S)^-w20, F = 0.9^(-1 / w20) - 1, S the stability in days (idea D10, figures C8).

    A memory's creation is its first review, Good: S = w2 = 2.31 days. **Used** is Good, **wrong** is Again; returned
    and ignored are no reviews. Returned cannot be one: a second review on the same day teaches FSRS next to
    nothing, so the use that follows an answer by seconds would not count. Wrong does not restart the clock: what was
    contradicted has not been learnt again, and must not last longer for it.

    A memory that FSRS never reviewed and that another curve has strengthened starts at S = w2 * strength.

    Args:    parameters: the 21 of FSRS-6; the library's defaults, fitted to people with flash cards.
             max_strength: where the strength stops, which is kept up for the other curves.
    Raises:  InvalidInput: parameters outside the library's bounds.
    """

    def __init__(self, parameters: Sequence[float] = DEFAULT_PARAMETERS, *, max_strength: float = MAX_STRENGTH) -> None:
        try:
            # Without learning steps a card is in review from its first day, as a memory is.
            self._scheduler = Scheduler(parameters, learning_steps=(), relearning_steps=(), enable_fuzzing=False)
        except ValueError as exc:
            raise InvalidInput.of("parameters", str(exc)) from exc
        self._max_strength = max_strength
        self._decay = float(parameters[20])
        self._factor = _BASE ** (-1.0 / self._decay) - 1.0
        first, _ = self._scheduler.review_card(Card(card_id=0, due=_EPOCH), Rating.Good, _EPOCH)
        assert first.stability is not None
        assert first.difficulty is not None
        self._first_stability, self._first_difficulty = first.stability, first.difficulty

    @property
    def name(self) -> CurveName:
        """``fsrs``."""
        return "fsrs"

    def retention(self, traces: Traces, age_days: FloatArray) -> FloatArray:
        """See ``Curve``. In fractional days; the library's own figure is for whole ones (as B5)."""
        ages = np.fmax(age_days, 0.0)
        left: FloatArray = np.power(1.0 + self._factor * ages / self._stability(traces), -self._decay)
        return left

    def lasting_days(self, traces: Traces, floor: float) -> FloatArray:
        """See ``Curve``: S / F * (floor^(-1 / w20) - 1)."""
        if not 0.0 <= floor <= 1.0:
            raise InvalidInput.of("floor", "must be in [0, 1]")
        with np.errstate(divide="ignore", over="ignore"):
            stretch = float(np.power(np.float64(floor), -1.0 / self._decay)) - 1.0
        days: FloatArray = self._stability(traces) / self._factor * stretch
        return days

    def restarts(self, signal: Signal) -> bool:
        """Used alone."""
        return signal is Signal.USED

    def review(self, trace: Trace, signal: Signal, age_days: float) -> Trace:
        """See ``Curve``. Stability and difficulty by the library; ages above a century count as one."""
        rating = _GRADES.get(signal)
        if rating is None:
            return trace
        card = Card(
            card_id=0,
            state=State.Review,
            stability=self._first_stability * max(1.0, trace.strength)
            if trace.stability_days is None
            else trace.stability_days,
            difficulty=self._first_difficulty if trace.difficulty is None else trace.difficulty,
            due=_EPOCH,
            last_review=_EPOCH,
        )
        at = _EPOCH + timedelta(days=min(max(0.0, age_days), _LONGEST_DAYS))
        reviewed, _ = self._scheduler.review_card(card, rating, at)
        grown = reinforced(trace, signal, max_strength=self._max_strength)
        return replace(grown, stability_days=reviewed.stability, difficulty=reviewed.difficulty)

    def _stability(self, traces: Traces) -> FloatArray:
        unreviewed = self._first_stability * np.fmax(traces.strength, 1.0)
        return np.where(np.isnan(traces.stability_days), unreviewed, traces.stability_days)
