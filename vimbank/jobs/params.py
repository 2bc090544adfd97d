"""Checks of what a job is asked with; an error names ``params.<field>``."""

from collections.abc import Mapping
from typing import Any

from vimbank.errors import FieldError, InvalidInput

__all__ = ["none", "only", "positive"]


def only(params: Mapping[str, Any], *allowed: str) -> None:
    """Raises InvalidInput for every name that is not among ``allowed``."""
    unknown = [name for name in params if name not in allowed]
    if unknown:
        message = f"is unknown; this job takes {', '.join(allowed) or 'no parameters'}"
        raise InvalidInput([FieldError(f"params.{name}", message) for name in unknown])


def none(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The check of a job without parameters."""
    only(params)
    return {}


def positive(value: object, field: str, *, most: float) -> float:
    """The number in (0, ``most``], or InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise InvalidInput.of(field, f"must be a number above 0, at most {most:g}")
    return float(value)
