"""The content hash: equal for equal content, different as soon as one field differs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from vimbank.domain.fingerprint import content_hash
from vimbank.domain.models import MemoryDraft, Source

DRAFT = MemoryDraft(tenant="acme", user_id="alice", bank="dialog", text="red kite", metadata={"a": 1, "b": [2, 3]})


def test_equal_content_has_one_hash() -> None:
    again = replace(DRAFT, metadata={"b": [2, 3], "a": 1})
    assert content_hash(DRAFT) == content_hash(again)
    assert len(content_hash(DRAFT)) == 32


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "other"},
        {"user_id": "bob"},
        {"bank": "task"},
        {"kind": "turn"},
        {"text": "red kites"},
        {"title": "red kite"},
        {"speaker": "red kite"},
        {"agent_id": "x"},
        {"session_id": "x"},
        {"metadata": {"a": "1", "b": [2, 3]}},
        {"event_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"valid_from": datetime(2026, 1, 1, tzinfo=UTC)},
        {"valid_to": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_other_content_has_another(change: dict[str, Any]) -> None:
    assert content_hash(replace(DRAFT, **change)) != content_hash(DRAFT)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "mine"},
        {"pinned": True},
        {"importance": 0.5},
        {"source": Source(position=3)},
        {"created_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"idempotency_key": "k"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_the_server_adds_or_counts_is_not_content(change: dict[str, Any]) -> None:
    assert content_hash(replace(DRAFT, **change)) == content_hash(DRAFT)


def test_case_63_fields_do_not_glue() -> None:
    pairs = [("ab", "c"), ("a", "bc"), ("", "abc"), ('a"', "b"), ("a", '"b')]
    assert len({content_hash(replace(DRAFT, user_id=user, text=text)) for user, text in pairs}) == len(pairs)


def test_a_lone_surrogate_is_hashed_and_not_an_error() -> None:
    assert content_hash(replace(DRAFT, text="a\ud83d")) != content_hash(replace(DRAFT, text="a"))


def test_one_instant_in_utc_has_one_hash() -> None:
    instant = datetime(2026, 1, 1, 12, tzinfo=UTC)
    tokyo = instant.astimezone(timezone(timedelta(hours=9)))
    assert content_hash(replace(DRAFT, event_at=instant)) == content_hash(replace(DRAFT, event_at=tokyo))
