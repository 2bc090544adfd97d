"""Whether the tables agree with each other and with the engine, and what of it can safely be mended.

Mended is what follows from the rest: rows beside memories that are gone, vectors that cannot be the encoder's, counters
that are behind what was given, indexes of the database. What cannot be told from anything else, such as a memory that
only its history knows of, is named and left for a backup.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Select, Table, delete, exists, func, select, text, union

from vimbank.domain.checks import Problem
from vimbank.domain.models import PARENT_KIND, SEGMENT_KIND, UNSET, Event, Memory, Partition
from vimbank.errors import BackendRejected
from vimbank.ports import Embedded, EncoderIdentity
from vimbank.store import reencoding
from vimbank.store.rows import load_identity
from vimbank.store.sql import SqlStore
from vimbank.store.sql_rows import SqlRows
from vimbank.store.tables import (
    LIVE,
    compactions,
    counter,
    embeddings,
    encoders,
    history,
    memories,
    metadata,
    recalls,
)

__all__ = ["SqlAuditor"]

_AT_A_TIME: Final = 1_000
_ERASED: Final = "erased:%"
"""How the names of erased users begin in ``compactions``."""

_USED: Final = (
    (counter.c.revision, history.c.revision),
    (counter.c.revision, memories.c.revision),
    (counter.c.number, memories.c.number),
    (counter.c.recall, recalls.c.number),
    (counter.c.recall, counter.c.folded),  # of which no line may be left
)
"""What each counter has given: none of it may be above the counter."""

_FROM_BACKUP: Final = "nothing else tells what was there: restore it from a backup"
_REINDEXED: Final = ("missing from index", "in index", "is not valid: REINDEX it")
"""What an engine says of an index that it can make anew from its table."""

BESIDE: Final[Sequence[Table]] = [
    table for table in metadata.sorted_tables if any(key.column is memories.c.number for key in table.foreign_keys)
]
"""The tables whose rows stand beside a memory, and go with it."""


class SqlAuditor:
    """Looks a ``SqlStore`` over, and mends it. Every call is one transaction, or one a batch."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def problems(self) -> list[Problem]:
        """What is wrong, as of one moment; [] when the store is sound. Reads all of it."""
        try:
            found = [Problem("store", each) for each in self._store.integrity()]
        except BackendRejected as error:  # damaged so that it cannot even be looked at
            return [Problem("store", str(error))]
        with self._store._connections.snapshot() as connection:
            told = {problem.text for problem in found}
            found += [Problem("store", each) for each in _counters(connection) if each not in told]
            found += _orphans(connection)
            found += _unusable(connection)
            found += _missing(connection)
            found += _lost(connection)
        return found

    def mend(self) -> None:
        """Mend what can be without an encoder; every index is made anew where that may concern it."""
        if any(each in problem for problem in self._store.integrity() for each in _REINDEXED):
            self._store._commits.run(lambda rows: _reindex(rows, self._store._engine.dialect.name))
        bad = self._bad_numbers()
        self._store._commits.run(lambda rows: _mend(rows, bad))

    def missing_embeddings(self, identity: EncoderIdentity, limit: int) -> Sequence[Memory]:
        """See ``SqlStore.missing_embeddings``."""
        return self._store.missing_embeddings(identity, limit)

    def put_embeddings(self, identity: EncoderIdentity, embedded: Sequence[tuple[Memory, Embedded]]) -> int:
        """Keep embeddings that were missing, each as a change of its memory for the feed; how many.

        Memories whose text has changed meanwhile, or that are gone, are left out.
        """
        return self._store._commits.run(lambda rows: _put(rows, identity, embedded))

    def renew(self) -> None:
        """Have every process make its indexes anew: the generation grows."""
        self._store._commits.run(_renew)

    def _bad_numbers(self) -> list[int]:
        with self._store._connections.snapshot() as connection:
            current = _current(connection)
            if current is None:
                return []
            rows = connection.execute(_vectors(current[0]))
            return [number for number, *_ in _bad_vectors(rows, current[1].dimension)]

    def known_partitions(self, tenant: str | None = None) -> list[Partition]:
        """Every partition that holds a memory, in whatever state, or held one; sorted. Erased users have no name."""
        columns = [
            select(table.c.tenant, table.c.user_id, table.c.bank).where(table.c.tenant == tenant)
            if tenant is not None
            else select(table.c.tenant, table.c.user_id, table.c.bank)
            for table in (memories, compactions)
        ]
        query = union(columns[0], columns[1].where(~compactions.c.user_id.like(_ERASED)))
        with self._store._connections.snapshot() as connection:
            return sorted(Partition(*row) for row in connection.execute(query))


# --- looking ----------------------------------------------------------------------------------------------------


def _counters(connection: Connection) -> Iterator[str]:
    for given, used in _USED:
        last, newest = connection.execute(select(given, select(func.max(used)).scalar_subquery())).one()
        if newest is not None and newest > last:
            where = used if used.table is counter else used.table.name
            yield f"counter.{given.name} is {last}, but {where} has {newest}"


def _orphans(connection: Connection) -> Iterator[Problem]:
    for table in BESIDE:
        component = "embeddings" if table is embeddings else "store"
        query = select(table.c.number, func.count()).where(~_has_memory(table)).group_by(table.c.number)
        for number, count in connection.execute(query.order_by(table.c.number)):
            rows = "a row" if count == 1 else f"{count} rows"
            yield Problem(component, f"{table.name}: {rows} of number {number}, which no memory has")  # type: ignore[arg-type]


