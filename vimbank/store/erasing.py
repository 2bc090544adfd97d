"""Erasure: every row that tells of a user, session or agent goes, and so do its bytes.

A deletion leaves a tombstone and history behind; an erasure leaves neither. Where indexes outside the process have to
hear of it, tombstones stand until they have (``bury``), and go then (``purge``). What other processes hold is rebuilt
because the partition is noted as compacted, under a digest in the place of the user's name.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

import orjson
from sqlalchemy import ColumnElement, delete, func, or_, select, update

from vimbank.domain.jobs import JobState
from vimbank.domain.models import Memory, MemoryState, Partition, Scope
from vimbank.domain.summaries import DERIVED_KINDS
from vimbank.errors import BackendUnavailable
from vimbank.store.changes import tombstone, with_parts
from vimbank.store.compaction import erased_user, note_compacted
from vimbank.store.descent import forget_names, made_of, named_sources, told
from vimbank.store.engine import translated
from vimbank.store.rows import MEMORY_COLUMNS, dump_json, memory_from_row
from vimbank.store.sql import SqlStore
from vimbank.store.sql_rows import SqlRows
from vimbank.store.tables import claims, compactions, counter, embeddings, history, jobs, memories, recalls

__all__ = ["Buried", "SqlEraser", "Trace"]

T = TypeVar("T")

_AT_A_TIME: Final = 500
_CHECKPOINT_PATIENCE_S: Final = 30.0
_CHECKPOINT_PAUSE_S: Final = 0.02
_ENDED: Final = tuple(state.value for state in JobState if state.ended)


@dataclass(frozen=True, slots=True)
class Buried:
    """What an erasure took, or is about to take: numbers and partitions of the rows that are left to ``purge``.

    ``contents`` and ``ids``: a digest each, as the caller makes them. ``counts``: rows by kind of trace;
    ``memories`` include ``summaries``.
    """

    numbers: Sequence[int]
    partitions: Sequence[Partition]
    contents: Sequence[str]
    ids: Sequence[str]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Trace:
    """One row that a receipt may have to do with. ``sources``: what a summary says it was made of."""

    kind: str
    tenant: str
    memory_id: str
    number: int
    user_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    sources: Sequence[str] = ()


class SqlEraser:
    """Erases from a ``SqlStore``, and finds what an erasure has left."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def bury(self, scope: Scope, *, keep_tombstones: bool, digest: Callable[[str], str], now: datetime) -> Buried:
        """In one transaction: texts, history, vectors, recalls and job records go.

        Args:    keep_tombstones: leave a row without text for each, until ``purge``; else the rows go at once.
                 digest: what is remembered of a text and of an id.
        """
        return self._store._commits.run(lambda rows: _bury(rows, scope, keep_tombstones, digest, now))

    def purge(self, scope: Scope, buried: Buried) -> None:
        """Remove the tombstones that ``bury`` has left. Doing so twice changes nothing."""
        self._store._commits.run(lambda rows: _purge(rows, scope, buried))

    def scrub(self) -> None:
        """Have the database let go of the bytes of what was removed: the file is written anew, its log emptied.

        SQLite leaves what was deleted in free pages, and moved cells in the gaps of others, until then. On a server
        the dead rows are vacuumed; its write-ahead log and backups are the server's own.
        Raises:  BackendUnavailable: another process reads an older moment for longer than 30 s.
        """
        engine = self._store._engine
        with translated(engine), engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            if engine.dialect.name == "sqlite":
                _rewrite_file(driver)
                return
            driver.rollback()
            driver.autocommit = True
            for table in (memories, embeddings, claims, history, recalls, jobs, compactions):
                driver.execute(f"VACUUM {table.name}")

    def last_number(self) -> int:
        """The number that was given last."""
        with self._store._connections.snapshot() as connection:
            return int(connection.execute(select(counter.c.number)).scalar_one())

    def traces(self, *, tenant: str, last_number: int, last_revision: int) -> Iterator[Trace]:
        """Every row of a tenant that stood at that moment already: what an erasure of then should not have left."""
        m, h, r = memories.c, history.c, recalls.c
        wanted = (
            ("memory", select(m.id, m.number, m.user_id, m.session_id, m.agent_id, m.kind, m.metadata)
             .where(m.tenant == tenant, m.number <= last_number)),
            ("history", select(h.memory_id, h.revision, h.user_id, h.before)
             .where(h.tenant == tenant, h.revision <= last_revision)),
            ("recall", select(r.memory_id, func.max(r.number)).where(r.tenant == tenant).group_by(r.memory_id)),
        )  # fmt: skip
        for kind, query in wanted:
            with self._store._connections.snapshot() as connection:
                for row in connection.execute(query.execution_options(yield_per=_AT_A_TIME)):
                    yield _trace(kind, tenant, row)


