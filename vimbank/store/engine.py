"""What depends on the database engine, behind one set of names: ``sqlite`` and ``postgresql`` tell how."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError
from vimbank.store import postgresql, sqlite
from vimbank.store.pipelined import PipelinedCursor

__all__ = [
    "WRITING",
    "cursor_of",
    "disk_bytes",
    "integrity",
    "is_lost",
    "let_go",
    "lock_schema",
    "open_engine",
    "parsed_url",
    "streaming",
    "translated",
    "writing_cursor_of",
]

WRITING: Final = {"vimbank_writing": True}
"""Execution options of a connection whose transactions write: they take the write lock at their beginning."""


def parsed_url(url: str) -> URL:
    """The URL of a store on SQLite or PostgreSQL. Raises ConfigError for any other."""
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise ConfigError(f"store.url: {exc}") from exc
    if parsed.drivername in postgresql.NAMES:
        return parsed.set(drivername=postgresql.DRIVER)
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise ConfigError(f"store.url: {parsed.drivername} is unknown: sqlite:///... or {postgresql.DRIVER}://... is")
    return parsed


def open_engine(url: str, *, busy_timeout_s: float) -> Engine:
    """An engine without a pool: whoever connects keeps the connection. Raises ConfigError for an unusable URL."""
    parsed = parsed_url(url)
    make = sqlite.make_engine if parsed.get_backend_name() == "sqlite" else postgresql.make_engine
    try:
        return make(parsed, busy_timeout_s=busy_timeout_s)
    except (ArgumentError, NoSuchModuleError) as exc:
        raise ConfigError(f"store.url: {exc}") from exc
    except ImportError as exc:
        raise ConfigError(f"store.url: {exc}: install vimbank[scale]") from exc


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turns the driver's errors into BackendUnavailable (try again) or BackendRejected (do not)."""
    driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error
    try:
        yield
    except DBAPIError as exc:
        raise _translate(exc.orig or exc, engine) from exc
    except driver_error as exc:
        raise _translate(exc, engine) from exc


def _translate(error: BaseException, engine: Engine) -> BackendUnavailable | BackendRejected:
    if engine.dialect.name == "sqlite":
        return sqlite.translate(error)
    return postgresql.translate(error, engine.url)


def is_lost(error: BaseException, engine: Engine) -> bool:
    """Whether the connection is gone with this error, and a new one may do better."""
    if isinstance(error, DBAPIError):
        error = error.orig or error
    return engine.dialect.name != "sqlite" and postgresql.is_lost(error)


def cursor_of(connection: Connection) -> Any:
    """A driver's cursor, the quickest that there is."""
    if connection.dialect.name == "sqlite":
        return connection.connection.cursor()
    # In binary form vectors are not spelt out as hexadecimal digits.
    return connection.connection.cursor(binary=True)


def writing_cursor_of(connection: Connection) -> Any:
    """A cursor for a writing transaction, closed before the commit: until then, errors of its writes may come late."""
    if connection.dialect.name == "sqlite":
        return cursor_of(connection)
    return PipelinedCursor(connection.connection.driver_connection)


def let_go(connection: Connection) -> None:
    """Undo what a file's connection has begun, before it is closed."""
    if connection.dialect.name == "sqlite" and not connection.invalidated:
        sqlite.undo(connection)


def streaming(connection: Connection) -> AbstractContextManager[Any]:
    """A driver's cursor that fetches rows as they are asked for; one at a time, inside a transaction."""
    if connection.dialect.name == "sqlite":
        return nullcontext(connection.connection.cursor())
    return closing(connection.connection.cursor(name="vimbank", binary=True))


def lock_schema(connection: Connection) -> None:
    """Let one process at a time look at the schema and change it, until its writing transaction ends."""
    if connection.dialect.name != "sqlite":  # where BEGIN IMMEDIATE has done so
        postgresql.lock_schema(connection)


def integrity(connection: Connection) -> list[str]:
    """What the engine finds wrong with its data; [] when they are sound."""
    if connection.dialect.name == "sqlite":
        return sqlite.integrity(connection)
    return postgresql.integrity(connection)


def disk_bytes(connection: Connection) -> int:
    """Bytes that the store takes on the disk, a file's log included."""
    if connection.dialect.name == "sqlite":
        return sqlite.disk_bytes(connection)
    return postgresql.disk_bytes(connection)