def _has_memory(table: Table) -> Any:
    """Whether a memory stands beside the row that may have such a row."""
    conditions: list[Any] = [memories.c.number == table.c.number, LIVE]
    if table is embeddings:
        conditions.append(memories.c.kind != PARENT_KIND)
    return exists().where(*conditions)


def _current(connection: Connection) -> tuple[int, EncoderIdentity] | None:
    """Number and identity of the store's encoder; None where it has none yet."""
    query = select(encoders.c.number, encoders.c.identity).join(counter, counter.c.encoder == encoders.c.number)
    found = connection.execute(query).one_or_none()
    return None if found is None else (found[0], load_identity(found[1]))


def _unusable(connection: Connection) -> Iterator[Problem]:
    current = _current(connection)
    if current is None:
        return
    for _number, tenant, memory_id, why in _bad_vectors(connection.execute(_vectors(current[0])), current[1].dimension):
        yield Problem("embeddings", f"{memory_id} of tenant {tenant}: its vector {why}")


def _vectors(encoder: int) -> Select[Any]:
    return (
        select(embeddings.c.number, memories.c.tenant, memories.c.id, embeddings.c.vector)
        .join(memories, memories.c.number == embeddings.c.number)
        .where(embeddings.c.encoder == encoder, LIVE)
        .order_by(embeddings.c.number)
        .execution_options(yield_per=_AT_A_TIME)
    )


def _bad_vectors(rows: Any, dimension: int) -> Iterator[tuple[int, str, str, str]]:
    """Number, tenant, id and reason of each row whose vector cannot be one of the encoder."""
    for number, tenant, memory_id, blob in rows:
        if len(blob) != 4 * dimension:
            yield number, tenant, memory_id, f"has {len(blob) / 4:g} dimensions, not {dimension}"
        elif not np.isfinite(np.frombuffer(blob, dtype="<f4")).all():
            yield number, tenant, memory_id, "is not finite"


def _missing(connection: Connection) -> Iterator[Problem]:
    encoder = connection.execute(select(counter.c.encoder)).scalar_one()
    if encoder == 0:
        return
    lacking = reencoding.missing(encoder).with_only_columns(memories.c.tenant, memories.c.id)
    for tenant, memory_id in connection.execute(lacking):
        yield Problem("embeddings", f"{memory_id} of tenant {tenant}: has no embedding")


def _lost(connection: Connection) -> Iterator[Problem]:
    """What only other rows tell of, and cannot be brought back."""
    newest = select(func.max(history.c.revision)).group_by(history.c.tenant, history.c.memory_id)
    standing = exists().where(memories.c.tenant == history.c.tenant, memories.c.id == history.c.memory_id, LIVE)
    ended = history.c.event == Event.DELETE.value
    query = select(history.c.tenant, history.c.memory_id).where(history.c.revision.in_(newest), ~ended, ~standing)
    for tenant, memory_id in connection.execute(query.order_by(history.c.revision)):
        yield Problem("store", f"{memory_id} of tenant {tenant}: has a history, but is not there", why=_FROM_BACKUP)
    parent = memories.alias("parent")
    has_parent = exists().where(
        parent.c.tenant == memories.c.tenant, parent.c.id == memories.c.parent_id, parent.c.state != "deleted"
    )
    parts = select(memories.c.tenant, memories.c.id, memories.c.parent_id).where(
        text("memories.state <> 'deleted'"),
        memories.c.kind == SEGMENT_KIND,
        memories.c.parent_id.is_not(None),
        ~has_parent,
    )
    for tenant, memory_id, parent_id in connection.execute(parts.order_by(memories.c.number)):
        told = f"{memory_id} of tenant {tenant}: its document {parent_id} is not there"
        yield Problem("store", told, why=f"{_FROM_BACKUP}, or delete the segment")


# --- mending ----------------------------------------------------------------------------------------------------


def _reindex(rows: SqlRows, dialect: str) -> None:
    if dialect == "sqlite":
        rows.all(text("REINDEX"), fetch=False)
        return
    for table in metadata.tables:
        rows.all(text(f"REINDEX TABLE {table}"), fetch=False)


def _mend(rows: SqlRows, bad: Sequence[int]) -> None:
    counters = rows.counters
    behind = False
    for given, used in _USED:
        newest = rows.all(select(func.max(used)))[0][0]
        if newest is not None and newest > getattr(counters, given.name):
            setattr(counters, given.name, newest)
            behind = True
    if behind:
        # What was written beyond the counter is in no index that had read up to it.
        _renew(rows)
    for table in BESIDE:
        rows.all(delete(table).where(~_has_memory(table)), fetch=False)
    known = rows.all(select(encoders.c.identity).where(encoders.c.number == counters.encoder))
    for number in bad if known else ():
        mine = (embeddings.c.number == number, embeddings.c.encoder == counters.encoder)
        read = select(embeddings.c.number, memories.c.tenant, memories.c.id, embeddings.c.vector)
        found = rows.all(read.join(memories, memories.c.number == embeddings.c.number).where(*mine))
        if list(_bad_vectors(found, load_identity(known[0][0]).dimension)):  # as it stands now
            rows.all(delete(embeddings).where(*mine), fetch=False)


def _put(rows: SqlRows, identity: EncoderIdentity, embedded: Sequence[tuple[Memory, Embedded]]) -> int:
    kept = 0
    for memory, embedding in embedded:
        if not reencoding.put(rows, identity, [(memory, embedding)]):
            continue
        standing = rows.by_id(memory.tenant, memory.id)
        assert standing is not None
        rows.rewrite(replace(standing, revision=rows.take_revision()), UNSET)
        kept += 1
    return kept


def _renew(rows: SqlRows) -> None:
    rows.counters.generation += 1
