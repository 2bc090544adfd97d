"""The parameters of BM25."""

from vimbank.errors import InvalidInput

__all__ = ["check_parameters"]


def check_parameters(k1: float, b: float) -> None:
    """k1 > 0: saturation; b in [0, 1]: length normalisation. Raises InvalidInput outside."""
    if not k1 > 0:
        raise InvalidInput.of("k1", "must be above 0")
    if not 0 <= b <= 1:
        raise InvalidInput.of("b", "must be in [0, 1]")
