"""Write-behind of recalls: a search notes what it returned, a thread takes it to the access log.

The same thread has the log folded into the memories, unless a job does so.

A recall is a hint for forgetting, not an acknowledged write: up to ``flush_s`` seconds of recalls are lost when the
process is killed. Feedback does not go this way; it is durable when its call returns.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from vimbank.domain.models import RecallEntry
from vimbank.errors import BackendError
from vimbank.ports import AccessLog

__all__ = ["RecallBuffer"]

_LOG = logging.getLogger(__name__)
_MOST: Final = 100_000


class RecallBuffer:
    """Collects recall entries and appends them to the access log every ``flush_s`` seconds. Thread-safe.

    Args:    fold: folds the log into the memories; called every ``fold_s`` seconds while there are new entries, and
             at the end. What another process has folded already is not folded again.  fold_s: None: never, a job
             does it.
    """

    def __init__(self, log: AccessLog, *, flush_s: float, fold: Callable[[], object], fold_s: float | None) -> None:
        self._log = log
        self._flush_s = flush_s
        self._fold = fold
        self._fold_s = fold_s
        self._unfolded = False
        self._folded_at = time.monotonic()
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._entries: list[RecallEntry] = []
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def note(self, entries: Sequence[RecallEntry]) -> None:
        """Take the entries; returns at once. Beyond 100,000 waiting entries the new ones are dropped, and logged."""
        with self._lock:
            if len(self._entries) + len(entries) > _MOST:
                _LOG.error("the access log does not keep up: %d recalls dropped", len(entries))
                return
            self._entries.extend(entries)
            self._start()

    def append(self, entries: Sequence[RecallEntry]) -> None:
        """Durable when this returns, and folded in as the others; raises what the log raises."""
        self._log.append(entries)
        self._unfolded = True
        with self._lock:
            self._start()

    def leave_folding(self) -> None:
        """Only append from now on."""
        self._fold_s = None

    def flush(self) -> None:
        """Append what waits now; raises what the log raises, and keeps the entries then."""
        with self._flushing:
            with self._lock:
                entries = list(self._entries)
            if entries:
                self._log.append(entries)
                with self._lock:
                    del self._entries[: len(entries)]
                self._unfolded = True

    def close(self) -> None:
        """Flush, fold and stop."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self._wake.set()
        if thread is not None:
            thread.join()
        self.flush()
        if self._unfolded and self._fold_s is not None:
            self._fold()

    def _start(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="vimbank-recalls", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self._flush_s)
            try:
                self.flush()
                self._fold_in_time()
            except BackendError:
                _LOG.exception("could not append or fold recalls; they are kept for the next try")

    def _fold_in_time(self) -> None:
        fold_s = self._fold_s
        if self._unfolded and fold_s is not None and time.monotonic() - self._folded_at >= fold_s:
            self._unfolded = False
            try:
                self._fold()
            except BackendError:
                self._unfolded = True
                raise
            self._folded_at = time.monotonic()
