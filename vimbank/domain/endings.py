"""What has ended of a memory: statements that a later one contradicts (V-9, V-10). Values and their JSON, no rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from vimbank.domain.times import format_time, parse_time
from vimbank.errors import InvalidInput

__all__ = ["Ended", "Reason", "ended_record", "parse_ended"]


class Reason(StrEnum):
    """Why a value ended."""

    CHANGED = "changed"
    """Another value of an attribute that has one at a time."""

    ENDED = "ended"
    """It was said to hold no longer."""

    RESUMED = "resumed"
    """What was denied holds again: the denial ended."""


@dataclass(frozen=True, slots=True)
class Ended:
    """One statement of the old memory that ``new_id`` ended at ``from_instant``."""

    subject: str
    attribute: str
    value: str | None
    new_id: str
    from_instant: datetime
    reason: Reason


def ended_record(ended: Ended) -> dict[str, Any]:
    """As JSON values."""
    return {
        "subject": ended.subject,
        "attribute": ended.attribute,
        "value": ended.value,
        "new_id": ended.new_id,
        "from_instant": format_time(ended.from_instant),
        "reason": ended.reason.value,
    }


def parse_ended(value: object, field: str) -> Ended:
    """The inverse of ``ended_record``. Raises InvalidInput, naming the field."""
    names = {"subject", "attribute", "value", "new_id", "from_instant", "reason"}
    if not isinstance(value, Mapping) or set(value) != names:
        raise InvalidInput.of(field, f"must be an object with {', '.join(sorted(names))}")
    texts = {name: value[name] for name in ("subject", "attribute", "new_id")}
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(value["value"], str | None):
        raise InvalidInput.of(field, "must have texts")
    if value["reason"] not in set(Reason):
        raise InvalidInput.of(f"{field}.reason", f"must be one of {', '.join(Reason)}")
    return Ended(
        **texts,
        value=value["value"],
        from_instant=parse_time(value["from_instant"], f"{field}.from_instant"),
        reason=Reason(value["reason"]),
    )
