"""Calls what is due, by APScheduler: the embedded form's scheduler."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from vimbank.errors import VimbankError

__all__ = ["PeriodicCalls"]

_LOG = logging.getLogger(__name__)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_THREADS: Final = 4
_LOOK_S: Final = 1.0
_SET_BACK_S: Final = 1.0


class PeriodicCalls:
    """Calls functions once a period, counted from the epoch in UTC; never one twice at a time, a missed one once.

    What a call raises is logged, and the next period calls again. When the machine's clock is set back, the periods
    are counted anew instead of waiting for the clock to come back to where it was.
    """

    def __init__(self, *, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._scheduler: Any = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(_THREADS)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._closed = threading.Event()
        self._guard = threading.Thread(target=self._watch_the_clock, name="vimbank-clock", daemon=True)

    def every(self, period_s: float, call: Callable[[], object], *, name: str) -> None:
        """Call ``call`` once in each period from now on. ``period_s``: seconds, > 0."""
        trigger = IntervalTrigger(seconds=period_s, start_date=_EPOCH, timezone=UTC)
        self._scheduler.add_job(_guarded(call, name), trigger, id=name)

    def once(self, after_s: float, call: Callable[[], object], *, name: str) -> None:
        """Call ``call`` once, in ``after_s`` seconds."""
        trigger = DateTrigger(datetime.now(UTC) + timedelta(seconds=after_s), timezone=UTC)
        self._scheduler.add_job(_guarded(call, name), trigger, id=name)

    def start(self) -> None:
        """Begin."""
        self._scheduler.start()
        self._guard.start()

    def close(self) -> None:
        """Call nothing more, and wait for what runs."""
        self._closed.set()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
            self._guard.join()

    def _watch_the_clock(self) -> None:
        ahead = self._wall() - time.monotonic()
        while not self._closed.wait(_LOOK_S):
            now = self._wall() - time.monotonic()
            if now < ahead - _SET_BACK_S:
                _LOG.warning("the clock was set back by %.0f s; periods are counted anew", ahead - now)
                for job in self._scheduler.get_jobs():
                    if isinstance(job.trigger, IntervalTrigger):
                        self._scheduler.reschedule_job(job.id, trigger=job.trigger)
            ahead = now


def _guarded(call: Callable[[], object], name: str) -> Callable[[], None]:
    def guarded() -> None:
        try:
            call()
        except VimbankError as error:
            _LOG.warning("%s: %s", name, error)
        except Exception:  # noqa: BLE001 - the outermost loop of a call: the next one must still come
            _LOG.exception("%s failed", name)

    return guarded
