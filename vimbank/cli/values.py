"""The words of a command line as the domain's values; every error names the option's field."""

import json
import sys
from datetime import datetime
from typing import Any

from vimbank.domain.filters import Filter, parse
from vimbank.domain.times import parse_time_text
from vimbank.errors import InvalidInput

__all__ = ["filter_of", "object_of", "text_of", "time_of"]


def text_of(argument: str) -> str:
    """The text given, or standard input for ``-``."""
    return sys.stdin.read() if argument == "-" else argument


def time_of(value: str | None, field: str) -> datetime | None:
    """A time as ISO 8601 or as epoch seconds or milliseconds (case 103)."""
    return None if value is None else parse_time_text(value, field)


def object_of(value: str | None, field: str) -> dict[str, Any]:
    """A JSON object; {} where none was given."""
    if value is None:
        return {}
    document = _json(value, field)
    if not isinstance(document, dict):
        raise InvalidInput.of(field, "must be a JSON object")
    return document


def filter_of(value: str | None) -> Filter | None:
    """A filter in its JSON form."""
    return None if value is None else parse(_json(value, "filter"))


def _json(value: str, field: str) -> Any:
    try:
        return json.loads(value)
    except ValueError as exc:
        raise InvalidInput.of(field, f"is not JSON: {exc}") from exc
