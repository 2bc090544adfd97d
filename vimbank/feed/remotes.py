"""All indexes outside the process: followed in the background by one process for all, told of, compared."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vimbank.domain.models import Change, Partition
from vimbank.errors import VimbankError
from vimbank.feed.remote import RemoteFollower, RemoteStatus
from vimbank.ports import Clock, JobStore, Notices

__all__ = ["Lease", "Remotes"]

_LOG = logging.getLogger(__name__)
_LEAST_PAUSE_S: Final = 0.2
"""Between two passes in the background: many writes one after the other become few passes, each with a refresh."""
_LONGEST_WAIT_S: Final = 0.5
"""A wait for notices is cut into pieces of this length, so that a follower soon hears that it is to stop."""
_RENEWED_AFTER: Final = 1 / 3


class Lease:
    """Which of the processes follows in the background. Asks the store only where the answer may have changed.

    Args:    lease_s: how long the lease of a process that has died keeps the others away, seconds.
    """

    def __init__(self, store: JobStore, name: str, *, lease_s: float, clock: Clock) -> None:
        self._store = store
        self._name = name
        self._lease_s = lease_s
        self._clock = clock
        self._owner = uuid.uuid4().hex
        self._held = False
        self._asked_at = -lease_s

    def hold(self) -> bool:
        """Whether this process has the lease now, taken or renewed."""
        if time.monotonic() - self._asked_at >= self._lease_s * _RENEWED_AFTER:
            self._asked_at = time.monotonic()
            self._held = self._store.hold(self._name, self._owner, lease_s=self._lease_s, now=self._clock())
        return self._held

    def let_go(self) -> None:
        """Leave it to another process."""
        if self._held:
            self._held = False
            self._store.let_go(self._name, self._owner)


class Remotes:
    """The followers of a process, one an index. Thread-safe.

    Args:    every_s: how often the background follower looks where no notice comes, seconds.
             lease: None: every process follows in the background.
             on_close: closes what the indexes share, such as the client of their engine.
    """

    def __init__(
        self,
        followers: Sequence[RemoteFollower],
        notices: Notices,
        *,
        every_s: float,
        lease: Lease | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.followers: Final = tuple(followers)
        self._notices = notices
        self._every_s = every_s
        self._lease = lease
        self._on_close = on_close
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def announce(self, revision: int) -> None:
        """The store has moved on. Returns at once, and raises nothing."""
        self._notices.announce(revision)

    def catch_up(self) -> Mapping[str, int]:
        """Bring each index up to the store; the cursor that each reached, by its name.

        Raises:  BackendUnavailable, BackendRejected, ConfigError: of the first that failed, after all were tried.
        """
        cursors: dict[str, int] = {}
        failure: VimbankError | None = None
        for follower in self.followers:
            try:
                cursors[follower.name] = follower.catch_up()
            except VimbankError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return cursors

    def start(self) -> None:
        """Follow in a thread from now on, for all processes that share the lease. A second call does nothing."""
        with self._lock:
            if self.followers and self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="vimbank-follow", daemon=True)
                self._thread.start()

    def follow(self, duration_s: float, stop: threading.Event | None = None) -> Mapping[str, int]:
        """Follow for so long, or until stopped; the cursors reached. Once in any case.

        Raises:  as ``catch_up``, at the end and in the last round.
        """
        ends = time.monotonic() + duration_s
        while True:
            cursors = self.catch_up()
            if not self._wait(ends, stop):
                return cursors

    def statuses(self, *, count: bool = False) -> list[RemoteStatus]:
        """How each index is. Asks each, and waits no longer than a search would."""
        return [follower.status(count=count) for follower in self.followers]

    def compare(self, partition: Partition, live: Callable[[], Sequence[Change]]) -> list[str]:
        """See ``RemoteFollower.compare``, for all."""
        return [problem for follower in self.followers for problem in follower.compare(partition, live)]

    def close(self) -> None:
        """Stop following; a pass that runs ends at its next batch."""
        self._stop.set()
        self._notices.close()
        with self._lock:
            thread = self._thread
        for follower in self.followers:
            follower.close()
        if thread is not None:
            thread.join()
        if self._lease is not None:
            self._lease.let_go()
        self._on_close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._lease is None or self._lease.hold():
                    self.catch_up()
            except VimbankError as error:
                _LOG.debug("not caught up: %s", error)  # the breaker has said so, and looks again
            except Exception:  # noqa: BLE001 - the outermost loop of a thread: nobody would follow any more
                _LOG.exception("following failed")
            self._stop.wait(_LEAST_PAUSE_S)
            self._wait(time.monotonic() + self._every_s - _LEAST_PAUSE_S, None)

    def _wait(self, ends: float, stop: threading.Event | None) -> bool:
        """Wait for a notice; whether there is time left."""
        while (remaining_s := ends - time.monotonic()) > 0 and not self._stop.is_set():
            if stop is not None and stop.is_set():
                return False
            began = time.monotonic()
            self._notices.wait(min(remaining_s, _LONGEST_WAIT_S))
            if time.monotonic() - began < min(remaining_s, _LONGEST_WAIT_S):
                return True  # something was announced
        return False
