"""Keeps running jobs alive in the store, and tells each when it must stop."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from vimbank.domain.jobs import Progress
from vimbank.errors import BackendError, Conflict, NotFound, VimbankError

__all__ = ["JobCancelled", "JobInterrupted", "JobTimedOut", "LeaseLost", "Pulse", "Pulses"]

_LOG = logging.getLogger(__name__)
_TICK_S: Final = 0.25
"""Between two looks for news to write; so progress costs a job at most four writes a second."""
_IDLE_S: Final = 10.0


class JobCancelled(VimbankError):
    """Somebody asked the job to stop; it ends where it stands."""


class JobInterrupted(VimbankError):
    """This process closes; the job goes back to the queue and goes on later."""


class LeaseLost(VimbankError):
    """Another worker has taken the job over; this one must let go of it."""


class JobTimedOut(VimbankError):
    """The job takes longer than a job of its kind may."""


class Pulse:
    """What one running job says of itself, and hears. ``Pulses`` makes it and keeps it going."""

    def __init__(
        self, beat: Callable[[Progress], bool], *, every_s: float, limit_s: float, stopping: threading.Event
    ) -> None:
        self._beat = beat
        self._every_s = every_s
        self._limit_s = limit_s
        self._stopping = stopping
        self._started_at = self._beaten_at = time.monotonic()
        self._progress = Progress()
        self._told = self._progress  # what the store has of it
        self._cancelled = False
        self._lost = False
        self._ended = False
        self._beating = threading.Lock()

    def report(self, done: int, total: int | None = None, message: str = "") -> None:
        """Note how far the job is; cheap, the thread takes it to the store."""
        self._progress = Progress(done, total, message)

    def check(self) -> None:
        """Call between two small batches. Raises JobCancelled, JobInterrupted, JobTimedOut or LeaseLost."""
        if self._lost:
            raise LeaseLost("another worker has taken the job over")
        if self._cancelled:
            raise JobCancelled("cancelled")
        if self._stopping.is_set():
            raise JobInterrupted("the process closes")
        if time.monotonic() - self._started_at > self._limit_s:
            raise JobTimedOut(f"it took longer than {self._limit_s:g} s")

    def tick(self) -> None:
        """Beat if there is news, or if it is time."""
        with self._beating:
            due = time.monotonic() - self._beaten_at >= self._every_s
            if not self._ended and (due or self._progress != self._told):
                self._once()

    def end(self) -> None:
        """Beat no more, once the store has the last progress."""
        with self._beating:
            self._ended = True
            if self._progress != self._told:
                self._once()

    def _once(self) -> None:
        if self._lost:
            return
        progress, self._beaten_at = self._progress, time.monotonic()
        try:
            self._cancelled = not self._beat(progress)
            self._told = progress
        except (Conflict, NotFound):
            self._lost = True
        except BackendError:
            # The lease has time for another try; should it run out, whoever takes over does what is left.
            _LOG.warning("could not renew the lease of a job", exc_info=True)


class Pulses:
    """One thread that keeps all running jobs of a process alive. Thread-safe; begins with the first job.

    Args:    every_s: how often each beats at least, seconds, > 0. stopping: set when the process closes.
    """

    def __init__(self, *, every_s: float, stopping: threading.Event) -> None:
        self._every_s = every_s
        self._stopping = stopping
        self._lock = threading.Lock()
        self._running: set[Pulse] = set()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def of(self, beat: Callable[[Progress], bool], *, limit_s: float) -> Iterator[Pulse]:
        """The pulse of a job while it runs.

        Args:    beat: renews the lease; False: the job is to be cancelled; Conflict or NotFound: somebody else has it.
                 limit_s: how long the job may take, seconds.
        """
        pulse = Pulse(beat, every_s=self._every_s, limit_s=limit_s, stopping=self._stopping)
        with self._lock:
            self._running.add(pulse)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="vimbank-pulse", daemon=True)
                self._thread.start()
            self._wake.set()
        try:
            yield pulse
        finally:
            with self._lock:
                self._running.discard(pulse)
            pulse.end()

    def _run(self) -> None:
        while self._goes_on():
            time.sleep(min(_TICK_S, self._every_s))
            with self._lock:
                running = list(self._running)
                if not running:
                    self._wake.clear()
            for pulse in running:
                pulse.tick()

    def _goes_on(self) -> bool:
        """Waits for a job to run; False when none came for long, and the thread should end."""
        if self._wake.wait(_IDLE_S):
            return True
        with self._lock:
            if self._wake.is_set():  # it came just now
                return True
            self._thread = None
            return False
