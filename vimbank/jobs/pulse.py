"""Keeps a running job alive in the store, and tells the job when it must stop."""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from vimbank.domain.jobs import Progress
from vimbank.errors import BackendError, Conflict, NotFound, VimbankError

__all__ = ["JobCancelled", "JobInterrupted", "LeaseLost", "Pulse"]

_LOG = logging.getLogger(__name__)
_TICK_S: Final = 0.25
"""Between two looks for news to write; so progress costs a job at most four writes a second."""


class JobCancelled(VimbankError):
    """Somebody asked the job to stop; it ends where it stands."""


class JobInterrupted(VimbankError):
    """This process closes; the job goes back to the queue and goes on later."""


class LeaseLost(VimbankError):
    """Another worker has taken the job over; this one must let go of it."""


class Pulse:
    """A thread that calls ``beat`` with the newest progress every ``every_s`` seconds, sooner where there is news.

    Args:    beat: renews the lease; False: the job is to be cancelled; Conflict or NotFound: it is somebody else's.
             every_s: seconds, > 0. stopping: set when the process closes.
    """

    def __init__(self, beat: Callable[[Progress], bool], *, every_s: float, stopping: threading.Event) -> None:
        self._beat = beat
        self._every_s = every_s
        self._stopping = stopping
        self._progress = Progress()
        self._told = self._progress  # what the store has of it
        self._cancelled = False
        self._lost = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vimbank-pulse", daemon=True)

    def __enter__(self) -> "Pulse":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._progress != self._told and not self._lost:
            self._once()

    def report(self, done: int, total: int | None = None, message: str = "") -> None:
        """Note how far the job is; cheap, the thread takes it to the store."""
        self._progress = Progress(done, total, message)

    def check(self) -> None:
        """Call between two small batches. Raises JobCancelled, JobInterrupted or LeaseLost."""
        if self._lost:
            raise LeaseLost("another worker has taken the job over")
        if self._cancelled:
            raise JobCancelled("cancelled")
        if self._stopping.is_set():
            raise JobInterrupted("the process closes")

    def _run(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(min(_TICK_S, self._every_s)) and not self._lost:
            if self._progress != self._told or time.monotonic() - last >= self._every_s:
                self._once()
                last = time.monotonic()

    def _once(self) -> None:
        progress = self._progress
        try:
            self._cancelled = not self._beat(progress)
            self._told = progress
        except (Conflict, NotFound):
            self._lost = True
        except BackendError:
            # The lease has time for another try; should it run out, whoever takes over does what is left.
            _LOG.warning("could not renew the lease of a job", exc_info=True)
