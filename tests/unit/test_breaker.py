"""The breaker: an engine that failed is left alone until a probe in the background succeeds."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.runner_kit import until
from vimbank.errors import BackendRejected, BackendUnavailable
from vimbank.feed.breaker import Breaker


class Engine:
    """Fails until it is mended; notes when it was probed."""

    def __init__(self) -> None:
        self.down = True
        self.probes: list[float] = []

    def probe(self) -> None:
        self.probes.append(time.monotonic())
        if self.down:
            raise BackendUnavailable("engine", "still down")


@contextmanager
def breaker_of(engine: Engine, first_s: float = 0.01, longest_s: float = 0.02) -> Iterator[Breaker]:
    breaker = Breaker("engine", engine.probe, first_s=first_s, longest_s=longest_s)
    yield breaker
    breaker.close()


def test_an_engine_that_has_not_failed_may_be_asked() -> None:
    with breaker_of(Engine()) as breaker:
        breaker.check()
        with breaker.guard():
            pass
        assert breaker.outage is None


def test_a_failure_opens_it_and_is_raised() -> None:
    with breaker_of(Engine(), first_s=60) as breaker:
        with pytest.raises(BackendUnavailable, match="refused"), breaker.guard():
            raise BackendUnavailable("engine", "refused")
        with pytest.raises(BackendUnavailable, match=r"left alone since .* refused"):
            breaker.check()


def test_a_rejection_of_one_call_does_not_open_it() -> None:
    with breaker_of(Engine()) as breaker:
        with pytest.raises(BackendRejected), breaker.guard():
            raise BackendRejected("engine", "no such field")
        assert breaker.outage is None


def test_it_closes_by_itself_when_the_probe_succeeds_and_can_open_again() -> None:
    engine = Engine()
    with breaker_of(engine) as breaker:
        for _ in range(2):
            engine.down = True
            breaker.trip(BackendUnavailable("engine", "refused"))
            started = len(engine.probes)
            until(lambda: len(engine.probes) >= started + 3)  # noqa: B023 - called before the next round
            assert breaker.outage is not None
            engine.down = False
            until(lambda: breaker.outage is None)
        breaker.check()


def test_it_tells_since_when_and_the_latest_reason() -> None:
    engine = Engine()
    with breaker_of(engine) as breaker:
        breaker.trip(BackendUnavailable("engine", "refused"))
        first = breaker.outage
        assert first is not None
        until(lambda: breaker.outage is not None and breaker.outage.error == "still down")
        assert breaker.outage is not None
        assert breaker.outage.since == first.since


def test_the_waits_double_up_to_the_longest() -> None:
    engine = Engine()
    with breaker_of(engine, first_s=0.02, longest_s=0.08) as breaker:
        breaker.trip(BackendUnavailable("engine", "refused"))
        until(lambda: len(engine.probes) == 6)
    waits = [after - before for before, after in zip(engine.probes, engine.probes[1:], strict=False)]
    # Up to a quarter of jitter each way: 40 ms, then 80 and no more.
    assert waits[0] >= 0.03
    assert all(wait >= 0.06 for wait in waits[1:])


def test_one_probe_at_a_time_however_many_failures() -> None:
    engine = Engine()
    with breaker_of(engine, first_s=0.05, longest_s=60) as breaker:
        for _ in range(50):
            breaker.trip(BackendUnavailable("engine", "refused"))
        assert sum("probe-engine" in thread.name for thread in threading.enumerate()) == 1
        until(lambda: len(engine.probes) == 1)


def test_closed_for_good_it_probes_no_more() -> None:
    engine = Engine()
    with breaker_of(engine) as breaker:
        breaker.trip(BackendUnavailable("engine", "refused"))
        until(lambda: len(engine.probes) >= 1)
    assert not any("probe-engine" in thread.name for thread in threading.enumerate())
