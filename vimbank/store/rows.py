"""Between values and table rows: what each column of ``tables`` holds."""

import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import orjson

from vimbank.domain.curves import Trace
from vimbank.domain.endings import Ended, ended_record, parse_ended
from vimbank.domain.models import (
    Event,
    HistoryEntry,
    Memory,
    MemoryState,
    Partition,
    Sample,
    Source,
    Vector,
    Vectors,
)
from vimbank.domain.reinforcement import Standing
from vimbank.domain.times import from_micros, to_micros
from vimbank.ports import EncoderIdentity
from vimbank.store.changes import STATE_FIELDS, Record
from vimbank.store.tables import memories

__all__ = [
    "MEMORY_COLUMNS",
    "STANDING_COLUMNS",
    "dump_ended",
    "dump_identity",
    "dump_json",
    "dump_tokens",
    "dump_vector",
    "entry_from_row",
    "load_ended",
    "load_identity",
    "load_tokens",
    "load_vector",
    "memory_from_row",
    "memory_row",
    "record_from_row",
    "record_row",
    "standing_from_row",
    "standing_row",
    "state_row",
]

MEMORY_COLUMNS: Final = tuple(column for column in memories.c if column.name != "idempotency_key")
"""What ``memory_from_row`` reads, in its order."""

_STATES: Final = {state.value: state for state in MemoryState}
_EVENTS: Final = {event.value: event for event in Event}
_NOWHERE: Final = Source()
_SHAPE: Final = struct.Struct("<II")  # tokens, dimension


def memory_row(memory: Memory) -> dict[str, Any]:
    """The columns of a memory, without its idempotency key."""
    source = memory.source
    return {
        "number": memory.number,
        "tenant": memory.tenant,
        "id": memory.id,
        "user_id": memory.user_id,
        "bank": memory.bank,
        "kind": memory.kind,
        "text": memory.text,
        "created_at": to_micros(memory.created_at),
        "updated_at": to_micros(memory.updated_at),
        "content_hash": memory.content_hash,
        "revision": memory.revision,
        "title": memory.title,
        "speaker": memory.speaker,
        "agent_id": memory.agent_id,
        "session_id": memory.session_id,
        "metadata": dump_json(dict(memory.metadata)),
        "parent_id": source.parent_id,
        "position": source.position,
        "start_offset": source.start,
        "end_offset": source.end,
        "event_id": source.event_id,
        "event_at": _micros(memory.event_at),
        "valid_from": _micros(memory.valid_from),
        "valid_to": _micros(memory.valid_to),
        "expires_at": _micros(memory.expires_at),
        "importance": memory.importance,
        "pinned": memory.pinned,
        "strength": memory.strength,
        "recall_count": memory.recall_count,
        "last_recalled_at": _micros(memory.last_recalled_at),
        "state": memory.state.value,
        "superseded_by": memory.superseded_by,
        "token_count": memory.token_count,
        "stability_days": memory.stability_days,
        "difficulty": memory.difficulty,
        "sample": None if memory.sample is None else memory.sample.value,
        "sample_reasons": " ".join(memory.sample_reasons) or None,
        "ended": dump_ended(memory.ended),
        "information": memory.information,
    }


def memory_from_row(row: Sequence[Any]) -> Memory:
    """The memory in a row that begins with MEMORY_COLUMNS."""
    parent_id, position, start, end, event_id = row[16:21]
    if parent_id is None and position is None and start is None and end is None and event_id is None:
        source = _NOWHERE
    else:
        source = Source(parent_id=parent_id, position=position, start=start, end=end, event_id=event_id)
    created_at = from_micros(row[7])
    return Memory(
        number=row[0],
        tenant=row[1],
        id=row[2],
        user_id=row[3],
        bank=row[4],
        kind=row[5],
        text=row[6],
        created_at=created_at,
        updated_at=created_at if row[8] == row[7] else from_micros(row[8]),
        content_hash=row[9],
        revision=row[10],
        title=row[11],
        speaker=row[12],
        agent_id=row[13],
        session_id=row[14],
        metadata=orjson.loads(row[15]),
        source=source,
        event_at=_moment(row[21]),
        valid_from=_moment(row[22]),
        valid_to=_moment(row[23]),
        expires_at=_moment(row[24]),
        importance=row[25],
        pinned=bool(row[26]),
        strength=row[27],
        recall_count=row[28],
        last_recalled_at=_moment(row[29]),
        state=_STATES[row[30]],
        superseded_by=row[31],
        token_count=row[32],
        stability_days=row[33],
        difficulty=row[34],
        sample=None if row[35] is None else Sample(row[35]),
        sample_reasons=() if row[36] is None else tuple(row[36].split()),
        ended=() if row[37] is None else load_ended(row[37]),
        information=row[38],
    )


STANDING_COLUMNS: Final = ("strength", "stability_days", "difficulty", "recall_count", "last_recalled_at")
"""What ``standing_from_row`` reads, in its order, and what ``standing_row`` writes."""


def standing_row(standing: Standing) -> dict[str, Any]:
    """The new columns of a memory that was recalled."""
    trace = standing.trace
    return {
        "new_strength": trace.strength,
        "new_stability_days": trace.stability_days,
        "new_difficulty": trace.difficulty,
        "new_recall_count": standing.recall_count,
        "new_last_recalled_at": _micros(standing.last_recalled_at),
    }


