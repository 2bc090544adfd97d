"""Following the feed into an index outside the process, whatever happens to it, to the store and to the follower."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.store_data import ALICE, APR, FEB, JAN, MINI, add, add_one, patch, prepared
from tests.runner_kit import until
from vimbank.domain.models import Change, Partition
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError
from vimbank.feed.by_encoder import EncoderBound
from vimbank.feed.notices import LocalNotices
from vimbank.feed.remote import RemoteFollower
from vimbank.feed.remotes import Lease, Remotes
from vimbank.indexes.in_memory_remote import InMemoryRemote
from vimbank.ports import Embedded, EncoderIdentity
from vimbank.store.in_memory import InMemoryStore
from vimbank.store.in_memory_jobs import InMemoryJobStore
from vimbank.wiring import utc_now


class Engine:
    """What happens ahead of each call to an ``InMemoryRemote``: it may be down, or hang."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.error: Exception | None = None
        self.running = threading.Event()
        self.running.set()
        self.hooks: dict[str, Callable[[], object]] = {}

    def __call__(self, call: str) -> None:
        self.calls.append(call)
        self.running.wait()
        if call in self.hooks:
            self.hooks[call]()
        if self.error is not None:
            raise self.error


@dataclass
class Place:
    """A store, an engine, and what follows from one to the other."""

    store: InMemoryStore
    engine: Engine
    index: InMemoryRemote
    follower: RemoteFollower

    def held(self, partition: Partition = ALICE) -> dict[str, int]:
        return {each.id: each.revision for each in self.index.searchable(partition)}

    def wanted(self, partition: Partition = ALICE) -> dict[str, int]:
        return {each.id: each.revision for batch in self.store.live(partition) for each in batch}

    @property
    def revision(self) -> int:
        return self.store.state().revision


@contextmanager
def place(store: InMemoryStore | None = None, index: InMemoryRemote | None = None, **given: Any) -> Iterator[Place]:
    store = store or InMemoryStore()
    store.claim_encoder(MINI)
    engine = Engine()
    index = index or InMemoryRemote(before=engine)
    given = {"batch_size": 3, "first_probe_s": 0.01, "longest_probe_s": 0.05} | given
    follower = RemoteFollower(store, index, **given)
    yield Place(store, engine, index, follower)
    engine.running.set()
    follower.close()


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as made:
        yield made


def texts(count: int, start: int = 0) -> list[str]:
    return [f"memory number {number}" for number in range(start, start + count)]


def fill(store: InMemoryStore, count: int, start: int = 0) -> list[str]:
    return [each.id for each in add(store, *(prepared(text) for text in texts(count, start)))]


# -- passes --


def test_everything_is_applied_and_then_only_what_is_new(here: Place) -> None:
    first = fill(here.store, 10)
    assert here.follower.catch_up() == 10
    assert here.held() == here.wanted()
    here.store.update(patch(first[4], text="changed"), tenant="t", actor="test", now=FEB)
    here.store.delete("t", first[:2], actor="test", now=FEB)
    applied = here.engine.calls.count("apply")
    assert here.follower.catch_up() == here.revision
    assert here.held() == here.wanted()
    assert here.engine.calls.count("apply") == applied + 1


def test_a_pass_without_news_asks_for_the_cursor_alone(here: Place) -> None:
    fill(here.store, 3)
    here.follower.catch_up()
    here.engine.calls.clear()
    here.follower.catch_up()
    assert here.engine.calls == ["cursor"]


def test_a_known_cursor_spares_a_search_asking(here: Place) -> None:
    fill(here.store, 3)
    here.follower.ensure(3)
    here.engine.calls.clear()
    for revision in (1, 2, 3):
        here.follower.ensure(revision)
    assert here.engine.calls == []


def test_a_long_pass_notes_how_far_it_is(here: Place) -> None:
    fill(here.store, 3 * 20 * 2 + 1)
    here.follower.catch_up()
    assert here.engine.calls.count("advance") == 3


def test_a_pass_that_is_cut_short_goes_on_from_what_was_noted(here: Place) -> None:
    fill(here.store, 3 * 30)

    def fail() -> None:
        if here.engine.calls.count("apply") > 24:
            raise BackendUnavailable("engine", "gone")

    here.engine.hooks["apply"] = fail
    with pytest.raises(BackendUnavailable, match="gone"):
        here.follower.catch_up()
    assert here.index.cursor() == 60
    here.engine.hooks.clear()
    until(lambda: here.follower.breaker.outage is None)  # the probe catches up, without anybody asking
    assert here.held() == here.wanted()


