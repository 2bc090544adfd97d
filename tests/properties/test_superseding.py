"""Supersession is a function of what was said and when: never of the order in which it arrived (V-10)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vimbank.domain.conflicts import claims_of, decide
from vimbank.domain.fingerprint import content_hash
from vimbank.domain.models import Memory, MemoryDraft, MemoryState, Partition
from vimbank.domain.superseding import keys_of, own_claims, said_at
from vimbank.ports import Embedded, PreparedDraft
from vimbank.store.in_memory import InMemoryStore

JAN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOME = Partition("t", "ana", "dialog")
TEXTS = (
    "I live in Oslo.",
    "I live in Rome.",
    "I moved from Oslo to Bonn.",
    "I no longer live in Rome.",
    "I used to live in Lima.",
    "I live in Oslo. My phone number is 555-0100.",
    "My phone number is 555-0199.",
    "I live in Bern. What a splendid summer by the river it was!",
    "I drive a Golf.",
    "I switched from the Golf to a bike.",
    "I like tea.",
    "I no longer like tea.",
    "I like coffee.",
    "I don't like anything.",
    "我住在上海。",
    "我搬到北京了。",
    "the pump runs at 50 Hz",
)
_VECTOR = np.array([1, 0, 0, 0], dtype=np.float32)

statements = st.lists(
    st.tuples(st.sampled_from(TEXTS), st.integers(0, 12), st.integers(0, 2), st.booleans()), min_size=1, max_size=9
)
"""Text, day on which it was so, days until it was told, and whether it is pinned."""


def draft(name: int, text: str, day: int, delay: int, pinned: bool) -> PreparedDraft:
    at = JAN + timedelta(days=day)
    made = MemoryDraft(
        tenant="t",
        user_id="ana",
        bank="dialog",
        text=text,
        id=f"m{name}",
        event_at=at,
        created_at=at + timedelta(days=delay, minutes=name),
        pinned=pinned,
    )
    return PreparedDraft(made, content_hash(made), 1, Embedded(_VECTOR), claims=keys_of(made))


def outcome(drafts: list[PreparedDraft]) -> dict[str, tuple[Any, ...]]:
    return {each.id: (each.state, each.superseded_by, each.valid_to, each.ended) for each in memories(drafts)}


def memories(drafts: list[PreparedDraft]) -> list[Memory]:
    store = InMemoryStore()
    for each in drafts:
        [result] = store.add([each], actor="test", now=NOW)
        assert not isinstance(result, Exception), result
    return store.get("t", sorted(str(each.draft.id) for each in drafts))


@settings(max_examples=60, deadline=None)
@given(said=statements, data=st.data())
def test_any_order_of_arrival_gives_the_same(said: list[tuple[str, int, int, bool]], data: st.DataObject) -> None:
    drafts = [draft(place, *each) for place, each in enumerate(said)]
    assert outcome(data.draw(st.permutations(drafts))) == outcome(drafts)


@settings(max_examples=60, deadline=None)
@given(said=statements)
def test_what_is_written_step_by_step_is_the_whole_decision(said: list[tuple[str, int, int, bool]]) -> None:
    found = memories([draft(place, *each) for place, each in enumerate(said)])
    decided = {each.old_id: each for each in decide(claim for memory in found for claim in claims_of(memory))}
    for memory in found:
        decision = decided.get(memory.id)
        assert memory.ended == (() if decision is None else decision.ended)
        whole = decision is not None and decision.whole and not memory.pinned
        assert memory.state is (MemoryState.SUPERSEDED if whole else MemoryState.ACTIVE)
        assert memory.valid_to == (decision.from_instant if whole and decision is not None else None)


@given(
    text=st.sampled_from((*TEXTS, "Moved to Oslo.\nHow nice for you!", "x" * 2_000)),
    speaker=st.sampled_from((None, "Ana", "user", "assistant")),
    title=st.sampled_from((None, "Pump manual")),
    metadata=st.sampled_from(({}, {"role": "assistant"}, {"role": "user"}, {"role": ["odd"]})),
    kind=st.sampled_from(("note", "round", "turn")),
    days=st.sampled_from((0, 300)),
    event=st.booleans(),
)
def test_what_is_kept_of_a_text_is_what_reading_it_gives(
    text: str, speaker: str | None, title: str | None, metadata: dict[str, Any], kind: str, days: int, event: bool
) -> None:
    at = JAN + timedelta(days=days)
    memory = Memory(
        id="m",
        tenant="t",
        user_id="ana",
        bank="dialog",
        kind=kind,
        text=text,
        created_at=at,
        updated_at=at,
        content_hash="",
        revision=1,
        title=title,
        speaker=speaker,
        metadata=metadata,
        event_at=JAN if event else None,
    )
    assert own_claims(memory) == claims_of(memory)
    assert own_claims(memory) == claims_of(memory)  # the second time from what was kept


def test_what_orders_memories_is_what_orders_their_claims() -> None:
    cases: tuple[dict[str, Any], ...] = (
        {},
        {"event_at": JAN},
        {"event_at": JAN, "valid_from": JAN - timedelta(days=9)},
    )
    for times in cases:
        store = InMemoryStore()
        made = MemoryDraft(tenant="t", user_id="ana", bank="dialog", text="I live in Oslo.", id="m", **times)
        store.add([PreparedDraft(made, content_hash(made), 1, None)], actor="test", now=NOW)
        [memory] = store.get("t", ["m"])
        [claim] = claims_of(memory)
        assert said_at(memory) == claim.at
