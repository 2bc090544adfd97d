"""Other systems' dumps: what is kept of each."""

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from vimbank.domain.models import ListQuery, Memory
from vimbank.errors import InvalidInput
from vimbank.portability.dumps import found_in
from vimbank.portability.import_ import Importer, ImportReport
from vimbank.service import MemoryService
from vimbank.store.foreign import is_sqlite, rows_of
from vimbank.wiring.portability import open_archive

MEM0 = {
    "results": [
        {
            "id": "7c6f",
            "memory": "Loves hiking in the Alps",
            "hash": "d41d",
            "metadata": {"category": "hobbies"},
            "score": 0.3,
            "created_at": "2025-05-01T10:00:00-07:00",
            "updated_at": "2025-06-01T10:00:00-07:00",
            "user_id": "alice",
            "agent_id": "guide",
            "run_id": "trip",
        },
        {"id": "8d7a", "memory": "", "user_id": "alice"},
        {"id": "9e8b", "memory": "Is vegan", "created_at": "2025-05-02T00:00:00Z"},
    ]
}
HISTORY = [
    ("h1", "7c6f", None, "Loves hiking", "ADD", "2025-05-01T17:00:00Z", None, 0),
    (
        "h2",
        "7c6f",
        "Loves hiking",
        "Loves hiking in the Alps",
        "UPDATE",
        "2025-05-01T17:00:00Z",
        "2025-06-01T17:00:00Z",
        0,
    ),
    ("h3", "gone", None, "Owns a boat", "ADD", "2025-05-03T00:00:00Z", None, 0),
    ("h4", "gone", "Owns a boat", None, "DELETE", "2025-05-03T00:00:00Z", "2025-05-04T00:00:00Z", 1),
]
AGENT_MEMORY = {
    "memories": [
        {
            "id": "01HX",
            "text": "User prefers window seats",
            "session_id": "s1",
            "user_id": "alice",
            "namespace": "travel",
            "topics": ["seats"],
            "entities": [],
            "memory_type": "semantic",
            "event_date": "2025-01-02T03:04:05Z",
            "created_at": "2025-01-02T03:04:05.678Z",
            "updated_at": "2025-01-03T00:00:00Z",
            "last_accessed": "2025-02-01T00:00:00Z",
            "access_count": 3,
            "pinned": True,
            "dist": 0.21,
        }
    ],
    "total": 1,
}
WORKING = {
    "session_id": "s2",
    "user_id": "alice",
    "messages": [
        {"role": "user", "content": "Which seat?", "id": "m1", "created_at": "2025-01-02T00:00:00Z"},
        {"role": "assistant", "content": "The window.", "id": "m2"},
    ],
    "memories": [{"text": "prefers windows", "topics": ["seats"]}],
}
MEMORYBANK = {
    "Linda": {
        "name": "Linda",
        "history": {
            "2023-04-27": [
                {"query": "Hi!", "response": "Hello Linda.", "memory_strength": 3, "last_recall_date": "2023-05-02"},
                {"query": "Recommend a book", "response": "Wuthering Heights"},
                {"query": 7},
            ]
        },
        "summary": {"2023-04-27": {"content": "Linda asked for a book.", "memory_strength": 1}},
        "personality": {"2023-04-27": "Curious."},
        "overall_history": "Linda reads.",
        "overall_personality": "",
    }
}


def taken(service: MemoryService, value: Any, **given: Any) -> ImportReport:
    importer = Importer(service, open_archive(service), tenant="default", actor="test", **given)
    importer.feed(value if isinstance(value, bytes) else json.dumps(value, indent=1).encode())
    return importer.finish()


def stored(service: MemoryService, user_id: str) -> list[Memory]:
    return list(service.list(ListQuery(tenant="default", user_id=user_id, state=None)).items)


def test_a_mem0_dump_keeps_ids_times_scopes_and_metadata(service: MemoryService) -> None:
    report = taken(service, MEM0, user_id="bob")
    assert (report.format, report.added, report.failed, report.embedded) == ("mem0", 2, 1, 2)
    assert [(each.line, each.id) for each in report.bad] == [(2, "8d7a")]
    (memory,) = stored(service, "alice")
    assert (memory.id, memory.text, memory.agent_id, memory.session_id) == (
        "7c6f", "Loves hiking in the Alps", "guide", "trip",
    )  # fmt: skip
    assert memory.created_at == datetime(2025, 5, 1, 17, tzinfo=UTC)
    assert memory.updated_at == datetime(2025, 6, 1, 17, tzinfo=UTC)
    assert memory.metadata == {"category": "hobbies"}
    assert stored(service, "bob")[0].id == "9e8b"
    assert taken(service, MEM0, user_id="bob").added == 0
    assert service.check().ok


def history_file(folder: Path) -> Path:
    path = folder / "history.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE history (id TEXT, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
            " created_at DATETIME, updated_at DATETIME, is_deleted INTEGER)"
        )
        connection.executemany("INSERT INTO history VALUES (?,?,?,?,?,?,?,?)", HISTORY)
    connection.close()
    return path


