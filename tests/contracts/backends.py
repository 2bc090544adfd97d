"""The stores under contract: one table, from which each test module takes what it can drive."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.contracts.postgres import empty_store
from vimbank.store.in_memory import InMemoryStore
from vimbank.store.sql import SqlStore

__all__ = ["EVERY", "SHARED", "Store", "new_url", "opened"]

Store = SqlStore | InMemoryStore

SHARED: Final = ("sqlite", pytest.param("postgresql", marks=pytest.mark.services))
"""Those that several processes may open."""

EVERY: Final = ("in_memory", *SHARED)


def new_url(backend: str, folder: Path) -> str:
    """The URL of an empty store: a file in ``folder``, or the process's own database."""
    if backend == "postgresql":
        return empty_store()
    shutil.copy(_empty_file(), folder / "store.db")
    return f"sqlite:///{folder / 'store.db'}"


@contextmanager
def opened(backend: str, folder: Path) -> Iterator[Store]:
    """An empty store, closed in the end."""
    if backend == "in_memory":
        yield InMemoryStore()
        return
    store = SqlStore.open(new_url(backend, folder))
    try:
        yield store
    finally:
        store.close()


@cache
def _empty_file() -> Path:
    folder = tempfile.mkdtemp(prefix="vimbank-empty-")
    atexit.register(shutil.rmtree, folder)
    path = Path(folder) / "empty.db"
    SqlStore.open(f"sqlite:///{path}").close()
    return path
