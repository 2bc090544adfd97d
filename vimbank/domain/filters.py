"""Filters over memories: one parser, one meaning, used by every leg and entry point.

``parse`` turns the JSON form into a ``Filter``; ``matches`` is the reference meaning; indexes that keep columns
evaluate ``predicate`` on a column's distinct values, so that they cannot mean anything else.

The JSON form is an object. ``{"field": value}`` asks for equality, ``{"field": [a, b]}`` for one of several,
``{"field": "*"}`` for presence, ``{"field": {"op": operand}}`` for an operator. Several fields or operators in one
object must all hold. ``AND`` and ``OR`` take a list of such objects, ``NOT`` one (or a list: none of them may hold).

A field is one of ``ATTRIBUTES``; everything else is a metadata key, which may also be written ``metadata.<key>``.
Dots reach into nested objects, unless the key with its dots is there.

Meaning of the operators:

- Types are strict: 1 is neither "1" nor true; integers and floats compare by value.
- ``eq``: the value equals the operand; a list also where one of its elements does. ``in``: eq for one of several.
- ``contains``: a list has the element; a string has the substring, case and all.
- ``gt gte lt lte``: between two numbers, two strings (by code point) or two times, else false.
- ``exists``: whether there is a value. null is the same as no value.
- Without a value ``eq``, ``in``, ``contains`` and ranges are false. ``ne`` and ``nin`` are exactly NOT ``eq`` and
  NOT ``in``, so without a value they are true.

Time attributes take whatever ``times.parse_time`` reads.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from vimbank.domain.times import format_time, parse_time, to_seconds
from vimbank.errors import InvalidInput

if TYPE_CHECKING:  # models imports this module
    from vimbank.domain.models import Memory

__all__ = [
    "ATTRIBUTES",
    "MAX_CONDITIONS",
    "MAX_DEPTH",
    "METADATA_PREFIX",
    "And",
    "AttributeType",
    "Condition",
    "Filter",
    "Not",
    "Operator",
    "Or",
    "Predicate",
    "identity",
    "matches",
    "metadata_value",
    "parse",
    "predicate",
    "to_json",
]

Operator: TypeAlias = Literal["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "exists"]
AttributeType: TypeAlias = Literal["text", "number", "boolean", "time"]
Predicate: TypeAlias = Callable[[object], bool]
"""A test of one value; None stands for no value."""

MAX_DEPTH: Final = 16
MAX_CONDITIONS: Final = 256
METADATA_PREFIX: Final = "metadata."

ATTRIBUTES: Final[Mapping[str, AttributeType]] = {
    "id": "text",
    "kind": "text",
    "session_id": "text",
    "agent_id": "text",
    "speaker": "text",
    "title": "text",
    "state": "text",
    "sample": "text",
    "superseded_by": "text",
    "parent_id": "text",
    "event_id": "text",
    "importance": "number",
    "information": "number",
    "recall_count": "number",
    "position": "number",
    "pinned": "boolean",
    "created_at": "time",
    "updated_at": "time",
    "event_at": "time",
    "valid_from": "time",
    "valid_to": "time",
    "expires_at": "time",
    "last_recalled_at": "time",
}
"""The memory's own fields that a filter may name, with the type of their operands."""

