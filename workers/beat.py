"""A scheduler of periods counted from the epoch: no file, no trouble with the clock, and two beats are one too many.

Celery's own keeps its times in a pickle and waits, after the clock was set back, until it has caught up.
"""

import logging
import time
from datetime import datetime
from typing import Any, Final

from celery.beat import Scheduler, SchedulingError
from celery.schedules import BaseSchedule

__all__ = ["PeriodScheduler", "Periods"]

_LOG = logging.getLogger("celery.beat")
_LONGEST_PAUSE_S: Final = 5.0
"""Also how long after a change of the clock, or the return of Redis, the scheduler is on time again."""


class Periods(BaseSchedule):  # type: ignore[misc]  # Celery has no types
    """Due once in each period of ``every_s`` seconds (> 0) since the epoch."""

    def __init__(self, every_s: float) -> None:
        super().__init__()
        self.every_s = every_s

    def number(self, at: float) -> int:
        """Of the period at ``at``, seconds since the epoch."""
        return int(at // self.every_s)

    def left_s(self, at: float) -> float:
        """Until the next period, seconds."""
        return self.every_s - at % self.every_s

    def is_due(self, last_run_at: datetime) -> tuple[bool, float]:
        """As Celery asks: whether this is another period, also an earlier one, and the seconds to the next."""
        now = time.time()
        return self.number(now) != self.number(last_run_at.timestamp()), self.left_s(now)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Periods) and other.every_s == self.every_s

    def __hash__(self) -> int:
        return hash(self.every_s)

    def __reduce__(self) -> tuple[type, tuple[float]]:
        return type(self), (self.every_s,)

    def __repr__(self) -> str:
        return f"<every {self.every_s:g} s>"


class PeriodScheduler(Scheduler):  # type: ignore[misc]  # Celery has no types
    """Sends whatever is due, when it starts and then once in each period; what could not be sent is tried again.

    All entries are due at the start: the jobs' keys and leases see to it that a restart does nothing twice.
    """

    def __init__(self, *args: Any, **given: Any) -> None:
        self._sent: dict[str, int] = {}  # the number of the period in which an entry was sent last
        super().__init__(*args, **given)

    def tick(self) -> float:
        """Send what is due; the seconds until something may be due again."""
        now = time.time()
        for name, entry in self.schedule.items():
            number = entry.schedule.number(now)
            if self._sent.get(name) != number:
                if not self._send(entry):
                    return _LONGEST_PAUSE_S
                self._sent[name] = number
        schedules: list[Periods] = [entry.schedule for entry in self.schedule.values()]
        return min([_LONGEST_PAUSE_S, *(each.left_s(now) for each in schedules)])

    def _send(self, entry: Any) -> bool:
        _LOG.debug("sending %s", entry.name)
        try:
            self.apply_async(entry, producer=self.producer, advance=False)
        except (SchedulingError, OSError) as error:
            _LOG.warning("%s could not be sent, and is tried again: %s", entry.name, error)
            return False
        return True