def test_a_killed_follower_leaves_work_that_another_repeats(here: Place) -> None:
    """Killed between bulk and advance: what is written stays unseen, is written again, and nothing is doubled."""
    fill(here.store, 5)
    here.index.apply(here.store.changes(0, limit=100))
    assert here.held() == {}
    with place(here.store, here.index) as other:
        other.follower.catch_up()
        assert other.held() == other.wanted()


def test_two_processes_that_follow_at_once_agree(here: Place) -> None:
    with place(here.store, here.index) as other, ThreadPoolExecutor(2) as threads:
        for start in range(0, 60, 6):
            ids = fill(here.store, 6, start)
            here.store.delete("t", ids[:1], actor="test", now=FEB)
            list(threads.map(lambda each: each.catch_up(), (here.follower, other.follower)))
            assert here.held() == here.wanted()


def test_callers_at_the_same_time_share_a_pass(here: Place) -> None:
    fill(here.store, 3)
    here.engine.running.clear()
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(here.follower.catch_up, 3) for _ in range(8)]
        until(lambda: bool(here.engine.calls))
        here.engine.running.set()
        assert {each.result() for each in waiting} == {3}
    assert here.engine.calls.count("apply") == 1


def test_batches_overlap(here: Place) -> None:
    """While the engine works on one batch the next is read and made ready."""
    fill(here.store, 6)
    both = threading.Barrier(2, timeout=10)
    here.engine.hooks["apply"] = both.wait
    here.follower.catch_up()
    assert here.held() == here.wanted()


# -- an index, a store that is not what it was --


def test_an_index_that_was_lost_is_filled_again(here: Place) -> None:
    fill(here.store, 5)
    here.follower.catch_up()
    here.index.reset()
    here.follower.catch_up()
    assert here.held() == here.wanted()


def test_a_store_restored_from_an_older_copy_has_its_index_filled_anew(
    here: Place, caplog: pytest.LogCaptureFixture
) -> None:
    fill(here.store, 8)
    here.follower.catch_up()
    older = InMemoryStore()
    older.claim_encoder(MINI)
    kept = add_one(older, "the only one")
    with place(older, here.index) as restored:
        assert restored.follower.catch_up() == 1
        assert restored.held() == {kept: 1}
    assert "an older copy" in caplog.text


def test_deletions_that_the_feed_forgot_are_not_missed(here: Place) -> None:
    ids = fill(here.store, 4)
    here.follower.catch_up()
    here.store.delete("t", ids[:2], actor="test", now=FEB)
    fill(here.store, 4, start=10)
    assert here.store.compact(up_to=here.revision, deleted_before=APR, limit=100)
    here.follower.catch_up()
    assert here.held() == here.wanted()
    assert "reset" in here.engine.calls


def test_deletions_that_are_forgotten_while_a_pass_reads_are_not_missed(here: Place) -> None:
    ids = fill(here.store, 4)
    here.follower.catch_up()
    fill(here.store, 4, start=10)

    def forget() -> None:
        here.engine.hooks.clear()
        here.store.delete("t", ids[:2], actor="test", now=FEB)
        here.store.compact(up_to=here.revision, deleted_before=APR, limit=100)

    here.engine.hooks["apply"] = forget
    here.follower.catch_up(8)
    here.follower.catch_up()
    assert here.held() == here.wanted()


def test_a_fill_of_a_compacted_store_is_not_begun_again_by_others(here: Place) -> None:
    """Its cursor would tell of an index that has missed deletions, before it has passed them."""
    ids = fill(here.store, 3 * 30)
    here.store.delete("t", ids[80:82], actor="test", now=FEB)
    here.store.compact(up_to=here.revision, deleted_before=APR, limit=100)
    seen: list[int] = []
    here.engine.hooks["apply"] = lambda: seen.append(here.index._contents.cursor)
    here.follower.catch_up()
    assert here.held() == here.wanted()
    assert set(seen) == {0}
    assert "reset" not in here.engine.calls


