"""The lines of an export: one JSON object an id, lossless, and read back with every check that an add has.

A memory's fields are those of ``Memory``, under their names; what has its default value is left out. Times are
ISO 8601 with microseconds, vectors base64 of little-endian float32.
"""

import base64
import binascii
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import numpy as np

from vimbank.domain.archive import Archived, Past
from vimbank.domain.endings import Ended, ended_record, parse_ended
from vimbank.domain.fingerprint import content_hash
from vimbank.domain.json_values import flag_value, text_value
from vimbank.domain.models import Event, Memory, MemoryState, Source, Vector
from vimbank.domain.sanitize import clean_id, clean_metadata, clean_text
from vimbank.domain.superseding import as_said
from vimbank.domain.times import format_time, parse_time
from vimbank.errors import FieldError, InvalidInput
from vimbank.ingestion.prepare import Limits
from vimbank.ports import EncoderIdentity

__all__ = ["archived_of", "identity_of", "identity_record", "line_of"]

_GIVEN: Final = ("id", "tenant", "user_id", "revision", "number", "content_hash")
"""Said once a line, or the store's own, or made anew."""
_TYPES: Final = typing.get_type_hints(Memory)
_FIELDS: Final = {each.name: each for each in fields(Memory) if each.name not in _GIVEN}
_LINE: Final = frozenset({"id", "user_id", "memory", "key", "vector", "tokens", "past", "graves"})
_PAST: Final = frozenset(each.name for each in fields(Past))
_UNIT: Final = 1e-3
_MOST_CHARS: Final = 1_000


# --- out --------------------------------------------------------------------------------------------------------


def line_of(entry: Archived) -> dict[str, Any]:
    """The entry as JSON values."""
    line: dict[str, Any] = {"id": entry.id, "user_id": entry.user_id}
    if entry.memory is not None:
        line["memory"] = _memory_record(entry.memory)
    if entry.key is not None:
        line["key"] = entry.key
    if entry.vector is not None:
        line["vector"] = _encoded(entry.vector)
    if entry.tokens is not None:
        line["tokens"] = base64.b64encode(entry.tokens).decode()
    line["past"] = [_past_record(past) for past in entry.past]
    if entry.graves:
        line["graves"] = [_memory_record(grave) for grave in entry.graves]
    return line


def identity_record(identity: EncoderIdentity) -> dict[str, Any]:
    """The encoder in the header."""
    return {each.name: getattr(identity, each.name) for each in fields(EncoderIdentity)}


def _memory_record(memory: Memory) -> dict[str, Any]:
    return {
        name: _plain(getattr(memory, name))
        for name, field in _FIELDS.items()
        if getattr(memory, name) != _default(field)
    }


