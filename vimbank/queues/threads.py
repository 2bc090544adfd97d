"""Runs jobs in threads of this process: the embedded form's JobQueue."""

import heapq
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from vimbank.domain.jobs import Job
from vimbank.errors import BackendUnavailable

__all__ = ["StoredQueue", "ThreadQueue"]

_LOG = logging.getLogger(__name__)
_LONGEST_PAUSE_S: Final = 60.0
_PATIENCE_S: Final = 30.0
"""How long closing waits for the batches that run; a job that takes longer is taken up again by its lease."""


class StoredQueue:
    """Sends nothing: the job waits in the store for a server that looks there."""

    def send(self, job: Job) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to close."""


class ThreadQueue:
    """A queue and the threads that run what is in it, oldest first. Thread-safe.

    A job whose engine is unavailable is tried again after 1, 2, 4 ... 60 seconds.
    """

    def __init__(self, threads: int) -> None:
        self._count = threads
        self._threads: list[threading.Thread] = []
        self._due: list[tuple[float, int, str]] = []  # a heap: when (monotonic), order of arrival, job id
        self._order = itertools.count()
        self._retries: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._closed = False

    def start(self, run: Callable[[str], object]) -> None:
        """Begin to call ``run`` with the ids of jobs; what was sent before waits until then."""
        self._threads = [
            threading.Thread(target=self._work, args=(run,), name=f"vimbank-job-{number}", daemon=True)
            for number in range(self._count)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, job: Job) -> None:
        """Never out of reach; after ``close`` the job waits in the store for the next start."""
        self._put(job.id, 0.0)

    def close(self) -> None:
        """Start nothing more, and wait for what runs; whoever runs it has been asked to stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        deadline = time.monotonic() + _PATIENCE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _put(self, job_id: str, pause_s: float) -> None:
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + pause_s, next(self._order), job_id))
            self._changed.notify()

    def _work(self, run: Callable[[str], object]) -> None:
        while (job_id := self._next()) is not None:
            try:
                run(job_id)
                self._retries.pop(job_id, None)
            except BackendUnavailable as error:
                pause_s = min(_LONGEST_PAUSE_S, 2.0 ** self._retries[job_id])
                self._retries[job_id] += 1
                _LOG.warning("job %s waits %.0f s for an engine: %s", job_id, pause_s, error)
                self._put(job_id, pause_s)
            except Exception:  # noqa: BLE001 - the outermost loop of a thread: the next job must still be run
                _LOG.exception("job %s could not be run", job_id)

    def _next(self) -> str | None:
        """The next job that is due, as soon as there is one; None when the queue closes."""
        with self._changed:
            while not self._closed:
                wait_s = self._due[0][0] - time.monotonic() if self._due else None
                if wait_s is not None and wait_s <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(wait_s)
            return None
