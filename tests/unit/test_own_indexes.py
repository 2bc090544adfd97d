"""When a server checks its own indexes: once a period, alone, and never while everything is checked."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import SettableClock
from tests.runner_kit import fill, open_folder, open_jobs
from vimbank.domain.jobs import JobState
from vimbank.domain.models import Partition
from vimbank.jobs.own_indexes import IndexWatch
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService

DAY_S = 86_400.0
ANA = Partition("default", "ana", "dialog")


class Server:
    """What a server has for it."""

    def __init__(self, service: MemoryService, clock: SettableClock, *, repair: bool = True) -> None:
        self.service = service
        self.jobs: Jobs = open_jobs(service, clock)
        self.watch = IndexWatch(self.jobs, service, clock=clock, every_s=DAY_S, repair=repair)

    def damage(self) -> None:
        with self.service._indexes.read(ANA) as index:
            index.dense.replace(0, np.eye(384, dtype=np.float32)[0])


@pytest.fixture
def server(tmp_path: Path, clock: SettableClock) -> Iterator[Server]:
    with open_folder(tmp_path, clock=clock) as service:
        fill(service, 5)
        yield Server(service, clock)


def test_the_first_check_comes_soon_after_the_start_and_the_next_a_period_later(
    server: Server, clock: SettableClock
) -> None:
    assert server.watch.look_every_s == 60
    server.damage()
    clock.advance(seconds=599)
    assert (server.watch.look(), server.service.index_checks) == (False, None)
    clock.advance(seconds=1)
    assert server.watch.look()
    first = server.service.index_checks
    assert first is not None
    assert (first.at, first.found["index"], first.remaining["index"], first.repaired["index"]) == (clock(), 1, 0, 1)
    clock.advance(seconds=DAY_S - 1)
    assert not server.watch.look()
    clock.advance(seconds=1)
    server.damage()
    assert server.watch.look()
    second = server.service.index_checks
    assert second is not None
    assert (second.found["index"], second.repaired["index"]) == (1, 2), "what was repaired adds up"


def test_short_periods_are_looked_at_in_time(server: Server, clock: SettableClock) -> None:
    watch = IndexWatch(server.jobs, server.service, clock=clock, every_s=20.0, repair=True)
    assert watch.look_every_s == 2.0
    clock.advance(seconds=2)
    assert watch.look()


def test_without_repair_what_differs_is_only_told(tmp_path: Path, clock: SettableClock) -> None:
    with open_folder(tmp_path, clock=clock) as service:
        fill(service, 5)
        server = Server(service, clock, repair=False)
        server.damage()
        for _ in range(2):
            clock.advance(days=1)
            assert server.watch.look()
            told = service.index_checks
            assert told is not None
            assert (told.found["index"], told.remaining["index"], told.repaired["index"]) == (1, 1, 0)


def test_one_server_of_a_store_checks_at_a_time(server: Server, clock: SettableClock, tmp_path: Path) -> None:
    with open_folder(tmp_path, clock=clock) as service:
        other = Server(service, clock)
        clock.advance(days=1)
        with server.jobs.alone("check_indexes") as means:
            assert means is not None
            assert not other.watch.look()
            assert service.index_checks is None
        assert other.watch.look()
        assert server.watch.look(), "each for itself: the other's check says nothing of this one's indexes"


def test_a_server_that_died_at_it_holds_the_others_up_for_its_lease_alone(server: Server, clock: SettableClock) -> None:
    clock.advance(days=1)
    assert server.jobs._store.hold("jobs.check_indexes", "dead", lease_s=60.0, now=clock())
    assert not server.watch.look()
    clock.advance(seconds=61)
    assert server.watch.look()


def test_it_waits_while_everything_is_checked(server: Server, clock: SettableClock) -> None:
    clock.advance(days=1)
    job = server.jobs.start("check")
    claimed = server.jobs._store.claim(job.id, "a worker", lease_s=60.0, now=clock())
    assert claimed is not None
    assert not server.watch.look()
    server.jobs._store.finish(job.id, "a worker", JobState.SUCCEEDED, result={}, error=None, now=clock())
    assert server.watch.look()


def test_a_check_of_everything_in_this_process_counts_as_one(server: Server, clock: SettableClock) -> None:
    server.damage()
    clock.advance(days=1)
    server.jobs.run(server.jobs.start("check", {"repair": True}).id)
    told = server.service.index_checks
    assert told is not None
    assert (told.at, told.found["index"], told.repaired["index"]) == (clock(), 1, 1)
    assert not server.watch.look()
    server.jobs.run(server.jobs.start("check", {"tenant": "default"}).id)
    assert server.service.index_checks is told, "one of a tenant leaves out the others"


def test_a_clock_that_was_set_back_does_not_put_it_off(server: Server, clock: SettableClock) -> None:
    """Case 108: two days back is no reason to check three days later."""
    clock.advance(days=1)
    assert server.watch.look()
    clock.advance(days=-2)
    assert server.watch.look()
    assert not server.watch.look()


def test_a_server_that_closes_is_not_held_up(server: Server, clock: SettableClock) -> None:
    clock.advance(days=1)
    server.service.check()
    with server.service._indexes.read(ANA):
        pass  # there is a partition to come to
    clock.advance(days=1)
    server.jobs.close()
    assert not server.watch.look()
