"""Which curve a policy means."""

from vimbank.curves.fsrs import FsrsCurve
from vimbank.domain.curves import MAX_STRENGTH, Curve, CurveName, ExponentialCurve, SaturatingCurve

__all__ = ["open_curve"]


def open_curve(name: CurveName, *, tau_days: float, max_strength: float = MAX_STRENGTH) -> Curve:
    """The curve of that name.

    Args:    tau_days: unit scale of the exponential, > 0; the others carry their days in their own constants.
             max_strength: where strength stops growing, >= 1.
    Raises:  InvalidInput: a value outside its bounds.
    """
    match name:
        case "exponential":
            return ExponentialCurve(tau_days=tau_days, max_strength=max_strength)
        case "ilstma":
            return SaturatingCurve(max_strength=max_strength)
        case "fsrs":
            return FsrsCurve(max_strength=max_strength)