_OPERATORS: Final = frozenset(get_args(Operator))
_RANGES: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_SOURCE_FIELDS: Final = frozenset({"parent_id", "position", "event_id"})
# Near misses of AND, OR and NOT, in any case and with a leading $: as metadata keys they would match nothing.
_LOOKALIKES: Final = frozenset({"and", "or", "not", "nor", "nand", "xor"})
_TYPE_WORDS: Final[Mapping[AttributeType, str]] = {
    "text": "a string",
    "number": "a finite number",
    "boolean": "true or false",
    "time": "a time",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """``field op value``; ``field`` is an attribute of the memory or ``metadata.<key>``.

    ``value`` is a scalar, a tuple of scalars (``in``, ``nin``, and ``eq``, ``ne`` of a whole list), or for time
    attributes an aware datetime or a tuple of them.
    """

    field: str
    op: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; without parts: true."""

    parts: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds; without parts: false."""

    parts: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Filter"


Filter: TypeAlias = Condition | And | Or | Not


# --- meaning ----------------------------------------------------------------------------------------------------


def matches(filter: Filter, memory: "Memory") -> bool:
    """Whether the memory satisfies the filter: the reference meaning that every index and store must share.

    Raises:  InvalidInput: a condition names neither an attribute nor ``metadata.<key>``.
    """
    if isinstance(filter, And):
        return all(matches(part, memory) for part in filter.parts)
    if isinstance(filter, Or):
        return any(matches(part, memory) for part in filter.parts)
    if isinstance(filter, Not):
        return not matches(filter.part, memory)
    return predicate(filter)(_value(filter.field, memory))


def predicate(condition: Condition) -> Predicate:
    """The condition as a test of one value of its field; None is no value. Times are given as datetimes."""
    op, operand = condition.op, condition.value
    if ATTRIBUTES.get(condition.field) == "time" and op != "exists":
        return _time_predicate(condition)
    if op == "exists":
        return lambda value: (value is not None) is operand
    if op == "contains":
        return _containing(operand)
    if op in _RANGES:
        return _range(_RANGES[op], operand)
    positive = _one_of(operand if op in ("in", "nin") else (operand,))
    return positive if op in ("eq", "in") else lambda value: not positive(value)


def metadata_value(metadata: Mapping[str, Any], path: str) -> object:
    """The value at a dotted path, None where there is none. A key that holds the dots itself goes first."""
    if path in metadata:
        return cast(object, metadata[path])
    head, dot, rest = path.partition(".")
    inner = metadata.get(head) if dot else None
    return metadata_value(inner, rest) if isinstance(inner, Mapping) else None


def _value(field: str, memory: "Memory") -> object:
    if field.startswith(METADATA_PREFIX):
        return metadata_value(memory.metadata, field.removeprefix(METADATA_PREFIX))
    if field not in ATTRIBUTES:
        raise InvalidInput.of(field, "is neither an attribute of a memory nor metadata.<key>")
    return cast(object, getattr(memory.source if field in _SOURCE_FIELDS else memory, field))


def identity(value: object) -> Hashable:
    """What two values share exactly when they are equal here: Python's == would take True for 1.

    Objects equal no operand, but each has an identity of its own content; None is the identity of no value.
    """
    if isinstance(value, str):
        return value  # the most frequent by far, and no tuple equals it
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, list | tuple):
        return ("list", tuple(identity(element) for element in value))
    if isinstance(value, Mapping):
        return ("object", tuple((key, identity(inner)) for key, inner in value.items()))
    return None


def _one_of(operands: Sequence[object]) -> Predicate:
    wanted = frozenset(identity(operand) for operand in operands) - {None}

    def test(value: object) -> bool:
        if identity(value) in wanted:
            return True
        return isinstance(value, list | tuple) and any(identity(element) in wanted for element in value)

    return test


def _containing(operand: object) -> Predicate:
    element = _one_of((operand,))

    def test(value: object) -> bool:
        if isinstance(value, str):
            return isinstance(operand, str) and operand in value
        return isinstance(value, list | tuple) and any(map(element, value))

    return test


def _range(compare: Callable[[Any, Any], bool], operand: object) -> Predicate:
    kind = _scalar_type(operand)
    if kind not in ("number", "text"):
        return lambda _: False
    return lambda value: _scalar_type(value) == kind and compare(value, operand)


def _time_predicate(condition: Condition) -> Predicate:
    """Times are tested as epoch seconds, as the columns hold them: exact to the microsecond until the year 2106."""
    field, value = condition.field, condition.value
    several = isinstance(value, list | tuple)
    operands = tuple(to_seconds(parse_time(one, field)) for one in (value if several else (value,)))
    test = predicate(Condition(f"{METADATA_PREFIX}{field}", condition.op, operands if several else operands[0]))
    return lambda moment: test(to_seconds(moment) if isinstance(moment, datetime) else None)


def _scalar_type(value: object) -> AttributeType | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else None


# --- the JSON form ----------------------------------------------------------------------------------------------


def parse(value: object, *, field: str = "filter") -> Filter:
    """The filter of its JSON form (see the module's docstring); ``{}`` holds for every memory.

    Args:    value: what a JSON parser gives.  field: the place that errors start from.
    Raises:  InvalidInput: names the dotted place, for example ``filter.age.gtt`` (case 52): an unknown operator,
                 an operand of a wrong type, an empty or unknown combination, more than 16 levels or 256 conditions.
    """
    if value == {} and isinstance(value, Mapping):
        return And(())
    return _Parser().parse(value, field, 1)


def to_json(filter: Filter) -> dict[str, Any]:
    """The JSON form; ``parse`` reads it back as an equal filter."""
    if isinstance(filter, And):
        return {"AND": [to_json(part) for part in filter.parts]} if filter.parts else {}
    if isinstance(filter, Or):
        return {"OR": [to_json(part) for part in filter.parts]}
    if isinstance(filter, Not):
        return {"NOT": to_json(filter.part)}
    return {filter.field: {filter.op: _plain(filter.value)}}


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    return format_time(value) if isinstance(value, datetime) else value


