"""The port ``PartitionIndex`` and its writing side: three legs, row for row the same memories."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from vimbank.domain.filters import matches, parse
from vimbank.domain.fingerprint import content_hash
from vimbank.domain.models import Change, Memory, MemoryState, Partition, Source, Vector
from vimbank.domain.text import analyze
from vimbank.encoders.hashing import HashingEncoder
from vimbank.errors import IndexCorrupt, InvalidInput
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.dense.faiss import FaissIndex
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.indexes.sparse.rank_bm25 import RankBM25Index

DIMENSION = 64
START = datetime(2026, 1, 1, tzinfo=UTC)
PARTITION = Partition("t", "u", "dialog")
ENCODER = HashingEncoder(DIMENSION)
ADAPTERS: dict[str, Callable[[], LocalPartition]] = {
    "exact+postings": lambda: LocalPartition(PARTITION, ExactIndex(DIMENSION), PostingsIndex(), analyze),
    "faiss+postings": lambda: LocalPartition(PARTITION, FaissIndex(DIMENSION), PostingsIndex(), analyze),
    "int8+rank-bm25": lambda: LocalPartition(PARTITION, FaissIndex(DIMENSION, 4), RankBM25Index(), analyze),
}


@pytest.fixture(params=ADAPTERS)
def index(request: pytest.FixtureRequest) -> LocalPartition:
    return ADAPTERS[request.param]()


def vector_of(text: str) -> Vector:
    vector: Vector = ENCODER.encode_documents([text])[0]
    return vector


def stored(id: str, text: str, revision: int, **fields: Any) -> Change:
    given: dict[str, Any] = {
        "id": id,
        "tenant": PARTITION.tenant,
        "user_id": PARTITION.user_id,
        "bank": PARTITION.bank,
        "kind": "turn",
        "text": text,
        "created_at": START,
        "updated_at": START,
        "content_hash": "",
        "revision": revision,
        "number": revision,
    }
    memory = Memory(**(given | fields))
    memory = replace(memory, content_hash=content_hash(memory))
    return Change(revision, PARTITION, id, memory, vector_of(text) if memory.indexed else None)


def tombstone(id: str, revision: int) -> Change:
    return Change(revision, PARTITION, id, None)


def numbered(numbers: Iterable[int], revision: int = 1) -> list[Change]:
    return [stored(f"m{n}", f"entry{n} alpha", revision + at) for at, n in enumerate(numbers)]


def both_legs(index: LocalPartition, text: str) -> tuple[str, str]:
    """The best id of each leg for a text."""
    dense = index.dense.search(vector_of(text), allowed=None, top_k=1)
    sparse = int(np.argmax(index.sparse.score(analyze(text)).scores))
    return index.ids(dense)[0], index.ids(np.array([sparse]))[0]


class TestPartitionIndex:
    def test_deleted_memories_leave_every_leg_case_2(self, index: LocalPartition) -> None:
        live = numbered(range(3))
        index.apply(live)
        index.apply([tombstone("m1", 9)])
        assert (len(index), len(index.dense), len(index.sparse)) == (2, 2, 2)
        assert index.rows(["m0", "m1", "m2"]).tolist()[1] == -1
        assert index.compare([live[0], live[2]]) == []

    def test_ids_stay_true_through_removal_and_addition_case_3(self, index: LocalPartition) -> None:
        index.apply(numbered(range(10)))
        index.apply([tombstone(f"m{n}", 20 + n) for n in (0, 3, 7)])
        index.apply(numbered(range(10, 15), revision=30))
        alive = [n for n in range(15) if n not in (0, 3, 7)]
        assert len(index) == 12
        for n in alive:
            assert both_legs(index, f"entry{n} alpha") == (f"m{n}", f"m{n}")

    def test_only_active_searchable_memories_are_held(self, index: LocalPartition) -> None:
        archived = stored("b", "two", 2, state=MemoryState.ARCHIVED)
        index.apply([stored("a", "one", 1), archived, stored("c", "three", 3, kind="document"), tombstone("d", 4)])
        assert index.ids(np.arange(len(index))) == ["a"]
        index.apply([stored("a", "one", 5, state=MemoryState.SUPERSEDED)])
        assert len(index) == 0
        index.apply([stored("a", "one", 6)])
        assert len(index) == 1

    def test_an_update_replaces_text_and_vector(self, index: LocalPartition) -> None:
        index.apply([stored("a", "red apples", 1), stored("b", "blue boats", 2)])
        newer = stored("a", "green grapes", 3, metadata={"colour": "green"})
        index.apply([newer])
        assert both_legs(index, "green grapes") == ("a", "a")
        assert index.sparse.score(analyze("red")).scores.tolist() == [0.0, 0.0]
        assert index.select(parse({"colour": "green"}), now=START) is not None
        assert index.compare([newer, stored("b", "blue boats", 2)]) == []

    def test_changes_may_come_twice_and_the_newest_of_a_batch_counts(self, index: LocalPartition) -> None:
        batch = [stored("a", "first", 1), stored("b", "second", 2), stored("a", "third", 3), tombstone("b", 4)]
        for _ in range(2):
            index.apply(batch)
            assert index.compare([stored("a", "third", 3)]) == []
        index.apply([stored("a", "between", 2)])  # late
        assert index.compare([stored("a", "third", 3)]) == []
        index.apply([])
        assert len(index) == 1

    def test_a_memory_without_a_vector_is_last_and_still_found_by_words_case_15(self, index: LocalPartition) -> None:
        blank = Change(2, PARTITION, "b", stored("b", "\u200b", 2).memory)
        index.apply([stored("a", "alpha beta", 1), blank])
        rows = index.dense.search(vector_of("alpha beta"), allowed=None, top_k=5)
        assert index.ids(rows) == ["a", "b"]
        assert index.dense.score(vector_of("alpha beta"), rows) == pytest.approx([1.0, 0.0], abs=1e-6)
        assert np.isfinite(index.sparse.score(analyze("alpha")).scores).all()
        assert index.compare([stored("a", "alpha beta", 1), blank]) == []

    def test_a_bad_vector_leaves_the_legs_in_step_case_15(self, index: LocalPartition) -> None:
        index.apply(numbered(range(3)))
        broken = Change(9, PARTITION, "x", stored("x", "x", 9).memory, np.full(DIMENSION, np.nan, dtype=np.float32))
        with pytest.raises(InvalidInput, match="finite"):
            index.apply([stored("y", "y", 8), broken])
        assert len(index) == len(index.dense) == len(index.sparse) == 3

    def test_speaker_and_title_are_searched_by_words(self, index: LocalPartition) -> None:
        index.apply([stored("a", "hello", 1, speaker="Caroline", title="Greeting"), stored("b", "hello", 2)])
        for word in ("caroline", "greeting"):
            assert (index.sparse.score(analyze(word)).scores > 0).tolist() == [True, False]

    def test_three_thousand_keys_case_56(self, index: LocalPartition) -> None:
        live = [stored(f"m{n}", f"entry{n}", n + 1, metadata={f"key{n}": n}) for n in range(3_000)]
        index.apply(live)
        assert both_legs(index, "entry2345") == ("m2345", "m2345")
        mask = index.select(parse({"key2345": 2345}), now=START)
        assert mask is not None
        assert np.flatnonzero(mask).tolist() == [2345]


class TestSelect:
    def test_none_where_every_row_may(self, index: LocalPartition) -> None:
        assert index.select(None, now=START) is None
        index.apply([stored("a", "one", 1, session_id="s"), stored("b", "two", 2, session_id="s")])
        assert index.select(None, now=START) is None
        assert index.select(parse({}), now=START, session_id="s") is None

    def test_scopes_and_filter_narrow_together_case_45(self, index: LocalPartition) -> None:
        index.apply(
            [
                stored("a", "one", 1, session_id="team-a", agent_id="x", metadata={"n": 1}),
                stored("b", "two", 2, session_id="team-b", agent_id="x", metadata={"n": 1}),
                stored("c", "three", 3, session_id="team-a", agent_id="y", metadata={"n": 1}),
                stored("d", "four", 4, session_id="team-a", agent_id="x", metadata={"n": 2}),
            ]
        )

        def chosen(**scope: Any) -> list[str]:
            mask = index.select(scope.pop("filter", None), now=START, **scope)
            return index.ids(np.arange(4) if mask is None else np.flatnonzero(mask))

        assert chosen(session_id="team-a") == ["a", "c", "d"]
        assert chosen(session_id="team") == []
        assert chosen(session_id="team-a", agent_id="x") == ["a", "d"]
        assert chosen(session_id="team-a", agent_id="x", filter=parse({"n": 1})) == ["a"]

    def test_enough_pass_when_the_others_are_nearer_case_8(self, index: LocalPartition) -> None:
        near = [stored(f"b{n}", f"alpha beta gamma {n}", n + 1, agent_id="bob") for n in range(15)]
        far = [stored(f"a{n}", f"delta {n}", n + 16, agent_id="alice") for n in range(5)]
        index.apply(near + far)
        allowed = index.select(None, now=START, agent_id="alice")
        found = index.dense.search(vector_of("alpha beta gamma"), allowed=allowed, top_k=5)
        assert sorted(index.ids(found)) == ["a0", "a1", "a2", "a3", "a4"]

    def test_expiry_is_an_instant_case_105(self, index: LocalPartition) -> None:
        end = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
        index.apply([stored("a", "one", 1, expires_at=end), stored("b", "two", 2)])
        assert index.select(None, now=end - timedelta(microseconds=1)) is None
        for now in (end, end + timedelta(days=1)):
            mask = index.select(None, now=now)
            assert mask is not None
            assert mask.tolist() == [False, True]

    def test_validity_holds_from_its_start_until_before_its_end(self, index: LocalPartition) -> None:
        index.apply(
            [stored("a", "one", 1, valid_from=START, valid_to=START + timedelta(hours=1)), stored("b", "two", 2)]
        )

        def is_chosen(now: datetime) -> bool:
            mask = index.select(None, now=now)
            return mask is None or bool(mask[0])

        hours = [timedelta(hours=h) for h in (-1, 0, 0.5, 1, 2)]
        assert [is_chosen(START + after) for after in hours] == [False, True, True, False, False]


class TestSavedForm:
    def test_everything_comes_back(self, index: LocalPartition, request: pytest.FixtureRequest) -> None:
        live = [
            stored(f"m{n}", f"entry{n} beta", n + 1, session_id="s", source=Source(position=n), title=f"T{n}")
            for n in range(7)
        ]
        index.apply(live)
        index.apply([tombstone("m2", 20)])
        restored = ADAPTERS[request.node.callspec.params["index"]]()
        restored.restore(index.dump())
        assert restored.compare([change for change in live if change.id != "m2"]) == []
        rows = np.arange(6)
        assert restored.ids(rows) == index.ids(rows)
        assert restored.neighbours(rows, 1).tolist() == index.neighbours(rows, 1).tolist()
        assert restored.titles() == index.titles()
        assert both_legs(restored, "entry5 beta") == ("m5", "m5")
        restored.apply([tombstone("m5", 21), stored("new", "entry9 beta", 22)])
        assert both_legs(restored, "entry9 beta") == ("new", "new")

    def test_a_copy_is_the_same_and_stays_so(self, index: LocalPartition) -> None:
        live = numbered(range(6))
        index.apply(live)
        index.cursor = 6
        copied = index.copy()
        index.apply([tombstone("m1", 7), stored("m2", "another text", 8), *numbered(range(6, 9), revision=9)])
        assert copied.compare(live) == []
        assert (copied.cursor, len(copied), len(index)) == (6, 6, 8)
        copied.apply([tombstone("m4", 20)])
        assert both_legs(index, "entry4 alpha") == ("m4", "m4")

    @pytest.mark.parametrize("leg", ["dense", "sparse", "_roster"])
    def test_a_copy_hides_no_difference_of_the_legs(self, index: LocalPartition, leg: str) -> None:
        live = numbered(range(3))
        index.apply(live)
        getattr(index, leg).remove(2)
        assert index.compare(live)
        assert index.copy().compare(live) == index.compare(live)

    def test_a_copy_hides_no_id_that_is_not_found(self, index: LocalPartition) -> None:
        live = numbered(range(3))
        index.apply(live)
        del index._roster._rows["m1"]
        assert index.copy().compare(live) == ["m1: missing from the index"]

    def test_legs_of_different_moments_are_refused(self, index: LocalPartition) -> None:
        index.apply(numbered(range(3)))
        early = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in index.dump().items()}
        index.apply(numbered(range(3, 5), revision=10))
        mixed = index.dump() | {name: value for name, value in early.items() if name.startswith("dense.")}
        with pytest.raises(IndexCorrupt, match="different numbers of rows"):
            index.restore(mixed)

    def test_missing_arrays_are_refused(self, index: LocalPartition) -> None:
        index.apply(numbered(range(3)))
        with pytest.raises(IndexCorrupt):
            index.restore({name: value for name, value in index.dump().items() if name != "dense.vectors"})


class TestCompare:
    """``compare`` is what ``check`` trusts, so each fault is put into a leg by hand."""

    def test_no_problem_where_there_is_none(self, index: LocalPartition) -> None:
        assert index.compare([]) == []
        live = numbered(range(20))
        index.apply(live)
        assert index.compare(live) == []

    def test_a_memory_missing_or_left_over(self, index: LocalPartition) -> None:
        live = numbered(range(3))
        index.apply(live[:2])
        problems = index.compare(live[1:])
        assert "m0: in the index but not in the store" in problems
        assert "m2: missing from the index" in problems

    def test_an_old_state(self, index: LocalPartition) -> None:
        index.apply([stored("a", "one", 1)])
        assert "a: indexed at revision 1, the store has 2" in index.compare([stored("a", "one", 2)])

    def test_another_vector(self, index: LocalPartition) -> None:
        live = numbered(range(3))
        index.apply(live)
        index.dense.replace(1, vector_of("something else"))
        assert index.compare(live) == ["m1: the dense leg holds another vector"]

    @pytest.mark.parametrize("text", ["entry1", "entry1 alpha beta", "entry1 alpha alpha", "", "gamma"])
    def test_other_terms(self, index: LocalPartition, text: str) -> None:
        live = numbered(range(3))
        index.apply(live)
        index.sparse.replace(1, analyze(text))
        assert "m1: the sparse leg holds other terms" in index.compare(live)

    @pytest.mark.parametrize("leg", ["dense", "sparse"])
    def test_a_leg_with_a_row_too_few(self, index: LocalPartition, leg: str) -> None:
        live = numbered(range(3))
        index.apply(live)
        getattr(index, leg).remove(0)
        assert f"{leg}: 2 rows, the store has 3 memories" in index.compare(live)


class PartitionMachine(RuleBasedStateMachine):
    """Any feed, against a dict of what is live."""

    @initialize(adapter=st.sampled_from(sorted(ADAPTERS)))
    def start(self, adapter: str) -> None:
        self.index = ADAPTERS[adapter]()
        self.live: dict[str, Change] = {}
        self.revision = 0
        self.filter = parse({"n": {"gte": 1}})
        self.index.select(self.filter, now=START)

    def change(self, data: st.DataObject) -> Change:
        self.revision += 1
        name = data.draw(st.sampled_from("abcdef"))
        if data.draw(st.integers(0, 3)) == 0:
            return tombstone(name, self.revision)
        text = data.draw(st.sampled_from(["alpha", "alpha beta", "beta beta gamma", "", "delta"]))
        state = data.draw(st.sampled_from([MemoryState.ACTIVE, MemoryState.ACTIVE, MemoryState.ARCHIVED]))
        return stored(
            name,
            text,
            self.revision,
            state=state,
            metadata={"n": data.draw(st.integers(0, 2))},
            title=data.draw(st.sampled_from([None, "One", "Two (film)"])),
            session_id="s",
            source=Source(position=data.draw(st.integers(0, 2))),
        )

    @rule(data=st.data(), count=st.integers(1, 5), again=st.booleans())
    def apply(self, data: st.DataObject, count: int, again: bool) -> None:
        changes = [self.change(data) for _ in range(count)]
        for change in changes:
            self.live.pop(change.id, None)
            if change.memory is not None and change.memory.indexed:
                self.live[change.id] = change
        self.index.apply(changes)
        if again:
            self.index.apply(changes[-1:])

    @rule()
    def save_and_restore(self) -> None:
        self.index.restore(self.index.dump())

    @invariant()
    def agrees_with_the_store(self) -> None:
        if not hasattr(self, "index"):
            return
        assert self.index.compare(self.live.values()) == []
        ids = self.index.ids(np.arange(len(self.index)))
        mask = self.index.select(self.filter, now=START)
        memories = [change.memory for change in (self.live[one] for one in ids) if change.memory is not None]
        expected = [matches(self.filter, memory) for memory in memories]
        assert (np.ones(len(ids), bool) if mask is None else mask).tolist() == expected
        titled = {memory.id for memory in memories if memory.title == "Two (film)"}
        assert set(self.index.ids(np.array(self.index.titles().get("two", ()), dtype=np.int64))) == titled


TestPartitionMachine = PartitionMachine.TestCase
TestPartitionMachine.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
