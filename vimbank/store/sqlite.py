"""SQLite: its pragmas, its transactions, its errors, its size and soundness."""

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError

__all__ = ["disk_bytes", "integrity", "make_engine", "translate", "undo"]

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


def make_engine(url: URL, *, busy_timeout_s: float) -> Engine:
    """An engine on a file. Raises ConfigError for a database in memory."""
    if url.database in (None, "", ":memory:"):
        raise ConfigError("store.url: a SQLite store needs a file; for a store in memory use InMemoryStore")
    arguments = {"timeout": busy_timeout_s, "check_same_thread": False}
    engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
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


def undo(connection: Connection) -> None:
    """Roll back: a file that is only closed stays locked for as long as somebody holds a statement on it.

    That may be the traceback of the very error that ended the transaction, and it is that error which is told.
    """
    with suppress(sqlite3.Error):
        connection.connection.rollback()


def translate(error: BaseException) -> BackendUnavailable | BackendRejected:
    """The driver's error as one of ours."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF  # the rest tells variants apart
    if primary in _UNAVAILABLE:
        return BackendUnavailable("sqlite", f"{_UNAVAILABLE[primary]} ({error})")
    if primary in _REJECTED:
        return BackendRejected("sqlite", f"{_REJECTED[primary]} ({error})")
    return BackendRejected("sqlite", str(error))


def integrity(connection: Connection) -> list[str]:
    """What SQLite finds wrong with the file, the entries of its indexes included."""
    return [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check") if row[0] != "ok"]


def disk_bytes(connection: Connection) -> int:
    """Bytes of the file and its log."""
    database = connection.engine.url.database or ""
    files = (Path(database + suffix) for suffix in ("", "-wal", "-shm"))
    return sum(file.stat().st_size for file in files if file.exists())
