"""What every index outside the process promises (port ``RemoteIndex``): the reference, and the keyword leg's."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.elasticsearch_kit import HERE, bookshelf, change, servers, tombstone
from vimbank.domain.models import Change, MemoryState, Partition
from vimbank.indexes.in_memory_remote import InMemoryRemote
from vimbank.ports import RemoteIndex

THERE = Partition("t", "v", "knowledge")
MEMORY = pytest.param("memory", id="memory")


@contextmanager
def opened(kind: str) -> Iterator[RemoteIndex]:
    if kind == "memory":
        yield InMemoryRemote()
        return
    with bookshelf(kind) as shelf:
        shelf.remote.cursor()
        yield shelf.remote


@pytest.fixture(params=[MEMORY, *servers()])
def remote(request: pytest.FixtureRequest) -> Iterator[RemoteIndex]:
    with opened(request.param) as made:
        yield made


@pytest.fixture(params=[MEMORY, *servers("deletions")])
def remembering(request: pytest.FixtureRequest) -> Iterator[RemoteIndex]:
    """One whose engine knows for a while which revision deleted a memory."""
    with opened(request.param) as made:
        yield made


def put(remote: RemoteIndex, *changes: Change) -> None:
    remote.apply(changes)
    remote.advance(max(each.revision for each in changes))


class TestRemoteIndex:
    def test_a_new_index_begins_at_0_and_holds_nothing(self, remote: RemoteIndex) -> None:
        assert remote.name == "sparse"
        assert remote.cursor() == 0
        assert remote.holds(HERE) == {}

    def test_what_was_applied_is_there_when_the_cursor_says_so(self, remote: RemoteIndex) -> None:
        remote.apply([change(1, "tea"), change(2, "milk"), change(3, "rum", partition=THERE)])
        remote.advance(3)
        assert remote.cursor() == 3
        assert remote.holds(HERE) == {1: 1, 2: 2}
        assert remote.holds(THERE) == {3: 3}

    def test_nothing_applied_moves_the_cursor_as_well(self, remote: RemoteIndex) -> None:
        remote.apply([])
        remote.advance(7)
        assert remote.cursor() == 7

    def test_a_change_replaces_and_a_tombstone_removes(self, remote: RemoteIndex) -> None:
        put(remote, change(1, "tea"), change(2, "milk"))
        put(remote, change(1, "coffee", revision=3), tombstone(2, 4))
        assert remote.holds(HERE) == {1: 3}

    @pytest.mark.parametrize("state", [MemoryState.ARCHIVED, MemoryState.SUPERSEDED, MemoryState.SUPPRESSED])
    def test_what_is_not_indexed_any_more_leaves_and_may_come_back(
        self, remote: RemoteIndex, state: MemoryState
    ) -> None:
        put(remote, change(1, "tea"))
        put(remote, change(1, "tea", revision=2, state=state))
        assert remote.holds(HERE) == {}
        put(remote, change(1, "tea", revision=3))
        assert remote.holds(HERE) == {1: 3}

    def test_a_parent_whose_segments_are_indexed_is_not(self, remote: RemoteIndex) -> None:
        put(remote, change(1, "a long text", kind="document"), change(2, "a segment"))
        assert remote.holds(HERE) == {2: 2}

    def test_an_id_that_is_given_again_is_another_memory(self, remote: RemoteIndex) -> None:
        put(remote, change(1, "tea", id="x"), tombstone(1, 2), change(3, "milk", id="x"))
        assert remote.holds(HERE) == {3: 3}

    def test_an_older_change_that_comes_late_is_left_out(self, remote: RemoteIndex) -> None:
        put(remote, change(1, "coffee", revision=5))
        put(remote, change(1, "tea", revision=1))
        assert remote.holds(HERE) == {1: 5}

    def test_an_older_change_does_not_bring_back_what_was_deleted(self, remembering: RemoteIndex) -> None:
        put(remembering, change(1, "tea"), tombstone(1, 5), tombstone(2, 6))
        put(remembering, change(1, "coffee", revision=3), change(2, "milk", revision=2))
        assert remembering.holds(HERE) == {}

    def test_the_cursor_never_goes_back_but_by_reset(self, remote: RemoteIndex) -> None:
        put(remote, change(1, "tea", revision=9))
        remote.advance(4)
        assert remote.cursor() == 9
        remote.reset()
        assert remote.cursor() == 0
        assert remote.holds(HERE) == {}
        put(remote, change(1, "tea", revision=2))
        assert remote.cursor() == 2
        assert remote.holds(HERE) == {1: 2}

    def test_two_writers_at_once_agree(self, remembering: RemoteIndex) -> None:
        changes = [change(n, f"tea {n}") for n in range(1, 41)]
        changes += [change(n, "milk", revision=100 + n) for n in range(1, 21)]
        changes += [tombstone(n, 200 + n) for n in range(1, 11)]

        def write(mine: Sequence[Change]) -> None:
            for start in range(0, len(mine), 16):
                remembering.apply(mine[start : start + 16])
            remembering.advance(210)

        threads = [threading.Thread(target=write, args=(mine,)) for mine in (changes, changes[::-1])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert remembering.holds(HERE) == {n: 100 + n if n <= 20 else n for n in range(11, 41)}
        assert remembering.cursor() == 210


NUMBERS = st.integers(1, 4)
STEPS = st.lists(st.tuples(NUMBERS, st.sampled_from(["write", "archive", "delete"])), min_size=1, max_size=10)


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, data=st.data())
def test_replays_in_any_order_end_where_the_feed_ends(
    remembering: RemoteIndex, steps: list[tuple[int, str]], data: st.DataObject
) -> None:
    """Every process applies, batches overlap, a batch may be sent again: the newest revision of each memory stands."""
    remembering.reset()
    remembering.cursor()
    feed = [_change(revision, *step) for revision, step in enumerate(steps, 1)]
    again = data.draw(st.lists(st.sampled_from(feed), max_size=10))
    for each in data.draw(st.permutations(feed + again)):
        remembering.apply([each])
    remembering.advance(len(feed))
    newest = {each.number: each for each in feed}
    assert remembering.holds(HERE) == {
        number: each.revision
        for number, each in newest.items()
        if each.memory is not None and each.memory.state is MemoryState.ACTIVE
    }


def _change(revision: int, number: int, what: str) -> Change:
    if what == "delete":
        return tombstone(number, revision)
    state = MemoryState.ARCHIVED if what == "archive" else MemoryState.ACTIVE
    return change(number, f"words {revision}", revision=revision, state=state)
