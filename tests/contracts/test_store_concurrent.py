"""Many writers at once: nothing lost, nothing doubled, revisions without gaps (cases 117, 118)."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.contracts.backends import SHARED, new_url
from tests.contracts.postgres import new_database
from tests.contracts.store_data import ALICE, FEB, JAN, add_one, curve_of, patch, prepared
from vimbank.domain.models import AddResult, ListQuery, RecallEntry
from vimbank.errors import Conflict, NotFound
from vimbank.store.sql import SqlStore

WRITER = """
import sys
from tests.contracts.store_data import add_one
from vimbank.store.sql import SqlStore

store = SqlStore.open(sys.argv[1], busy_timeout_s=60)
for place in range(50):
    print(add_one(store, f"{sys.argv[2]} {place}"))
store.close()
"""


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_url(request.param, tmp_path)


@pytest.fixture(params=SHARED)
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where no store is yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    with new_database() as url:
        yield url


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = SqlStore.open(url)
    yield opened
    opened.close()


def check_whole(store: SqlStore, ids: list[str]) -> None:
    """Exactly these memories are there, each with one history entry, and the revisions have no gap."""
    assert len(set(ids)) == len(ids)
    page = store.page(ListQuery(tenant="t", limit=10_000))
    assert (page.total, {memory.id for memory in page.items}) == (len(ids), set(ids))
    assert [memory.number for memory in page.items] == list(range(1, len(ids) + 1))
    assert [change.revision for change in store.changes(0, limit=10_000)] == list(range(1, len(ids) + 1))
    assert [len(store.history("t", name)) for name in ids] == [1] * len(ids)
    assert store.state().revision == len(ids)
    assert store.integrity() == []


def test_cases_117_and_118_eight_threads(store: SqlStore) -> None:
    def work(thread: int) -> list[str]:
        return [add_one(store, f"{thread} {place}") for place in range(50)]

    with ThreadPoolExecutor(8) as threads:
        ids = [name for names in threads.map(work, range(8)) for name in names]
    check_whole(store, ids)


def test_case_117_four_processes_begin_at_once_where_no_store_is_yet(new: str) -> None:
    command = [sys.executable, "-W", "error", "-c", WRITER, new]
    writers = [subprocess.Popen([*command, str(name)], stdout=subprocess.PIPE, text=True) for name in range(4)]
    outputs = [writer.communicate(timeout=120)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    store = SqlStore.open(new)
    check_whole(store, [name for output in outputs for name in output.split()])
    store.close()


def test_refusals_and_successes_share_transactions(store: SqlStore) -> None:
    first = add_one(store, "shared", id="x")

    def work(thread: int) -> None:
        for place in range(10):
            [conflict] = store.add([prepared(f"other {thread} {place}", id="x")], actor="test", now=JAN)
            assert isinstance(conflict, Conflict)
            with pytest.raises(NotFound):
                store.update(patch("nope", pinned=True), tenant="t", actor="test", now=JAN)
            name = add_one(store, f"own {thread} {place}")
            store.append([RecallEntry("t", name, JAN)])
            assert store.get("t", [name])[0].id == name
            assert store.delete("t", [name], actor="test", now=FEB) == [name]

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert [memory.id for memory in store.page(ListQuery(tenant="t")).items] == [first]
    assert store.state().revision == 1 + 2 * 60
    assert store.fold(curve_of, limit=1_000, now=FEB) == 60


def test_what_cannot_be_written_harms_nobody_else(store: SqlStore) -> None:
    def work(place: int) -> AddResult | Exception | str:
        try:
            # JSON knows no sets: the row cannot be made, in the middle of the transaction.
            metadata = {"bad": {1}} if place % 4 == 0 else {"n": place}
            draft = prepared(f"text {place}")
            object.__setattr__(draft.draft, "metadata", metadata)
            return store.add([draft], actor="test", now=JAN)[0]
        except TypeError:
            return "refused"

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(work, range(80)))
    assert results.count("refused") == 20
    check_whole(store, [result.id for result in results if isinstance(result, AddResult)])


def test_equal_texts_at_once_fold_into_one(store: SqlStore) -> None:
    with ThreadPoolExecutor(8) as threads:
        ids = set(threads.map(lambda _: add_one(store, "the same"), range(40)))
    assert len(ids) == 1
    assert store.page(ListQuery(tenant="t")).total == 1


def test_readers_see_whole_transactions_only(store: SqlStore) -> None:
    def write(place: int) -> None:
        store.add([prepared("a b", segments=["a", "b"], id=f"doc{place}")], actor="test", now=JAN)

    def read(_: int) -> set[int]:
        return {
            sum(len(batch) for batch in store.live(ALICE, batch=3)) % 2,
            store.page(ListQuery(tenant="t")).total % 3,
        }

    with ThreadPoolExecutor(4) as threads:
        writes = threads.map(write, range(30))
        assert list(threads.map(read, range(60))) == [{0}] * 60
        list(writes)


def test_another_process_is_seen_at_once(url: str, store: SqlStore) -> None:
    other = SqlStore.open(url)
    name = add_one(store, "tea")
    assert other.state() == store.state()
    assert [memory.id for memory in other.get("t", [name])] == [name]
    other.close()
