"""The contract of ``MemoryStore.put_samples`` and ``session_tail``, over every store."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contracts.backends import EVERY, Store, opened
from tests.contracts.store_data import ALICE, APR, FEB, JAN, MAR, add, add_one, patch, prepared, vector
from vimbank.domain.information import information
from vimbank.domain.models import Event, Memory, MemoryState, Partition, Sample, Source, StateChange
from vimbank.ports import Judged


@pytest.fixture(params=EVERY)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened(request.param, tmp_path) as store:
        yield store


def one(store: Store, memory_id: str) -> Memory:
    [memory] = store.get("t", [memory_id])
    return memory


def judge(store: Store, *memories: Memory, sample: Sample = Sample.NEGATIVE, reasons: str = "small_talk") -> int:
    judged = [Judged(memory, sample, tuple(reasons.split())) for memory in memories]
    return store.put_samples(judged, actor="assess", now=MAR)


def test_a_judgement_is_written_and_nothing_else(store: Store) -> None:
    name = add_one(store, "tea", importance=0.5, metadata={"a": 1})
    before = one(store, name)
    assert judge(store, before, reasons="llm small_talk") == 1
    after = one(store, name)
    expected = replace(before, sample=Sample.NEGATIVE, sample_reasons=("llm", "small_talk"), revision=2)
    expected = replace(expected, information=information(before.text))
    assert after == expected
    assert after.updated_at == JAN
    [change] = store.changes(1, limit=10)
    assert (change.memory, change.revision) == (after, 2)
    assert np.array_equal(change.vector, vector("tea"))  # type: ignore[arg-type]


def test_the_history_tells_who_judged_and_the_past_is_not_judged(store: Store) -> None:
    name = add_one(store, "tea")
    judge(store, one(store, name))
    entry = store.history("t", name)[-1]
    assert (entry.event, entry.actor, entry.at, entry.old_text, entry.new_text) == (
        Event.UPDATE,
        "assess",
        MAR,
        "tea",
        "tea",
    )
    assert dict(entry.changes) == {"sample": (None, "negative")}
    [(then, kept)] = store.as_of(ALICE, FEB)
    assert (then.sample, then.sample_reasons, then.revision) == (None, (), 1)
    assert np.array_equal(kept, vector("tea"))  # type: ignore[arg-type]
    [(now, _)] = store.as_of(ALICE, APR)
    assert now.sample is Sample.NEGATIVE


def test_a_judgement_twice_is_written_once(store: Store) -> None:
    """Case 120: a job may come twice."""
    name = add_one(store, "tea")
    read = one(store, name)
    assert judge(store, read) == 1
    assert judge(store, read) == 0
    assert store.state().revision == 2
    assert judge(store, read, sample=Sample.POSITIVE, reasons="tells_something") == 1


def test_what_says_something_else_by_now_is_left_out(store: Store) -> None:
    changed, gone, kept = (add_one(store, text) for text in ("tea", "jazz", "rain"))
    read = [one(store, name) for name in (changed, gone, kept)]
    store.update(patch(changed, text="coffee"), tenant="t", actor="test", now=FEB)
    store.delete("t", [gone], actor="test", now=FEB)
    assert judge(store, *read) == 1
    assert [each.sample for each in store.get("t", [changed, kept])] == [None, Sample.NEGATIVE]


def test_what_is_archived_can_be_judged(store: Store) -> None:
    name = add_one(store, "tea")
    read = one(store, name)
    store.change_states([StateChange(id=name, to=MemoryState.ARCHIVED)], tenant="t", actor="test", now=FEB)
    assert judge(store, read) == 1
    after = one(store, name)
    assert (after.sample, after.state, after.updated_at) == (Sample.NEGATIVE, MemoryState.ARCHIVED, FEB)


class TestSessionTail:
    @pytest.fixture
    def ids(self, store: Store) -> list[str]:
        """Four turns of session s, in another order than they were said."""
        drafts = [
            prepared(f"turn {place}", session_id="s", source=Source(position=place), deduplicate=False)
            for place in (2, 0, 1, 3)
        ]
        return [each.id for each in sorted(add(store, *drafts), key=lambda each: one(store, each.id).text)]

    def tail(self, store: Store, *, before: int, limit: int = 7, partition: Partition = ALICE) -> list[str]:
        return [each.text for each in store.session_tail(partition, "s", before=before, limit=limit)]

    def test_newest_first_before_a_position(self, store: Store, ids: list[str]) -> None:
        assert self.tail(store, before=4) == ["turn 3", "turn 2", "turn 1", "turn 0"]
        assert self.tail(store, before=3, limit=2) == ["turn 2", "turn 1"]
        assert self.tail(store, before=0) == []
        [found] = store.session_tail(ALICE, "s", before=1, limit=7)
        assert (found.id, found.position) == (ids[0], 0)
        assert np.array_equal(found.vector, vector("turn 0"))  # type: ignore[arg-type]

    @pytest.mark.usefixtures("ids")
    def test_other_sessions_users_and_parts_are_left_out(self, store: Store) -> None:
        common: dict[str, Any] = {"source": Source(position=1), "deduplicate": False}
        add_one(store, "other session", session_id="z", **common)
        add_one(store, "other user", session_id="s", user_id="bob", **common)
        add_one(store, "without position", session_id="s", deduplicate=False)
        parent = add_one(store, "run", session_id="s", id="run")
        add_one(store, "step", session_id="s", source=Source(parent_id=parent, position=2))
        assert self.tail(store, before=9) == ["turn 3", "turn 2", "turn 1", "turn 0"]
        assert self.tail(store, before=9, partition=replace(ALICE, user_id="bob")) == ["other user"]

    def test_deleted_turns_are_left_out_and_archived_ones_are_not(self, store: Store, ids: list[str]) -> None:
        store.delete("t", [ids[3]], actor="test", now=FEB)
        store.change_states([StateChange(id=ids[2], to=MemoryState.ARCHIVED)], tenant="t", actor="test", now=FEB)
        assert self.tail(store, before=9) == ["turn 2", "turn 1", "turn 0"]
