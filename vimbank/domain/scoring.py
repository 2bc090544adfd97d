"""From fused relevance to the final score: what neighbours, links, dates and age do to it. Pure.

Everything that adds relevance adds a share of what is missing to 1, so relevance stays in [0, 1] whatever is
combined; everything that takes away is a factor in [0, 1].
"""

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray
from vimbank.errors import InvalidInput

__all__ = [
    "SECONDS_A_DAY",
    "age_days",
    "best_first",
    "currency_factors",
    "derived_factor",
    "lift",
    "outcome_factor",
    "retention_factor",
    "time_factor",
]

SECONDS_A_DAY = 86_400.0
_JUST_BELOW: Final = 1.0 - 1e-6
"""Times a score: next below it, and told apart from it where six digits are shown."""


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


def currency_factors(scores: Mapping[str, float], successors: Mapping[str, Collection[str]]) -> dict[str, float]:
    """What the scores of memories are multiplied by to end just below all that succeeded them.

    Of memories that succeeded each other in a row each ends below the next. A successor without a score does not count,
    nor does one by which a memory would end below itself. Where a successor has no score above 0 the factor is 0.

    Args:    scores: id -> score in [0, 1].  successors: id -> the ids of what ended something of it, or tells of the
                 same at a later time.
    Returns: id -> factor in [0, 1), of those alone that must fall.
    Source:  VIMBank V-10: records that conflict are to be told apart; the current one is the answer.
    """
    heirs = {name: [each for each in successors.get(name, ()) if each in scores] for name in scores}
    final: dict[str, float] = {}
    for first in scores:
        path = [first] if first not in final else []  # from a memory to what ended it, and so on
        while path:
            name = path[-1]
            later = next((each for each in heirs[name] if each not in final and each not in path), None)
            if later is not None:
                path.append(later)
            else:
                lowest = min((final[each] for each in heirs[name] if each in final), default=np.inf)
                final[name] = min(scores[name], lowest * _JUST_BELOW)
                path.pop()
    return {name: final[name] / score for name, score in scores.items() if final[name] < score}


def best_first(scores: FloatArray, *, top_k: int) -> IntArray:
    """Positions of the ``top_k`` best and of all that tie with the last of them, in no order.

    The caller breaks ties and cuts: which of them stays is a matter of ids, which are not known here.
    """
    if len(scores) <= top_k:
        return np.arange(len(scores))
    cut = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
    return np.flatnonzero(scores >= cut)
