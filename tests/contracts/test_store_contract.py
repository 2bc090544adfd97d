"""The contract of MemoryStore and AccessLog, over every store."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contracts.backends import EVERY, Store, opened
from tests.contracts.store_data import (
    ALICE,
    APR,
    FEB,
    JAN,
    MAR,
    MINI,
    add,
    add_one,
    live_ids,
    patch,
    prepared,
    vector,
)
from vimbank.curves.catalogue import open_curve
from vimbank.domain import filters
from vimbank.domain.curves import CURVE_NAMES, Curve, CurveName, ExponentialCurve, Trace
from vimbank.domain.models import (
    AddResult,
    Event,
    ListQuery,
    MemoryState,
    Partition,
    RecallEntry,
    Scope,
    Signal,
    Source,
)
from vimbank.errors import ConfigError, Conflict, InvalidInput, NotFound
from vimbank.ports import Embedded, EncoderIdentity, PreparedDraft, StoreState

CURVES = {name: open_curve(name, tau_days=10.0) for name in CURVE_NAMES}


@pytest.fixture(params=EVERY)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened(request.param, tmp_path) as store:
        yield store


class TestAdd:
    def test_every_field_comes_back(self, store: Store) -> None:
        given = prepared(
            "tea at five",
            kind="turn",
            title="Tea",
            speaker="Alice",
            agent_id="agent",
            session_id="s1",
            metadata={"a": 1, "nested": {"b": [1, 2.5, None, "ü"]}},
            source=Source(parent_id="p", position=3, start=4, end=9, event_id="e1"),
            created_at=JAN - timedelta(microseconds=1),
            event_at=FEB,
            valid_from=JAN,
            valid_to=MAR,
            expires_at=APR,
            importance=0.25,
            pinned=True,
            id="mine",
            idempotency_key="k1",
        )
        [result] = add(store, given, now=FEB)
        assert result == AddResult("mine", 1)
        [memory] = store.get("t", ["mine"])
        draft = given.draft
        for name in (
            *("tenant", "user_id", "bank", "text", "kind", "title", "speaker", "agent_id", "session_id", "metadata"),
            *("source", "created_at", "event_at", "valid_from", "valid_to", "expires_at", "importance", "pinned"),
        ):
            assert getattr(memory, name) == getattr(draft, name), name
        assert (memory.updated_at, memory.content_hash, memory.revision) == (FEB, given.content_hash, 1)
        assert (memory.strength, memory.recall_count, memory.last_recalled_at) == (1.0, 0, None)
        assert (memory.state, memory.superseded_by, memory.token_count, memory.number) == (
            MemoryState.ACTIVE,
            None,
            3,
            1,
        )

    def test_made_ids_are_version_7_and_ascend_also_when_the_clock_stands_or_steps_back(self, store: Store) -> None:
        ids = [add_one(store, f"text {place}", now=FEB if place < 10 else JAN) for place in range(20)]
        assert ids == sorted(set(ids))
        assert all(len(name) == 36 and name[14] == "7" and name[19] in "89ab" for name in ids)

    def test_no_drafts_write_nothing(self, store: Store) -> None:
        assert store.add([], actor="test", now=JAN) == []
        assert store.state() == StoreState(0, 0)

    @pytest.mark.parametrize(
        "names", [{"id": "x"}, {"idempotency_key": "x"}, {"source": Source(event_id="x")}], ids=["id", "key", "event"]
    )
    def test_the_same_again_is_a_duplicate_and_other_content_a_conflict(
        self, store: Store, names: dict[str, Any]
    ) -> None:
        [first] = add(store, prepared("tea", **names))
        again, other, unrelated = store.add(
            [prepared("tea", **names), prepared("coffee", **names), prepared("water")], actor="test", now=FEB
        )
        assert again == AddResult(first.id, first.revision, duplicate=True)
        assert isinstance(other, Conflict)
        assert unrelated == AddResult(unrelated.id, 2)  # type: ignore[union-attr]
        assert [memory.text for memory in store.page(ListQuery(tenant="t")).items] == ["tea", "water"]

    def test_a_known_id_of_another_user_or_bank_is_a_conflict_even_at_an_equal_hash(self, store: Store) -> None:
        first = prepared("tea", id="x")
        add(store, first)
        for fields in list[dict[str, Any]](({"user_id": "bob"}, {"bank": "task"})):
            other = PreparedDraft(prepared("tea", id="x", **fields).draft, first.content_hash, 1, None)
            [result] = store.add([other], actor="test", now=JAN)
            assert isinstance(result, Conflict)

    def test_names_of_two_memories_in_one_draft_are_a_conflict(self, store: Store) -> None:
        add(store, prepared("tea", id="x"), prepared("tea", idempotency_key="k"))
        [result] = store.add([prepared("tea", id="x", idempotency_key="k")], actor="test", now=JAN)
        assert isinstance(result, Conflict)

    def test_another_tenant_may_use_the_same_names(self, store: Store) -> None:
        names: dict[str, Any] = {"id": "x", "idempotency_key": "k", "source": Source(event_id="e")}
        add(store, prepared("tea", **names), prepared("coffee", tenant="other", **names))
        assert [memory.text for memory in store.get("other", ["x"])] == ["coffee"]

    def test_drafts_of_one_batch_act_as_if_written_one_after_the_other(self, store: Store) -> None:
        results = store.add(
            [prepared("tea"), prepared("tea"), prepared("x", id="x"), prepared("x", id="x"), prepared("y", id="x")],
            actor="test",
            now=JAN,
        )
        assert [isinstance(result, Conflict) for result in results] == [False, False, False, False, True]
        assert [result.duplicate for result in results[:4]] == [False, True, False, True]  # type: ignore[union-attr]
        assert store.state().revision == 2

    def test_exact_duplicates_fold_only_where_they_may(self, store: Store) -> None:
        first = add_one(store, "tea")
        assert add(store, prepared("tea")) == [AddResult(first, 1, duplicate=True)]
        apart = [
            prepared("tea", deduplicate=False),
            prepared("tea", id="own"),
            prepared("tea", idempotency_key="own"),
            prepared("tea", source=Source(event_id="own")),
            prepared("tea", kind="turn"),
            prepared("tea", bank="task"),
        ]
        assert [result.duplicate for result in add(store, *apart)] == [False] * 6
        assert add(store, prepared("tea")) == [AddResult(first, 1, duplicate=True)]

    def test_case_62_two_users_same_sentence_are_two_memories(self, store: Store) -> None:
        mine, theirs = add(store, prepared("I like tea"), prepared("I like tea", user_id="bob"))
        assert store.delete("t", [mine.id], actor="test", now=FEB) == [mine.id]
        assert [memory.id for memory in store.page(ListQuery(tenant="t")).items] == [theirs.id]

    def test_case_62_even_were_their_hashes_equal(self, store: Store) -> None:
        drafts = [PreparedDraft(prepared("x", user_id=user).draft, "same", 1, None) for user in ("alice", "bob")]
        assert [result.duplicate for result in add(store, *drafts)] == [False, False]

    def test_case_63_glued_fields_are_two_memories(self, store: Store) -> None:
        results = add(store, prepared("c", user_id="ab"), prepared("bc", user_id="a"))
        assert [result.duplicate for result in results] == [False, False]

    def test_case_137_a_deleted_memory_does_not_block_its_text(self, store: Store) -> None:
        first = add_one(store, "tea")
        store.delete("t", [first], actor="test", now=FEB)
        second = add_one(store, "tea", now=MAR)
        assert second != first
        assert [memory.id for memory in store.page(ListQuery(tenant="t")).items] == [second]


class TestDocuments:
    def test_parent_and_segments_are_written_together(self, store: Store) -> None:
        [result] = add(store, prepared("one two", segments=["one", "two"], id="doc"))
        assert result == AddResult("doc", 1, segments=2)
        parent, first, second = store.get("t", ["doc", "doc:0000", "doc:0001"])
        assert (parent.kind, parent.indexed, first.kind, first.text, second.text) == (
            "document",
            False,
            "segment",
            "one",
            "two",
        )
        assert first.source == Source(parent_id="doc", position=0, start=0, end=1)
        assert second.source == Source(parent_id="doc", position=1, start=1, end=2)
        assert live_ids(store) == ["doc:0000", "doc:0001"]
        assert [change.vector is None for change in store.changes(0, limit=9)] == [True, False, False]

    def test_the_same_document_again_is_a_duplicate_with_its_segments_counted(self, store: Store) -> None:
        [first] = add(store, prepared("one two", segments=["one", "two"]))
        [again] = add(store, prepared("one two", segments=["one", "two"]))
        assert again == AddResult(first.id, first.revision, duplicate=True, segments=2)

    def test_a_taken_segment_id_is_a_conflict_and_nothing_of_the_document_is_written(self, store: Store) -> None:
        add(store, prepared("squatter", id="doc:0001"))
        [result] = store.add([prepared("one two", segments=["one", "two"], id="doc")], actor="test", now=JAN)
        assert isinstance(result, Conflict)
        assert (store.page(ListQuery(tenant="t")).total, store.state().revision) == (1, 1)

    def test_deleting_the_parent_deletes_its_parts_and_theirs(self, store: Store) -> None:
        add(store, prepared("the run", kind="run", id="run"))
        add(store, prepared("a b", segments=["a", "b"], id="step", source=Source(parent_id="run")), prepared("else"))
        assert store.delete("t", ["run"], actor="test", now=FEB) == ["run"]
        assert [memory.text for memory in store.page(ListQuery(tenant="t")).items] == ["else"]
        assert [change.memory is None for change in store.changes(5, limit=99)] == [True] * 4

    def test_a_segment_may_be_deleted_alone_and_named_beside_its_parent(self, store: Store) -> None:
        add(store, prepared("one two", segments=["one", "two"], id="doc"))
        assert store.delete("t", ["doc:0000"], actor="test", now=FEB) == ["doc:0000"]
        assert live_ids(store) == ["doc:0001"]
        assert store.delete("t", ["doc", "doc:0001", "doc", "nope"], actor="test", now=FEB) == ["doc", "doc:0001"]
        assert store.page(ListQuery(tenant="t")).total == 0

    def test_new_text_replaces_the_segments(self, store: Store) -> None:
        add(store, prepared("a b c", segments=["a", "b", "c"], id="doc"))
        store.update(patch("doc", text="a x", segments=["a", "x"]), tenant="t", actor="test", now=FEB)
        texts = {memory.id: memory.text for memory in store.page(ListQuery(tenant="t")).items}
        assert texts == {"doc": "a x", "doc:0000": "a", "doc:0001": "x"}
        store.update(patch("doc", text="1 2 3 4", segments=["1", "2", "3", "4"]), tenant="t", actor="test", now=MAR)
        assert live_ids(store) == ["doc:0000", "doc:0001", "doc:0002", "doc:0003"]

    def test_short_text_makes_a_document_plain_and_long_text_a_plain_memory_a_document(self, store: Store) -> None:
        add(store, prepared("a b", segments=["a", "b"], id="doc"))
        plain = store.update(patch("doc", text="short"), tenant="t", actor="test", now=FEB)
        assert (plain.kind, live_ids(store)) == ("note", ["doc"])
        long = store.update(patch("doc", text="c d", segments=["c", "d"]), tenant="t", actor="test", now=MAR)
        assert (long.kind, live_ids(store)) == ("document", ["doc:0000", "doc:0001"])

    def test_what_is_said_of_a_document_holds_for_its_segments(self, store: Store) -> None:
        add(store, prepared("a b", segments=["a", "b"], id="doc", metadata={"old": 1}))
        store.update(patch("doc", metadata={"new": 2, "old": None}, pinned=True), tenant="t", actor="test", now=FEB)
        memories = store.get("t", ["doc", "doc:0000", "doc:0001"])
        assert [(memory.metadata, memory.pinned) for memory in memories] == [({"new": 2}, True)] * 3
        assert [memory.text for memory in memories] == ["a b", "a", "b"]
        assert sorted(memory.revision for memory in memories) == [4, 5, 6]


class TestUpdate:
    def test_case_73_metadata_and_creation_stay_and_the_vector_moves(self, store: Store) -> None:
        name = add_one(store, "likes tea", metadata={"a": 1})
        updated = store.update(patch(name, text="likes coffee"), tenant="t", actor="test", now=FEB)
        assert [updated] == store.get("t", [name])
        assert (updated.text, updated.metadata, updated.created_at, updated.updated_at) == (
            "likes coffee",
            {"a": 1},
            JAN,
            FEB,
        )
        assert (updated.revision, updated.number, store.state().revision) == (2, 1, 2)
        [change] = store.changes(0, limit=9)
        assert change.vector is not None
        np.testing.assert_array_equal(change.vector, vector("likes coffee"))

    def test_metadata_is_merged_key_by_key(self, store: Store) -> None:
        name = add_one(store, "tea", metadata={"a": 1, "b": {"c": 2}, "d": 3})
        updated = store.update(
            patch(name, metadata={"a": None, "b": {"e": 4}, "f": 5}), tenant="t", actor="test", now=FEB
        )
        assert updated.metadata == {"b": {"e": 4}, "d": 3, "f": 5}

    def test_none_clears_and_unset_keeps(self, store: Store) -> None:
        name = add_one(store, "tea", title="T", importance=0.5, valid_to=MAR)
        updated = store.update(patch(name, title=None, importance=0.75), tenant="t", actor="test", now=FEB)
        assert (updated.title, updated.importance, updated.valid_to) == (None, 0.75, MAR)

    def test_a_patch_that_changes_nothing_writes_nothing(self, store: Store) -> None:
        name = add_one(store, "tea", metadata={"a": 1})
        same = store.update(patch(name, metadata={"a": 1}, pinned=False), tenant="t", actor="test", now=FEB)
        assert (same.revision, same.updated_at, store.state().revision) == (1, JAN, 1)

    def test_unknown_foreign_and_deleted_ids_are_not_found(self, store: Store) -> None:
        name = add_one(store, "tea")
        gone = add_one(store, "gone")
        store.delete("t", [gone], actor="test", now=FEB)
        for tenant, wanted in (("t", "nope"), ("other", name), ("t", gone)):
            with pytest.raises(NotFound):
                store.update(patch(wanted, pinned=True), tenant=tenant, actor="test", now=FEB)

    def test_an_outdated_expected_revision_is_a_conflict(self, store: Store) -> None:
        name = add_one(store, "tea")
        updated = store.update(patch(name, pinned=True, expected_revision=1), tenant="t", actor="test", now=FEB)
        with pytest.raises(Conflict, match="at revision 2, not 1"):
            store.update(patch(name, pinned=False, expected_revision=1), tenant="t", actor="test", now=FEB)
        assert store.get("t", [name]) == [updated]


class TestDelete:
    def test_case_2_three_added_one_deleted(self, store: Store) -> None:
        ids = [result.id for result in add(store, prepared("a"), prepared("b"), prepared("c"))]
        store.delete("t", [ids[1]], actor="test", now=FEB)
        assert live_ids(store) == [ids[0], ids[2]]
        assert store.page(ListQuery(tenant="t")).total == 2
        assert store.get("t", ids) == store.get("t", [ids[0], ids[2]])

    def test_case_3_texts_and_vectors_stay_together_after_deletions(self, store: Store) -> None:
        ids = [result.id for result in add(store, *(prepared(f"first {place}") for place in range(10)))]
        store.delete("t", [ids[0], ids[3], ids[7]], actor="test", now=FEB)
        add(store, *(prepared(f"second {place}") for place in range(5)))
        changes = [change for batch in store.live(ALICE, batch=5) for change in batch]
        assert len(changes) == 12
        for change in changes:
            assert change.memory is not None
            assert change.vector is not None
            np.testing.assert_array_equal(change.vector, vector(change.memory.text))

    def test_only_a_tombstone_stays(self, store: Store) -> None:
        name = add_one(store, "secret", title="secret", metadata={"secret": 1}, session_id="s", id="x")
        store.delete("t", [name], actor="test", now=FEB)
        assert store.get("t", [name]) == []
        [change] = store.changes(1, limit=9)
        assert (change.revision, change.partition, change.id, change.memory, change.vector) == (
            2,
            ALICE,
            name,
            None,
            None,
        )
        assert store.page(ListQuery(tenant="t", state=None)).total == 0

    def test_unknown_and_foreign_ids_are_left_out(self, store: Store) -> None:
        name = add_one(store, "tea")
        assert store.delete("other", [name], actor="test", now=FEB) == []
        assert store.delete("t", ["nope", name, name], actor="test", now=FEB) == [name]
        assert store.delete("t", [name], actor="test", now=FEB) == []

    def test_case_5_a_callers_id_may_be_used_again_and_names_both_lives(self, store: Store) -> None:
        names: dict[str, Any] = {"id": "x", "idempotency_key": "k", "source": Source(event_id="e")}
        add(store, prepared("first", **names))
        store.delete("t", ["x"], actor="test", now=FEB)
        [again] = add(store, prepared("second", **names), now=MAR)
        assert again == AddResult("x", 3)
        assert [memory.text for memory in store.get("t", ["x"])] == ["second"]
        assert [(entry.old_text, entry.new_text) for entry in store.history("t", "x")] == [
            (None, "first"),
            ("first", None),
            (None, "second"),
        ]
        new = add_one(store, "first", now=MAR)
        assert [entry.event for entry in store.history("t", new)] == [Event.ADD]

    def test_an_id_reused_in_another_partition_still_leaves_a_tombstone_in_the_first(self, store: Store) -> None:
        add(store, prepared("alice's", id="x"))
        store.delete("t", ["x"], actor="test", now=FEB)
        add(store, prepared("bob's", id="x", user_id="bob"))
        assert [change.memory for change in store.changes(0, limit=9, partition=ALICE)] == [None]

    def test_a_scope_is_deleted_and_nothing_else(self, store: Store) -> None:
        add(
            store,
            prepared("1", session_id="s", agent_id="a"),
            prepared("2", session_id="s"),
            prepared("3", bank="task"),
            prepared("4", user_id="bob", session_id="s"),
            prepared("5", tenant="other", session_id="s"),
            prepared("6 7", segments=["6", "7"]),
        )
        assert store.delete_scope(Scope("t", "alice", session_id="s", agent_id="a"), actor="test", now=FEB) == 1
        assert store.delete_scope(Scope("t", "alice", session_id="s"), actor="test", now=FEB) == 1
        assert store.delete_scope(Scope("t", "alice", bank="task"), actor="test", now=FEB) == 1
        assert store.delete_scope(Scope("t", "alice"), actor="test", now=FEB) == 3
        assert store.delete_scope(Scope("t", "nobody"), actor="test", now=FEB) == 0
        left = [*store.page(ListQuery(tenant="t")).items, *store.page(ListQuery(tenant="other")).items]
        assert [memory.text for memory in left] == ["4", "5"]


class TestRead:
    def test_get_keeps_the_order_and_leaves_out_the_unknown(self, store: Store) -> None:
        ids = [result.id for result in add(store, *(prepared(f"text {place}") for place in range(700)))]
        wanted = [ids[5], "nope", ids[3], ids[5], *ids[::-1]]
        assert [memory.id for memory in store.get("t", wanted)] == [ids[5], ids[3], ids[5], *ids[::-1]]
        assert store.get("other", ids) == []
        assert store.get("t", []) == []

    def test_case_79_a_listing_counts_all_and_goes_on(self, store: Store) -> None:
        add(store, *(prepared(f"text {place}") for place in range(250)))
        query = ListQuery(tenant="t", user_id="alice")
        pages = [store.page(query)]
        while pages[-1].next_cursor is not None:
            pages.append(store.page(ListQuery(tenant="t", user_id="alice", cursor=pages[-1].next_cursor)))
        assert [(len(page.items), page.total) for page in pages] == [(100, 250), (100, 250), (50, 250)]
        texts = [memory.text for page in pages for memory in page.items]
        assert texts == [f"text {place}" for place in range(250)]

    def test_a_last_page_that_is_full_has_no_cursor(self, store: Store) -> None:
        add(store, prepared("a"), prepared("b"))
        assert store.page(ListQuery(tenant="t", limit=2)).next_cursor is None
        assert store.page(ListQuery(tenant="t", limit=1)).next_cursor is not None

    @pytest.mark.parametrize("cursor", ["", "nope", "bm9wZQ", "bi0x", "ü", "bjEx" * 50, "\x00"])
    def test_a_cursor_it_did_not_make_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(InvalidInput, match="cursor"):
            store.page(ListQuery(tenant="t", cursor=cursor))

    def test_listings_are_scoped(self, store: Store) -> None:
        add(
            store,
            prepared("a", session_id="s1", agent_id="g"),
            prepared("b", session_id="s2", kind="turn"),
            prepared("c", user_id="bob", session_id="s1"),
            prepared("d", bank="task", source=Source(parent_id="run")),
            prepared("e", tenant="other"),
        )

        def texts(**fields: Any) -> str:
            return "".join(memory.text for memory in store.page(ListQuery(tenant="t", **fields)).items)

        assert texts() == "abcd"
        assert texts(user_id="alice") == "abd"
        assert texts(session_id="s1") == "ac"
        assert texts(agent_id="g") == "a"
        assert texts(kind="turn") == "b"
        assert texts(bank="task") == "d"
        assert texts(parent_id="run") == "d"
        assert texts(state=MemoryState.ARCHIVED) == ""

    def test_a_filter_counts_and_pages_exactly(self, store: Store) -> None:
        add(store, *(prepared(f"text {place}", metadata={"n": place}) for place in range(30)))
        wanted = filters.parse({"n": {"gte": 10}})
        first = store.page(ListQuery(tenant="t", filter=wanted, limit=15))
        rest = store.page(ListQuery(tenant="t", filter=wanted, limit=15, cursor=first.next_cursor))
        assert (first.total, rest.total, rest.next_cursor) == (20, 20, None)
        assert [memory.metadata["n"] for memory in (*first.items, *rest.items)] == list(range(10, 30))

    def test_positions_of_a_session_are_never_given_twice(self, store: Store) -> None:
        assert store.next_position(ALICE, "s") == 0
        ids = [add_one(store, f"{place}", session_id="s", source=Source(position=place)) for place in range(3)]
        add_one(store, "long", segments=["x"] * 9, session_id="s", source=Source(position=3))
        assert store.next_position(ALICE, "s") == 4
        store.delete_scope(Scope("t", "alice", session_id="s"), actor="test", now=FEB)
        assert store.next_position(ALICE, "s") == 4
        assert store.next_position(Partition("t", "bob", "dialog"), "s") == 0
        assert len(ids) == 3

    def test_partitions_are_those_with_active_memories_sorted(self, store: Store) -> None:
        gone = add_one(store, "x", user_id="gone")
        add(store, prepared("b", user_id="bob"), prepared("a"), prepared("a2"), prepared("o", tenant="other"))
        store.delete("t", [gone], actor="test", now=FEB)
        assert store.partitions("t") == [ALICE, Partition("t", "bob", "dialog")]
        assert store.partitions() == [Partition("other", "alice", "dialog"), ALICE, Partition("t", "bob", "dialog")]

    def test_counts_are_exact(self, store: Store) -> None:
        add(
            store,
            prepared("a"),
            prepared("b", bank="task"),
            prepared("c", user_id="bob"),
            prepared("d", tenant="other"),
        )
        store.delete("t", [add_one(store, "gone")], actor="test", now=FEB)
        counts = store.counts("t")
        assert (counts.memories, counts.users) == (3, 2)
        assert (counts.by_bank, counts.by_state, counts.by_kind) == (
            {"dialog": 2, "task": 1},
            {"active": 3},
            {"note": 3},
        )
        assert (store.counts("t", "bob").memories, store.counts().memories, store.counts("none").memories) == (1, 4, 0)


class TestFeed:
    def test_changes_are_the_newest_states_by_revision(self, store: Store) -> None:
        first, second, third = (add_one(store, text) for text in "abc")
        store.update(patch(first, text="a2"), tenant="t", actor="test", now=FEB)
        store.delete("t", [second], actor="test", now=FEB)
        changes = store.changes(0, limit=9)
        assert [(change.revision, change.id) for change in changes] == [(3, third), (4, first), (5, second)]
        assert [change.memory and change.memory.text for change in changes] == ["c", "a2", None]
        assert [change.revision for change in store.changes(3, limit=1)] == [4]
        assert store.changes(5, limit=9) == []

    def test_changes_of_one_partition(self, store: Store) -> None:
        add(store, prepared("a"), prepared("b", user_id="bob"), prepared("c"))
        assert [change.revision for change in store.changes(0, limit=9, partition=ALICE)] == [1, 3]

    def test_live_is_one_moment_whatever_is_written_meanwhile(self, store: Store) -> None:
        add(store, *(prepared(f"text {place}") for place in range(10)))
        batches = iter(store.live(ALICE, batch=4))
        first = next(iter(batches))
        late = add_one(store, "late")
        store.delete("t", [first[0].id], actor="test", now=FEB)
        rest = [change for batch in batches for change in batch]
        assert [len(first), len(rest)] == [4, 6]
        assert late not in [change.id for change in rest]

    def test_memories_without_vectors_are_live_without_them(self, store: Store) -> None:
        add(store, PreparedDraft(prepared("x").draft, "h", 1, None))
        [[change]] = store.live(ALICE)
        assert (change.memory is not None, change.vector) == (True, None)


class TestPast:
    def test_case_76_history_shows_old_and_new(self, store: Store) -> None:
        name = add_one(store, "v1", now=JAN)
        store.update(patch(name, text="v2"), tenant="t", actor="bob", now=FEB)
        store.delete("t", [name], actor="test", now=MAR)
        entries = store.history("t", name)
        assert [(entry.old_text, entry.new_text) for entry in entries] == [(None, "v1"), ("v1", "v2"), ("v2", None)]
        assert [(entry.revision, entry.at, entry.event, entry.actor) for entry in entries] == [
            (1, JAN, Event.ADD, "test"),
            (2, FEB, Event.UPDATE, "bob"),
            (3, MAR, Event.DELETE, "test"),
        ]
        assert store.history("other", name) == []
        assert store.history("t", "nope") == []

    def test_history_names_what_changed(self, store: Store) -> None:
        name = add_one(store, "tea", metadata={"a": 1})
        store.update(patch(name, metadata={"a": 2}, pinned=True, valid_to=MAR), tenant="t", actor="test", now=FEB)
        changes = store.history("t", name)[1].changes
        assert {field: tuple(pair) for field, pair in changes.items()} == {
            "metadata": ({"a": 1}, {"a": 2}),
            "pinned": (False, True),
            "valid_to": (None, "2026-03-01T00:00:00Z"),
        }

    def test_case_106_as_of_shows_what_stood_then(self, store: Store) -> None:
        name = add_one(store, "v1", now=JAN, metadata={"a": 1})
        store.update(patch(name, text="v2", metadata={"a": 2}), tenant="t", actor="test", now=FEB)
        store.delete("t", [name], actor="test", now=MAR)

        def then(day: int, month: int) -> list[tuple[str, object]]:
            instant = JAN.replace(month=month, day=day)
            found = store.as_of(ALICE, instant)
            for memory, stood in found:
                assert stood is not None
                np.testing.assert_array_equal(stood, vector(memory.text))
            return [(memory.text, memory.metadata) for memory, _ in found]

        assert store.as_of(ALICE, JAN - timedelta(microseconds=1)) == []
        assert then(1, 1) == [("v1", {"a": 1})]
        assert then(15, 1) == [("v1", {"a": 1})]
        assert then(15, 2) == [("v2", {"a": 2})]
        assert then(1, 3) == []

    def test_as_of_a_creation_time_in_the_past(self, store: Store) -> None:
        name = add_one(store, "v1", created_at=JAN, now=MAR)
        store.update(patch(name, text="v2"), tenant="t", actor="test", now=APR)
        assert [memory.text for memory, _ in store.as_of(ALICE, FEB)] == ["v1"]
        assert [memory.text for memory, _ in store.as_of(ALICE, APR)] == ["v2"]

    def test_as_of_undoes_a_documents_segments(self, store: Store) -> None:
        add(store, prepared("a b", segments=["a", "b"], id="doc"), now=JAN)
        store.update(patch("doc", text="1 2 3", segments=["1", "2", "3"]), tenant="t", actor="test", now=FEB)
        store.update(patch("doc", text="short"), tenant="t", actor="test", now=MAR)
        texts = [
            [memory.text for memory, _ in store.as_of(ALICE, moment)]
            for moment in (JAN, FEB, MAR - timedelta(days=1), MAR)
        ]
        assert texts == [["a", "b"], ["1", "2", "3"], ["1", "2", "3"], ["short"]]

    def test_as_of_tells_two_lives_of_one_id_apart(self, store: Store) -> None:
        add(store, prepared("first", id="x"), now=JAN)
        store.delete("t", ["x"], actor="test", now=FEB)
        add(store, prepared("second", id="x"), now=MAR)
        store.update(patch("x", text="third"), tenant="t", actor="test", now=APR)
        moments = (JAN, FEB, MAR, APR)
        assert [[memory.text for memory, _ in store.as_of(ALICE, moment)] for moment in moments] == [
            ["first"],
            [],
            ["second"],
            ["third"],
        ]

    def test_as_of_stays_inside_its_partition(self, store: Store) -> None:
        add(store, prepared("a"), prepared("b", user_id="bob"))
        store.delete_scope(Scope("t", "bob"), actor="test", now=FEB)
        assert [memory.text for memory, _ in store.as_of(ALICE, JAN)] == ["a"]


class TestAccessLog:
    def fold(self, store: Store, *, limit: int = 100, curve: Curve = CURVES["exponential"]) -> int:
        return store.fold(lambda _bank: curve, limit=limit, now=APR)

    def test_each_entry_is_folded_once(self, store: Store) -> None:
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, MAR), RecallEntry("t", name, FEB, Signal.USED)])
        assert self.fold(store) == 2
        assert self.fold(store) == 0
        [memory] = store.get("t", [name])
        # 1 + 1 * 1 (returned) + 1 * 2 (used) = 4
        assert (memory.strength, memory.recall_count, memory.last_recalled_at) == (4.0, 2, MAR)
        assert (memory.revision, memory.updated_at, store.state().revision) == (2, JAN, 2)
        assert len(store.history("t", name)) == 1
        [change] = store.changes(1, limit=9)
        assert change.vector is not None

    def test_the_limit_leaves_the_rest_for_the_next_time(self, store: Store) -> None:
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, FEB)] * 5)
        assert [self.fold(store, limit=2) for _ in range(4)] == [2, 2, 1, 0]
        assert store.get("t", [name])[0].recall_count == 5

    def test_strength_is_capped(self, store: Store) -> None:
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, FEB)] * 9)
        self.fold(store, curve=ExponentialCurve(max_strength=3.0))
        assert (store.get("t", [name])[0].strength, store.get("t", [name])[0].recall_count) == (3.0, 9)

    @pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
    def test_ignored_says_nothing_under_any_curve(self, store: Store, curve: Curve) -> None:
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, FEB, Signal.IGNORED)])
        assert self.fold(store, curve=curve) == 1
        assert store.state().revision == 1

    @pytest.mark.parametrize("name", ["exponential", "ilstma"])
    def test_each_signal_by_hand_where_strength_decides(self, store: Store, name: CurveName) -> None:
        """1 + 1 (returned) + 2 (used) + 1 (returned) - 2 (wrong) = 3; three recalls, the last one's time stays."""
        memory_id = add_one(store, "tea")
        signals = [(4, Signal.WRONG), (1, Signal.RETURNED), (3, Signal.RETURNED), (2, Signal.USED), (5, Signal.IGNORED)]
        store.append([RecallEntry("t", memory_id, JAN + timedelta(days=days), signal) for days, signal in signals])
        self.fold(store, curve=CURVES[name])
        [memory] = store.get("t", [memory_id])
        assert (memory.strength, memory.recall_count, memory.last_recalled_at) == (3.0, 3, JAN + timedelta(days=3))
        assert (memory.stability_days, memory.difficulty) == (None, None)

    def test_wrong_takes_a_use_back_and_is_no_recall(self, store: Store) -> None:
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, FEB, Signal.USED)])
        self.fold(store)
        store.append([RecallEntry("t", name, MAR, Signal.WRONG)])
        self.fold(store)
        [memory] = store.get("t", [name])
        assert (memory.strength, memory.recall_count, memory.last_recalled_at) == (1.0, 1, FEB)

    def test_wrong_before_any_recall_has_no_time_to_write(self, store: Store) -> None:
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, FEB, Signal.WRONG)])
        self.fold(store, curve=CURVES["fsrs"])
        [memory] = store.get("t", [name])
        assert (memory.recall_count, memory.last_recalled_at, memory.revision) == (0, None, 2)
        assert memory.stability_days is not None
        assert memory.stability_days < 2.3065

    def test_fsrs_reviews_a_use_at_its_age_and_counts_what_is_returned(self, store: Store) -> None:
        """S' = S (1 + e^w8 (11 - D) S^-w9 (e^((1 - R) w10) - 1)): from S = w2, D = w4 - e^(2 w5) + 1, after 31 days.

        What is returned counts as a recall, and is no review: neither age nor strength begin anew. The second use
        comes 28 days after the first.
        """
        name = add_one(store, "tea")
        for at, signal in ((JAN + timedelta(days=9), Signal.RETURNED), (FEB, Signal.USED), (MAR, Signal.RETURNED)):
            store.append([RecallEntry("t", name, at, signal)])
            self.fold(store, curve=CURVES["fsrs"])
        difficulty = 6.4133 - math.exp(2 * 0.8334) + 1
        left = (1 + (0.9 ** (-1 / 0.1542) - 1) * 31 / 2.3065) ** -0.1542
        gain = math.exp(1.8722) * (11 - difficulty) * 2.3065**-0.1666 * (math.exp((1 - left) * 0.796) - 1)
        [memory] = store.get("t", [name])
        assert memory.stability_days == pytest.approx(2.3065 * (1 + gain))
        assert memory.difficulty == pytest.approx(difficulty, abs=0.01)
        assert (memory.strength, memory.recall_count, memory.last_recalled_at) == (3.0, 3, FEB)
        once = Trace(memory.strength, memory.stability_days, memory.difficulty)
        store.append([RecallEntry("t", name, MAR, Signal.USED)])
        self.fold(store, curve=CURVES["fsrs"])
        [again] = store.get("t", [name])
        twice = CURVES["fsrs"].review(once, Signal.USED, 28.0)
        assert (again.strength, again.stability_days, again.difficulty) == (
            twice.strength,
            twice.stability_days,
            twice.difficulty,
        )
        assert twice.strength == 5.0

    def test_each_bank_has_its_curve(self, store: Store) -> None:
        names = [add_one(store, "tea", bank=bank) for bank in ("dialog", "knowledge")]
        store.append([RecallEntry("t", name, FEB, Signal.USED) for name in names])
        curves = {"dialog": CURVES["exponential"], "knowledge": CURVES["fsrs"]}
        assert store.fold(curves.__getitem__, limit=9, now=APR) == 2
        assert [each.stability_days is None for each in store.get("t", names)] == [True, False]

    def test_a_bank_may_change_its_curve_and_change_it_back(self, store: Store) -> None:
        """Strength is kept up by all of them: 1 + 2 (exponential) + 2 (FSRS) + 1 (exponential) = 6."""
        name = add_one(store, "tea")
        lived: list[tuple[int, Signal, CurveName]] = [
            (1, Signal.USED, "exponential"),
            (2, Signal.USED, "fsrs"),
            (3, Signal.RETURNED, "exponential"),
        ]
        for days, signal, curve in lived:
            store.append([RecallEntry("t", name, JAN + timedelta(days=days), signal)])
            self.fold(store, curve=CURVES[curve])
        [memory] = store.get("t", [name])
        assert (memory.strength, memory.recall_count, memory.last_recalled_at) == (6.0, 3, JAN + timedelta(days=3))
        # FSRS took it over at S = w2 * 3, a day old.
        taken_over = CURVES["fsrs"].review(Trace(strength=3.0), Signal.USED, 1.0)
        assert memory.stability_days == taken_over.stability_days
        lives = store.lives(ALICE)
        assert (lives.strength.tolist(), lives.stability_days.tolist()) == ([6.0], [memory.stability_days])

    def test_an_entry_older_than_the_last_recall_moves_nothing_back(self, store: Store) -> None:
        name = add_one(store, "tea")
        for at in (MAR, FEB):
            store.append([RecallEntry("t", name, at)])
            self.fold(store)
        [memory] = store.get("t", [name])
        assert (memory.strength, memory.recall_count, memory.last_recalled_at) == (3.0, 2, MAR)

    def test_a_memory_takes_one_revision_a_batch_by_number(self, store: Store) -> None:
        names = [add_one(store, f"text {place}") for place in range(3)]
        store.append([RecallEntry("t", name, FEB) for name in reversed(names) for _ in range(4)])
        assert self.fold(store) == 12
        assert [memory.revision for memory in store.get("t", names)] == [4, 5, 6]

    def trim(self, store: Store, before: datetime, *, batch: int = 1_000) -> list[int]:
        return list(store.trim(before=before, batch=batch))

    def test_entries_go_in_batches_once_they_are_folded_in_and_old(self, store: Store) -> None:
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, JAN + timedelta(minutes=minute)) for minute in range(5)])
        assert self.trim(store, APR) == [], "nothing is folded in"
        assert self.fold(store, limit=4) == 4
        assert self.trim(store, JAN + timedelta(minutes=1)) == [1], "what was noted at that instant stays"
        assert self.trim(store, APR, batch=2) == [2, 1]
        assert self.trim(store, APR) == []
        assert self.fold(store) == 1, "what is not folded in stays, however old"
        assert store.get("t", [name])[0].recall_count == 5
        assert self.trim(store, APR) == [1]

    def test_case_121_what_was_counted_never_counts_again_once_its_entries_are_gone(self, store: Store) -> None:
        """A second delivery of the job, before and after new entries: the cursor says what was counted, no entry."""
        name = add_one(store, "tea")
        for counted in (3, 6):
            store.append([RecallEntry("t", name, FEB)] * 3)
            assert (self.fold(store), self.trim(store, APR)) == (3, [3])
            assert (self.fold(store), self.trim(store, APR)) == (0, [])
            assert store.get("t", [name])[0].recall_count == counted

    def test_a_young_entry_among_old_ones_stays_and_holds_nothing_up(self, store: Store) -> None:
        """A clock that was ahead for a while."""
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, at) for at in (APR, APR, JAN, APR, JAN, JAN)])
        assert self.fold(store) == 6
        assert self.trim(store, FEB, batch=2) == [2, 1]
        assert self.trim(store, FEB) == []
        assert self.trim(store, APR + timedelta(days=1)) == [3]

    def test_a_fold_that_fails_folds_nothing_and_the_next_one_everything(self, store: Store) -> None:
        names = [add_one(store, "tea"), add_one(store, "coffee", bank="broken")]
        store.append([RecallEntry("t", name, FEB) for name in names])

        def failing(bank: str) -> Curve:
            if bank == "broken":
                raise InvalidInput.of("bank", "has no curve")
            return CURVES["exponential"]

        with pytest.raises(InvalidInput):
            store.fold(failing, limit=9, now=APR)
        assert [memory.recall_count for memory in store.get("t", names)] == [0, 0]
        assert (store.state().revision, self.fold(store)) == (2, 2)
        assert [memory.recall_count for memory in store.get("t", names)] == [1, 1]

    def test_more_memories_than_one_statement_takes(self, store: Store) -> None:
        names = [each.id for each in add(store, *(prepared(f"text {place}") for place in range(520)))]
        store.append([RecallEntry("t", name, FEB) for name in names])
        assert self.fold(store, limit=1_000) == 520
        assert {memory.recall_count for memory in store.get("t", names)} == {1}

    @pytest.mark.parametrize("name", CURVE_NAMES)
    def test_a_hundred_recalls_count_a_hundred_under_any_curve(self, store: Store, name: CurveName) -> None:
        """Case 96: from ten threads at once; strength stops at 20."""
        memory_id = add_one(store, "tea")
        lines = [RecallEntry("t", memory_id, FEB, signal) for signal in (Signal.RETURNED, Signal.USED) * 5]
        with ThreadPoolExecutor(10) as threads:
            list(threads.map(store.append, [lines] * 10))
        assert self.fold(store, limit=1_000, curve=CURVES[name]) == 100
        [memory] = store.get("t", [memory_id])
        assert (memory.recall_count, memory.strength) == (100, 20.0)

    def test_unknown_foreign_and_deleted_memories_are_passed_over(self, store: Store) -> None:
        name = add_one(store, "tea")
        gone = add_one(store, "gone")
        store.delete("t", [gone], actor="test", now=FEB)
        store.append([RecallEntry("t", "nope", FEB), RecallEntry("other", name, FEB), RecallEntry("t", gone, FEB)])
        assert self.fold(store) == 3
        assert store.get("t", [name])[0].recall_count == 0

    def test_a_clock_that_runs_ahead_makes_no_recall_in_the_future(self, store: Store) -> None:
        name = add_one(store, "tea")
        store.append([RecallEntry("t", name, APR + timedelta(days=1))])
        self.fold(store)
        assert store.get("t", [name])[0].last_recalled_at == APR


