"""Whatever is done to a store, SqlStore and the reference answer alike and hold the same."""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.contracts.backends import new_url
from tests.contracts.store_data import JAN, patch, prepared
from vimbank.curves.catalogue import open_curve
from vimbank.domain.curves import CURVE_NAMES, CurveName
from vimbank.domain.models import (
    UNSET,
    AddResult,
    ListQuery,
    Memory,
    MemoryState,
    Partition,
    RecallEntry,
    Scope,
    Signal,
    Source,
    StateChange,
)
from vimbank.errors import VimbankError
from vimbank.ports import MemoryStore
from vimbank.store.changes import IdSource
from vimbank.store.engine import open_engine
from vimbank.store.in_memory import InMemoryStore
from vimbank.store.sql import SqlStore

TEXTS = st.sampled_from(["tea", "coffee", "water"])
USERS = st.sampled_from(["alice", "bob"])
IDS = st.sampled_from(["x", "y", "z", "x:0000"])
PARTS = st.lists(TEXTS, max_size=3)
CURVES = {name: open_curve(name, tau_days=10.0, max_strength=3.0) for name in CURVE_NAMES}
METADATA = st.dictionaries(st.sampled_from(["a", "b"]), st.one_of(st.none(), st.integers(0, 2)), max_size=2)