def _past_record(past: Past) -> dict[str, Any]:
    record: dict[str, Any] = {
        "bank": past.bank,
        "at": format_time(past.at),
        "event": past.event.value,
        "actor": past.actor,
    }
    given = {
        "old_text": past.old_text,
        "new_text": past.new_text,
        "changes": dict(past.changes) or None,
        "before": past.before,
        "moved": past.moved or None,
        "vector": None if past.vector is None else _encoded(past.vector),
    }
    return record | {name: value for name, value in given.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Source):
        return {each.name: item for each in fields(Source) if (item := getattr(value, each.name)) is not None}
    if isinstance(value, tuple):
        return [ended_record(each) if isinstance(each, Ended) else each for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def _default(field: Any) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _encoded(vector: Vector) -> str:
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode()


# --- in ---------------------------------------------------------------------------------------------------------


def identity_of(value: object) -> EncoderIdentity | None:
    """The encoder of a header; None where it says none that can be."""
    try:
        return EncoderIdentity(**value)  # type: ignore[arg-type]
    except TypeError:
        return None


def archived_of(line: object, *, tenant: str, limits: Limits, dimension: int | None) -> Archived:
    """The entry of a line of ``line_of``, for this tenant.

    Args:    dimension: of the vectors that are wanted; None: they are by another encoder, and left out.
    Raises:  InvalidInput, naming every field that a store could not have written.
    """
    if not isinstance(line, dict):
        raise InvalidInput.of("line", "must be a JSON object")
    unknown = sorted(set(line) - _LINE)
    if unknown:
        raise InvalidInput([FieldError(name, "is not a field of an export") for name in unknown])
    memory_id, user_id = clean_id(line.get("id"), "id"), clean_id(line.get("user_id"), "user_id")
    if user_id == "*":
        raise InvalidInput.of("user_id", "* stands for all users and cannot own a memory")

    def memory_of(value: object, field: str) -> Memory:
        return _memory(value, field, memory_id, tenant, user_id, limits)

    memory = None if line.get("memory") is None else memory_of(line["memory"], "memory")
    graves = [memory_of(each, f"graves.{n}") for n, each in enumerate(_list(line.get("graves"), "graves"))]
    if any(grave.state is not MemoryState.DELETED for grave in graves) or (
        memory and memory.state is MemoryState.DELETED
    ):
        raise InvalidInput.of("memory.state", "does not fit: deleted memories are graves, and these are deleted")
    key = line.get("key")
    tokens = line.get("tokens")
    past = [_past_of(each, f"past.{n}", limits, dimension) for n, each in enumerate(_list(line.get("past"), "past"))]
    if memory is not None:
        memory = replace(memory, content_hash=content_hash(as_said(memory, past)))
    return Archived(
        id=memory_id,
        tenant=tenant,
        user_id=user_id,
        memory=memory,
        key=None if key is None else clean_id(key, "key"),
        vector=_vector(line.get("vector"), "vector", dimension),
        tokens=None if tokens is None or dimension is None else _bytes(tokens, "tokens"),
        past=past,
        graves=graves,
    )


def _memory(value: object, field: str, memory_id: str, tenant: str, user_id: str, limits: Limits) -> Memory:
    if not isinstance(value, dict):
        raise InvalidInput.of(field, "must be an object")
    errors: list[FieldError] = []
    values: dict[str, Any] = {}
    for name, given in value.items():
        if name not in _FIELDS:
            errors.append(FieldError(f"{field}.{name}", "is not a field of a memory"))
            continue
        try:
            values[name] = _value(given, _TYPES[name], f"{field}.{name}")
        except InvalidInput as error:
            errors += error.errors
    required = [name for name, each in _FIELDS.items() if each.default is MISSING and each.default_factory is MISSING]
    errors += [FieldError(f"{field}.{name}", "is missing") for name in required if name not in value]
    if errors:
        raise InvalidInput(errors)
    memory = Memory(id=memory_id, tenant=tenant, user_id=user_id, revision=0, content_hash="", **values)
    return _cleaned(memory, field, limits)


def _cleaned(memory: Memory, field: str, limits: Limits) -> Memory:
    errors = [FieldError(f"{field}.{name}", message) for name, message in _contradictions(memory, limits)]
    if errors:
        raise InvalidInput(errors)
    blank = memory.state is MemoryState.DELETED
    changes: dict[str, Any] = {
        "text": clean_text(memory.text, f"{field}.text", max_chars=limits.max_text_chars, allow_blank=blank),
        "metadata": clean_metadata(memory.metadata, f"{field}.metadata", max_bytes=limits.max_metadata_bytes),
        "kind": clean_id(memory.kind, f"{field}.kind"),
    }
    for name in ("title", "speaker"):
        if getattr(memory, name) is not None:
            changes[name] = clean_text(getattr(memory, name), f"{field}.{name}", max_chars=_MOST_CHARS)
    for name in ("agent_id", "session_id", "superseded_by"):
        if getattr(memory, name) is not None:
            changes[name] = clean_id(getattr(memory, name), f"{field}.{name}")
    for name in ("parent_id", "event_id"):
        if getattr(memory.source, name) is not None:
            clean_id(getattr(memory.source, name), f"{field}.source.{name}")
    return replace(memory, **changes)


def _contradictions(memory: Memory, limits: Limits) -> list[tuple[str, str]]:
    found = []
    if memory.bank not in limits.banks:
        found.append(("bank", f"must be one of {', '.join(sorted(limits.banks))}"))
    if memory.importance is not None and not 0 <= memory.importance <= 1:
        found.append(("importance", "must be between 0 and 1"))
    if not 1 <= memory.strength <= 1e6:
        found.append(("strength", "must be at least 1"))
    if memory.stability_days is not None and not 0 < memory.stability_days <= 1e9:
        found.append(("stability_days", "must be above 0"))
    if memory.difficulty is not None and not 1 <= memory.difficulty <= 10:
        found.append(("difficulty", "must be between 1 and 10"))
    if memory.information is not None and not 0 <= memory.information < 1:
        found.append(("information", "must be at least 0 and below 1"))
    if memory.recall_count < 0 or memory.token_count < 0:
        found.append(("recall_count", "must not be negative"))
    if memory.valid_from is not None and memory.valid_to is not None and memory.valid_to < memory.valid_from:
        found.append(("valid_to", "must not be before valid_from"))
    return found


def _past_of(value: object, field: str, limits: Limits, dimension: int | None) -> Past:
    if not isinstance(value, dict) or not set(value) <= _PAST:
        raise InvalidInput.of(field, "is no entry of a history")
    if value.get("bank") not in limits.banks:
        raise InvalidInput.of(f"{field}.bank", f"must be one of {', '.join(sorted(limits.banks))}")
    if value.get("event") not in set(Event):
        raise InvalidInput.of(f"{field}.event", f"must be one of {', '.join(Event)}")
    texts = {
        name: clean_text(value[name], f"{field}.{name}", max_chars=limits.max_text_chars, allow_blank=True)
        for name in ("old_text", "new_text")
        if value.get(name) is not None
    }
    before = value.get("before")
    changes = value.get("changes") or {}
    if not isinstance(changes, dict) or not isinstance(before, dict | None):
        raise InvalidInput.of(field, "has changes or a former memory that are no objects")
    return Past(
        bank=value["bank"],
        at=parse_time(value.get("at"), f"{field}.at"),
        event=Event(value["event"]),
        actor=clean_text(value.get("actor"), f"{field}.actor", max_chars=_MOST_CHARS),
        changes=changes,
        before=before,
        moved=bool(value.get("moved", False)),
        vector=_vector(value.get("vector"), f"{field}.vector", dimension),
        **texts,
    )


def _value(value: object, kind: Any, field: str) -> Any:
    """``value`` as the type of a Memory's field."""
    if isinstance(kind, types.UnionType):
        if value is None:
            return None
        (kind,) = (each for each in typing.get_args(kind) if each is not types.NoneType)
    kind = kind if kind in _READERS else typing.get_origin(kind) or kind
    if kind in _READERS:
        return _READERS[kind](value, field)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if value not in set(kind):
            raise InvalidInput.of(field, f"must be one of {', '.join(kind)}")
        return kind(str(value))
    if not isinstance(value, Mapping):
        raise InvalidInput.of(field, "must be an object")
    return value


def _whole(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise InvalidInput.of(field, "must be a whole number")
    return value


def _number(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput.of(field, "must be a number")
    return float(value)


def _source(value: object, field: str) -> Source:
    hints = typing.get_type_hints(Source)
    if not isinstance(value, dict) or not set(value) <= set(hints):
        raise InvalidInput.of(field, "is no source")
    return Source(**{name: _value(item, hints[name], f"{field}.{name}") for name, item in value.items()})


def _words(value: object, field: str) -> tuple[str, ...]:
    if not all(isinstance(each, str) and each and not each.isspace() for each in _list(value, field)):
        raise InvalidInput.of(field, "must be a list of words")
    return tuple(word for each in _list(value, field) for word in each.split())


def _ended(value: object, field: str) -> tuple[Ended, ...]:
    return tuple(parse_ended(each, f"{field}.{place}") for place, each in enumerate(_list(value, field)))


_READERS: Final[Mapping[Any, Callable[[object, str], Any]]] = {
    str: text_value,
    bool: flag_value,
    int: _whole,
    float: _number,
    datetime: parse_time,
    Source: _source,
    tuple[str, ...]: _words,
    tuple[Ended, ...]: _ended,
}


def _list(value: object, field: str) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidInput.of(field, "must be a list")
    return value


def _bytes(value: object, field: str) -> bytes:
    try:
        return base64.b64decode(text_value(value, field), validate=True)
    except binascii.Error as exc:
        raise InvalidInput.of(field, "is not base64") from exc


def _vector(value: object, field: str, dimension: int | None) -> Vector | None:
    if value is None or dimension is None:
        return None
    raw = _bytes(value, field)
    if len(raw) != 4 * dimension:
        raise InvalidInput.of(field, f"must have {dimension} numbers")
    vector: Vector = np.frombuffer(raw, dtype="<f4")
    norm = float(np.linalg.norm(vector.astype(np.float64)))
    if not (abs(norm - 1) < _UNIT or norm == 0):
        raise InvalidInput.of(field, "must have unit length")
    return vector