class _Parser:
    """One reading of one filter: it counts the conditions."""

    def __init__(self) -> None:
        self._conditions = 0

    def parse(self, value: object, place: str, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise InvalidInput.of(place, f"is nested deeper than {MAX_DEPTH} levels")
        if not isinstance(value, Mapping):
            raise InvalidInput.of(place, "must be an object")
        if not value:
            raise InvalidInput.of(place, "must not be empty")
        return _joined([part for key, inner in value.items() for part in self._entry(key, inner, place, depth)])

    def _entry(self, key: object, value: object, place: str, depth: int) -> list[Filter]:
        if not isinstance(key, str) or not key:
            raise InvalidInput.of(place, "must have non-empty strings as keys")
        inner = f"{place}.{key}"
        if key == "AND":
            return [And(self._list(value, inner, depth))]
        if key == "OR":
            return [Or(self._list(value, inner, depth))]
        if key == "NOT":
            return [Not(self._negated(value, inner, depth))]
        return list(self._conditions_of(key, value, inner))

    def _list(self, value: object, place: str, depth: int) -> tuple[Filter, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInput.of(place, "must be a non-empty list of objects")
        return tuple(self.parse(part, f"{place}.{index}", depth + 1) for index, part in enumerate(value))

    def _negated(self, value: object, place: str, depth: int) -> Filter:
        if isinstance(value, Mapping):
            return self.parse(value, place, depth + 1)
        return Or(self._list(value, place, depth))

    def _conditions_of(self, key: str, value: object, place: str) -> list[Condition]:
        field = _field(key, place)
        if isinstance(value, Mapping):
            if not value:
                raise InvalidInput.of(place, "must name an operator")
            found = [_condition(field, op, operand, f"{place}.{op}") for op, operand in value.items()]
        elif value == "*":
            found = [Condition(field, "exists", True)]
        else:
            found = [_condition(field, "in" if isinstance(value, list | tuple) else "eq", value, place)]
        self._conditions += len(found)
        if self._conditions > MAX_CONDITIONS:
            raise InvalidInput.of(place, f"is one of more than {MAX_CONDITIONS} conditions")
        return found


def _joined(parts: Sequence[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _field(key: str, place: str) -> str:
    if key in ATTRIBUTES:
        return key
    if key.startswith("$") or key.casefold() in _LOOKALIKES:
        raise InvalidInput.of(place, "is not known; combine with AND, OR, NOT, or write metadata.<key>")
    if key in ("metadata", METADATA_PREFIX):
        raise InvalidInput.of(place, "must name a key: metadata.<key>")
    return key if key.startswith(METADATA_PREFIX) else METADATA_PREFIX + key


def _condition(field: str, op: object, operand: object, place: str) -> Condition:
    if op not in _OPERATORS:
        raise InvalidInput.of(place, f"is not an operator; known are {', '.join(get_args(Operator))}")
    known = cast(Operator, op)
    kind = ATTRIBUTES.get(field)
    if known == "exists":
        if not isinstance(operand, bool):
            raise InvalidInput.of(place, "must be true or false")
        return Condition(field, known, operand)
    if kind is not None and not _applies(known, kind):
        raise InvalidInput.of(place, f"does not apply to a field that is {_TYPE_WORDS[kind]}")
    if isinstance(operand, list | tuple):
        return Condition(field, known, _list_operand(known, kind, operand, place))
    if known in ("in", "nin"):
        raise InvalidInput.of(place, "must be a list")
    scalar = _scalar(kind, operand, place)
    if known in _RANGES and isinstance(scalar, bool):
        raise InvalidInput.of(place, "must be a number or a string")
    return Condition(field, known, scalar)


def _applies(op: Operator, kind: AttributeType) -> bool:
    return kind != "boolean" if op in _RANGES else (op != "contains" or kind == "text")


def _list_operand(op: Operator, kind: AttributeType | None, operand: Sequence[object], place: str) -> tuple[Any, ...]:
    whole_list = op in ("eq", "ne") and kind is None
    if op not in ("in", "nin") and not whole_list:
        raise InvalidInput.of(place, "must be a single value")
    return tuple(_scalar(kind, element, f"{place}.{index}") for index, element in enumerate(operand))


def _scalar(kind: AttributeType | None, value: object, place: str) -> object:
    """A single operand, checked against the attribute's type; metadata (None) takes any of the three JSON scalars."""
    if value is None:
        raise InvalidInput.of(place, 'must not be null; {"exists": false} asks for no value')
    if kind == "time":
        return parse_time(value, place)
    found = _scalar_type(value)
    if found is None or (kind is not None and found != kind):
        raise InvalidInput.of(place, f"must be {_TYPE_WORDS[kind] if kind else 'a string, a number, true or false'}")
    if found == "number" and not _is_finite(cast(float, value)):
        raise InvalidInput.of(place, "must be a finite number")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the floats that columns hold
        return False
