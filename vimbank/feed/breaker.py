"""Leaves an engine alone that failed, until a probe in the background has found it well again.

So a dead engine, or one that hangs, costs one search its patience, and the searches after it nothing.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from vimbank.errors import BackendError, BackendUnavailable, VimbankError

__all__ = ["Breaker", "Outage"]

_LOG = logging.getLogger(__name__)
FIRST_PROBE_S: Final = 0.5
LONGEST_PROBE_S: Final = 10.0
_JITTER: Final = 0.25
"""Waits are this share longer or shorter, so that many processes do not probe at the same moments."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Why and since when an engine is left alone; ``since`` is aware UTC."""

    error: str
    since: datetime


class Breaker:
    """Closed: the engine may be asked. Open: it may not, and a thread probes it. Thread-safe.

    Args:    backend: what errors call the engine.
             probe: asks the engine, and does whatever must be done before it serves again; raises VimbankError while
             it cannot. It is called ``first_s`` after the failure, then after waits that double up to ``longest_s``.
    """

    def __init__(
        self,
        backend: str,
        probe: Callable[[], object],
        *,
        first_s: float = FIRST_PROBE_S,
        longest_s: float = LONGEST_PROBE_S,
        jitter: random.Random | None = None,
    ) -> None:
        self._backend = backend
        self._probe = probe
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = jitter or random.Random()
        self._lock = threading.Lock()
        self._outage: Outage | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def outage(self) -> Outage | None:
        """The outage that lasts; None: the engine may be asked."""
        return self._outage

    def check(self) -> None:
        """Raises BackendUnavailable while the engine is left alone; asks nothing."""
        outage = self._outage
        if outage is not None:
            raise BackendUnavailable(self._backend, f"left alone since {outage.since:%H:%M:%S} UTC: {outage.error}")

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Around a call to the engine: a failure opens the breaker, and is raised all the same."""
        try:
            yield
        except BackendUnavailable as error:
            self.trip(error)
            raise

    def trip(self, error: VimbankError) -> None:
        """The engine failed: leave it alone from now on."""
        message = _without_name(error)
        with self._lock:
            if self._stop.is_set():
                return
            since = datetime.now(UTC) if self._outage is None else self._outage.since
            if self._outage is None:
                _LOG.warning("%s is left alone until it answers again: %s", self._backend, message)
            self._outage = Outage(message, since)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name=f"vimbank-probe-{self._backend}", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop probing, for good."""
        with self._lock:
            self._stop.set()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=self._longest_s)

    def _watch(self) -> None:
        wait_s = self._first_s
        started = time.monotonic()
        while not self._stop.wait(wait_s * self._random.uniform(1 - _JITTER, 1 + _JITTER)):
            try:
                self._probe()
            except VimbankError as error:
                with self._lock:
                    if self._outage is not None:
                        self._outage = Outage(_without_name(error), self._outage.since)
                wait_s = min(2 * wait_s, self._longest_s)
            except Exception:  # noqa: BLE001 - the outermost loop of a thread: without it nobody would probe again
                _LOG.exception("the probe of %s failed", self._backend)
                wait_s = self._longest_s
            else:
                with self._lock:
                    self._outage = self._thread = None
                _LOG.warning("%s serves again after %.1f s", self._backend, time.monotonic() - started)
                return


def _without_name(error: VimbankError) -> str:
    """The message; an engine's error begins with its name, which the breaker says itself."""
    return str(error).removeprefix(f"{error.backend}: ") if isinstance(error, BackendError) else str(error)