def _trace(kind: str, tenant: str, row: Sequence[Any]) -> Trace:
    if kind == "recall":
        return Trace(kind, tenant, row[0], row[1])
    memory_id, number, user_id = row[:3]
    if kind == "memory":
        _, _, _, session_id, agent_id, memory_kind, metadata = row
        return Trace(
            kind, tenant, memory_id, number, user_id, session_id, agent_id, named_sources(memory_kind, metadata)
        )
    before = {} if row[3] is None else orjson.loads(row[3])
    sources = named_sources(before.get("kind"), before.get("metadata"))
    return Trace(kind, tenant, memory_id, number, user_id, before.get("session_id"), before.get("agent_id"), sources)


# --- the transactions -------------------------------------------------------------------------------------------


def _bury(rows: SqlRows, scope: Scope, keep: bool, digest: Callable[[str], str], now: datetime) -> Buried:
    found = [memory_from_row(row) for row in rows.all(select(*MEMORY_COLUMNS).where(*_of_scope(scope)))]
    found = with_parts(rows.parts, found)  # whatever their own session or agent is
    if _is_whole(scope):
        past, summaries = _ids_in_history(rows, scope), set[str]()
    else:
        said = told(rows, scope)
        past = said.ids
        summaries = made_of({memory.id for memory in found} | past, said.sources)
        found += _summaries(rows, scope, summaries, found)
    ids = sorted({memory.id for memory in found} | past | summaries)
    live = [memory for memory in found if memory.state is not MemoryState.DELETED]
    numbers = sorted(memory.number for memory in found)
    counts = {
        "memories": len(live),
        "summaries": sum(memory.kind in DERIVED_KINDS for memory in live),
        "tombstones": len(found) - len(live),
        "vectors": _delete_by(rows, embeddings, embeddings.c.number, numbers),
        "history": _delete_history(rows, scope, ids),
        "recalls": _delete_by(rows, recalls, recalls.c.memory_id, ids, recalls.c.tenant == scope.tenant),
        "jobs": _forget_jobs(rows, scope),
    }
    if not _is_whole(scope):
        forget_names(rows, scope, ids)
    partitions = sorted({memory.partition for memory in found})
    if keep:
        for memory in live:
            # Session and agent stay until the tombstone goes, so that an erasure which was cut short can be taken up.
            grave = tombstone(memory, revision=rows.take_revision(), now=now)
            if memory.id in summaries:
                rows.bury(replace(grave, agent_id=scope.agent_id, session_id=scope.session_id))
            else:
                rows.bury(replace(grave, agent_id=memory.agent_id))
    buried = Buried(
        numbers,
        partitions,
        [digest(memory.text) for memory in live],
        [digest(each) for each in ids],
        counts,
    )
    if not keep:
        _purge(rows, scope, buried, marked=rows.take_revision() if numbers else 0)
    return buried


def _purge(rows: SqlRows, scope: Scope, buried: Buried, marked: int = 0) -> None:
    """Remove the rows, and note for every index that has not heard of them that its partition must be rebuilt.

    ``marked``: up to which revision; 0: that of the newest tombstone, which the followers outside have passed.
    """
    newest = marked
    for some in _chunks(buried.numbers):
        newest = max(
            [newest, *(row[0] for row in rows.all(select(memories.c.revision).where(memories.c.number.in_(some))))]
        )
        rows.all(delete(memories).where(memories.c.number.in_(some)), fetch=False)
    whole = _is_whole(scope)
    if whole:
        mine = (compactions.c.tenant == scope.tenant, compactions.c.user_id == scope.user_id)
        for _, bank, revision in rows.all(
            select(compactions.c.user_id, compactions.c.bank, compactions.c.revision).where(*mine)
        ):
            note_compacted(rows, Partition(scope.tenant, erased_user(scope.tenant, scope.user_id), bank), revision)
        rows.all(delete(compactions).where(*mine), fetch=False)
    for partition in buried.partitions:
        name = erased_user(scope.tenant, scope.user_id) if whole else scope.user_id
        note_compacted(rows, replace(partition, user_id=name), newest)
    rows.counters.compacted = max(rows.counters.compacted, newest)


