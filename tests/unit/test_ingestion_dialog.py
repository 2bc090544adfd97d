"""Turns to memories (V-3)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.models import MemoryDraft
from vimbank.errors import InvalidInput
from vimbank.ingestion.dialog import Turn, drafts_of_turns

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def drafts(*turns: Turn, start: int = 0) -> list[MemoryDraft]:
    return drafts_of_turns(
        turns, tenant="t", user_id="ana", session_id="s1", agent_id="a", bank="dialog", start_position=start
    )


def test_a_query_and_its_response_are_one_round_with_the_text_verbatim() -> None:
    (found,) = drafts(Turn("user", " Hi, \n I am Ana "), Turn("assistant", "Welcome!\n"))
    assert (found.kind, found.text) == ("round", " Hi, \n I am Ana \nWelcome!\n")
    assert found.metadata == {"roles": ["user", "assistant"]}
    assert (found.tenant, found.user_id, found.session_id, found.agent_id, found.bank) == (
        *("t", "ana", "s1", "a", "dialog"),
    )


def test_every_other_turn_is_a_memory_of_its_own() -> None:
    said = [("system", "Be kind"), ("user", "one"), ("user", "two"), ("assistant", "yes"), ("assistant", "more")]
    found = drafts(*(Turn(role, content) for role, content in said), start=7)
    assert [(each.kind, each.text, each.source.position) for each in found] == [
        ("turn", "Be kind", 7),
        ("turn", "one", 8),
        ("round", "two\nyes", 9),
        ("turn", "more", 10),
    ]
    assert [each.metadata.get("role") for each in found] == ["system", "user", None, "assistant"]


def test_two_people_make_no_rounds_and_the_speaker_stays_out_of_the_text() -> None:
    found = drafts(Turn("participant", "Hey Mel!", speaker="Caroline"), Turn("participant", "Hey!", speaker="Melanie"))
    assert [(each.kind, each.text, each.speaker) for each in found] == [
        ("turn", "Hey Mel!", "Caroline"),
        ("turn", "Hey!", "Melanie"),
    ]


def test_a_round_takes_speaker_time_and_event_of_the_query_and_else_of_the_response() -> None:
    (both,) = drafts(
        Turn("user", "q", speaker="Ana", event_at=NOON, event_id="e1", metadata={"x": 1, "mood": "calm"}),
        Turn("assistant", "r", speaker="AI", event_id="e2", metadata={"x": 2, "model": "m", "mood": "calm"}),
    )
    assert (both.speaker, both.event_at, both.source.event_id) == ("Ana", NOON, "e1")
    assert both.metadata == {
        "x": 1,
        "mood": "calm",
        "response_x": 2,
        "model": "m",
        "response_speaker": "AI",
        "response_event_id": "e2",
        "roles": ["user", "assistant"],
    }
    (response_only,) = drafts(Turn("user", "q"), Turn("assistant", "r", speaker="AI", event_at=NOON, event_id="e2"))
    assert (response_only.speaker, response_only.event_at, response_only.source.event_id) == ("AI", NOON, "e2")
    assert response_only.metadata == {"roles": ["user", "assistant"]}


def test_a_repeated_yes_is_a_new_event() -> None:
    assert not any(each.deduplicate for each in drafts(Turn("user", "yes"), Turn("user", "yes")))


def test_blank_fields_are_all_named_and_nothing_is_made() -> None:
    with pytest.raises(InvalidInput) as caught:
        drafts(Turn("user", "ok"), Turn(" ", "hi"), Turn("user", "\n"))
    assert [error.field for error in caught.value.errors] == ["turns.1.role", "turns.2.content"]


@given(st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=12), st.integers(0, 99))
def test_every_turn_is_in_exactly_one_memory_in_order(roles: list[str], start: int) -> None:
    found = drafts(*(Turn(role, f"<{number}>") for number, role in enumerate(roles)), start=start)
    assert "\n".join(each.text for each in found) == "\n".join(f"<{number}>" for number in range(len(roles)))
    assert [each.source.position for each in found] == list(range(start, start + len(found)))
