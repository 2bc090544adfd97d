"""JSON Lines of memories: every bad line is named by its number, the rest goes on (case 116)."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vimbank.domain.models import Source
from vimbank.errors import InvalidInput
from vimbank.ingestion.jsonl import Line, lines_of, read_jsonl

GOOD = b'{"text": "a", "user_id": "ana"}\n'


def read(*lines: bytes | str) -> list[Line]:
    return list(read_jsonl(lines, tenant="t"))


def test_case_116_a_corrupt_line_is_reported_by_number_and_the_rest_goes_on() -> None:
    found = read(GOOD, b"\xff\xfe{", b"\n", b'{"text": "b"', b"[1]", GOOD)
    assert [line.number for line in found] == [1, 2, 4, 5, 6]
    assert [line.number for line in found if line.draft is not None] == [1, 6]
    messages = [str(line.error) for line in found if line.error is not None]
    assert [word in message for word, message in zip(("UTF-8", "not JSON", "object"), messages, strict=True)] == [
        *(True, True, True),
    ]


def test_every_field_reaches_the_draft() -> None:
    (line,) = read(
        '{"text": "t", "user_id": "ana", "bank": "dialog", "kind": "fact", "title": "T", "speaker": "Ana",'
        ' "agent_id": "g", "session_id": "s", "metadata": {"x": [1]}, "created_at": "2026-01-01",'
        ' "event_at": 1767225600, "valid_from": "2026-01-01T01:00:00+01:00", "valid_to": null, "importance": 1,'
        ' "pinned": true, "id": "i", "idempotency_key": "k", "event_id": "e", "position": 3, "parent_id": "p",'
        ' "deduplicate": false}'
    )
    draft = line.draft
    assert draft is not None
    day = datetime(2026, 1, 1, tzinfo=UTC)
    assert (draft.created_at, draft.event_at, draft.valid_from, draft.valid_to) == (day, day, day, None)
    assert draft.source == Source(event_id="e", position=3, parent_id="p")
    assert (draft.tenant, draft.user_id, draft.bank, draft.kind, draft.title) == ("t", "ana", "dialog", "fact", "T")
    assert (draft.importance, draft.pinned, draft.deduplicate, draft.id) == (1.0, True, False, "i")
    assert (draft.metadata, draft.idempotency_key) == ({"x": [1]}, "k")


def test_the_callers_user_and_bank_stand_in_where_a_line_names_none() -> None:
    lines = ['{"text": "a"}', '{"text": "b", "user_id": "ben", "bank": "task"}']
    found = list(read_jsonl(lines, tenant="t", user_id="ana", bank="dialog"))
    assert [(line.draft.user_id, line.draft.bank) for line in found if line.draft] == [
        *(("ana", "dialog"), ("ben", "task")),
    ]


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("{}", ["text", "user_id"]),
        ('{"text": 1, "user_id": "ana"}', ["text"]),
        ('{"text": "a", "user_id": "ana", "txet": "b"}', ["txet"]),
        ('{"text": "a", "user_id": "ana", "importance": true, "pinned": 1}', ["importance", "pinned"]),
        ('{"text": "a", "user_id": "ana", "position": -1, "metadata": []}', ["position", "metadata"]),
        ('{"text": "a", "user_id": "ana", "created_at": "yesterday"}', ["created_at"]),
        ('{"text": "a", "user_id": NaN}', ["line"]),
    ],
)
def test_bad_fields_are_all_named(line: str, fields: list[str]) -> None:
    (found,) = read(line)
    assert found.error is not None
    assert [error.field for error in found.error.errors] == fields


def test_a_byte_order_mark_is_no_fault() -> None:
    assert read(b"\xef\xbb\xbf" + GOOD)[0].draft is not None


def test_gzip_is_unpacked_and_a_torn_one_is_named(tmp_path: Path) -> None:
    whole = tmp_path / "m.jsonl.gz"
    whole.write_bytes(gzip.compress(GOOD * 2))
    assert list(lines_of(whole)) == [GOOD, GOOD]
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(whole.read_bytes()[:-9])
    for path in (torn, tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(InvalidInput, match="path"):
            list(lines_of(path))


def test_the_sample_is_without_fault_and_every_line_has_an_id() -> None:
    sample = Path(__file__).parents[2] / "datasets" / "sample.jsonl"
    found = list(read_jsonl(lines_of(sample), tenant="t"))
    assert [line.error for line in found if line.error is not None] == []
    ids = [line.draft.id for line in found if line.draft is not None]
    assert len(set(ids)) == len(ids) == 60
    assert None not in ids
