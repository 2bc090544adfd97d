"""What depends on the database engine: connections, pragmas, size and soundness, and the translation of its errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError

__all__ = ["WRITING", "disk_bytes", "integrity", "open_engine", "translated"]

WRITING: Final = {"vimbank_writing": True}
"""Execution options of a connection whose transactions write: they take the write lock at their beginning."""

_PRAGMAS: Final = (
    "PRAGMA synchronous=FULL",  # a commit is on the disk before it is acknowledged
    "PRAGMA foreign_keys=ON",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-16384",  # KiB a connection
    "PRAGMA mmap_size=268435456",
)
_UNAVAILABLE: Final = {
    sqlite3.SQLITE_BUSY: "locked by another writer for longer than the busy timeout",
    sqlite3.SQLITE_LOCKED: "locked by another writer",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_IOERR: "reading or writing failed",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_NOMEM: "out of memory",
    sqlite3.SQLITE_PERM: "access denied",
}
_REJECTED: Final = {
    sqlite3.SQLITE_CORRUPT: "the file is damaged: restore it from a backup; it has not been changed",
    sqlite3.SQLITE_NOTADB: "the file is no database: another file stands in its place; it has not been changed",
}


def open_engine(url: str, *, busy_timeout_s: float) -> Engine:
    """An engine without a pool: whoever connects keeps the connection. Raises ConfigError for an unusable URL."""
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if backend != "sqlite":
            return create_engine(parsed, poolclass=NullPool)
        if parsed.database in (None, "", ":memory:"):
            raise ConfigError("store.url: a SQLite store needs a file; for a store in memory use InMemoryStore")
        arguments = {"timeout": busy_timeout_s, "check_same_thread": False}
        engine = create_engine(parsed, poolclass=NullPool, connect_args=arguments)
    except (ArgumentError, NoSuchModuleError, ImportError) as exc:
        raise ConfigError(f"store.url: {exc}") from exc
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where this module says so, not where the driver guesses
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode=WAL")
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get("vimbank_writing", False)
    # A transaction that reads first and writes later could find its snapshot outdated: writers lock at once.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


@contextmanager
def translated() -> Iterator[None]:
    """Turns the driver's errors into BackendUnavailable (try again) or BackendRejected (do not)."""
    try:
        yield
    except DBAPIError as exc:
        raise _translate(exc.orig or exc) from exc
    except sqlite3.Error as exc:
        raise _translate(exc) from exc


def _translate(error: BaseException) -> BackendUnavailable | BackendRejected:
    if not isinstance(error, sqlite3.Error):
        return BackendRejected("database", str(error))
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF  # the rest tells variants apart
    if primary in _UNAVAILABLE:
        return BackendUnavailable("sqlite", f"{_UNAVAILABLE[primary]} ({error})")
    if primary in _REJECTED:
        return BackendRejected("sqlite", f"{_REJECTED[primary]} ({error})")
    return BackendRejected("sqlite", str(error))


def integrity(connection: Connection) -> list[str]:
    """What the engine finds wrong with its file; [] when it is sound."""
    if connection.dialect.name != "sqlite":
        return []
    return [row[0] for row in connection.exec_driver_sql("PRAGMA quick_check") if row[0] != "ok"]


def disk_bytes(connection: Connection) -> int:
    """Bytes that the database takes on the disk, its log included."""
    if connection.dialect.name != "sqlite":
        return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
    database = connection.engine.url.database or ""
    files = (Path(database + suffix) for suffix in ("", "-wal", "-shm"))
    return sum(file.stat().st_size for file in files if file.exists())
