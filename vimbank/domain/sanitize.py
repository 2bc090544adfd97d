"""What callers send, made safe to store, index and send back, or refused by the field's name (cases 80, 81, 114)."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from vimbank.errors import InvalidInput

__all__ = ["MAX_ID_CHARS", "MAX_METADATA_DEPTH", "clean_id", "clean_metadata", "clean_text"]

MAX_ID_CHARS: Final = 256
MAX_METADATA_DEPTH: Final = 8
"""Objects and lists inside each other, the metadata itself counted."""

_INT64: Final = range(-(2**63), 2**63)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ID_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Anything but space and the characters that no font draws: zero widths, joiners, directions, fillers, selectors.
_VISIBLE: Final = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)


def clean_text(value: object, field: str, *, max_chars: int, allow_blank: bool = False) -> str:
    """``value`` without control characters but tab and line ends, lone surrogates replaced by U+FFFD (case 114).

    Nothing else is changed: spaces and normal form stay as they were given.
    Raises InvalidInput, naming ``field``: no string; nothing to see in it, unless ``allow_blank`` (cases 80, 81);
    longer than ``max_chars`` characters.
    """
    if not isinstance(value, str):
        raise InvalidInput.of(field, f"must be text, not {type(value).__name__}")
    text = _CONTROL.sub("", _without_surrogates(value))
    if not allow_blank and not _VISIBLE.search(text):
        raise InvalidInput.of(field, "must not be blank")
    if len(text) > max_chars:
        raise InvalidInput.of(field, f"has {len(text)} characters, at most {max_chars} are allowed")
    return text


def clean_id(value: object, field: str) -> str:
    """``value`` as it is, if it can name something in every entry point, URL paths included.

    Raises InvalidInput, naming ``field``: no string, blank, above 256 characters, control characters or lone
    surrogates in it, a path segment ``.`` or ``..``, an end in ``/history``, which is a route of its own.
    """
    if not isinstance(value, str):
        raise InvalidInput.of(field, f"must be text, not {type(value).__name__}")
    if len(value) > MAX_ID_CHARS:
        raise InvalidInput.of(field, f"has {len(value)} characters, at most {MAX_ID_CHARS} are allowed")
    if not _VISIBLE.search(value):
        raise InvalidInput.of(field, "must not be blank")
    if _ID_CONTROL.search(value) or _SURROGATE.search(value):
        raise InvalidInput.of(field, "must not contain control characters or lone surrogates")
    if not {".", ".."}.isdisjoint(value.split("/")):
        raise InvalidInput.of(field, "must not be or contain the path segments . and ..")
    if value.endswith("/history"):
        raise InvalidInput.of(field, "must not end in /history")
    return value


def clean_metadata(value: object, field: str, max_bytes: int) -> dict[str, Any]:
    """``value`` as a JSON object of our own: a new dict, tuples become lists, strings cleaned as by ``clean_text``.

    Raises InvalidInput, naming the dotted field (``metadata.tags.2``): no mapping; a key that is no string, or blank;
    a value that JSON has not: NaN, infinity, other types; an integer beyond 64 bits; more than 8 levels; more than
    ``max_bytes`` bytes as compact UTF-8 JSON.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput.of(field, f"must be an object, not {type(value).__name__}")
    cleaned = _clean_object(value, field, depth=1, max_chars=max_bytes)
    size = len(json.dumps(cleaned, ensure_ascii=False, separators=(",", ":")).encode())
    if size > max_bytes:
        raise InvalidInput.of(field, f"has {size} bytes as JSON, at most {max_bytes} are allowed")
    return cleaned


def _without_surrogates(text: str) -> str:
    if not _SURROGATE.search(text):
        return text
    # By way of UTF-16, two halves that stand together become the character they are.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _clean_object(value: Mapping[Any, Any], field: str, *, depth: int, max_chars: int) -> dict[str, Any]:
    cleaned: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidInput.of(field, f"has a key that is no text: {key!r}")
        name = clean_text(key, f"{field} (a key)", max_chars=MAX_ID_CHARS)
        if name in cleaned:
            raise InvalidInput.of(f"{field}.{name}", "is given twice")
        cleaned[name] = _clean_value(item, f"{field}.{name}", depth=depth + 1, max_chars=max_chars)
    return cleaned


def _clean_value(value: object, field: str, *, depth: int, max_chars: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value, field, max_chars=max_chars, allow_blank=True)
    if isinstance(value, int):
        if value not in _INT64:
            raise InvalidInput.of(field, "must fit in 64 bits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput.of(field, "must be a finite number")
        return value
    if not isinstance(value, Mapping | list | tuple):
        raise InvalidInput.of(field, f"must be a JSON value, not {type(value).__name__}")
    if depth > MAX_METADATA_DEPTH:
        raise InvalidInput.of(field, f"is nested more than {MAX_METADATA_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return _clean_object(value, field, depth=depth, max_chars=max_chars)
    return [
        _clean_value(item, f"{field}.{position}", depth=depth + 1, max_chars=max_chars)
        for position, item in enumerate(value)
    ]
