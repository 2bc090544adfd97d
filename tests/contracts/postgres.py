"""Databases of the tests' own on the PostgreSQL server that the environment names."""

import atexit
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from sqlalchemy import URL, Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from tests.services import service_url
from vimbank.store.schema import migrate_store
from vimbank.store.tables import metadata

__all__ = ["empty_store", "new_database"]

_NUMBERS = itertools.count()
_ZEROS = ("revision", "generation", "number", "recall", "folded", "encoder", "compacted")


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of a new database without any table; it is dropped in the end. Skips where no server is named."""
    server = make_url(service_url("POSTGRES_URL"))
    url = _create(server)
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        _drop(server, url)


def empty_store() -> str:
    """The URL of a store of the newest schema that holds nothing: one database a process, emptied at each call."""
    url = _shared()
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        # On tables of a few rows that is quicker than TRUNCATE, which makes new files.
        for table in reversed(metadata.sorted_tables):
            if table.name not in ("counter", "store"):
                connection.execute(table.delete())
        connection.execute(metadata.tables["counter"].update().values(dict.fromkeys(_ZEROS, 0)))
    return url


@cache
def _shared() -> str:
    server = make_url(service_url("POSTGRES_URL"))
    url = _create(server)
    atexit.register(_drop, server, url)
    text_url = url.render_as_string(hide_password=False)
    migrate_store(text_url)
    return text_url


def _create(server: URL) -> URL:
    name = f"vimbank_test_{os.getpid()}_{next(_NUMBERS)}"
    with _administrator(server).connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"))
    return server.set(database=name)


def _drop(server: URL, url: URL) -> None:
    with _administrator(server).connect() as connection:
        connection.execute(text(f"DROP DATABASE {url.database} WITH (FORCE)"))


def _administrator(server: URL) -> Engine:
    return create_engine(server, poolclass=NullPool, isolation_level="AUTOCOMMIT")
