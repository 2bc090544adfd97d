"""Memories as JSON Lines: one object a line, fields as in ``POST /v1/memories``; a bad line does not stop the rest."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from vimbank.domain.json_values import flag_value, text_value
from vimbank.domain.models import MemoryDraft, Source
from vimbank.domain.times import parse_time
from vimbank.errors import FieldError, InvalidInput

__all__ = ["FIELDS", "Line", "draft_of_fields", "lines_of", "read_jsonl"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank: its number in the file, from 1, and its draft, or what is wrong with it."""

    number: int
    draft: MemoryDraft | None = None
    error: InvalidInput | None = None


def read_jsonl(
    lines: Iterable[bytes | str], *, tenant: str, user_id: str | None = None, bank: str = "knowledge"
) -> Iterator[Line]:
    """Each line's draft or error, in order, one at a time (case 116).

    ``user_id`` and ``bank`` stand in where a line names none. Blank lines are passed over. The drafts still have to
    pass the service's checks (known bank, lengths, blank text).
    """
    for number, line in enumerate(lines, 1):
        try:
            text = _text(line, first=number == 1)
            if text.strip():
                yield Line(number, draft=draft_of_fields(_object(text), tenant=tenant, user_id=user_id, bank=bank))
        except InvalidInput as error:
            yield Line(number, error=error)


def draft_of_fields(
    fields: Mapping[str, Any], *, tenant: str, user_id: str | None = None, bank: str = "knowledge"
) -> MemoryDraft:
    """The draft that JSON fields describe; null is the same as not given.

    Raises InvalidInput, naming every bad field: unknown, missing (``text``, ``user_id``), or of another type.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    errors: list[FieldError] = []
    values: dict[str, Any] = {}
    for name, value in given.items():
        try:
            values[name] = FIELDS[name](value, name) if name in FIELDS else _unknown(name)
        except InvalidInput as error:
            errors.extend(error.errors)
    values = {"user_id": user_id, "bank": bank, **values}
    errors += [
        FieldError(name, "is missing") for name in ("text", "user_id") if values.get(name) is None and name not in given
    ]
    if errors:
        raise InvalidInput(errors)
    source = Source(**{name: values.pop(name) for name in _SOURCE_FIELDS if name in values})
    return MemoryDraft(tenant=tenant, source=source, **values)


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, unpacked where its name ends in ``.gz``.

    Raises InvalidInput, naming ``path``: not a readable file, or its compressed data end early or are damaged.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as exc:
        raise InvalidInput.of("path", f"{path} cannot be read: {exc}") from exc


def _text(line: bytes | str, *, first: bool) -> str:
    if isinstance(line, str):
        return line
    try:
        return line.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidInput.of("line", f"is not valid UTF-8 at byte {exc.start}") from exc


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise InvalidInput.of("line", f"is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise InvalidInput.of("line", "must be a JSON object")
    return value


def _number(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput.of(field, "must be a number")
    return float(value)


def _position(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput.of(field, "must be a whole number from 0")
    return value


def _mapping(value: object, field: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput.of(field, "must be an object")
    return value


def _unknown(field: str) -> Any:
    raise InvalidInput.of(field, "is not a field of a memory")


_SOURCE_FIELDS: Final = ("event_id", "position", "parent_id")

FIELDS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    **dict.fromkeys(("text", "user_id", "bank", "kind", "title", "speaker", "agent_id", "session_id"), text_value),
    **dict.fromkeys(("id", "idempotency_key", "event_id", "parent_id"), text_value),
    **dict.fromkeys(("created_at", "event_at", "valid_from", "valid_to", "expires_at"), parse_time),
    **dict.fromkeys(("pinned", "deduplicate"), flag_value),
    "importance": _number,
    "position": _position,
    "metadata": _mapping,
}
"""Every field of a line, and what reads it."""
