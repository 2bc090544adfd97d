"""Memories out of a store and into one, with history, counters, vectors and the keys that make writes idempotent."""

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, Connection, exists, func, select

from vimbank.domain.archive import Archived, Outcome, Past
from vimbank.domain.models import Event, Memory, MemoryState
from vimbank.domain.superseding import keys_of
from vimbank.domain.times import from_micros, to_micros
from vimbank.errors import Conflict, InvalidInput
from vimbank.store.rows import (
    MEMORY_COLUMNS,
    dump_json,
    dump_tokens,
    dump_vector,
    load_tokens,
    load_vector,
    memory_from_row,
    memory_row,
    record_from_row,
)
from vimbank.store.sql import SqlStore
from vimbank.store.sql_rows import SqlRows
from vimbank.store.tables import LIVE, counter, embeddings, history, memories

__all__ = ["SqlArchive"]

_AT_A_TIME: Final = 250
_OWN: Final = ("number", "tenant", "user_id")
"""Columns that another store, or another tenant, has its own values for."""
_COLUMNS: Final = frozenset(str(column.name) for column in MEMORY_COLUMNS)


class SqlArchive:
    """The store's side of export and import."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    # -- out --

    def counts(self, tenant: str, user_id: str | None) -> dict[str, int]:
        """How many memories there are, and how many entries of history."""
        with self._store._connections.snapshot() as connection:
            return {
                name: connection.execute(
                    select(func.count()).select_from(table).where(*_of(table, tenant, user_id), *live)
                ).scalar_one()
                for name, table, live in (("memories", memories, [LIVE]), ("history", history, []))
            }

    def archived(self, tenant: str, user_id: str | None) -> Iterator[list[Archived]]:
        """All that there is of a user, or of all users of a tenant, in batches: by number, then what was deleted.

        Each batch is of one moment; only numbers and the ids of deleted memories are held in memory.
        Raises:  Conflict: the store changes over to another encoder meanwhile.
        """
        numbers, dead = self._names(tenant, user_id)
        encoder = self._encoder()
        for start in range(0, len(numbers), _AT_A_TIME):
            yield self._living(numbers[start : start + _AT_A_TIME].tolist(), encoder)
        for start in range(0, len(dead), _AT_A_TIME):
            yield self._dead(tenant, dead[start : start + _AT_A_TIME], encoder)

    def _names(self, tenant: str, user_id: str | None) -> tuple["array[int]", list[tuple[str, str]]]:
        living = select(memories.c.number).where(*_of(memories, tenant, user_id), LIVE).order_by(memories.c.number)
        standing = exists().where(
            memories.c.tenant == history.c.tenant,
            memories.c.id == history.c.memory_id,
            memories.c.user_id == history.c.user_id,
            LIVE,
        )
        past = (
            select(history.c.memory_id, history.c.user_id)
            .where(*_of(history, tenant, user_id), ~standing)
            .group_by(history.c.memory_id, history.c.user_id)
            .order_by(func.min(history.c.revision))
        )
        with self._store._connections.snapshot() as connection:
            rows = connection.execute(living.execution_options(yield_per=10_000))
            numbers = array("q", (row[0] for row in rows))
            return numbers, [(row[0], row[1]) for row in connection.execute(past)]

    def _living(self, numbers: Sequence[int], encoder: int) -> list[Archived]:
        mine = (embeddings.c.number == memories.c.number) & (embeddings.c.encoder == encoder)
        query = (
            select(*MEMORY_COLUMNS, memories.c.idempotency_key, embeddings.c.vector, embeddings.c.tokens)
            .select_from(memories.outerjoin(embeddings, mine))
            .where(memories.c.number.in_(numbers), LIVE)
            .order_by(memories.c.number)
        )
        with self._store._connections.snapshot() as connection:
            self._refuse_other(connection, encoder)
            rows = connection.execute(query).fetchall()
            found = [(memory_from_row(row), row[-3], row[-2], row[-1]) for row in rows]
            names = [(memory.id, memory.user_id) for memory, *_ in found]
            past, graves = _lives(connection, found[0][0].tenant if found else "", names, encoder)
        return [
            Archived(
                id=memory.id,
                tenant=memory.tenant,
                user_id=memory.user_id,
                memory=memory,
                key=key,
                vector=None if vector is None else load_vector(vector),
                tokens=tokens,
                past=past.get((memory.id, memory.user_id), ()),
                graves=graves.get((memory.id, memory.user_id), ()),
            )
            for memory, key, vector, tokens in found
        ]

    def _dead(self, tenant: str, names: Sequence[tuple[str, str]], encoder: int) -> list[Archived]:
        with self._store._connections.snapshot() as connection:
            self._refuse_other(connection, encoder)
            past, graves = _lives(connection, tenant, names, encoder)
        return [
            Archived(id=name, tenant=tenant, user_id=user, past=past[name, user], graves=graves.get((name, user), ()))
            for name, user in names
            if (name, user) in past
        ]

    def _encoder(self) -> int:
        with self._store._connections.snapshot() as connection:
            return int(connection.execute(select(counter.c.encoder)).scalar_one())

    @staticmethod
    def _refuse_other(connection: Connection, encoder: int) -> None:
        if connection.execute(select(counter.c.encoder)).scalar_one() != encoder:
            raise Conflict("the store changed over to another encoder meanwhile: export again")

    # -- in --

    def restore(
        self, entries: Sequence[Archived], *, actor: str, now: datetime, dry_run: bool = False
    ) -> list[Outcome | Conflict | InvalidInput]:
        """Take entries in, all in one transaction; what became of each, in order.

        An id that stands with the same content is a duplicate; with other content, or a key or event id of another
        memory, a Conflict, and the others are taken in. History that is there already is not written twice.
        ``dry_run``: what would become of them; nothing is written.
        """

        def write(rows: SqlRows) -> list[Outcome | Conflict | InvalidInput]:
            self._store._check_encoder(rows.counters.encoder)
            results: list[Outcome | Conflict | InvalidInput] = []
            for entry in entries:
                try:
                    results.append(self._take(rows, entry, actor, now, dry_run))
                except (Conflict, InvalidInput) as error:
                    results.append(error)
            return results

        return self._store._commits.run(write) if entries else []

    def _take(self, rows: SqlRows, entry: Archived, actor: str, now: datetime, dry_run: bool) -> Outcome:
        known = self._known_past(rows, entry)
        if entry.memory is None:
            if known or rows.by_id(entry.tenant, entry.id) is not None:
                return "duplicate"
        elif _stands(rows, entry, entry.memory):
            return "duplicate"
        _check(entry)
        for part in entry.parts:
            if part.memory is not None and rows.by_id(part.tenant, part.id) is not None:
                raise Conflict(f"id {part.id!r} belongs to another memory")
        if not dry_run:
            self._write(rows, entry, known, actor, now)
            for part in entry.parts:
                self._write(rows, part, set(), actor, now)
        return "added"

    def _write(self, rows: SqlRows, entry: Archived, known: set[tuple[Any, ...]], actor: str, now: datetime) -> None:
        for grave in entry.graves if not known else ():
            rows.insert(replace(grave, number=rows.take_number(), revision=rows.take_revision()), None, None)
        number, revision = rows.take_number(), 0
        for past in entry.past:
            if _name(past) not in known:
                former, revision = revision, rows.take_revision()
                columns = _record_columns(entry, past, number, revision, former, rows.counters.encoder)
                rows.run(self._store._statements.insert_record, **columns)
        if entry.memory is None:
            return
        if not entry.past or known:  # a deleted memory that comes back, or one without a past
            revision = rows.take_revision()
            again = Past(
                bank=entry.memory.bank, at=now, event=Event.ADD, actor=actor, new_text=entry.memory.text
            )  # fmt: skip
            columns = _record_columns(entry, again, number, revision, 0, rows.counters.encoder)
            rows.run(self._store._statements.insert_record, **columns)
        memory = replace(entry.memory, number=number, revision=revision)
        rows.insert(memory, entry.key, None)
        if claims := keys_of(memory):
            rows.put_claims(memory, claims)
        if entry.vector is not None:
            made = None if entry.token_vectors is None else dump_tokens(entry.token_vectors)
            rows.run(
                self._store._statements.insert_embedding,
                encoder=rows.counters.encoder,
                number=number,
                vector=dump_vector(entry.vector),
                tokens=entry.tokens if made is None else made,
            )

    def _known_past(self, rows: SqlRows, entry: Archived) -> set[tuple[Any, ...]]:
        h = history.c
        query = select(h.at, h.event, h.actor, h.new_text).where(
            h.tenant == entry.tenant, h.user_id == entry.user_id, h.memory_id == entry.id
        )
        return {tuple(row) for row in rows.all(query)}


# --- reading ----------------------------------------------------------------------------------------------------


def _of(table: Any, tenant: str, user_id: str | None) -> Iterator[ColumnElement[bool]]:
    yield table.c.tenant == tenant
    if user_id is not None:
        yield table.c.user_id == user_id


def _lives(
    connection: Connection, tenant: str, names: Sequence[tuple[str, str]], encoder: int
) -> tuple[dict[tuple[str, str], list[Past]], dict[tuple[str, str], list[Memory]]]:
    """History and tombstones of ids, by id and user."""
    ids = [name for name, _ in names]
    past: dict[tuple[str, str], list[Past]] = {}
    graves: dict[tuple[str, str], list[Memory]] = {}
    records = select(history).where(history.c.tenant == tenant, history.c.memory_id.in_(ids))
    for row in connection.execute(records.order_by(history.c.revision)):
        past.setdefault((row.memory_id, row.user_id), []).append(_past(row, encoder))
    buried = select(*MEMORY_COLUMNS).where(
        memories.c.tenant == tenant, memories.c.id.in_(ids), memories.c.state == MemoryState.DELETED.value
    )
    for row in connection.execute(buried.order_by(memories.c.number)):
        graves.setdefault((row[2], row[3]), []).append(memory_from_row(row))
    return past, graves


def _past(row: Any, encoder: int) -> Past:
    before = None if row.before is None else {k: v for k, v in orjson.loads(row.before).items() if k not in _OWN}
    if before is not None and "revision" in before:
        before["revision"] = None
    own = row.old_vector is not None and row.old_encoder == encoder
    return Past(
        bank=row.bank,
        at=from_micros(row.at),
        event=Event(row.event),
        actor=row.actor,
        old_text=row.old_text,
        new_text=row.new_text,
        changes=orjson.loads(row.changes),
        before=before,
        moved=bool(row.moved),
        vector=load_vector(row.old_vector) if own else None,
    )


# --- writing ----------------------------------------------------------------------------------------------------


def _stands(rows: SqlRows, entry: Archived, memory: Memory) -> bool:
    """Whether the memory is there already. Raises Conflict where a name of it is another memory's."""
    stored = rows.by_id(entry.tenant, entry.id)
    if stored is not None:
        if (stored.content_hash, stored.partition) != (memory.content_hash, memory.partition):
            raise Conflict(f"id {entry.id!r} belongs to another memory")
        return True
    if entry.key is not None and rows.by_key(entry.tenant, entry.key) is not None:
        raise Conflict(f"idempotency_key {entry.key!r} belongs to another memory")
    event_id = memory.source.event_id
    if event_id is not None and rows.by_event(entry.tenant, event_id) is not None:
        raise Conflict(f"event_id {event_id!r} belongs to another memory")
    return entry.fold and rows.twin(memory.partition, memory.kind, memory.content_hash) is not None


