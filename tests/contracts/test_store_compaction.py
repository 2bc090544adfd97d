"""Removing tombstones: what goes, what is remembered of it, and what must stay (MemoryStore.compact)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.contracts.store_data import ALICE, APR, FEB, JAN, MAR, add_one, live_ids, prepared
from tests.contracts.test_job_store import postgres_database
from vimbank.domain.models import Partition, Source
from vimbank.store.in_memory import InMemoryStore
from vimbank.store.sql import SqlStore

BOB: Final = Partition("t", "bob", "dialog")
Store = InMemoryStore | SqlStore


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield InMemoryStore()
        return
    if request.param == "sqlite":
        opened = SqlStore.open(f"sqlite:///{tmp_path / 'store.db'}")
        yield opened
        opened.close()
        return
    with postgres_database() as url:
        opened = SqlStore.open(url)
        yield opened
        opened.close()


def compact(store: Store, *, up_to: int | None = None, before: datetime = APR, limit: int = 1_000) -> int:
    revision = store.state().revision if up_to is None else up_to
    return store.compact(up_to=revision, deleted_before=before, limit=limit)


def tombstones(store: Store) -> list[str]:
    return [change.id for change in store.changes(0, limit=1_000) if change.memory is None]


def test_only_tombstones_go(store: Store) -> None:
    kept, gone = add_one(store, "kept"), add_one(store, "gone")
    store.delete("t", [gone], actor="test", now=FEB)
    assert compact(store) == 1
    assert tombstones(store) == []
    assert live_ids(store) == [kept]
    assert compact(store) == 0


def test_history_and_the_past_stay(store: Store) -> None:
    gone = add_one(store, "gone")
    store.delete("t", [gone], actor="test", now=MAR)
    before = store.history("t", gone)
    compact(store)
    assert store.history("t", gone) == before
    assert [entry.event.value for entry in before] == ["add", "delete"]
    assert [memory.text for memory, _vector in store.as_of(ALICE, FEB)] == ["gone"]


def test_what_a_follower_has_not_passed_stays(store: Store) -> None:
    first, second = add_one(store, "first"), add_one(store, "second")
    store.delete("t", [first], actor="test", now=FEB)
    passed = store.state().revision
    store.delete("t", [second], actor="test", now=FEB)
    assert compact(store, up_to=passed) == 1
    assert tombstones(store) == [second]


def test_what_was_deleted_lately_stays(store: Store) -> None:
    gone = add_one(store, "gone")
    store.delete("t", [gone], actor="test", now=FEB)
    assert compact(store, before=FEB) == 0
    assert compact(store, before=FEB + timedelta(microseconds=1)) == 1


def test_the_oldest_go_first_in_batches(store: Store) -> None:
    ids = [add_one(store, f"text {place}") for place in range(5)]
    for gone in reversed(ids):
        store.delete("t", [gone], actor="test", now=FEB)
    assert compact(store, limit=2) == 2
    assert tombstones(store) == ids[2::-1]
    assert [compact(store, limit=2) for _ in range(3)] == [2, 1, 0]


def test_it_is_remembered_how_far_by_partition(store: Store) -> None:
    alice, bob = add_one(store, "alice"), add_one(store, "bob", user_id="bob")
    assert (store.state().compacted, store.compacted(ALICE), store.compacted(BOB)) == (0, 0, 0)
    store.delete("t", [bob], actor="test", now=FEB)
    add_one(store, "another")
    compact(store)
    assert (store.state().compacted, store.compacted(ALICE), store.compacted(BOB)) == (3, 0, 3)
    store.delete("t", [alice], actor="test", now=FEB)
    compact(store)
    assert (store.state().compacted, store.compacted(ALICE), store.compacted(BOB)) == (5, 5, 3)
    assert store.state().revision == 5


def test_the_next_position_of_a_session_is_never_one_that_was_used(store: Store) -> None:
    places = [
        add_one(store, f"turn {place}", session_id="s", source=Source(position=place), deduplicate=False)
        for place in range(3)
    ]
    store.delete("t", places, actor="test", now=FEB)
    assert compact(store) == 2
    assert store.next_position(ALICE, "s") == 3
    add_one(store, "turn 3", session_id="s", source=Source(position=3))
    assert compact(store) == 1
    assert store.next_position(ALICE, "s") == 4


def test_segments_go_with_their_document(store: Store) -> None:
    document = store.add([prepared("a b", segments=["a", "b"], session_id="s")], actor="test", now=JAN)[0]
    assert not isinstance(document, Exception)
    store.delete("t", [document.id], actor="test", now=FEB)
    assert compact(store) == 3


def test_an_id_may_be_used_again(store: Store) -> None:
    add_one(store, "one", id="x")
    store.delete("t", ["x"], actor="test", now=FEB)
    compact(store)
    add_one(store, "two", id="x")
    assert [memory.text for memory in store.get("t", ["x"])] == ["two"]
    assert len(store.history("t", "x")) == 3


def test_a_store_knows_who_it_is(store: Store) -> None:
    assert len(store.store_id()) == 32
    assert store.store_id() == store.store_id()
    assert store.store_id() != InMemoryStore().store_id()