def test_another_encoder_has_an_index_of_its_own(here: Place) -> None:
    other = EncoderIdentity("other", "1", 4)
    indexes: dict[EncoderIdentity, InMemoryRemote] = {}

    def make(identity: EncoderIdentity) -> InMemoryRemote:
        return indexes.setdefault(identity, InMemoryRemote("dense", before=here.engine))

    store, dropped = here.store, []
    bound = EncoderBound("dense", lambda: store.encoder_identity() or MINI, make)
    follower = RemoteFollower(store, bound, batch_size=3, on_filled=lambda: dropped.append(store.encoder_identity()))
    fill(store, 9)
    follower.catch_up()

    def switch() -> None:
        here.engine.hooks.clear()
        memories = store.missing_embeddings(other, 100)
        store.put_embeddings(other, [(memory, Embedded(_up())) for memory in memories])
        store.switch_encoder(other)

    fill(store, 6, start=20)
    here.engine.hooks["apply"] = switch  # in the middle of a pass
    follower.catch_up()
    follower.catch_up()
    follower.close()
    assert all(
        (change.vector == _up()).all() for change in indexes[other].searchable(ALICE) if change.vector is not None
    )
    assert {each.id for each in indexes[other].searchable(ALICE)} == set(here.wanted())
    assert dropped == [MINI, other]


def _up() -> Any:
    return prepared("up").embedding.vector  # type: ignore[union-attr]


# -- searches --


def test_a_search_does_not_wait_for_an_engine_that_says_nothing(here: Place) -> None:
    with place(here.store, here.index, search_patience_s=0.1, catch_up_timeout_s=5) as hasty:
        fill(here.store, 1)
        hasty.follower.ensure(1)
        fill(here.store, 1, start=1)
        here.engine.running.clear()
        assert 0.1 <= _refused(hasty.follower, 2) < 1
        assert _refused(hasty.follower, 2) < 0.05  # it has been silent for too long already
        here.engine.running.set()
        until(lambda: hasty.follower.cursor == 2)
        hasty.follower.ensure(2)


def test_a_search_waits_no_longer_than_it_may_for_a_long_pass(here: Place) -> None:
    with place(here.store, here.index, catch_up_timeout_s=0.1) as hasty:
        hasty.follower.ensure(0)
        fill(here.store, 1)
        slow = threading.Event()
        here.engine.hooks["apply"] = slow.wait
        assert 0.1 <= _refused(hasty.follower, 1) < 1
        assert _refused(hasty.follower, 1) < 0.05
        slow.set()
        until(lambda: hasty.follower.cursor == 1)


def _refused(follower: RemoteFollower, revision: int) -> float:
    started = time.monotonic()
    with pytest.raises(BackendUnavailable):
        follower.ensure(revision)
    return time.monotonic() - started


def test_a_dead_engine_is_asked_once_and_then_by_the_probe_alone(here: Place) -> None:
    with place(here.store, here.index, first_probe_s=60, longest_probe_s=60) as alone:
        fill(here.store, 1)
        here.engine.error = BackendUnavailable("engine", "refused")
        for _ in range(5):
            with pytest.raises(BackendUnavailable, match="refused"):
                alone.follower.ensure(1)
        assert here.engine.calls == ["cursor"]


def test_after_its_return_the_index_is_brought_up_before_a_search_may_use_it(here: Place) -> None:
    """Case 126: both legs agree without a person."""
    fill(here.store, 2)
    here.follower.ensure(2)
    with pytest.raises(BackendUnavailable), here.follower.answering(2):
        raise BackendUnavailable("engine", "timed out")
    fill(here.store, 5, start=2)
    until(lambda: here.follower.breaker.outage is None)
    assert here.held() == here.wanted()


@pytest.mark.parametrize("error", [BackendRejected("engine", "401"), ConfigError("the index belongs to another store")])
def test_an_engine_that_refuses_to_be_followed_into_is_left_out_with_the_reason(here: Place, error: Exception) -> None:
    fill(here.store, 1)
    here.engine.error = error
    with pytest.raises(BackendUnavailable, match=r"401|another store"):
        here.follower.ensure(1)
    status = here.follower.status()
    assert (status.state, status.lag) == ("down", 1)
    assert status.error is not None
    assert "401" in status.error or "another store" in status.error


def test_a_search_that_is_refused_is_answered_without_the_leg_and_others_go_on(here: Place) -> None:
    with pytest.raises(BackendUnavailable, match="too many clauses"), here.follower.answering(0):
        raise BackendRejected("engine", "too many clauses")
    assert here.follower.breaker.outage is None


# -- status, comparison --


