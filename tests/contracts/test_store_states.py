"""The contract of ``MemoryStore.change_states``, over every store."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contracts.backends import EVERY, Store, opened
from tests.contracts.store_data import ALICE, APR, FEB, JAN, MAR, MINI, add, add_one, live_ids, patch, prepared, vector
from vimbank.domain.models import Event, ListQuery, Memory, MemoryState, Source, StateChange, StateResult
from vimbank.errors import Conflict, InvalidInput, NotFound
from vimbank.ports import Embedded, EncoderIdentity

ACTIVE, ARCHIVED, SUPERSEDED, SUPPRESSED, DELETED = (
    MemoryState.ACTIVE,
    MemoryState.ARCHIVED,
    MemoryState.SUPERSEDED,
    MemoryState.SUPPRESSED,
    MemoryState.DELETED,
)


@pytest.fixture(params=EVERY)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened(request.param, tmp_path) as store:
        yield store


def move(store: Store, memory_id: str, to: MemoryState, *, now: Any = FEB, **fields: Any) -> StateResult:
    [result] = store.change_states([StateChange(id=memory_id, to=to, **fields)], tenant="t", actor="test", now=now)
    if isinstance(result, Exception):
        raise result
    return result


def one(store: Store, memory_id: str) -> Memory:
    [memory] = store.get("t", [memory_id])
    return memory


@pytest.mark.parametrize("to", [ARCHIVED, SUPPRESSED])
def test_there_and_back(store: Store, to: MemoryState) -> None:
    name = add_one(store, "tea", importance=0.5, metadata={"a": 1})
    other = add_one(store, "coffee")
    before = one(store, name)
    assert move(store, name, to) == StateResult(name, 3, 1)
    away = one(store, name)
    assert (away.state, away.revision, away.updated_at) == (to, 3, FEB)
    assert (away.text, away.content_hash, away.created_at) == (before.text, before.content_hash, JAN)
    assert live_ids(store) == [other]
    [change] = store.changes(2, limit=10)
    assert (change.revision, change.id, change.memory) == (3, name, away)
    assert np.array_equal(change.vector, vector("tea"))  # type: ignore[arg-type]
    assert move(store, name, ACTIVE, now=MAR) == StateResult(name, 4, 1)
    back = one(store, name)
    assert (back.state, back.revision, back.metadata, back.importance) == (ACTIVE, 4, {"a": 1}, 0.5)
    assert (away.last_recalled_at, back.last_recalled_at, back.recall_count) == (None, MAR, 0)
    assert live_ids(store) == [name, other]


def test_history_names_old_and_new(store: Store) -> None:
    name = add_one(store, "tea")
    move(store, name, ARCHIVED)
    move(store, name, ACTIVE, now=MAR)
    _, away, back = store.history("t", name)
    assert (away.event, away.actor, away.at, away.revision) == (Event.STATE, "test", FEB, 2)
    assert (away.old_text, away.new_text) == (None, None)
    assert dict(away.changes) == {"state": ("active", "archived")}
    assert dict(back.changes) == {"state": ("archived", "active")}


def test_a_second_time_writes_nothing(store: Store) -> None:
    name = add_one(store, "tea")
    move(store, name, ARCHIVED)
    assert move(store, name, ARCHIVED, now=MAR) == StateResult(name, 2, 0)
    assert (store.state().revision, one(store, name).updated_at) == (2, FEB)
    assert len(store.history("t", name)) == 2


class TestSuperseded:
    def test_by_whom_and_until_when(self, store: Store) -> None:
        old, new = add_one(store, "five"), add_one(store, "six")
        move(store, old, SUPERSEDED, superseded_by=new, valid_to=FEB)
        memory = one(store, old)
        assert (memory.state, memory.superseded_by, memory.valid_to) == (SUPERSEDED, new, FEB)
        assert live_ids(store) == [new]
        [_, entry] = store.history("t", old)
        assert dict(entry.changes) == {
            "state": ("active", "superseded"),
            "superseded_by": (None, new),
            "valid_to": (None, "2026-02-01T00:00:00Z"),
        }

    def test_back_again(self, store: Store) -> None:
        old, new = add_one(store, "five", valid_to=APR), add_one(store, "six")
        move(store, old, SUPERSEDED, superseded_by=new, valid_to=FEB)
        move(store, old, ACTIVE, valid_to=APR)
        memory = one(store, old)
        assert (memory.state, memory.superseded_by, memory.valid_to) == (ACTIVE, None, APR)

    def test_valid_to_stays_where_nothing_is_said_of_it(self, store: Store) -> None:
        old, new = add_one(store, "five", valid_to=APR), add_one(store, "six")
        move(store, old, SUPERSEDED, superseded_by=new)
        assert one(store, old).valid_to == APR

    def test_by_a_newer_one_still(self, store: Store) -> None:
        old, new, newest = (add_one(store, text) for text in ("five", "six", "seven"))
        move(store, old, SUPERSEDED, superseded_by=new)
        assert move(store, old, SUPERSEDED, superseded_by=new).moved == 0
        assert move(store, old, SUPERSEDED, superseded_by=newest).moved == 1
        assert one(store, old).superseded_by == newest

    def test_only_by_another_memory_of_the_partition(self, store: Store) -> None:
        old = add_one(store, "five")
        bobs = add_one(store, "six", user_id="bob")
        theirs = add_one(store, "six", tenant="other")
        for name in (None, "nobody", old, bobs, theirs):
            with pytest.raises(InvalidInput):
                move(store, old, SUPERSEDED, superseded_by=name)
        with pytest.raises(InvalidInput):
            move(store, old, ARCHIVED, superseded_by=bobs)
        assert one(store, old).state is ACTIVE


class TestRefused:
    def test_unknown_and_of_another_tenant(self, store: Store) -> None:
        name = add_one(store, "tea", tenant="other")
        for each in (name, "nobody"):
            with pytest.raises(NotFound):
                move(store, each, ARCHIVED)

    @pytest.mark.parametrize(
        ("first", "then"),
        [(ACTIVE, DELETED), (SUPPRESSED, ARCHIVED), (ARCHIVED, SUPPRESSED), (SUPPRESSED, DELETED)],
    )
    def test_not_from_there(self, store: Store, first: MemoryState, then: MemoryState) -> None:
        name = add_one(store, "tea")
        move(store, name, first)
        with pytest.raises(Conflict):
            move(store, name, then)
        assert one(store, name).state is first

    def test_sources_narrow_it(self, store: Store) -> None:
        """Unsuppressing must not restore what the archive holds."""
        name = add_one(store, "tea")
        move(store, name, ARCHIVED)
        with pytest.raises(Conflict):
            move(store, name, ACTIVE, sources=[SUPPRESSED])
        assert move(store, name, ACTIVE, sources=[ARCHIVED]).moved == 1

    def test_at_another_revision(self, store: Store) -> None:
        name = add_one(store, "tea")
        add_one(store, "coffee")
        with pytest.raises(Conflict):
            move(store, name, ARCHIVED, expected_revision=2)
        assert move(store, name, ARCHIVED, expected_revision=1).moved == 1

    def test_written_since_somebody_looked(self, store: Store) -> None:
        """A run that decided at revision 2 leaves alone what was changed at 3."""
        changed, other = add_one(store, "tea"), add_one(store, "coffee")
        store.update(patch(changed, pinned=True), tenant="t", actor="test", now=FEB)
        results = store.change_states(
            [StateChange(id=each, to=ARCHIVED, seen=2) for each in (changed, other)], tenant="t", actor="x", now=FEB
        )
        assert isinstance(results[0], Conflict)
        assert results[1] == StateResult(other, 4, 1)
        assert [one(store, each).state for each in (changed, other)] == [ACTIVE, ARCHIVED]

    def test_one_of_a_batch_leaves_the_others_alone(self, store: Store) -> None:
        first, last = add_one(store, "tea"), add_one(store, "coffee")
        changes = [StateChange(id=each, to=ARCHIVED) for each in (first, "nobody", last)]
        results = store.change_states(changes, tenant="t", actor="test", now=FEB)
        assert isinstance(results[1], NotFound)
        assert [one(store, each).state for each in (first, last)] == [ARCHIVED, ARCHIVED]

    def test_no_changes(self, store: Store) -> None:
        assert store.change_states([], tenant="t", actor="test", now=FEB) == []


class TestParts:
    def test_segments_go_with_their_document(self, store: Store) -> None:
        [result] = store.add([prepared("one two", segments=["one", "two"], id="d")], actor="test", now=JAN)
        assert move(store, "d", ARCHIVED).moved == 3
        assert live_ids(store) == []
        assert [each.state for each in store.get("t", ["d", "d:0000", "d:0001"])] == [ARCHIVED] * 3
        assert move(store, "d", ACTIVE).moved == 3
        assert live_ids(store) == ["d:0000", "d:0001"]
        assert result is not None

    def test_steps_and_their_parts_go_with_the_run(self, store: Store) -> None:
        run = add_one(store, "run", kind="task", id="r")
        step = add_one(store, "step", source=Source(parent_id="r", position=0), id="s")
        part = add_one(store, "part", source=Source(parent_id="s", position=0), id="p")
        assert move(store, run, ARCHIVED).moved == 3
        assert [one(store, each).state for each in (run, step, part)] == [ARCHIVED] * 3

    def test_a_part_in_another_state_stays_in_it(self, store: Store) -> None:
        add_one(store, "run", kind="task", id="r")
        add_one(store, "step", source=Source(parent_id="r", position=0), id="s")
        move(store, "s", SUPPRESSED)
        move(store, "r", ARCHIVED)
        move(store, "r", ACTIVE)
        assert one(store, "s").state is SUPPRESSED

    def test_a_part_written_since_keeps_the_whole(self, store: Store) -> None:
        add_one(store, "run", kind="task", id="r")
        add_one(store, "step", source=Source(parent_id="r", position=0), id="s")
        store.update(patch("s", pinned=True), tenant="t", actor="test", now=FEB)
        with pytest.raises(Conflict):
            move(store, "r", ARCHIVED, seen=2)
        assert one(store, "r").state is ACTIVE

    def test_new_text_of_an_archived_document_is_not_indexed(self, store: Store) -> None:
        store.add([prepared("one two", segments=["one", "two"], id="d")], actor="test", now=JAN)
        move(store, "d", ARCHIVED)
        change = patch("d", text="a b c", segments=["a", "b", "c"])
        store.update(change, tenant="t", actor="test", now=MAR)
        assert live_ids(store) == []
        assert move(store, "d", ACTIVE).moved == 4
        assert live_ids(store) == ["d:0000", "d:0001", "d:0002"]


class TestTogether:
    """Each change of a call finds what those before it have left."""

    def test_one_memory_twice(self, store: Store) -> None:
        name = add_one(store, "tea")
        assert changed(store, (name, ARCHIVED), (name, ARCHIVED), (name, ACTIVE)) == [
            StateResult(name, 2, 1),
            StateResult(name, 2, 0),
            StateResult(name, 3, 1),
        ]
        assert [entry.changes.get("state") for entry in store.history("t", name)] == [
            None,
            ("active", "archived"),
            ("archived", "active"),
        ]

    def test_a_part_after_its_document(self, store: Store) -> None:
        document = add_one(store, "whole", segments=["a", "b"])
        [first, _] = parts_of(document)
        assert changed(store, (document, ARCHIVED), (first, ACTIVE)) == [
            StateResult(document, 4, 3),
            StateResult(first, 7, 1),
        ]
        assert [one(store, name).state for name in (document, *parts_of(document))] == [ARCHIVED, ACTIVE, ARCHIVED]

    def test_a_document_after_its_part(self, store: Store) -> None:
        document = add_one(store, "whole", segments=["a", "b"])
        [first, last] = parts_of(document)
        assert changed(store, (first, ARCHIVED), (document, ARCHIVED), (first, DELETED), (document, DELETED)) == [
            StateResult(first, 4, 1),
            StateResult(document, 5, 2),
            StateResult(first, 4, 1),
            StateResult(document, 5, 2),
        ]
        assert store.get("t", [document, first, last]) == []

    def test_what_went_with_its_document_is_gone(self, store: Store) -> None:
        document = add_one(store, "whole", segments=["a"])
        part = parts_of(document)[0]
        move(store, document, ARCHIVED)
        results = store.change_states(
            [StateChange(id=name, to=DELETED) for name in (document, part)], tenant="t", actor="test", now=MAR
        )
        assert results[0] == StateResult(document, 3, 2)
        assert isinstance(results[1], NotFound)

    def test_more_than_are_read_together(self, store: Store) -> None:
        names = [each.id for each in add(store, *(prepared(f"tea {number}") for number in range(501)))]
        results = changed(store, *((name, ARCHIVED) for name in (*names, names[0])))
        assert results == [
            *(StateResult(name, 502 + place, 1) for place, name in enumerate(names)),
            StateResult(names[0], 502, 0),
        ]


def changed(store: Store, *changes: tuple[str, MemoryState]) -> list[StateResult | Exception]:
    return store.change_states([StateChange(id=name, to=to) for name, to in changes], tenant="t", actor="test", now=FEB)


def parts_of(document: str) -> list[str]:
    return [f"{document}:{place:04d}" for place in range(2)]


class TestDeleted:
    def test_from_the_archive_with_its_parts(self, store: Store) -> None:
        store.add([prepared("one two", segments=["one", "two"], id="d")], actor="test", now=JAN)
        move(store, "d", ARCHIVED)
        assert move(store, "d", DELETED, now=MAR).moved == 3
        assert store.get("t", ["d", "d:0000", "d:0001"]) == []
        assert [entry.event for entry in store.history("t", "d")] == [Event.ADD, Event.STATE, Event.DELETE]

    def test_not_what_was_restored_meanwhile(self, store: Store) -> None:
        name = add_one(store, "tea")
        move(store, name, ARCHIVED)
        move(store, name, ACTIVE)
        with pytest.raises(Conflict):
            move(store, name, DELETED, seen=2)
        assert one(store, name).text == "tea"

    def test_added_again_it_is_another_memory(self, store: Store) -> None:
        """Case 137, also for what is archived alone."""
        first = add_one(store, "tea")
        move(store, first, ARCHIVED)
        second = add_one(store, "tea", now=FEB)
        assert second != first
        assert live_ids(store) == [second]
        move(store, first, DELETED)
        third = add_one(store, "tea")
        assert (third, live_ids(store)) == (second, [second])


class TestThePast:
    def test_as_of_undoes_each_change(self, store: Store) -> None:
        """Case 106: what was found at an instant is found as of it, whatever became of it."""
        old, new = add_one(store, "five", now=JAN), add_one(store, "six", now=FEB - timedelta(days=1))
        before = one(store, old)
        move(store, old, SUPERSEDED, superseded_by=new, valid_to=FEB)
        move(store, new, ARCHIVED, now=MAR)
        move(store, new, ACTIVE, now=APR)
        then = store.as_of(ALICE, JAN + timedelta(days=9))
        assert [memory for memory, _ in then] == [before]
        assert np.array_equal(then[0][1], vector("five"))  # type: ignore[arg-type]
        for instant, expected in (
            (FEB - timedelta(hours=1), [old, new]),
            (FEB + timedelta(days=1), [new]),
            (MAR + timedelta(days=1), []),
            (APR + timedelta(days=1), [new]),
        ):
            assert [memory.id for memory, _ in store.as_of(ALICE, instant)] == expected, instant

    def test_as_of_through_updates_and_the_end(self, store: Store) -> None:
        name = add_one(store, "tea")
        move(store, name, ARCHIVED, now=JAN + timedelta(days=10))
        store.update(patch(name, text="green tea"), tenant="t", actor="test", now=JAN + timedelta(days=20))
        move(store, name, ACTIVE, now=FEB)
        move(store, name, ARCHIVED, now=MAR)
        move(store, name, DELETED, now=APR)
        for instant, texts in (
            (JAN + timedelta(days=5), ["tea"]),
            (JAN + timedelta(days=15), []),
            (JAN + timedelta(days=25), []),
            (FEB + timedelta(days=5), ["green tea"]),
            (MAR + timedelta(days=5), []),
        ):
            found = store.as_of(ALICE, instant)
            assert [memory.text for memory, _ in found] == texts, instant
            assert all(np.array_equal(made, vector(text)) for (_, made), text in zip(found, texts, strict=True))  # type: ignore[arg-type]


def test_listing_and_partitions_by_state(store: Store) -> None:
    name = add_one(store, "tea")
    add_one(store, "coffee", user_id="bob")
    move(store, name, ARCHIVED)
    assert store.page(ListQuery(tenant="t", state=ARCHIVED)).total == 1
    assert [each.user_id for each in store.partitions()] == ["bob"]
    assert store.partitions("t", state=ARCHIVED) == [ALICE]
    assert store.partitions("other", state=ARCHIVED) == []


def test_after_a_change_of_encoder(store: Store) -> None:
    """Case 140: reindex, then archive, restore, supersede, delete."""
    store.claim_encoder(MINI)
    names = [add_one(store, text) for text in ("tea", "coffee", "water")]
    move(store, names[0], ARCHIVED)
    other = EncoderIdentity("other", "1", 4)
    lacking = store.missing_embeddings(other, 10)
    store.put_embeddings(other, [(memory, Embedded(-vector(memory.text))) for memory in lacking])
    store.switch_encoder(other)
    assert move(store, names[0], ACTIVE).moved == 1
    [change] = [each for batch in store.live(ALICE) for each in batch if each.id == names[0]]
    assert np.array_equal(change.vector, -vector("tea"))  # type: ignore[arg-type]
    assert move(store, names[1], SUPERSEDED, superseded_by=names[2]).moved == 1
    assert move(store, names[0], ARCHIVED).moved == 1
    assert move(store, names[0], DELETED).moved == 1
    assert store.delete("t", [names[2]], actor="test", now=APR) == [names[2]]


class TestLives:
    def test_every_column(self, store: Store) -> None:
        plain_ = add_one(store, "tea", importance=0.25, pinned=True, expires_at=APR)
        step = add_one(store, "step", source=Source(parent_id=plain_, position=0))
        gone = add_one(store, "coffee")
        move(store, gone, SUPPRESSED)
        add_one(store, "bobs", user_id="bob")
        move(store, step, ARCHIVED, now=MAR)
        found = store.lives(ALICE)
        assert (found.revision, list(found.ids), list(found.parents)) == (6, [plain_, step], [None, plain_])
        assert found.archived.tolist() == [False, True]
        assert found.pinned.tolist() == [True, False]
        assert found.created_at.tolist() == [JAN.timestamp()] * 2
        assert found.updated_at.tolist() == [JAN.timestamp(), MAR.timestamp()]
        assert found.strength.tolist() == [1.0, 1.0]
        assert np.array_equal(found.importance, [0.25, np.nan], equal_nan=True)
        assert np.array_equal(found.expires_at, [APR.timestamp(), np.nan], equal_nan=True)
        assert np.isnan(found.recalled_at).all()

    def test_superseded_ones_where_they_are_asked_for(self, store: Store) -> None:
        old, new = add_one(store, "tea", pinned=True), add_one(store, "coffee")
        move(store, old, SUPERSEDED, superseded_by=new, now=MAR)
        assert list(store.lives(ALICE).ids) == [new]
        found = store.lives(ALICE, superseded=True)
        assert (list(found.ids), list(found.successors)) == ([old, new], [new, None])
        assert (found.superseded.tolist(), found.archived.tolist()) == ([True, False], [False, False])
        assert (found.updated_at.tolist(), found.pinned.tolist()) == ([MAR.timestamp(), JAN.timestamp()], [True, False])

    def test_of_nothing(self, store: Store) -> None:
        found = store.lives(ALICE)
        assert (found.ids, len(found.strength), len(found.archived)) == ([], 0, 0)


def test_what_was_superseded_may_be_deleted_and_its_past_stays(store: Store) -> None:
    old, new = add_one(store, "tea"), add_one(store, "coffee")
    move(store, old, SUPERSEDED, superseded_by=new)
    seen = store.state().revision
    assert move(store, old, DELETED, seen=seen, now=APR).moved == 1
    assert store.get("t", [old]) == []
    (stood,) = store.get("t", [old], as_of=MAR)
    assert (stood.state, stood.superseded_by, stood.text) == (SUPERSEDED, new, "tea")
    assert [each.event for each in store.history("t", old)] == [Event.ADD, Event.STATE, Event.DELETE]
    with pytest.raises(NotFound):
        move(store, old, ACTIVE)


def test_a_superseded_one_that_was_written_to_meanwhile_is_not_deleted(store: Store) -> None:
    old, new = add_one(store, "tea"), add_one(store, "coffee")
    move(store, old, SUPERSEDED, superseded_by=new)
    seen = store.state().revision
    store.update(patch(old, pinned=True), tenant="t", actor="test", now=MAR)
    with pytest.raises(Conflict, match="was written after"):
        move(store, old, DELETED, seen=seen)


def test_a_successor_that_was_written_meanwhile_supersedes_nothing(store: Store) -> None:
    """Who decided saw another text of it."""
    name, other = add_one(store, "tea"), add_one(store, "coffee")
    seen = one(store, other).revision
    store.update(patch(other, text="jazz"), tenant="t", actor="test", now=FEB)
    with pytest.raises(Conflict):
        move(store, name, SUPERSEDED, superseded_by=other, successor_revision=seen)
    assert one(store, name).state is ACTIVE
    move(store, name, SUPERSEDED, superseded_by=other, successor_revision=one(store, other).revision)
    assert one(store, name).superseded_by == other
