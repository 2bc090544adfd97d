"""Which request the current thread or task is working for; threads of a pool inherit it with their context."""

import re
import uuid
from contextvars import ContextVar
from typing import Final

__all__ = ["REQUEST_ID", "new_request_id", "usable_request_id"]

REQUEST_ID: Final[ContextVar[str | None]] = ContextVar("vimbank_request_id", default=None)
"""The id of the request being served, None outside of one."""

# A caller's id goes into log lines and headers as it is, so nothing that could forge either gets through.
_USABLE: Final = re.compile(r"[A-Za-z0-9._~:/+=-]{1,128}", re.ASCII)


def new_request_id() -> str:
    """A fresh id: 32 hexadecimal digits."""
    return uuid.uuid4().hex


def usable_request_id(given: str) -> str | None:
    """The caller's id, if it can safely be logged and sent back; else None."""
    return given if _USABLE.fullmatch(given) else None
