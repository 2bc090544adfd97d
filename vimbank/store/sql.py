"""The record store on SQLAlchemy Core: MemoryStore and AccessLog on SQLite and PostgreSQL (architecture.md 3)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, Select, Table, and_, func, select

from vimbank.domain.curves import Curve
from vimbank.domain.filters import Filter, matches
from vimbank.domain.models import (
    AddResult,
    Change,
    HistoryEntry,
    ListQuery,
    Memory,
    MemoryState,
    Page,
    Partition,
    RecallEntry,
    Scope,
    StateChange,
    StateResult,
    Vector,
    Vectors,
)
from vimbank.domain.times import to_micros
from vimbank.errors import ConfigError, Conflict
from vimbank.ports import (
    Embedded,
    EncoderIdentity,
    Ending,
    Judged,
    Lives,
    PreparedDraft,
    PreparedPatch,
    StoreState,
    Utterance,
)
from vimbank.store import reencoding
from vimbank.store.assessing import put_samples
from vimbank.store.changes import (
    IdSource,
    Record,
    as_they_stood,
    delete_memories,
    enders,
)
from vimbank.store.claims import claiming, uncompared, unread
from vimbank.store.compaction import compact, compacted_in
from vimbank.store.conflicts import add_memory, change_memory, end, put_claims
from vimbank.store.connections import Connections
from vimbank.store.counts import StoreCounts
from vimbank.store.engine import cursor_of, disk_bytes, integrity, open_engine, streaming, translated
from vimbank.store.folding import fold_recalls
from vimbank.store.group_commit import GroupCommit
from vimbank.store.jobs import SqlJobStore
from vimbank.store.lives import lives
from vimbank.store.paging import conditions, cursor_after, fits, number_of, page_of
from vimbank.store.rows import (
    MEMORY_COLUMNS,
    entry_from_row,
    load_identity,
    load_tokens,
    load_vector,
    memory_from_row,
    record_from_row,
)
from vimbank.store.schema import ensure
from vimbank.store.sql_rows import SqlRows
from vimbank.store.statements import Statements
from vimbank.store.states import change_states
from vimbank.store.tables import LIVE, counter, embeddings, encoders, history, memories
from vimbank.store.tables import store as identity

__all__ = ["SqlStore"]

_SCAN: Final = 2_000  # rows at a time where a filter is evaluated in Python
_IDS_AT_A_TIME: Final = 512
_NO_ENCODER: Final = -1  # so that no vector is read
_LIVES: Final = 5_000  # rows at a time that become columns


class SqlStore:
    """``MemoryStore`` and ``AccessLog``. Thread-safe; several processes may open one SQLite file or one database.

    Beyond the ports: which encoder the store belongs to, its change online, token vectors, counts, soundness.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        busy_timeout_s: float = 30.0,
        ids: IdSource | None = None,
    ) -> None:
        """On an engine whose schema is the newest; ``open`` is the usual way."""
        self._engine = engine
        self._connections = Connections(engine, patience_s=busy_timeout_s)
        self._statements = Statements(engine.dialect)
        self._commits: GroupCommit[SqlRows] = GroupCommit(self._transaction)
        self.jobs: Final = SqlJobStore(self._commits, self._connections, engine.dialect)
        self._ids = IdSource() if ids is None else ids
        self._claimed: int | None = None  # the encoder that this process said it uses

    @classmethod
    def open(cls, url: str, *, busy_timeout_s: float = 30.0) -> "SqlStore":
        """Open a store, made or migrated where need be.

        Args:    url: SQLAlchemy URL: ``sqlite:////absolute/path``, ``sqlite:///relative/path`` or
                 ``postgresql+psycopg://user@host/database`` (``postgresql://`` and ``postgres://`` mean the same).
                 busy_timeout_s: how long a write waits for another process, and a read for a connection, seconds.
        Raises:  ConfigError: unusable URL, or a schema newer than this code. BackendUnavailable, BackendRejected.
        """
        engine = open_engine(url, busy_timeout_s=busy_timeout_s)
        ensure(engine)
        return cls(engine, busy_timeout_s=busy_timeout_s)

    def close(self) -> None:
        """Close all connections; later calls raise BackendRejected."""
        with translated(self._engine):
            self._connections.close()

    # -- writes --

    def add(self, drafts: Sequence[PreparedDraft], *, actor: str, now: datetime) -> list[AddResult | Exception]:
        """See ``MemoryStore.add``."""

        def write(rows: SqlRows) -> list[AddResult | Exception]:
            self._check_encoder(rows.counters.encoder)
            results: list[AddResult | Exception] = []
            for draft in drafts:
                try:
                    results.append(add_memory(rows, draft, actor=actor, now=now))
                except Conflict as conflict:
                    results.append(conflict)
            return results

        return self._commits.run(write) if drafts else []

    def update(self, patch: PreparedPatch, *, tenant: str, actor: str, now: datetime) -> Memory:
        """See ``MemoryStore.update``. What is patched on a document is patched on its segments."""

        def write(rows: SqlRows) -> Memory:
            self._check_encoder(rows.counters.encoder)
            return change_memory(rows, patch, tenant=tenant, actor=actor, now=now)

        return self._commits.run(write)

    def delete(self, tenant: str, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]:
        """See ``MemoryStore.delete``. Segments of a document and steps of a task run go with it."""

        def write(rows: SqlRows) -> list[str]:
            found = {memory.id: memory for memory in rows.by_ids(tenant, ids)}
            delete_memories(rows, found.values(), actor=actor, now=now)
            return [name for name in dict.fromkeys(ids) if name in found]

        return self._commits.run(write) if ids else []

    def delete_scope(self, scope: Scope, *, actor: str, now: datetime) -> int:
        """See ``MemoryStore.delete_scope``; counts every memory that went, segments too."""
        wanted = conditions(
            ListQuery(
                tenant=scope.tenant,
                user_id=scope.user_id,
                bank=scope.bank,
                agent_id=scope.agent_id,
                session_id=scope.session_id,
                state=None,
            )
        )
        query = select(*MEMORY_COLUMNS).where(*wanted)

        def write(rows: SqlRows) -> int:
            found = [memory_from_row(row) for row in rows.all(query)]
            return delete_memories(rows, found, actor=actor, now=now)

        return self._commits.run(write)

    def change_states(
        self, changes: Sequence[StateChange], *, tenant: str, actor: str, now: datetime
    ) -> list[StateResult | Exception]:
        """See ``MemoryStore.change_states``."""
        if not changes:
            return []
        return self._commits.run(lambda rows: change_states(rows, changes, tenant=tenant, actor=actor, now=now))

    def put_samples(self, judged: Sequence[Judged], *, actor: str, now: datetime) -> int:
        """See ``MemoryStore.put_samples``."""
        return self._commits.run(lambda rows: put_samples(rows, judged, actor=actor, now=now)) if judged else 0

    # -- claims --

    def unread(self, partition: Partition, *, after: int, limit: int, again: bool = False) -> list[Memory]:
        """See ``ClaimStore.unread``."""
        with self._connections.snapshot() as connection:
            wanted = unread(partition, after=after, again=again).limit(limit)
            return [memory_from_row(row) for row in connection.execute(wanted)]

    def put_claims(self, read: Sequence[tuple[Memory, Sequence[tuple[str, str]]]]) -> int:
        """See ``ClaimStore.put_claims``."""
        return self._commits.run(lambda rows: put_claims(rows, read)) if read else 0

    def claiming(self, partition: Partition, *, batch: int = 1_000) -> Iterator[list[Memory]]:
        """See ``ClaimStore.claiming``."""
        with self._connections.snapshot() as connection:
            rows = connection.execute(claiming(partition).execution_options(yield_per=batch))
            for found in rows.partitions():
                yield [memory_from_row(row) for row in found]

    def uncompared(self, partition: Partition) -> list[int]:
        """See ``ClaimStore.uncompared``."""
        with self._connections.snapshot() as connection:
            return [int(number) for number in connection.execute(uncompared(partition)).scalars()]

    def end(self, endings: Sequence[Ending], *, dry_run: bool = False, now: datetime) -> list[Memory | Conflict | None]:
        """See ``ClaimStore.end``."""
        if not endings:
            return []
        return self._commits.run(lambda rows: end(rows, endings, dry_run=dry_run, now=now))

    # -- reads --

    def get(self, tenant: str, ids: Sequence[str], *, as_of: datetime | None = None) -> list[Memory]:
        """See ``MemoryStore.get``."""
        if as_of is not None:
            return self._past(tenant, ids, as_of)
        found: dict[str, Memory] = {}
        for start in range(0, len(ids), _IDS_AT_A_TIME):
            for row in self._by_ids(tenant, ids[start : start + _IDS_AT_A_TIME]):
                found[row[2]] = memory_from_row(row)
        return [found[name] for name in ids if name in found]

    def _by_ids(self, tenant: str, ids: Sequence[str]) -> list[Sequence[Any]]:
        statement, size = self._statements.by_ids(len(ids))
        values = {f"id_{place}": ids[min(place, len(ids) - 1)] for place in range(size)}
        rows: list[Sequence[Any]] = self._connections.read(
            lambda cursor: statement.run(cursor, tenant=tenant, **values).fetchall()
        )
        return rows

    def _past(self, tenant: str, ids: Sequence[str], instant: datetime) -> list[Memory]:
        """These memories as they stood; whether what ended them was there is asked, too."""
        with self._connections.snapshot() as connection:
            current, later = _versions(connection, tenant, ids, instant)
            more = [each for each in enders(current, later) if each not in ids]
            beside, then = _versions(connection, tenant, more, instant)
        stood = as_they_stood([(memory, None) for memory in (*current, *beside)], [*later, *then], instant)
        found = {memory.id: memory for memory, _ in stood}
        return [found[name] for name in ids if name in found]

    def page(self, query: ListQuery) -> Page:
        """See ``MemoryStore.page``. With a filter, all that the other conditions leave is read and tried."""
        if query.as_of is not None:
            return self._past_page(query, query.as_of)
        after = number_of(query.cursor)
        wanted = and_(*conditions(query))
        with self._connections.snapshot() as connection:
            if query.filter is not None:
                return _filtered_page(connection, wanted, query.filter, after, query.limit)
            total = connection.execute(select(func.count()).select_from(memories).where(wanted)).scalar_one()
            rows = connection.execute(_listing(wanted, after).limit(query.limit + 1)).fetchall()
        return _page([memory_from_row(row) for row in rows], total, query.limit)

    def _past_page(self, query: ListQuery, instant: datetime) -> Page:
        """A listing of the past reads the partitions that it may be about, also such as are empty by now."""
        columns = (history.c.tenant, history.c.user_id, history.c.bank)
        ever = select(*columns).where(history.c.tenant == query.tenant).distinct()
        if query.user_id is not None:
            ever = ever.where(history.c.user_id == query.user_id)
        if query.bank is not None:
            ever = ever.where(history.c.bank == query.bank)
        with self._connections.snapshot() as connection:
            partitions = [Partition(*row) for row in connection.execute(ever)]
        stood = [memory for each in partitions for memory, _ in self._stood(each, instant)]
        return page_of(query, sorted((each for each in stood if fits(query, each)), key=lambda each: each.number))

    def state(self) -> StoreState:
        """See ``MemoryStore.state``."""
        statement = self._statements.state.sql
        row = self._connections.read(lambda cursor: cursor.execute(statement).fetchone())
        return StoreState(row[0], row[1], row[2])

    def changes(self, after: int, *, limit: int, partition: Partition | None = None) -> list[Change]:
        """See ``MemoryStore.changes``."""
        values: dict[str, Any] = {"after": after, "limit": limit}
        if partition is not None:
            values |= _in(partition)
        statement = self._statements.changes if partition is None else self._statements.partition_changes
        with self._connections.snapshot() as connection:
            cursor = cursor_of(connection)
            return [_change(row) for row in statement.run(cursor, encoder=self._encoder(cursor), **values).fetchall()]

    def live(self, partition: Partition, *, batch: int = 5_000) -> Iterator[list[Change]]:
        """See ``MemoryStore.live``. The moment is that of the first batch."""
        with self._connections.snapshot() as connection:
            encoder = self._encoder(cursor_of(connection))
            with streaming(connection) as cursor:
                rows = self._statements.live.run(cursor, encoder=encoder, **_in(partition))
                while found := rows.fetchmany(batch):
                    yield [_change(row) for row in found]

    def compact(self, *, up_to: int, deleted_before: datetime, limit: int) -> int:
        """See ``MemoryStore.compact``."""
        return self._commits.run(lambda rows: compact(rows, up_to=up_to, deleted_before=deleted_before, limit=limit))

    def compacted(self, partition: Partition) -> int:
        """See ``MemoryStore.compacted``."""
        with self._connections.snapshot() as connection:
            return int(connection.execute(compacted_in(partition)).scalar_one_or_none() or 0)

    def next_position(self, partition: Partition, session_id: str) -> int:
        """See ``MemoryStore.next_position``. Positions of segments, which count inside their parent, are left out."""
        values = _in(partition)
        row = self._connections.read(
            lambda cursor: self._statements.last_position.run(cursor, session_id=session_id, **values).fetchone()
        )
        return 0 if row[0] is None else int(row[0]) + 1

    def session_tail(self, partition: Partition, session_id: str, *, before: int, limit: int) -> list[Utterance]:
        """See ``MemoryStore.session_tail``."""

        def read(cursor: Any) -> list[Any]:
            encoder = self._encoder(cursor)
            values = {"encoder": encoder, "session_id": session_id, "before": before, "limit": limit}
            found: list[Any] = self._statements.session_tail.run(cursor, **values, **_in(partition)).fetchall()
            return found

        rows = self._connections.read(read)
        return [Utterance(row[0], row[1], row[2], None if row[3] is None else load_vector(row[3])) for row in rows]

    def partitions(self, tenant: str | None = None, *, state: MemoryState = MemoryState.ACTIVE) -> list[Partition]:
        """See ``MemoryStore.partitions``."""
        columns = (memories.c.tenant, memories.c.user_id, memories.c.bank)
        query = select(*columns).where(memories.c.state == state.value).distinct()
        if tenant is not None:
            query = query.where(memories.c.tenant == tenant)
        with self._connections.snapshot() as connection:
            return sorted(Partition(*row) for row in connection.execute(query))

    def lives(self, partition: Partition, *, superseded: bool = False) -> Lives:
        """See ``MemoryStore.lives``."""
        with self._connections.snapshot() as connection:
            cursor = cursor_of(connection)
            cursor.execute(self._statements.state.sql)
            revision = int(cursor.fetchone()[0])
            with streaming(connection) as rows:
                self._statements.lives[superseded].run(rows, **_in(partition))
                return lives(revision, iter(lambda: rows.fetchmany(_LIVES), []))

    def history(self, tenant: str, memory_id: str) -> list[HistoryEntry]:
        """See ``MemoryStore.history``. An id that was deleted and used again has both lives' entries."""
        query = select(history).where(history.c.tenant == tenant, history.c.memory_id == memory_id)
        with self._connections.snapshot() as connection:
            return [entry_from_row(row) for row in connection.execute(query.order_by(history.c.revision))]

    def as_of(self, partition: Partition, instant: datetime) -> list[tuple[Memory, Vector | None]]:
        """See ``MemoryStore.as_of``. Vectors of an earlier encoder are left out (None)."""
        return [(memory, vector) for memory, vector in self._stood(partition, instant) if memory.indexed]

    def _stood(self, partition: Partition, instant: datetime) -> list[tuple[Memory, Vector | None]]:
        later = _later(
            instant,
            history.c.tenant == partition.tenant,
            history.c.user_id == partition.user_id,
            history.c.bank == partition.bank,
        )
        with self._connections.snapshot() as connection:
            cursor = cursor_of(connection)
            encoder = self._encoder(cursor)
            records = [record_from_row(row, encoder) for row in connection.execute(later)]
            rows = self._statements.standing.run(cursor, encoder=encoder, **_in(partition)).fetchall()
        current = ((memory_from_row(row), None if row[-1] is None else load_vector(row[-1])) for row in rows)
        return as_they_stood(current, records, instant)

    def counts(self, tenant: str | None = None, user_id: str | None = None) -> StoreCounts:
        """Exact counts of a tenant's or user's memories, or of all."""
        columns = memories.c
        wanted = [LIVE]
        if tenant is not None:
            wanted.append(columns.tenant == tenant)  # type: ignore[arg-type]
        if user_id is not None:
            wanted.append(columns.user_id == user_id)  # type: ignore[arg-type]
        groups = (columns.bank, columns.state, columns.kind)
        counted = select(*groups, func.count()).where(*wanted).group_by(*groups)
        owners = select(columns.tenant, columns.user_id).where(*wanted).distinct().subquery()
        with self._connections.snapshot() as connection:
            rows = connection.execute(counted).fetchall()
            users = connection.execute(select(func.count()).select_from(owners)).scalar_one()
        by: tuple[dict[str, int], ...] = ({}, {}, {})
        for *names, number in rows:
            for totals, name in zip(by, names, strict=True):
                totals[name] = totals.get(name, 0) + number
        return StoreCounts(sum(by[0].values()), users, *by)

    # -- the access log --

    def append(self, entries: Sequence[RecallEntry]) -> None:
        """See ``AccessLog.append``."""

        if entries:
            self._commits.run(lambda rows: rows.put_recalls(entries))

    def fold(self, curve_of: Callable[[str], Curve], *, limit: int, now: datetime) -> int:
        """See ``AccessLog.fold``. Lines of what is gone are removed."""

        def write(rows: SqlRows) -> int:
            entries = rows.unfolded(limit)
            lost = fold_recalls(rows, entries, curve_of, now=now)
            if entries:
                rows.counters.folded = entries[-1].number
            if lost:
                rows.drop_lost_recalls(entries[0].number, entries[-1].number)
            return len(entries)

        return self._commits.run(write)

    def trim(self, *, before: datetime, batch: int = 1_000) -> Iterator[int]:
        """See ``AccessLog.trim``. What goes is sought outside of the transaction: no write waits for that."""
        after = 0
        while (last := self._last_spent(after, before, batch)) is not None:
            yield self._trim(after, last, before)
            after = last

    def _last_spent(self, after: int, before: datetime, limit: int) -> int | None:
        """The number of the last of the ``limit`` oldest folded lines above ``after``; None where there is none."""
        values = {"after": after, "before": to_micros(before), "limit": limit}
        row = self._connections.read(lambda cursor: self._statements.last_spent.run(cursor, **values).fetchone())
        return None if row[0] is None else int(row[0])

    def _trim(self, after: int, last: int, before: datetime) -> int:
        return self._commits.run(lambda rows: rows.trim_recalls(after, last, before))

    # -- the encoder --

    def encoder_identity(self) -> EncoderIdentity | None:
        """The encoder whose vectors the store holds; None where none was claimed."""
        query = select(encoders.c.identity).join(counter, counter.c.encoder == encoders.c.number)
        with self._connections.snapshot() as connection:
            found = connection.execute(query).scalar_one_or_none()
        return None if found is None else load_identity(found)

    def claim_encoder(self, identity: EncoderIdentity) -> None:
        """Say which encoder this process uses; an empty store is bound to it.

        Raises: ConfigError: the store holds vectors of another one (cases 16, 134), also at equal dimension.
        """
        self._claimed = self._commits.run(lambda rows: reencoding.claim(rows, identity))

    def missing_embeddings(self, identity: EncoderIdentity, limit: int) -> list[Memory]:
        """Up to ``limit`` memories that need an embedding by ``identity`` and have none, by number."""
        with self._connections.snapshot() as connection:
            number = connection.execute(reencoding.number_of(identity)).scalar_one_or_none()
            query = reencoding.missing(-1 if number is None else number).limit(limit)
            return [memory_from_row(row) for row in connection.execute(query)]

    def put_embeddings(self, identity: EncoderIdentity, embedded: Sequence[tuple[Memory, Embedded]]) -> int:
        """Keep embeddings for a later switch; how many. Memories whose text has changed meanwhile are left out."""
        return self._commits.run(lambda rows: reencoding.put(rows, identity, embedded))

    def switch_encoder(self, identity: EncoderIdentity) -> None:
        """Make ``identity`` the store's encoder: the generation grows, embeddings of all others are dropped.

        Raises: Conflict: some memory has no embedding by it yet; nothing was changed.
        """
        self._claimed = self._commits.run(lambda rows: reencoding.switch(rows, identity))

    def vectors(self, tenant: str, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors by id under the store's encoder, of the memories that have one."""
        query = (
            select(memories.c.id, embeddings.c.vector)
            .join(embeddings, embeddings.c.number == memories.c.number)
            .join(counter, counter.c.encoder == embeddings.c.encoder)
            .where(memories.c.tenant == tenant, LIVE)
        )
        with self._connections.snapshot() as connection:
            parts = (ids[start : start + _IDS_AT_A_TIME] for start in range(0, len(ids), _IDS_AT_A_TIME))
            rows = [row for part in parts for row in connection.execute(query.where(memories.c.id.in_(part)))]
        return {row.id: load_vector(row.vector) for row in rows}

    def token_vectors(self, tenant: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """(t, d) float32 token vectors by id, of the memories that have any, to 1/254 of each row's largest number."""
        query = (
            select(memories.c.id, embeddings.c.tokens)
            .join(embeddings, embeddings.c.number == memories.c.number)
            .join(counter, counter.c.encoder == embeddings.c.encoder)
            .where(memories.c.tenant == tenant, LIVE, embeddings.c.tokens.is_not(None))
        )
        with self._connections.snapshot() as connection:
            parts = (ids[start : start + _IDS_AT_A_TIME] for start in range(0, len(ids), _IDS_AT_A_TIME))
            rows = [row for part in parts for row in connection.execute(query.where(memories.c.id.in_(part)))]
        return {row.id: load_tokens(row.tokens) for row in rows}

    # -- upkeep --

    def store_id(self) -> str:
        """Who this store is: 32 hexadecimal digits, given when it was made, or migrated from a schema without."""
        with self._connections.snapshot() as connection:
            return str(connection.execute(select(identity.c.id)).scalar_one())

    def disk_bytes(self) -> int:
        """Bytes that the store takes on the disk."""
        with self._connections.snapshot() as connection:
            return disk_bytes(connection)

    def integrity(self) -> list[str]:
        """What the engine finds wrong with its file; [] when it is sound. Reads all of it."""
        with self._connections.snapshot() as connection:
            return integrity(connection)

    # -- inside --

    @contextmanager
    def _transaction(self) -> Iterator[SqlRows]:
        with self._connections.writing() as cursor:
            rows = SqlRows(cursor, self._statements, self._ids)
            yield rows
            rows.finish()

    def _encoder(self, cursor: Any) -> int:
        """The store's encoder, which has to be the one that this process uses."""
        current = int(self._statements.encoder.run(cursor).fetchone()[0])
        self._check_encoder(current)
        return current

    def _check_encoder(self, current: int) -> None:
        if self._claimed is not None and self._claimed != current:
            raise ConfigError(reencoding.STALE)


def _in(partition: Partition) -> dict[str, str]:
    return {"tenant": partition.tenant, "user_id": partition.user_id, "bank": partition.bank}


def _change(row: Sequence[Any]) -> Change:
    if row[30] == MemoryState.DELETED.value:
        return Change(row[10], Partition(row[1], row[3], row[4]), row[2], None, number=row[0])
    vector = None if row[-1] is None else load_vector(row[-1])
    return Change(row[10], Partition(row[1], row[3], row[4]), row[2], memory_from_row(row), vector, row[0])


def _versions(
    connection: Connection, tenant: str, ids: Sequence[str], instant: datetime
) -> tuple[list[Memory], list[Record]]:
    """These memories as they are, and what was recorded of them after the instant."""
    current: list[Memory] = []
    later: list[Record] = []
    for start in range(0, len(ids), _IDS_AT_A_TIME):
        names = ids[start : start + _IDS_AT_A_TIME]
        rows = connection.execute(select(*MEMORY_COLUMNS).where(*_these(memories, tenant, names), LIVE))
        current += map(memory_from_row, rows)
        records = connection.execute(_later(instant, *_these(history, tenant, names)))
        later += (record_from_row(row, _NO_ENCODER) for row in records)
    return current, later


def _these(table: Table, tenant: str, ids: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
    name = table.c.memory_id if table is history else table.c.id
    return table.c.tenant == tenant, name.in_(ids)


def _later(instant: datetime, *conditions: ColumnElement[bool]) -> Select[Any]:
    """The records after an instant, by revision."""
    return select(history).where(*conditions, history.c.at > to_micros(instant)).order_by(history.c.revision)


def _listing(wanted: ColumnElement[bool], after: int) -> Select[Any]:
    return select(*MEMORY_COLUMNS).where(wanted, memories.c.number > after).order_by(memories.c.number)


def _filtered_page(
    connection: Connection, wanted: ColumnElement[bool], filter_: Filter, after: int, limit: int
) -> Page:
    """One pass over everything, since the total has to be exact."""
    total = 0
    found: list[Memory] = []
    rows = connection.execute(_listing(wanted, 0).execution_options(yield_per=_SCAN))
    for memory in map(memory_from_row, rows):
        if matches(filter_, memory):
            total += 1
            if memory.number > after and len(found) <= limit:
                found.append(memory)
    return _page(found, total, limit)


def _page(found: Sequence[Memory], total: int, limit: int) -> Page:
    """``found`` holds one memory more than ``limit`` where there is a next page."""
    items = found[:limit]
    return Page(items, total, cursor_after(items[-1].number) if len(found) > limit else None)
