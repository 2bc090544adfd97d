"""Notices between processes, by Redis's publish and subscribe; without Redis, followers poll."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

__all__ = ["RedisNotices"]

_LOG = logging.getLogger(__name__)
_FIRST_RETRY_S: Final = 0.2
_LONGEST_RETRY_S: Final = 5.0
_LISTEN_S: Final = 1.0
"""A listener looks up this often, to hear that it is to stop."""


class RedisNotices:
    """``Notices`` through one channel. Thread-safe; it connects when it is first used, and again whenever it must.

    A thread publishes the newest revision; those that were announced meanwhile are passed over. Another one listens,
    from the first ``wait`` on. After a connection was lost, waiters are woken once, as a notice may have been missed.

    Args:    channel: of one store.  timeout_s: patience with Redis, in these threads alone, seconds.
    """

    def __init__(self, url: str, *, channel: str, timeout_s: float) -> None:
        # One try each: it is the threads here that try again, and what is newest by then counts.
        self._client = redis.Redis.from_url(
            url,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
        )
        self._channel = channel
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._news = threading.Event()
        self._unsent = threading.Event()
        self._newest = 0
        self._down = False
        self._threads: dict[str, threading.Thread] = {}

    def announce(self, revision: int) -> None:
        """See ``Notices.announce``. Those who wait in this process are woken without Redis."""
        with self._lock:
            self._newest = max(self._newest, revision)
        self._unsent.set()
        self._news.set()
        self._start("publish", self._publish)

    def wait(self, timeout_s: float) -> None:
        """See ``Notices.wait``."""
        self._start("listen", self._listen)
        if self._news.wait(timeout_s):
            self._news.clear()

    def close(self) -> None:
        """Wake who waits, end the threads and the connections."""
        self._stop.set()
        self._unsent.set()
        self._news.set()
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join(timeout=2 * (self._timeout_s + _LISTEN_S))
        self._client.close()

    def _start(self, name: str, run: Callable[[], None]) -> None:
        if name in self._threads:
            return
        with self._lock:
            if name not in self._threads and not self._stop.is_set():
                thread = threading.Thread(
                    target=self._again_and_again, args=(run,), name=f"vimbank-{name}", daemon=True
                )
                self._threads[name] = thread
                thread.start()

    def _again_and_again(self, run: Callable[[], None]) -> None:
        wait_s = _FIRST_RETRY_S
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                run()
            except (redis.RedisError, OSError) as error:
                self._note(error)
                if time.monotonic() - began > 2 * _LONGEST_RETRY_S:  # it had been well for some time
                    wait_s = _FIRST_RETRY_S
                self._stop.wait(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_RETRY_S)

    def _publish(self) -> None:
        """Publish whatever is announced, until Redis fails."""
        while not self._stop.is_set():
            self._unsent.wait()
            if self._stop.is_set():
                return
            self._unsent.clear()
            try:
                self._client.publish(self._channel, self._newest)
            except (redis.RedisError, OSError):
                self._unsent.set()
                raise
            self._note(None)

    def _listen(self) -> None:
        """Wake the waiters at each notice, until Redis fails."""
        subscription: Any = self._client
        with subscription.pubsub(ignore_subscribe_messages=True) as channel:
            channel.subscribe(self._channel)
            self._news.set()
            while not self._stop.is_set():
                # The wait itself may be longer than the patience with an answer.
                message: Any = channel.get_message(timeout=_LISTEN_S)
                if message is not None:
                    self._note(None)
                    self._news.set()

    def _note(self, error: Exception | None) -> None:
        """Log the first failure, and the return, and nothing between."""
        if error is not None and not self._down:
            _LOG.warning("no notices by Redis, followers poll: %s", type(error).__name__)
        elif error is None and self._down:
            _LOG.info("notices by Redis again")
        self._down = error is not None