def standing_from_row(row: Sequence[Any]) -> Standing:
    """The standing in a row of STANDING_COLUMNS."""
    return Standing(Trace(*row[:3]), row[3], _moment(row[4]))


def state_row(memory: Memory) -> dict[str, Any]:
    """The columns that a change of state writes."""
    return _state_columns({name: getattr(memory, name) for name in STATE_FIELDS})


def _state_columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **fields,
        "state": fields["state"].value,
        "valid_to": _micros(fields["valid_to"]),
        "last_recalled_at": _micros(fields["last_recalled_at"]),
        "updated_at": to_micros(fields["updated_at"]),
        "ended": dump_ended(fields["ended"]),
    }


def _state_fields(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **columns,
        "state": _STATES[columns["state"]],
        "valid_to": _moment(columns["valid_to"]),
        "last_recalled_at": _moment(columns["last_recalled_at"]),
        "updated_at": from_micros(columns["updated_at"]),
        "ended": () if columns.get("ended") is None else load_ended(columns["ended"]),
    }


def record_row(record: Record, encoder: int) -> dict[str, Any]:
    """The columns of a history record; ``encoder`` made its vector."""
    entry, partition = record.entry, record.partition
    return {
        "revision": entry.revision,
        "tenant": partition.tenant,
        "user_id": partition.user_id,
        "bank": partition.bank,
        "memory_id": entry.memory_id,
        "at": to_micros(entry.at),
        "event": entry.event.value,
        "actor": entry.actor,
        "old_text": entry.old_text,
        "new_text": entry.new_text,
        "changes": dump_json({name: list(pair) for name, pair in entry.changes.items()}),
        "before": _before(record),
        "moved": record.moved,
        "old_vector": None if record.vector is None else dump_vector(record.vector),
        "old_encoder": None if record.vector is None else encoder,
    }


def _before(record: Record) -> str | None:
    if record.undo is not None:
        return dump_json(_state_columns(record.undo))
    return None if record.before is None else dump_json(memory_row(record.before) | {"text": None})


def entry_from_row(row: Any) -> HistoryEntry:
    """The history entry in a row of ``history``."""
    changes: Mapping[str, Sequence[Any]] = orjson.loads(row.changes)
    return HistoryEntry(
        row.memory_id,
        row.revision,
        from_micros(row.at),
        _EVENTS[row.event],
        row.actor,
        row.old_text,
        row.new_text,
        {name: tuple(pair) for name, pair in changes.items()},
    )


def record_from_row(row: Any, encoder: int) -> Record:
    """The record in a row of ``history``; its vector only where ``encoder`` made it."""
    entry, partition = entry_from_row(row), Partition(row.tenant, row.user_id, row.bank)
    if entry.event is Event.STATE:
        return Record(entry, partition, undo=_state_fields(orjson.loads(row.before)))
    before = None
    if row.before is not None:
        columns = orjson.loads(row.before) | {"text": row.old_text}
        before = memory_from_row([columns.get(column.name) for column in MEMORY_COLUMNS])  # an earlier schema had fewer
    vector = load_vector(row.old_vector) if row.old_vector is not None and row.old_encoder == encoder else None
    return Record(entry, partition, before, bool(row.moved), vector)


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def dump_ended(ended: Sequence[Ended]) -> str | None:
    """JSON text of what has ended; None where nothing has."""
    return dump_json([ended_record(each) for each in ended]) if ended else None


def load_ended(text: str) -> tuple[Ended, ...]:
    """The inverse of ``dump_ended``."""
    return tuple(parse_ended(each, "ended") for each in orjson.loads(text))


def dump_json(value: Any) -> str:
    """JSON text of a plain value."""
    return orjson.dumps(value).decode()


def dump_identity(identity: EncoderIdentity) -> str:
    """One text an identity: equal identities, equal texts."""
    return orjson.dumps(identity, option=orjson.OPT_SORT_KEYS).decode()


def load_identity(text: str) -> EncoderIdentity:
    """The identity of ``dump_identity``'s text."""
    return EncoderIdentity(**orjson.loads(text))


def dump_vector(vector: Vector) -> bytes:
    """(d,) as float32, little endian."""
    return bytes(np.ascontiguousarray(vector, dtype="<f4").tobytes())


def load_vector(blob: bytes) -> Vector:
    """(d,) float32, read-only."""
    return np.frombuffer(blob, dtype="<f4")


def dump_tokens(vectors: Vectors) -> bytes:
    """(t, d) unit rows in a quarter of their size: int8 with one float32 scale a row (B15).

    Each number is off by at most half a step, max|row| / 254.
    """
    rows = np.ascontiguousarray(vectors, dtype="<f4")
    scales = np.abs(rows).max(axis=1, initial=0.0) / np.float32(127)
    steps = np.where(scales > 0, scales, 1)[:, None]
    codes = np.rint(rows / steps).astype(np.int8)
    return b"".join((_SHAPE.pack(*rows.shape), scales.astype("<f4").tobytes(), codes.tobytes()))


def load_tokens(blob: bytes) -> Vectors:
    """(t, d) float32, as ``dump_tokens`` kept it."""
    count, dimension = _SHAPE.unpack_from(blob)
    scales = np.frombuffer(blob, dtype="<f4", count=count, offset=_SHAPE.size)
    codes = np.frombuffer(blob, dtype=np.int8, count=count * dimension, offset=_SHAPE.size + 4 * count)
    vectors: Vectors = codes.reshape(count, dimension).astype(np.float32) * scales[:, None]
    return vectors
