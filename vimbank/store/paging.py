"""Listings: what a cursor is, and which conditions of a listing the tables can answer."""

import base64
import binascii
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement

from vimbank.domain.models import ListQuery
from vimbank.errors import InvalidInput
from vimbank.store.tables import memories

__all__ = ["conditions", "cursor_after", "number_of"]


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
