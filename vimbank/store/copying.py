"""A whole store moved from one database to another, SQLite or PostgreSQL, and compared row by row afterwards.

Everything is read as of one moment and written in one transaction: whoever interrupts a copy leaves an empty store.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from sqlalchemy import Connection, Engine, Table, func, insert, select, update

from vimbank.errors import BackendRejected, ConfigError, Conflict
from vimbank.store.engine import WRITING, open_engine, parsed_url, translated
from vimbank.store.schema import ensure, found_in
from vimbank.store.tables import SCHEMA_VERSION, counter, metadata, store

__all__ = ["CopyReport", "TableCopy", "copy_store", "digest"]

Progress = Callable[[int, int], None]

_BATCH: Final = 1_000
_SINGLE: Final = (counter, store)
"""Tables of one row, which an empty store has as well."""


@dataclass(frozen=True, slots=True)
class TableCopy:
    """One table: how many rows it has in both stores, and the digest that both have."""

    name: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied; ``revision`` is that of both stores, ``store_id`` tells whose indexes fit both."""

    store_id: str
    schema: str
    revision: int
    tables: Sequence[TableCopy]

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables)


def copy_store(
    source: str, target: str, *, busy_timeout_s: float = 30.0, progress: Progress = lambda _done, _total: None
) -> CopyReport:
    """Copy every table of the store at URL ``source`` into the empty store (or no store) at URL ``target``.

    Ids, numbers, revisions and the store's identity stay, so indexes and cursors of the source fit the target. The
    source may be in use meanwhile, but what is written to it after the beginning is not in the copy.

    Args:    progress: called with steps done and steps in all; reading a row and comparing it are a step each.
    Raises:  ConfigError: unusable URL, no store at ``source``, or one of another schema. Conflict: ``target`` holds
             something. BackendRejected: the copy differs. BackendUnavailable. ``target`` is then as it was, or empty.
    """
    if parsed_url(source) == parsed_url(target):
        raise ConfigError("a store cannot be copied onto itself")
    with _snapshot(source, busy_timeout_s) as reading, _engine(target, busy_timeout_s) as engine:
        _refuse_other_schema(reading)
        ensure(engine)
        with translated(engine), engine.connect().execution_options(**WRITING) as writing, writing.begin():
            return _copy(reading, writing, progress)


def digest(connection: Connection, table: Table, *, step: Callable[[], None] = lambda: None) -> str:
    """A digest of a table's rows, the same in every engine and whatever their order.

    The sum, modulo 2^256, of each row's SHA-256: an order would need a collation that all engines share.
    """
    total = 0
    for batch in _batches(connection, table):
        for row in batch:
            total += _row_digest(row)
            step()
    return f"{total % 2**256:064x}"


# --- the flow ---------------------------------------------------------------------------------------------------


def _copy(reading: Connection, writing: Connection, progress: Progress) -> CopyReport:
    writing.execute(select(counter).with_for_update())  # writers of the target wait until it is whole
    _refuse_content(writing)
    sizes = {table: _size(reading, table) for table in metadata.sorted_tables}
    steps = _Steps(2 * sum(sizes.values()), progress)
    read = {table: _copy_table(reading, writing, table, steps) for table in metadata.sorted_tables}
    for table, found in read.items():
        if _size(writing, table) != sizes[table] or digest(writing, table, step=steps.take) != found:
            raise BackendRejected("store", f"the copy of {table.name} differs from its source: nothing was kept")
    return CopyReport(
        writing.execute(select(store.c.id)).scalar_one(),
        SCHEMA_VERSION,
        writing.execute(select(counter.c.revision)).scalar_one(),
        [TableCopy(table.name, sizes[table], read[table]) for table in metadata.sorted_tables],
    )


def _copy_table(reading: Connection, writing: Connection, table: Table, steps: "_Steps") -> str:
    total = 0
    for batch in _batches(reading, table):
        if table in _SINGLE:
            writing.execute(update(table).values(batch[0]))
        else:
            writing.execute(insert(table), batch)
        for row in batch:
            total += _row_digest(row)
            steps.take()
    return f"{total % 2**256:064x}"


def _batches(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    columns = list(table.primary_key)
    query = select(table).order_by(*columns).execution_options(yield_per=_BATCH)
    with translated(connection.engine), connection.execute(query) as result:
        for rows in result.mappings().partitions():
            yield [dict(row) for row in rows]


def _row_digest(row: Mapping[str, Any]) -> int:
    """Of the values in the table's order; blobs by their own digest, as JSON has none."""
    values = [hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else value for value in row.values()]
    return int.from_bytes(hashlib.sha256(orjson.dumps(values)).digest())


def _size(connection: Connection, table: Table) -> int:
    with translated(connection.engine):
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


class _Steps:
    """Counts steps and tells of them, not each time."""

    __slots__ = ("_done", "_progress", "_total")

    def __init__(self, total: int, progress: Progress) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def take(self) -> None:
        """One more."""
        self._done += 1
        if self._done % _BATCH == 0 or self._done == self._total:
            self._progress(self._done, self._total)


# --- refusals ---------------------------------------------------------------------------------------------------


@contextmanager
def _engine(url: str, busy_timeout_s: float) -> Iterator[Engine]:
    engine = open_engine(url, busy_timeout_s=busy_timeout_s)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _snapshot(url: str, busy_timeout_s: float) -> Iterator[Connection]:
    """A connection that sees one moment of an existing database."""
    _refuse_missing_file(url)
    with _engine(url, busy_timeout_s) as engine:
        with translated(engine):
            connection = engine.connect()
        try:
            with translated(engine):
                connection.begin()
            yield connection
        finally:
            connection.close()


def _refuse_missing_file(url: str) -> None:
    parsed = parsed_url(url)
    # SQLite would make an empty file in its place.
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise ConfigError(f"there is no store at {parsed.render_as_string()}")


def _refuse_other_schema(source: Connection) -> None:
    with translated(source.engine):
        found = found_in(source)
    where = source.engine.url.render_as_string()
    if found is None:
        raise ConfigError(f"there is no store at {where}")
    if found != SCHEMA_VERSION:
        raise ConfigError(
            f"the store at {where} has schema {found}, not {SCHEMA_VERSION}: "
            "an older one is changed by `vimbank store migrate`"
        )


def _refuse_content(target: Connection) -> None:
    row = target.execute(select(counter)).mappings().one()
    used = [name for name, value in row.items() if name != "one" and value != 0]
    filled = [
        table.name
        for table in metadata.sorted_tables
        if table not in _SINGLE and target.execute(select(table).limit(1)).first() is not None
    ]
    if used or filled:
        raise Conflict(
            f"the store at {target.engine.url.render_as_string()} is not empty "
            f"({', '.join(filled) or 'it was written to before'}): copy into a new one"
        )