def test_a_mem0_history_becomes_the_history_of_the_memories(service: MemoryService, tmp_path: Path) -> None:
    path = history_file(tmp_path)
    assert is_sqlite(path)
    report = taken(service, MEM0, user_id="bob", history=rows_of(path, "history"))
    assert (report.added, report.failed) == (3, 1)
    changes = [(each.event.value, each.old_text, each.new_text) for each in service.history("default", "7c6f")]
    assert changes == [
        ("add", None, "Loves hiking"),
        ("update", "Loves hiking", "Loves hiking in the Alps"),
    ]
    assert [each.event.value for each in service.history("default", "gone")] == ["add", "delete"]
    may = datetime(2025, 5, 15, tzinfo=UTC)
    past = service.store.as_of(stored(service, "alice")[0].partition, may)
    assert [memory.text for memory, _ in past] == ["Loves hiking"]


def test_a_mem0_history_alone_gives_the_last_texts(service: MemoryService, tmp_path: Path) -> None:
    rows = rows_of(history_file(tmp_path), "history")
    report = taken(service, {"results": [], "history": rows}, user_id="bob")
    assert (report.added, report.failed) == (2, 0)
    assert [(each.id, each.text) for each in stored(service, "bob")] == [("7c6f", "Loves hiking in the Alps")]


def test_agent_memory_keeps_counters_kinds_and_pins(service: MemoryService) -> None:
    assert taken(service, AGENT_MEMORY).format == "agent-memory"
    (memory,) = stored(service, "alice")
    assert (memory.id, memory.kind, memory.pinned, memory.recall_count, memory.strength) == (
        "01HX", "semantic", True, 3, 4.0,
    )  # fmt: skip
    assert memory.metadata == {"namespace": "travel", "topics": ["seats"]}
    assert memory.last_recalled_at == datetime(2025, 2, 1, tzinfo=UTC)
    assert memory.event_at == datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_working_memory_becomes_rounds_and_memories(service: MemoryService) -> None:
    assert taken(service, WORKING).added == 2
    texts = {memory.kind: memory.text for memory in stored(service, "alice")}
    assert texts == {"round": "Which seat?\nThe window.", "note": "prefers windows"}
    assert taken(service, WORKING).duplicates == 2


def test_memorybank_keeps_rounds_strengths_summaries_and_portraits(service: MemoryService) -> None:
    report = taken(service, MEMORYBANK)
    assert (report.format, report.added, report.failed) == ("memorybank", 5, 1)
    memories = {memory.id: memory for memory in stored(service, "Linda")}
    first = memories["memorybank:Linda/2023-04-27/0"]
    assert (first.text, first.strength, first.recall_count) == ("Hi!\nHello Linda.", 3.0, 2)
    assert first.last_recalled_at == datetime(2023, 5, 2, tzinfo=UTC)
    assert sorted(memory.kind for memory in memories.values()) == ["portrait", "round", "round", "summary", "summary"]
    assert taken(service, MEMORYBANK).added == 0


def test_json_lines_as_ingest_takes_them(service: MemoryService) -> None:
    """Case 116: the third line is broken."""
    lines = [
        {"text": "one", "user_id": "ana", "id": "one"}, {"text": "two " * 900, "bank": "dialog"}, {"text": "four"},
    ]  # fmt: skip
    first, second, fourth = (json.dumps(line).encode() for line in lines)
    body = b"\n".join([first, second, b'{"text": \xff', fourth])
    report = taken(service, body, user_id="ana")
    assert (report.format, report.added, [each.line for each in report.bad]) == ("jsonl", 3, [3])
    assert {memory.bank for memory in stored(service, "ana")} == {"knowledge", "dialog"}
    assert service.list(ListQuery(tenant="default", user_id="ana", kind="segment")).total > 1
    assert taken(service, body, user_id="ana").duplicates == 3
    assert service.check().ok


def test_a_broken_first_line_does_not_hide_the_others(service: MemoryService) -> None:
    report = taken(service, b'{"text": \xff\n{"text": "two", "user_id": "ana"}\n')
    assert (report.added, [each.line for each in report.bad]) == (1, [1])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (MEM0, "mem0"),
        (MEM0["results"], "mem0"),
        ([{"memory_id": "x", "event": "ADD"}], "mem0"),
        (AGENT_MEMORY, "agent-memory"),
        (AGENT_MEMORY["memories"], "agent-memory"),
        (MEMORYBANK, "memorybank"),
        ([{"text": "x", "user_id": "ana"}], "jsonl"),
    ],
)
def test_a_dump_is_known_by_its_shape(value: object, expected: str) -> None:
    assert found_in(value) == expected


@pytest.mark.parametrize("value", [b"no json at all", b"[]", b"3", b'{"a": 1}', b"\x00\xff"])
def test_what_is_no_dump_is_refused(service: MemoryService, value: bytes) -> None:
    with pytest.raises(InvalidInput):
        taken(service, value)


def test_one_document_has_a_limit(service: MemoryService) -> None:
    with pytest.raises(InvalidInput, match="document of more"):
        taken(service, MEM0, max_document_bytes=100)
