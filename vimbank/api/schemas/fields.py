"""Fields that several schemas have."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from vimbank.domain.times import parse_time, parse_time_text
from vimbank.errors import InvalidInput

__all__ = ["Metadata", "State", "Time", "TimeText", "UserId"]


def _instant(value: Any, parse: Callable[[Any, str], datetime] = parse_time) -> datetime:
    try:
        return parse(value, "time")
    except InvalidInput as exc:
        # Pydantic knows the field's name; only the message is wanted of ours.
        raise PydanticCustomError("time", "{reason}", {"reason": exc.errors[0].message}) from exc


_TIME_SCHEMA = {
    "anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}],
    "description": "ISO 8601, or epoch seconds or milliseconds; without a zone it is UTC.",
}
Time: TypeAlias = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema(_TIME_SCHEMA)]
TimeText: TypeAlias = Annotated[
    datetime, BeforeValidator(lambda value: _instant(value, parse_time_text)), WithJsonSchema(_TIME_SCHEMA)
]
"""A time in a query string, where a number is text."""
Metadata: TypeAlias = Annotated[dict[str, Any], Field(description="Any JSON object; filters reach its keys.")]
UserId: TypeAlias = Annotated[str, Field(description="Whose memory it is; `shared` is read by all users of a tenant.")]
State: TypeAlias = Literal["active", "archived", "superseded", "suppressed", "deleted"]
