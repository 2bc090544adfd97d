"""Checks of what a job is asked with; an error names ``params.<field>``."""

from collections.abc import Mapping
from typing import Any

from vimbank.domain.json_values import flag_value
from vimbank.domain.sanitize import clean_id
from vimbank.errors import FieldError, InvalidInput

__all__ = ["none", "only", "partitions_and_dry_run", "positive", "tenant_and_share"]


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


def partitions_and_dry_run(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tenant``, ``user``, ``bank``, ids, where they are given, and ``dry_run``. Raises InvalidInput."""
    only(params, "tenant", "user", "bank", "dry_run")
    given = {name: clean_id(params[name], f"params.{name}") for name in ("tenant", "user", "bank") if name in params}
    return {**given, "dry_run": flag_value(params.get("dry_run", False), "params.dry_run")}


def tenant_and_share(params: Mapping[str, Any]) -> dict[str, Any]:
    """``tenant``, an id, and ``max_share``, in [0, 1]: those that are given and not None. Raises InvalidInput."""
    checked: dict[str, Any] = {}
    if params.get("tenant") is not None:
        checked["tenant"] = clean_id(params["tenant"], "params.tenant")
    share = params.get("max_share")
    if share is not None:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise InvalidInput.of("params.max_share", "must be between 0 and 1")
        checked["max_share"] = float(share)
    return checked
