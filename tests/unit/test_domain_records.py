"""Values of the domain as records."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType

import orjson

from vimbank.api.answers import json_bytes
from vimbank.domain.models import Memory, MemoryState, Source
from vimbank.domain.records import memory_record, plain

MEMORY = Memory(
    id="m", tenant="t", user_id="u", bank="dialog", kind="note", text="tea", content_hash="h", revision=3,
    created_at=datetime(2026, 1, 31, 9, 30, 0, 125_000, UTC), updated_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
    metadata=MappingProxyType({"tags": ("a", "b"), "seen": 2}), source=Source(position=4),
)  # fmt: skip


def test_a_memory_is_told_whole_but_for_what_is_the_stores_own() -> None:
    assert set(memory_record(MEMORY)) == {field.name for field in fields(Memory)} - {"tenant", "content_hash", "number"}
    assert set(memory_record(MEMORY)["source"]) == {field.name for field in fields(Source)}


def test_both_writers_of_json_say_the_same() -> None:
    record = {**memory_record(MEMORY), "metadata": {"seen": 2}}
    assert orjson.loads(json_bytes(record)) == plain(record)
    assert plain(record)["created_at"] == "2026-01-31T09:30:00.125000Z"
    assert plain(record)["updated_at"] == "2026-01-31T12:00:00Z"


def test_plain_makes_jsons_types_of_everything() -> None:
    noon = datetime(2026, 1, 31, 21, tzinfo=timezone(timedelta(hours=9)))
    assert plain([noon, MemoryState.ACTIVE, Source(event_id="e"), MEMORY.metadata, None, 1.5]) == [
        "2026-01-31T12:00:00Z",
        "active",
        {"parent_id": None, "position": None, "start": None, "end": None, "event_id": "e"},
        {"tags": ["a", "b"], "seen": 2},
        None,
        1.5,
    ]
    assert type(plain(MemoryState.ACTIVE)) is str