def test_the_status_tells_of_cursor_lag_and_outage(here: Place) -> None:
    fill(here.store, 4)
    assert here.follower.status().state == "ok"
    assert here.follower.status().cursor == 4
    here.engine.error = BackendUnavailable("engine", "refused")
    fill(here.store, 2, start=4)
    status = here.follower.status()
    assert (status.state, status.cursor, status.lag, status.error) == ("down", 0, 6, "refused")
    assert status.since is not None


def test_a_sound_index_differs_in_nothing(here: Place) -> None:
    fill(here.store, 7)
    assert here.follower.compare(ALICE, lambda: _live(here)) == []


def test_missing_stale_and_extra_memories_are_named(here: Place) -> None:
    ids = fill(here.store, 3)
    here.follower.catch_up()
    live = _live(here)
    contents = here.index._contents.searchable
    stale = live[1]
    contents.pop(live[0].number)
    contents[stale.number] = Change(1, ALICE, stale.id, stale.memory, None, stale.number)
    contents[99] = Change(3, ALICE, "ghost", live[2].memory, None, 99)
    assert here.follower.compare(ALICE, lambda: _live(here)) == [
        f"sparse: {ids[0]}: missing from the index",
        f"sparse: {ids[1]}: at revision 1, the store has 2",
        "sparse: number 99: in the index but not in the store",
    ]


def test_an_index_out_of_reach_is_a_problem_and_no_failure(here: Place) -> None:
    fill(here.store, 1)
    here.engine.error = BackendUnavailable("engine", "refused")
    (problem,) = here.follower.compare(ALICE, lambda: _live(here))
    assert "refused" in problem


def _live(here: Place) -> Sequence[Change]:
    return [each for batch in here.store.live(ALICE) for each in batch]


# -- in the background --


@contextmanager
def following(here: Place, **given: Any) -> Iterator[Remotes]:
    remotes = Remotes([here.follower], LocalNotices(), every_s=given.pop("every_s", 60), **given)
    try:
        yield remotes
    finally:
        remotes.close()


def test_a_write_wakes_the_background_follower(here: Place) -> None:
    with following(here) as remotes:
        remotes.start()
        until(lambda: "cursor" in here.engine.calls)
        fill(here.store, 3)
        remotes.announce(here.revision)
        until(lambda: here.follower.cursor == 3)


def test_without_a_notice_it_looks_by_itself(here: Place) -> None:
    with following(here, every_s=0.01) as remotes:
        remotes.start()
        fill(here.store, 3)
        until(lambda: here.follower.cursor == 3)


def test_one_process_follows_for_all_and_another_takes_over(here: Place) -> None:
    jobs = InMemoryJobStore()

    def lease() -> Lease:
        return Lease(jobs, "following", lease_s=60, clock=utc_now)

    first, second = lease(), lease()
    assert (first.hold(), second.hold()) == (True, False)
    first.let_go()
    assert not second.hold()  # it does not ask again before a third of the lease is over
    assert lease().hold()


def test_the_lease_of_a_dead_process_runs_out() -> None:
    jobs = InMemoryJobStore()
    assert jobs.hold("following", "dead", lease_s=60, now=JAN)
    held = [
        Lease(jobs, "following", lease_s=60, clock=lambda: JAN + timedelta(seconds=after_s)).hold()  # noqa: B023
        for after_s in (59, 61)
    ]
    assert held == [False, True]


def test_all_indexes_are_followed_though_one_is_down(here: Place) -> None:
    fill(here.store, 2)
    with place(here.store) as other:
        here.engine.error = BackendUnavailable("engine", "refused")
        remotes = Remotes([here.follower, other.follower], LocalNotices(), every_s=60)
        with pytest.raises(BackendUnavailable, match="refused"):
            remotes.catch_up()
        assert other.held() == other.wanted()
        here.engine.error = None
        until(lambda: here.follower.breaker.outage is None)
        assert remotes.catch_up() == {"sparse": 2}
        remotes.close()


def test_closing_ends_a_long_pass_at_its_next_batch(here: Place, tmp_path: Path) -> None:
    fill(here.store, 30)
    gate = threading.Event()
    here.engine.hooks["apply"] = gate.wait
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(here.follower.catch_up)
        until(lambda: "apply" in here.engine.calls)
        closing = threading.Thread(target=here.follower.close)
        closing.start()
        until(lambda: here.follower._closed)
        gate.set()
        closing.join(10)
        assert not closing.is_alive()
        with pytest.raises(BackendUnavailable, match="ends"):
            waiting.result()
