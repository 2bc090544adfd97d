"""Notices of new revisions, in one process and by Redis, with Redis away and back (cases 124 and 125)."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runner_kit import until
from tests.services import service_url
from tests.workers.stage import RedisServer
from vimbank.feed.notices import LocalNotices
from vimbank.feed.redis_notices import RedisNotices
from vimbank.ports import Notices


@contextmanager
def by_redis(url: str, channel: str, timeout_s: float = 0.5) -> Iterator[RedisNotices]:
    notices = RedisNotices(url, channel=channel, timeout_s=timeout_s)
    yield notices
    notices.close()


@pytest.fixture(params=["local", pytest.param("redis", marks=pytest.mark.services)])
def notices(request: pytest.FixtureRequest) -> Iterator[Notices]:
    if request.param == "local":
        yield LocalNotices()
        return
    with by_redis(service_url("REDIS_URL"), f"test:{uuid.uuid4().hex}") as made:
        yield made


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server of the test's own."""
    server = RedisServer(tmp_path)
    yield server
    server.stop()


def _seconds(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


def _heard(listener: Notices, teller: Notices) -> bool:
    """Whether a notice of the one, sent again and again, wakes the other within ten seconds."""
    deadline = time.monotonic() + 10
    revision = 0
    while time.monotonic() < deadline:
        revision += 1
        teller.announce(revision)
        if _seconds(lambda: listener.wait(0.5)) < 0.45:
            return True
    return False


def _quiet(notices: Notices) -> None:
    """Let what is under way arrive."""
    until(lambda: _seconds(lambda: notices.wait(0.2)) >= 0.2)


def test_a_notice_wakes_who_waits_in_the_same_process(notices: Notices) -> None:
    _quiet(notices)
    waiting = threading.Thread(target=notices.wait, args=(30,))
    waiting.start()
    notices.announce(1)
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_notice_from_before_the_wait_is_not_missed(notices: Notices) -> None:
    _quiet(notices)
    notices.announce(1)
    assert _seconds(lambda: notices.wait(10)) < 5


def test_without_a_notice_the_wait_ends_in_time(notices: Notices) -> None:
    _quiet(notices)
    assert 0.1 <= _seconds(lambda: notices.wait(0.1)) < 5


def test_closing_wakes_who_waits(notices: Notices) -> None:
    _quiet(notices)
    waiting = threading.Thread(target=notices.wait, args=(30,))
    waiting.start()
    notices.close()
    waiting.join(10)
    assert not waiting.is_alive()


@pytest.mark.services
def test_a_notice_reaches_another_process_of_the_same_store_alone() -> None:
    url, store = service_url("REDIS_URL"), uuid.uuid4().hex
    with by_redis(url, store) as teller, by_redis(url, store) as same, by_redis(url, store + "2") as other:
        _quiet(same)
        _quiet(other)
        assert _heard(same, teller)
        assert _seconds(lambda: other.wait(0.3)) >= 0.3


@pytest.mark.services
def test_case_124_after_redis_was_away_notices_arrive_again(redis: RedisServer) -> None:
    with by_redis(redis.url, "store") as listener, by_redis(redis.url, "store") as teller:
        assert _heard(listener, teller)
        redis.stop()
        teller.announce(100)
        _quiet(listener)
        redis.start()
        assert _heard(listener, teller)


@pytest.mark.services
def test_a_notice_may_have_been_missed_while_redis_was_away(redis: RedisServer) -> None:
    """So whoever waits is woken once when it is back, though nobody announces anything."""
    with by_redis(redis.url, "store") as listener:
        _quiet(listener)
        redis.stop()
        _quiet(listener)
        redis.start()
        assert _seconds(lambda: listener.wait(20)) < 15


@pytest.mark.services
@pytest.mark.parametrize("how", ["stopped", "frozen", "never there"])
def test_case_125_a_write_waits_for_no_redis(redis: RedisServer, how: str) -> None:
    url = redis.url
    if how == "stopped":
        redis.stop()
    elif how == "frozen":
        redis.freeze()
    else:
        url = "redis://127.0.0.1:1/0"
    with by_redis(url, "store", timeout_s=0.2) as notices:
        took_s = max(_seconds(lambda: notices.announce(1)) for _ in range(200))
    print(f"Redis {how}: an announcement takes at most {1e3 * took_s:.2f} ms")
    assert took_s < 0.05
