"""Listings: what a cursor is, and which conditions of a listing the tables can answer."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement

from vimbank.domain.filters import matches
from vimbank.domain.models import ListQuery, Memory, MemoryState, Page
from vimbank.errors import InvalidInput
from vimbank.store.tables import memories

__all__ = ["conditions", "cursor_after", "fits", "number_of", "page_of"]


def cursor_after(number: int) -> str:
    """The opaque cursor of what follows memory ``number``."""
    return base64.urlsafe_b64encode(f"n{number}".encode()).decode().rstrip("=")


def number_of(cursor: str | None) -> int:
    """The number a cursor stands for; 0 for None. Raises InvalidInput for what ``cursor_after`` did not make."""
    if cursor is None:
        return 0
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        text = ""
    digits = text[1:]
    if not (text[:1] == "n" and digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise InvalidInput.of("cursor", "is not one that a listing returned")
    return int(digits)


def conditions(query: ListQuery) -> Iterable[ColumnElement[bool]]:
    """All of a listing but its filter and cursor."""
    columns = memories.c
    equal: tuple[tuple[ColumnElement[Any], str | None], ...] = (
        (columns.tenant, query.tenant),
        (columns.user_id, query.user_id),
        (columns.bank, query.bank),
        (columns.agent_id, query.agent_id),
        (columns.session_id, query.session_id),
        (columns.kind, query.kind),
        (columns.parent_id, query.parent_id),
    )
    yield from (column == value for column, value in equal if value is not None)
    yield columns.state != "deleted" if query.state is None else columns.state == query.state.value


def fits(query: ListQuery, memory: Memory) -> bool:
    """Whether a listing holds a memory, its cursor left out: ``conditions`` and the filter in Python."""
    names = ("user_id", "bank", "agent_id", "session_id", "kind")
    return (
        memory.tenant == query.tenant
        and all(getattr(query, name) in (None, getattr(memory, name)) for name in names)
        and query.parent_id in (None, memory.source.parent_id)
        and (memory.state is not MemoryState.DELETED if query.state is None else memory.state is query.state)
        and (query.filter is None or matches(query.filter, memory))
    )


def page_of(query: ListQuery, found: Sequence[Memory]) -> Page:
    """The page of a listing of all of these, which are sorted by number."""
    after = number_of(query.cursor)
    rest = [memory for memory in found if memory.number > after]
    items = rest[: query.limit]
    return Page(items, len(found), cursor_after(items[-1].number) if len(rest) > query.limit else None)