def _check(entry: Archived) -> None:
    """Raises InvalidInput for what a store could not have written."""
    if entry.tokens is not None:
        try:
            load_tokens(entry.tokens)
        except (ValueError, struct.error) as exc:
            raise InvalidInput.of("tokens", "are not token vectors") from exc
    for place, past in enumerate(entry.past):
        _check_past(entry, past, f"past.{place}")


def _check_past(entry: Archived, past: Past, field: str) -> None:
    """What cannot be read back would fail a search of the past, long after the import."""
    columns = _before_columns(entry, past, 0, 0)
    if columns is not None and not set(columns) <= _COLUMNS:
        raise InvalidInput.of(f"{field}.before", "has other fields than a memory")
    try:
        record_from_row(SimpleNamespace(**_record_columns(entry, past, 0, 0, 0, 1)), 1)
    except (ValueError, TypeError, KeyError, OverflowError) as exc:
        raise InvalidInput.of(f"{field}.before", "is not what the store writes for this event") from exc


def _name(past: Past) -> tuple[Any, ...]:
    return to_micros(past.at), past.event.value, past.actor, past.new_text


def _before_columns(entry: Archived, past: Past, number: int, former: int) -> dict[str, Any] | None:
    """The columns of the memory before; ``former``: the revision that it had then."""
    if past.before is None:
        return None
    whole = past.before if isinstance(past.before, Mapping) else memory_row(past.before) | {"text": None}
    columns = dict(whole)
    if "id" in columns:
        own = {"number": number, "tenant": entry.tenant, "user_id": entry.user_id, "id": entry.id}
        lacking = {name: None for name in sorted(_COLUMNS) if name not in columns}  # an older export may lack some
        columns = columns | lacking | own
        columns["metadata"] = columns.get("metadata") or "{}"
    if "revision" in columns:
        columns["revision"] = former
    return columns


def _record_columns(
    entry: Archived, past: Past, number: int, revision: int, former: int, encoder: int
) -> dict[str, Any]:
    before = _before_columns(entry, past, number, former)
    return {
        "revision": revision,
        "tenant": entry.tenant,
        "user_id": entry.user_id,
        "bank": past.bank,
        "memory_id": entry.id,
        "at": to_micros(past.at),
        "event": past.event.value,
        "actor": past.actor,
        "old_text": past.old_text,
        "new_text": past.new_text,
        "changes": dump_json(dict(past.changes)),
        "before": None if before is None else dump_json(before),
        "moved": past.moved,
        "old_vector": None if past.vector is None else dump_vector(past.vector),
        "old_encoder": None if past.vector is None else encoder,
    }
