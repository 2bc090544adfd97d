"""The check of what one process holds: which indexes it looks at, and that nobody waits for it."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.contracts.store_data import ALICE, JAN, MINI, add, add_one, prepared
from vimbank.domain.models import Partition
from vimbank.domain.text import analyze
from vimbank.feed.check import IndexChecker
from vimbank.feed.follow import Follower
from vimbank.feed.snapshot import SnapshotFolder
from vimbank.indexes.dense.faiss import FaissIndex
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.store.in_memory import InMemoryStore

BOB = Partition("t", "bob", "dialog")
DEADLINE_S = 10.0


class Held:
    """Analyses texts; holds one thread up at it."""

    def __init__(self) -> None:
        self.thread: int | None = None
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, text: str) -> Sequence[str]:
        if threading.get_ident() == self.thread:
            self.reached.set()
            assert self.open.wait(DEADLINE_S)
        return analyze(text)


class Process:
    """A store, and the indexes of a process on it."""

    def __init__(self, folder: Path, *, memory_bytes: int = 10**9) -> None:
        self.store, self.analyzer = InMemoryStore(), Held()
        self.store.claim_encoder(MINI)
        self.indexes = Follower(
            self.store,
            lambda partition: LocalPartition(partition, FaissIndex(4), PostingsIndex(), self.analyzer),
            snapshots=SnapshotFolder(folder),
            configuration="",
            memory_bytes=memory_bytes,
            snapshot_every=1_000,
        )

    def load(self, partition: Partition) -> LocalPartition:
        with self.indexes.read(partition) as index:
            assert isinstance(index, LocalPartition)
            return index

    def check(self, *, repair: bool = False) -> list[str]:
        """What is wrong."""
        report = IndexChecker(self.store, self.indexes, MINI, repair=repair).run(lambda _done, _all: None)
        return [str(problem) for problem in report.everything]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path)
    yield process
    process.indexes.close()


def damage(index: LocalPartition) -> None:
    index.dense.replace(0, np.eye(4, dtype=np.float32)[0])


def test_what_is_in_memory_is_compared_and_nothing_else_is_loaded(here: Process) -> None:
    name = add_one(here.store, "tea")
    add(here.store, prepared("coffee", user_id="bob"))
    damage(here.load(ALICE))
    assert here.check() == [f"{name}: the dense leg holds another vector"]
    assert here.check(repair=True) == [f"{name}: the dense leg holds another vector (repaired)"]
    assert here.check() == []
    assert here.indexes.loaded() == [ALICE]


def test_the_order_in_which_partitions_leave_memory_stays(here: Process) -> None:
    add(here.store, prepared("tea"), prepared("coffee", user_id="bob"))
    for partition in (BOB, ALICE):
        here.load(partition)
    assert here.check() == []
    assert here.indexes.loaded() == [BOB, ALICE]


def test_a_snapshot_that_was_set_aside_is_told_though_its_partition_has_left_memory(tmp_path: Path) -> None:
    here = Process(tmp_path, memory_bytes=0)  # holds one partition at a time
    add(here.store, prepared("tea"), prepared("coffee", user_id="bob"))
    here.load(ALICE)
    here.indexes.save()
    here.load(BOB)
    file = SnapshotFolder(tmp_path).file(ALICE)
    file.write_bytes(file.read_bytes()[:-1])
    here.load(ALICE)
    here.load(BOB)
    (told,) = here.check()
    assert "damaged and set aside" in told
    assert "(repaired)" in here.check(repair=True)[0]
    assert here.check() == []
    here.indexes.close()


def test_nobody_waits_while_an_index_is_compared(here: Process) -> None:
    """A write would hold back every search of the partition until the check lets go of the index."""
    add_one(here.store, "tea")
    here.load(ALICE)
    told: list[list[str]] = []

    def check() -> None:
        here.analyzer.thread = threading.get_ident()
        told.append(here.check())

    checking, read = threading.Thread(target=check), threading.Event()
    checking.start()
    assert here.analyzer.reached.wait(DEADLINE_S)
    add(here.store, prepared("coffee"), now=JAN)

    def search() -> None:
        assert len(here.load(ALICE)) == 2
        read.set()

    searching = threading.Thread(target=search)
    searching.start()
    try:
        assert read.wait(DEADLINE_S), "the search waits for the check"
    finally:
        here.analyzer.open.set()
        checking.join()
        searching.join()
    assert told == [[]], "what was written meanwhile is no difference"
