"""How much of a memory is left after a while (V-27 to V-31, M-14 to M-16). Pure."""

import numpy as np

from vimbank.domain.models import FloatArray
from vimbank.errors import InvalidInput

__all__ = ["retention"]


def retention(age_days: FloatArray, strength: FloatArray, *, tau_days: float = 1.0) -> FloatArray:
    """Fraction of a memory retained ``age_days`` after its last recall: R = exp(-age / (tau * strength)).

    Args:    age_days: days, >= 0, shape (n,).  strength: 1 + number of recalls, >= 1, shape (n,).
             tau_days: > 0; 1 is the paper's, 5 is the evident intent of MemoryBank's code.
    Returns: float64, shape (n,), in [0, 1]; 1 at age 0; falls with age, rises with strength.
    Raises:  InvalidInput: negative age, strength below 1, or tau that is not above 0.
    Source:  MemoryBank 2.3, VIMBank eq. 6 (M-14, V-29; B16, B21: the exponent is t / (tau * S)).
    """
    if not tau_days > 0.0:
        raise InvalidInput.of("tau_days", "must be above 0")
    if np.any(age_days < 0.0):
        raise InvalidInput.of("age_days", "must not be negative")
    if np.any(strength < 1.0):
        raise InvalidInput.of("strength", "must be at least 1")
    return np.exp(-age_days / (tau_days * strength))
