"""The papers' forgetting formulas, as printed or as their errata mend them (V-27 to V-31, M-14 to M-16, I-34 to I-38).

Pure. ``vimbank.domain.curves`` makes interchangeable curves of them.
"""

import numpy as np

from vimbank.domain.models import FloatArray
from vimbank.errors import InvalidInput

__all__ = ["days_until", "retention", "saturating_strength"]


def retention(age_days: FloatArray, strength: FloatArray, *, tau_days: float = 1.0, initial: float = 1.0) -> FloatArray:
    """Fraction of a memory retained ``age_days`` after its last recall: R = R0 * exp(-age / (tau * strength)).

    Args:    age_days: days, >= 0, shape (n,).  strength: 1 + number of recalls, >= 1, shape (n,).
             tau_days: > 0; 1 is the paper's, 5 is the evident intent of MemoryBank's code.
             initial: R0, in (0, 1].
    Returns: float64, shape (n,), in [0, 1]; R0 at age 0; falls with age, rises with strength.
    Raises:  InvalidInput: negative age, strength below 1, tau that is not above 0, or R0 outside (0, 1].
    Source:  MemoryBank 2.3, VIMBank eq. 6 (M-14, V-29; B16, B21: the exponent is t / (tau * S)).
    """
    _check_scale(tau_days, initial)
    if np.any(age_days < 0.0):
        raise InvalidInput.of("age_days", "must not be negative")
    if np.any(strength < 1.0):
        raise InvalidInput.of("strength", "must be at least 1")
    return initial * np.exp(-age_days / (tau_days * strength))


def days_until(retained: float, strength: FloatArray, *, tau_days: float = 1.0, initial: float = 1.0) -> FloatArray:
    """The age at which ``retention`` has fallen to ``retained``: t = tau * S * ln(R0 / R), its inverse.

    Args:    retained: R in [0, 1].  strength: > 0, shape (n,).  tau_days, initial: as above.
    Returns: float64 days, shape (n,), >= 0; 0 where R0 is not above R; inf for R = 0, which is never reached.
    Raises:  InvalidInput: R outside [0, 1], tau that is not above 0, or R0 outside (0, 1].
    """
    _check_scale(tau_days, initial)
    if not 0.0 <= retained <= 1.0:
        raise InvalidInput.of("retained", "must be in [0, 1]")
    if retained == 0.0:
        return np.full(strength.shape, np.inf)
    return tau_days * strength * max(0.0, float(np.log(initial / retained)))


def saturating_strength(
    recall_times: FloatArray,
    *,
    alpha: float = 37.0,
    beta: float = -13.5,
    xi: float = -1.5,
    mu: float = 1.0,
) -> FloatArray:
    """ILSTMA's strength in days: S = beta + alpha / (1 + exp(xi * (n - mu))), n the exposures so far.

    Args:    recall_times: n, shape (n,); the creation is the first exposure, so less than 1 counts as 1 (B3:
                 below 0.63 S would be negative and retention would grow).
    Returns: float64 days, shape (n,); with the printed constants 5 at n = 1, rising to 23.5 (B2: not to 25).
    Source:  ILSTMA eq. 2 (I-35, I-36), errata B2 and B3.
    """
    return beta + alpha / (1.0 + np.exp(xi * (np.maximum(recall_times, 1.0) - mu)))


def _check_scale(tau_days: float, initial: float) -> None:
    if not tau_days > 0.0:
        raise InvalidInput.of("tau_days", "must be above 0")
    if not 0.0 < initial <= 1.0:
        raise InvalidInput.of("initial", "must be in (0, 1]")