class Machine(RuleBasedStateMachine):
    """Drives both stores; ``ids`` are all that ever were."""

    backend: ClassVar[str]

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vimbank-machine-"))
        engine = open_engine(new_url(self.backend, self.folder), busy_timeout_s=5)
        self.sql = SqlStore(engine, ids=IdSource(lambda _bits: 0))
        self.reference = InMemoryStore(ids=IdSource(lambda _bits: 0))
        self.now = JAN
        self.ids = ["x", "y", "z", "x:0000"]

    def teardown(self) -> None:
        if hasattr(self, "sql"):
            self.sql.close()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def both(self, action: Any) -> Any:
        """The answer of both, which has to be the same, errors too."""
        answers = [self.answer(action, store) for store in (self.sql, self.reference)]
        assert answers[0] == answers[1]
        return answers[0]

    def answer(self, action: Any, store: MemoryStore) -> Any:
        try:
            found = action(store)
        except VimbankError as error:
            return repr(error)
        return (
            [repr(each) if isinstance(each, Exception) else each for each in found]
            if isinstance(found, list)
            else found
        )

    def add(self, drafts: list[Any]) -> None:
        results = self.both(lambda store: store.add(drafts, actor="m", now=self.now))
        self.ids += [result.id for result in results if isinstance(result, AddResult) and result.id not in self.ids]

    @rule(
        drafts=st.lists(
            st.builds(
                lambda text, user, name, key, event, age, fold, parts: prepared(
                    text,
                    user_id=user,
                    id=name,
                    idempotency_key=key,
                    source=Source(event_id=event, position=age),
                    session_id="s",
                    created_at=None if age is None else JAN - timedelta(days=age),
                    deduplicate=fold,
                    segments=parts,
                ),
                TEXTS,
                USERS,
                st.none() | IDS,
                st.none() | st.sampled_from(["k1", "k2"]),
                st.none() | st.sampled_from(["e1", "e2"]),
                st.none() | st.integers(0, 3),
                st.booleans(),
                PARTS,
            ),
            min_size=1,
            max_size=4,
        )
    )
    def add_drafts(self, drafts: list[Any]) -> None:
        self.add(drafts)

    @rule(data=st.data(), text=TEXTS, parts=PARTS, metadata=METADATA)
    def update_text(self, data: st.DataObject, text: str, parts: list[str], metadata: dict[str, Any]) -> None:
        change = patch(data.draw(st.sampled_from(self.ids)), text=text, segments=parts, metadata=metadata)
        self.both(lambda store: store.update(change, tenant="t", actor="m", now=self.now))

    @rule(data=st.data(), metadata=METADATA, pinned=st.booleans(), expected=st.none() | st.integers(1, 9))
    def update_fields(self, data: st.DataObject, metadata: dict[str, Any], pinned: bool, expected: int | None) -> None:
        name = data.draw(st.sampled_from(self.ids))
        change = patch(name, metadata=metadata, pinned=pinned, valid_to=self.now, expected_revision=expected)
        self.both(lambda store: store.update(change, tenant="t", actor="m", now=self.now))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(st.sampled_from(self.ids), max_size=3))
        self.both(lambda store: store.delete("t", names, actor="m", now=self.now))

    @rule(
        data=st.data(),
        to=st.sampled_from(MemoryState),
        by=st.none() | IDS,
        until=st.booleans(),
        seen=st.none() | st.integers(1, 9),
    )
    def change_states(
        self, data: st.DataObject, to: MemoryState, by: str | None, until: bool, seen: int | None
    ) -> None:
        names = data.draw(st.lists(st.sampled_from(self.ids), min_size=1, max_size=3))
        valid_to = self.now if until else UNSET
        changes = [StateChange(id=name, to=to, superseded_by=by, valid_to=valid_to, seen=seen) for name in names]
        self.both(lambda store: store.change_states(changes, tenant="t", actor="m", now=self.now))

    @rule(user=USERS, session=st.none() | st.just("s"))
    def delete_scope(self, user: str, session: str | None) -> None:
        self.both(lambda store: store.delete_scope(Scope("t", user, session_id=session), actor="m", now=self.now))

    @rule(data=st.data(), signal=st.sampled_from(Signal), curve=st.sampled_from(CURVE_NAMES))
    def recall(self, data: st.DataObject, signal: Signal, curve: CurveName) -> None:
        names = data.draw(st.lists(st.sampled_from(self.ids), max_size=3))
        for store in (self.sql, self.reference):
            store.append([RecallEntry("t", name, self.now + timedelta(days=1), signal) for name in names])
        self.both(lambda store: store.fold(lambda _bank: CURVES[curve], limit=2, now=self.now))

    @rule(hours=st.integers(0, 40))
    def wait(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @invariant()
    @precondition(lambda self: hasattr(self, "sql"))
    def hold_the_same(self) -> None:
        held = self.both(lambda store: list(everything(store, self.ids, self.now)))
        revision = self.sql.state().revision
        feed = [change.revision for change in self.sql.changes(0, limit=10_000)]
        assert feed == sorted(set(feed))
        assert not feed or feed[-1] == revision
        assert held


def everything(store: MemoryStore, ids: list[str], now: Any) -> Iterator[Any]:
    """All that can be read of a store, as values that compare."""
    yield store.state()
    yield list(store.page(ListQuery(tenant="t", state=None, limit=1_000)).items)
    yield store.page(ListQuery(tenant="t", limit=1)).total
    yield [(c.revision, c.id, c.partition, c.memory, plain(c.vector)) for c in store.changes(0, limit=10_000)]
    yield store.get("t", ids)
    yield [store.history("t", name) for name in ids]
    for user in ("alice", "bob"):
        partition = Partition("t", user, "dialog")
        yield [(change.memory, plain(change.vector)) for batch in store.live(partition, batch=2) for change in batch]
        yield store.next_position(partition, "s")
        for days in itertools.chain(range(-1, 3), range(3, 12, 3)):
            then: list[tuple[Memory, Any]] = store.as_of(partition, JAN + timedelta(days=days))
            yield [(memory, plain(vector)) for memory, vector in then]
    yield [store.partitions(state=state) for state in MemoryState if state is not MemoryState.DELETED]


def plain(vector: Any) -> Any:
    return None if vector is None else vector.tolist()


class OnSQLite(Machine):
    """A file an example."""

    backend = "sqlite"


class OnPostgreSQL(Machine):
    """One database, emptied for each example."""

    backend = "postgresql"


SETTINGS = settings(max_examples=15, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck))
TestSQLite = OnSQLite.TestCase
TestSQLite.settings = SETTINGS
TestPostgreSQL = pytest.mark.services(OnPostgreSQL.TestCase)
TestPostgreSQL.settings = SETTINGS
