"""One writing transaction on the tables."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Final

from sqlalchemy import ClauseElement

from vimbank.domain.models import Memory, Partition, RecallEntry, Signal, Unset, Vector
from vimbank.domain.superseding import said_at
from vimbank.domain.times import from_micros, to_micros
from vimbank.ports import Embedded
from vimbank.store.changes import IdSource, Record
from vimbank.store.folding import Recalled, Touched
from vimbank.store.rows import (
    dump_tokens,
    dump_vector,
    load_vector,
    memory_from_row,
    memory_row,
    record_from_row,
    record_row,
    standing_from_row,
    standing_row,
    state_row,
)
from vimbank.store.statements import Statement, Statements
from vimbank.store.tables import history

__all__ = ["Counters", "SqlRows"]

_IDS_AT_A_TIME: Final = 512
_NO_ENCODER: Final = -1  # so that no vector is read


@dataclass(slots=True)
class Counters:
    """The row of ``counter``."""

    revision: int
    generation: int
    number: int
    recall: int
    folded: int
    encoder: int
    compacted: int


class SqlRows:
    """``changes.Rows`` on a driver's cursor inside an open transaction; ``finish`` before the commit."""

    def __init__(self, cursor: Any, statements: Statements, ids: IdSource) -> None:
        self._cursor: Final = cursor
        self._statements: Final = statements
        self._ids: Final = ids
        row = statements.read_counter.run(cursor).fetchone()
        self.counters: Final = Counters(*row[1:])
        self._before: Final = Counters(*row[1:])

    def finish(self) -> None:
        """Write the counters back."""
        counters = self.counters
        if counters != self._before:
            self._statements.write_counter.run(
                self._cursor,
                new_revision=counters.revision,
                new_generation=counters.generation,
                new_number=counters.number,
                new_recall=counters.recall,
                new_folded=counters.folded,
                new_encoder=counters.encoder,
                new_compacted=counters.compacted,
            )

    # -- changes.Rows --

    def take_revision(self) -> int:
        self.counters.revision += 1
        return self.counters.revision

    def take_number(self) -> int:
        self.counters.number += 1
        return self.counters.number

    def take_id(self, now: datetime) -> str:
        return self._ids.take(now)

    def by_id(self, tenant: str, memory_id: str) -> Memory | None:
        return self._one(self._statements.by_id, tenant=tenant, id=memory_id)

    def by_key(self, tenant: str, key: str) -> Memory | None:
        return self._one(self._statements.by_key, tenant=tenant, key=key)

    def by_event(self, tenant: str, event_id: str) -> Memory | None:
        return self._one(self._statements.by_event, tenant=tenant, event_id=event_id)

    def twin(self, partition: Partition, kind: str, content_hash: str) -> Memory | None:
        rows = self._statements.twins.run(self._cursor, content_hash=content_hash).fetchall()
        same = (
            memory
            for row in rows
            if (memory := memory_from_row(row)).partition == partition and memory.kind == kind and not memory.ended
        )
        return min(same, key=lambda memory: memory.number, default=None)

    def by_ids(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        names = list(dict.fromkeys(ids))
        return [memory_from_row(row) for row in self._together(self._statements.by_ids, names, tenant=tenant)]

    def parts(self, memories: Sequence[Memory]) -> list[Memory]:
        parents: dict[Partition, list[str]] = {}
        for memory in memories:
            parents.setdefault(memory.partition, []).append(memory.id)
        found: list[Memory] = []
        for place, ids in parents.items():
            values = {"tenant": place.tenant, "user_id": place.user_id, "bank": place.bank}
            found += (memory_from_row(row) for row in self._together(self._statements.parts, ids, **values))
        return sorted(found, key=lambda memory: memory.number)

    def vectors(self, memories: Sequence[Memory]) -> dict[int, Vector]:
        numbers = [memory.number for memory in memories]
        rows = self._together(self._statements.vectors, numbers, encoder=self.counters.encoder)
        return {row[0]: load_vector(row[1]) for row in rows}

    def insert(self, memory: Memory, key: str | None, embedding: Embedded | None) -> None:
        self._statements.insert_memory.run(self._cursor, **memory_row(memory), idempotency_key=key)
        if embedding is not None:
            self.put_embedding(memory.number, embedding, self.counters.encoder)

    def rewrite(self, memory: Memory, embedding: Embedded | Unset | None) -> None:
        columns = {f"new_{name}": value for name, value in memory_row(memory).items()}
        self._statements.rewrite_memory.run(self._cursor, **columns, at_number=memory.number)
        if isinstance(embedding, Unset):
            return
        # Of every encoder: what a reindex under way has made of the old text is outdated too.
        self._statements.delete_embeddings.run(self._cursor, number=memory.number)
        if embedding is not None:
            self.put_embedding(memory.number, embedding, self.counters.encoder)

    def put_claims(self, memory: Memory, claims: Sequence[tuple[str, str]]) -> None:
        self._statements.delete_claims.run(self._cursor, number=memory.number)
        place = {"tenant": memory.tenant, "user_id": memory.user_id, "bank": memory.bank, "number": memory.number}
        for subject, attribute in claims:
            self._statements.insert_claim.run(self._cursor, subject=subject, attribute=attribute, **place)

    def rivals(self, memory: Memory, subject: str, attribute: str | None, *, limit: int) -> list[Memory]:
        values = {
            "tenant": memory.tenant,
            "user_id": memory.user_id,
            "bank": memory.bank,
            "agent_id": memory.agent_id,
            "own_number": memory.number,
            "said_at": to_micros(said_at(memory)),
            "subject": subject,
            "limit": limit,
        }
        if attribute is not None:
            values["attribute"] = attribute
        statement = self._statements.rivals_of_any if attribute is None else self._statements.rivals
        return [memory_from_row(row) for row in statement.run(self._cursor, **values).fetchall()]

    def history_of(self, memory: Memory) -> list[Record]:
        rows = self._statements.history_of.run(self._cursor, tenant=memory.tenant, memory_id=memory.id).fetchall()
        names = [column.name for column in history.c]
        return [record_from_row(SimpleNamespace(**dict(zip(names, row, strict=True))), _NO_ENCODER) for row in rows]

    def bury(self, memory: Memory) -> None:
        self.rewrite(memory, None)
        self._statements.delete_claims.run(self._cursor, number=memory.number)
        self._statements.drop_key.run(self._cursor, at_number=memory.number)

    def recalled(self, tenant: str, ids: Sequence[str]) -> list[Recalled]:
        """See ``RecallRows.recalled``."""
        rows = self._together(self._statements.recalled, ids, tenant=tenant)
        return [Recalled(row[0], row[1], row[2], from_micros(row[3]), standing_from_row(row[4:])) for row in rows]

    def touch(self, touched: Sequence[Touched]) -> None:
        """See ``RecallRows.touch``."""
        self._statements.touch_memory.run_many(
            self._cursor,
            (
                standing_row(each.standing) | {"new_revision": each.revision, "at_number": each.number}
                for each in touched
            ),
        )

    def move(self, memory: Memory) -> None:
        columns = {f"new_{name}": value for name, value in state_row(memory).items()}
        self._statements.move_memory.run(self._cursor, **columns, at_number=memory.number)

    def record(self, record: Record) -> None:
        self._statements.insert_record.run(self._cursor, **record_row(record, self.counters.encoder))

    # -- embeddings, the access log --

    def put_embedding(self, number: int, embedding: Embedded, encoder: int) -> None:
        tokens = None if embedding.token_vectors is None else dump_tokens(embedding.token_vectors)
        self._statements.insert_embedding.run(
            self._cursor, encoder=encoder, number=number, vector=dump_vector(embedding.vector), tokens=tokens
        )

    def put_recalls(self, entries: Sequence[RecallEntry]) -> None:
        """Append to the access log."""
        first = self.counters.recall + 1
        self.counters.recall += len(entries)
        self._statements.insert_recall.run_many(
            self._cursor,
            (
                {
                    "number": number,
                    "tenant": entry.tenant,
                    "memory_id": entry.memory_id,
                    "at": to_micros(entry.at),
                    "signal": entry.signal.value,
                }
                for number, entry in enumerate(entries, first)
            ),
        )

    def unfolded(self, limit: int) -> list[RecallEntry]:
        """The oldest lines of the access log that were not folded in, by number."""
        rows = self._statements.read_recalls.run(self._cursor, after=self.counters.folded, limit=limit).fetchall()
        return [RecallEntry(row[1], row[2], from_micros(row[3]), Signal(row[4]), row[0]) for row in rows]

    def drop_lost_recalls(self, first: int, last: int) -> None:
        """Remove those lines of the access log whose memory is gone: an erasure may have passed them by."""
        self._statements.delete_lost_recalls.run(self._cursor, first=first, last=last)

    def trim_recalls(self, after: int, last: int, before: datetime) -> int:
        """Remove the lines of the access log with numbers above ``after`` up to ``last`` that are older; how many."""
        values = {"after": after, "last": last, "before": to_micros(before)}
        return len(self._statements.trim_recalls.run(self._cursor, **values).fetchall())

    def add_encoder(self, number: int, identity: str) -> None:
        self._statements.insert_encoder.run(self._cursor, number=number, identity=identity)

    def run(self, statement: Statement, **values: Any) -> Any:
        """Run a statement that another part of the store keeps; the cursor."""
        return statement.run(self._cursor, **values)

    def all(self, clause: ClauseElement, *, fetch: bool = True) -> list[Any]:
        """Run a statement that is not worth keeping; its rows."""
        cursor = self._statements.of(clause).run(self._cursor)
        return list(cursor.fetchall()) if fetch else []

    def _together(
        self, sized: Callable[[int], tuple[Statement, int]], ids: Sequence[Any], **values: Any
    ) -> Iterator[Sequence[Any]]:
        """The rows of a statement for many ids."""
        for start in range(0, len(ids), _IDS_AT_A_TIME):
            part = ids[start : start + _IDS_AT_A_TIME]
            statement, size = sized(len(part))
            names = {f"id_{place}": part[min(place, len(part) - 1)] for place in range(size)}
            yield from statement.run(self._cursor, **values, **names).fetchall()

    def _one(self, statement: Statement, **values: Any) -> Memory | None:
        row = statement.run(self._cursor, **values).fetchone()
        return None if row is None else memory_from_row(row)