class TestEncoder:
    @pytest.mark.parametrize(
        "other", [EncoderIdentity("other", "1", 4), EncoderIdentity("mini", "2", 4), EncoderIdentity("mini", "1", 8)]
    )
    def test_cases_16_and_134_another_encoder_is_refused(self, store: Store, other: EncoderIdentity) -> None:
        assert store.encoder_identity() is None
        store.claim_encoder(MINI)
        add_one(store, "tea")
        store.claim_encoder(MINI)
        with pytest.raises(ConfigError) as refused:
            store.claim_encoder(other)
        for part in (str(MINI), str(other), "vimbank reindex"):
            assert part in str(refused.value)
        assert store.encoder_identity() == MINI
        assert len(live_ids(store)) == 1

    def test_a_store_without_embeddings_may_change_hands(self, store: Store) -> None:
        store.claim_encoder(MINI)
        other = EncoderIdentity("other", "1", 4)
        store.claim_encoder(other)
        assert store.encoder_identity() == other

    def test_embeddings_of_an_encoder_that_was_not_named_are_not_adopted(self, store: Store) -> None:
        add_one(store, "tea")
        with pytest.raises(ConfigError, match="vimbank reindex"):
            store.claim_encoder(MINI)

    def test_reindex_online(self, store: Store) -> None:
        store.claim_encoder(MINI)
        other = EncoderIdentity("other", "1", 4)
        ids = [add_one(store, text) for text in ("a", "b", "c")]
        add(store, prepared("d e", segments=["d", "e"]))
        assert [memory.text for memory in store.missing_embeddings(other, 2)] == ["a", "b"]
        with pytest.raises(Conflict, match="5 memories"):
            store.switch_encoder(other)
        stale = store.missing_embeddings(other, 9)
        store.update(patch(ids[0], text="a2"), tenant="t", actor="test", now=FEB)
        store.delete("t", [ids[1]], actor="test", now=FEB)
        assert store.put_embeddings(other, [(memory, Embedded(-vector(memory.text))) for memory in stale]) == 3
        [left] = store.missing_embeddings(other, 9)
        assert left.text == "a2"
        store.put_embeddings(other, [(left, Embedded(-vector("a2")))])
        revision = store.state().revision
        store.switch_encoder(other)
        assert store.state() == StoreState(revision, 1)
        assert store.encoder_identity() == other
        changes = [change for batch in store.live(ALICE) for change in batch]
        assert len(changes) == 4
        for change in changes:
            assert change.memory is not None
            assert change.vector is not None
            np.testing.assert_array_equal(change.vector, -vector(change.memory.text))
        store.switch_encoder(other)
        assert store.state().generation == 1

    def test_new_text_drops_what_a_reindex_made_of_the_old(self, store: Store) -> None:
        store.claim_encoder(MINI)
        other = EncoderIdentity("other", "1", 4)
        name = add_one(store, "a")
        store.put_embeddings(other, [(memory, Embedded(vector("a"))) for memory in store.missing_embeddings(other, 9)])
        assert store.missing_embeddings(other, 9) == []
        store.update(patch(name, text="b"), tenant="t", actor="test", now=FEB)
        assert [memory.text for memory in store.missing_embeddings(other, 9)] == ["b"]

    def test_vectors_come_back_of_what_has_one(self, store: Store) -> None:
        one, other = add_one(store, "tea"), add_one(store, "coffee", user_id="v")
        [bare] = add(store, PreparedDraft(prepared("milk").draft, "h", 1, None))
        gone = add_one(store, "gone")
        store.delete("t", [gone], actor="test", now=FEB)
        found = store.vectors("t", [other, one, bare.id, gone, "nope"])
        assert set(found) == {one, other}
        assert found[one].tolist() == vector("tea").tolist()
        assert found[other].tolist() == vector("coffee").tolist()
        assert store.vectors("other", [one]) == {}
        assert store.vectors("t", []) == {}

    def test_token_vectors_come_back_nearly(self, store: Store) -> None:
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((7, 16)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        draft = prepared("tea").draft
        [with_tokens] = add(store, PreparedDraft(draft, "h", 1, Embedded(vector("tea"), rows)))
        without = add_one(store, "coffee")
        found = store.token_vectors("t", [without, with_tokens.id, "nope"])
        assert list(found) == [with_tokens.id]
        np.testing.assert_allclose(found[with_tokens.id], rows, atol=1 / 254)
        assert store.token_vectors("other", [with_tokens.id]) == {}
        assert store.token_vectors("t", []) == {}
