"""PostgreSQL through psycopg 3: its sessions, its transactions, its errors, its size and soundness.

psycopg is loaded by SQLAlchemy when an engine is made; nothing here imports it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError
from vimbank.store.tables import counter, history, memories, metadata

__all__ = ["DRIVER", "NAMES", "disk_bytes", "integrity", "is_lost", "lock_schema", "make_engine", "translate"]

DRIVER: Final = "postgresql+psycopg"
NAMES: Final = ("postgresql", "postgres", DRIVER)
"""What a URL may begin with."""

_CONNECT: Final[Mapping[str, Any]] = {
    "connect_timeout": 10,  # seconds
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # ms: a machine that vanished is noticed within a minute, also amid a statement
    "application_name": "vimbank",
}
_STATEMENT_TIMEOUT_MS: Final = 600_000  # the longest are counts and copies of everything
_HUNG_WRITER_MS: Final = 60_000  # a process that stops amid a write must not lock all others out for ever
_SCHEMA_LOCK: Final = 0x56494D42  # "VIMB": any number that other programs on the database do not use

_SESSION: Final = """
    SELECT set_config('lock_timeout', '{lock}', false),
           set_config('statement_timeout', CASE current_setting('statement_timeout')
                      WHEN '0' THEN '{statement}' ELSE current_setting('statement_timeout') END, false),
           set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                      WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
"""
"""A commit is on the disk before it is acknowledged, whatever the server's default; its stricter ones stay."""

_UNAVAILABLE: Final[Mapping[str, str]] = {
    "57P01": "the server is shutting down",
    "57P02": "the server crashed and is recovering",
    "57P03": "the server is starting or shutting down",
    "57014": "the statement took longer than the statement timeout",
    "53100": "the disk is full",
    "53200": "out of memory",
    "53300": "too many connections",
    "55P03": "locked by another writer for longer than the busy timeout",
    "40001": "another transaction was quicker",
    "40P01": "deadlock",
    "25006": "the server or the database is read-only",
    "25P03": "the writer stood still for too long and its transaction was ended",
    "08": "the connection was lost",
    "53": "the server lacks resources",
    "58": "the server could not read or write its files",
}
"""By SQLSTATE, else by its first two characters (PostgreSQL manual, appendix A)."""

_REJECTED: Final[Mapping[str, str]] = {
    "XX001": "the database is damaged: restore it from a backup",
    "XX002": "an index is damaged: REINDEX the database",
    "42501": "the user lacks a privilege",
}
_LOST: Final = ("08", "57P01", "57P02", "57P03", "25P03")
_LOST_CLASSES: Final = ("OperationalError", "ConnectionTimeout")


def make_engine(url: URL, *, busy_timeout_s: float) -> Engine:
    """An engine whose sessions wait ``busy_timeout_s`` for a lock. What the URL's query says goes before our own."""
    arguments = {name: value for name, value in _CONNECT.items() if name not in url.query}
    engine = create_engine(
        url.set(drivername=DRIVER),
        poolclass=NullPool,
        # Transactions begin where ``_begin`` says so, not with the first statement.
        connect_args=arguments | {"autocommit": True, "client_encoding": "utf8"},
        hide_parameters=True,
    )

    def set_up(connection: Any, _record: Any) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ConfigError(f"store.url: the database's encoding is {encoding}: make one with ENCODING 'UTF8'")
        connection.execute(_SESSION.format(lock=max(1, round(busy_timeout_s * 1000)), statement=_STATEMENT_TIMEOUT_MS))

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("vimbank_writing", False):
        # Not stricter: after waiting for the counter row, each statement has to see what its last holder committed.
        connection.exec_driver_sql(
            f"BEGIN ISOLATION LEVEL READ COMMITTED;SET LOCAL idle_in_transaction_session_timeout = {_HUNG_WRITER_MS}"
        )
    else:
        connection.exec_driver_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


def lock_schema(connection: Connection) -> None:
    """Let one process at a time look at the schema and change it, until its transaction ends."""
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
    connection.execute(select(func.pg_advisory_xact_lock(_SCHEMA_LOCK)))


def is_lost(error: BaseException) -> bool:
    """Whether the session is gone with this error, so that another one may do better."""
    state = getattr(error, "sqlstate", None)
    # Where the server could not say why, libpq has no SQLSTATE, and the error is an OperationalError.
    return state.startswith(_LOST) if state else type(error).__name__ in _LOST_CLASSES


def translate(error: BaseException, url: URL) -> BackendUnavailable | BackendRejected:
    """The driver's error as one of ours, without the URL's password."""
    message = " ".join(str(error).split())
    if url.password:
        message = message.replace(str(url.password), "***")
    state = getattr(error, "sqlstate", None)
    if state is None:
        if is_lost(error):
            return BackendUnavailable("postgresql", f"no connection ({message})")
        return BackendRejected("postgresql", message)
    for table, kind in ((_UNAVAILABLE, BackendUnavailable), (_REJECTED, BackendRejected)):
        said = table.get(state) or table.get(state[:2])
        if said is not None:
            return kind("postgresql", f"{said} ({message})")
    return BackendRejected("postgresql", message)


def disk_bytes(connection: Connection) -> int:
    """Bytes of the store's tables with their indexes; what else is in the database is left out."""
    sizes = (func.coalesce(func.pg_total_relation_size(func.to_regclass(name)), 0) for name in metadata.tables)
    return int(sum(connection.execute(select(*sizes)).one()))


def integrity(connection: Connection) -> list[str]:
    """What is wrong: rows that cannot be read, pages whose checksum differs, invalid indexes, counters left behind."""
    return [*_unreadable(connection), *_told_by_server(connection), *_behind(connection)]


def _unreadable(connection: Connection) -> Iterator[str]:
    for name in metadata.tables:
        try:
            with connection.begin_nested():
                # The row as text has every value in it, those kept apart too, so that each page is read.
                connection.exec_driver_sql(f"SELECT count(*) FROM {name} AS r WHERE md5(r::text) IS NULL")
        except DBAPIError as exc:
            if not getattr(exc.orig, "sqlstate", "").startswith(("XX", "58")):
                raise
            yield f"{name}: {exc.orig}"


def _told_by_server(connection: Connection) -> Iterator[str]:
    invalid = text(
        "SELECT indexrelid::regclass::text FROM pg_index "
        "WHERE NOT indisvalid AND indrelid = ANY (SELECT to_regclass(name) FROM unnest(CAST(:names AS text[])) AS name)"
    )
    for name in connection.execute(invalid, {"names": list(metadata.tables)}).scalars():
        yield f"index {name} is not valid: REINDEX it"
    failures = "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"
    if number := connection.exec_driver_sql(failures).scalar_one():
        yield f"{number} pages had a wrong checksum"


def _behind(connection: Connection) -> Iterator[str]:
    pairs = ((counter.c.revision, history.c.revision), (counter.c.revision, memories.c.revision))
    for given, used in (*pairs, (counter.c.number, memories.c.number)):
        last, newest = connection.execute(select(given, select(func.max(used)).scalar_subquery())).one()
        if newest is not None and newest > last:
            yield f"counter.{given.name} is {last}, but {used.table.name} has {newest}"
