"""From fused relevance to the final score: what neighbours, links, dates and age do to it. Pure.

Everything that adds relevance adds a share of what is missing to 1, so relevance stays in [0, 1] whatever is
combined; everything that takes away is a factor in [0, 1].
"""

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray
from vimbank.errors import InvalidInput

__all__ = [
    "SECONDS_A_DAY",
    "age_days",
    "best_first",
    "derived_factor",
    "lift",
    "outcome_factor",
    "retention_factor",
    "time_factor",
]

SECONDS_A_DAY = 86_400.0


def age_days(now: float, *moments: FloatArray) -> FloatArray:
    """Days from the latest known of the moments to ``now``, never negative (case 108).

    Args:    now: epoch seconds.  moments: epoch seconds, (n,) each, NaN where unknown.
    Returns: float64, (n,), >= 0; a moment in the future and no moment at all both give 0.
    """
    latest = moments[0]
    for moment in moments[1:]:
        latest = np.fmax(latest, moment)
    return np.fmax((now - latest) / SECONDS_A_DAY, 0.0)


def time_factor(age: FloatArray, *, half_life_days: float | None, weight: float) -> FloatArray:
    """g = (1 - rho) + rho * 2^(-age / half-life): recency as a bounded prior, apart from relevance.

    Args:    age: days since the last recall, or since the memory's own time, >= 0, (n,).
             half_life_days: > 0; None: time does not count.  weight: rho in [0, 1].
    Returns: float64, (n,), in [1 - rho, 1]; 1 at age 0; falls with age.
    Raises:  InvalidInput: a half-life that is not above 0 (case 98).
    Source:  errata B12, in place of V-23; rho <= 0.2 for dialog, 0.3 for task (V-24).
    """
    if half_life_days is None:
        return np.ones_like(age)
    if not half_life_days > 0.0:
        raise InvalidInput.of("half_life_days", "must be above 0")
    return (1.0 - weight) + weight * np.exp2(-age / half_life_days)


def retention_factor(retention: FloatArray, *, weight: float) -> FloatArray:
    """1 - rho + rho * R: forgetting as a prior, never a gate.

    Args:    retention: R by a forgetting curve, (n,) in [0, 1].  weight: rho in [0, 1].
    Returns: float64, (n,), in [1 - rho, 1]; rises with R. For rho < 1 a score above 0 stays above 0.
    Source:  D11; MemoryBank 2.3 and VIMBank eq. 6 delete where this ranks lower.
    """
    return (1.0 - weight) + weight * retention


def outcome_factor(failed: BoolArray, *, weight: float) -> FloatArray:
    """1 - weight for failed tasks, 1 for all others: (n,) float64 in [0, 1] (V-24, «success first»)."""
    return np.where(failed, 1.0 - weight, 1.0)


def derived_factor(derived: BoolArray, *, weight: float) -> FloatArray:
    """The weight for summaries and portraits, 1 for all others: (n,) float64 in [0, 1]."""
    return np.where(derived, weight, 1.0)


def lift(relevance: FloatArray, support: FloatArray | BoolArray, *, weight: float) -> FloatArray:
    """What support adds to relevance: weight * support * (1 - relevance).

    Args:    relevance, support: (n,) in [0, 1].  weight: in [0, 1].
    Returns: float64, (n,), >= 0; relevance plus it is in [0, 1]. Without support nothing is added, so a lone
             memory keeps its relevance (case 26).
    """
    return weight * support * (1.0 - relevance)


def best_first(scores: FloatArray, *, top_k: int) -> IntArray:
    """Positions of the ``top_k`` best and of all that tie with the last of them, in no order.

    The caller breaks ties and cuts: which of them stays is a matter of ids, which are not known here.
    """
    if len(scores) <= top_k:
        return np.arange(len(scores))
    cut = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
    return np.flatnonzero(scores >= cut)
