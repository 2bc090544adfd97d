"""Instants: one reader, one writer, microseconds since the epoch in between (case 103).

Everything inside is aware UTC. A time without a zone means UTC, whatever the machine's zone is (case 105).
"""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from vimbank.errors import InvalidInput

__all__ = [
    "MILLISECONDS_FROM",
    "format_time",
    "from_micros",
    "parse_time",
    "parse_time_text",
    "to_micros",
    "to_seconds",
]

MILLISECONDS_FROM: Final = 1e11
"""A number of at least this size is epoch milliseconds: as seconds it would lie past the year 5138."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# `fromisoformat` also takes week dates and times without separators, which a mistyped number can look like.
_ISO: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)?)?", re.ASCII
)


def parse_time(value: object, field: str) -> datetime:
    """The instant a caller means, aware UTC.

    Args:    value: an ISO 8601 date or date and time (``2026-01-01``, ``2026-01-01T00:00:00+09:00``, ``…Z``), epoch
                 seconds, epoch milliseconds (|value| >= 1e11), or a datetime. Without a zone: UTC.
             field: the dotted name that an error carries.
    Raises:  InvalidInput: another type (a bool too), not a time, or outside the years 1 to 9999.
    """
    if isinstance(value, datetime):
        return _utc(value, field)
    if isinstance(value, str):
        return _from_iso(value.strip(), field)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_number(value, field)
    raise InvalidInput.of(field, "must be a time: ISO 8601, or epoch seconds or milliseconds")


def parse_time_text(text: str, field: str) -> datetime:
    """``parse_time`` where numbers come as text, too: of a command line, or of a form. Raises InvalidInput."""
    try:
        number = float(text)
    except ValueError:
        return parse_time(text, field)
    return parse_time(int(number) if number.is_integer() else number, field)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970-01-01T00:00:00Z of an aware time, exactly; negative before."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware UTC time of ``to_micros``; OverflowError outside the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=micros)


def to_seconds(moment: datetime) -> float:
    """Seconds since the epoch: the float64 nearest to ``to_micros`` / 1e6, so equal instants are equal figures."""
    return to_micros(moment) / 1_000_000


def format_time(moment: datetime) -> str:
    """ISO 8601 in UTC with Z; microseconds only where there are any."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _from_iso(text: str, field: str) -> datetime:
    if not _ISO.fullmatch(text):
        raise InvalidInput.of(field, "is not an ISO 8601 time, for example 2026-01-31T09:30:00Z")
    # Digits past the microsecond are cut: `fromisoformat` does so too, and wants no blank before the zone.
    normal = text.upper().replace(",", ".").replace(" ", "T", 1).replace(" ", "")
    try:
        return _utc(datetime.fromisoformat(normal), field)
    except ValueError as exc:
        raise InvalidInput.of(field, f"is not an ISO 8601 time: {exc}") from exc


def _from_number(value: float, field: str) -> datetime:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput.of(field, "must be a finite number")
    scale = 1_000 if abs(value) >= MILLISECONDS_FROM else 1_000_000
    try:
        return from_micros(value * scale if isinstance(value, int) else round(value * scale))
    except OverflowError as exc:
        raise InvalidInput.of(field, "lies outside the years 1 to 9999") from exc


def _utc(moment: datetime, field: str) -> datetime:
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as exc:
        raise InvalidInput.of(field, "lies outside the years 1 to 9999") from exc
