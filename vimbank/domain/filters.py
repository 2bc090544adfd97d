"""Filters over memories: one parser, one meaning, used by every leg and entry point.

``parse`` turns the JSON form into a ``Filter``; ``matches`` is the reference meaning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["And", "Condition", "Filter", "Not", "Operator", "Or"]

Operator: TypeAlias = Literal["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "exists"]


@dataclass(frozen=True, slots=True)
class Condition:
    """``field op value``; ``field`` is an attribute of the memory or ``metadata.<key>``."""

    field: str
    op: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class And:
    parts: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class Or:
    parts: Sequence["Filter"]


@dataclass(frozen=True, slots=True)
class Not:
    part: "Filter"


Filter: TypeAlias = Condition | And | Or | Not