def _is_whole(scope: Scope) -> bool:
    return scope.session_id is None and scope.agent_id is None


def _of_scope(scope: Scope) -> Iterator[ColumnElement[bool]]:
    """Tombstones too."""
    yield memories.c.tenant == scope.tenant
    yield memories.c.user_id == scope.user_id
    if scope.session_id is not None:
        yield memories.c.session_id == scope.session_id
    if scope.agent_id is not None:
        yield memories.c.agent_id == scope.agent_id


def _summaries(rows: SqlRows, scope: Scope, ids: Iterable[str], found: Sequence[Memory]) -> list[Memory]:
    """The rows of summaries by their ids, tombstones too, and their parts; without those that were found already."""
    known = {memory.number for memory in found}
    more: list[Memory] = []
    for some in _chunks(ids):
        wanted = (memories.c.tenant == scope.tenant, memories.c.user_id == scope.user_id, memories.c.id.in_(some))
        more += [memory_from_row(row) for row in rows.all(select(*MEMORY_COLUMNS).where(*wanted))]
    more = [memory for memory in more if memory.number not in known]
    return [memory for memory in with_parts(rows.parts, more) if memory.number not in known]


def _ids_in_history(rows: SqlRows, scope: Scope) -> set[str]:
    mine = (history.c.tenant == scope.tenant, history.c.user_id == scope.user_id)
    return {row[0] for row in rows.all(select(history.c.memory_id).where(*mine).distinct())}


def _delete_history(rows: SqlRows, scope: Scope, ids: Sequence[str]) -> int:
    mine = (history.c.tenant == scope.tenant, history.c.user_id == scope.user_id)
    if not _is_whole(scope):
        return _delete_by(rows, history, history.c.memory_id, ids, *mine)
    count = int(rows.all(select(func.count()).select_from(history).where(*mine))[0][0])
    rows.all(delete(history).where(*mine), fetch=False)
    return count


def _delete_by(rows: SqlRows, table: Any, column: Any, values: Sequence[Any], *also: ColumnElement[bool]) -> int:
    """Delete the rows of ``table`` whose ``column`` is one of ``values``; how many."""
    count = 0
    for some in _chunks(values):
        count += int(rows.all(select(func.count()).select_from(table).where(column.in_(some), *also))[0][0])
        rows.all(delete(table).where(column.in_(some), *also), fetch=False)
    return count


def _forget_jobs(rows: SqlRows, scope: Scope) -> int:
    """Remove the records of ended jobs that name the user; one that erases him and runs now loses its parameters."""
    quoted = dump_json(scope.user_id)
    names_him = or_(
        *(column.contains(quoted, autoescape=True) for column in (jobs.c.params, jobs.c.result)),
        *(column.contains(repr(scope.user_id), autoescape=True) for column in (jobs.c.error, jobs.c.message)),
    )
    count = int(rows.all(select(func.count()).select_from(jobs).where(names_him))[0][0])
    rows.all(delete(jobs).where(names_him, jobs.c.state.in_(_ENDED)), fetch=False)
    rows.all(update(jobs).values(params="{}").where(names_him, jobs.c.name == "erase"), fetch=False)
    return count


def _rewrite_file(driver: Any) -> None:
    driver.execute("PRAGMA temp_store=FILE")  # the new copy, as large as the store, would lie in memory
    driver.execute("VACUUM")
    deadline = time.monotonic() + _CHECKPOINT_PATIENCE_S
    while driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > deadline:
            raise BackendUnavailable("sqlite", "another reader keeps erased pages in the log: try again")
        time.sleep(_CHECKPOINT_PAUSE_S)


def _chunks(values: Iterable[T]) -> Iterator[list[T]]:
    items = list(values)
    for start in range(0, len(items), _AT_A_TIME):
        yield items[start : start + _AT_A_TIME]
