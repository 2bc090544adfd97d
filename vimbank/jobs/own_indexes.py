"""Has each server check its own in-process indexes: the job ``check`` sees those of the process alone that runs it."""

import logging
from datetime import timedelta
from typing import Final

from vimbank.domain.jobs import JobState
from vimbank.jobs.pulse import JobInterrupted, LeaseLost
from vimbank.jobs.runner import Jobs
from vimbank.ports import Clock
from vimbank.service import MemoryService

__all__ = ["IndexWatch"]

_LOG = logging.getLogger(__name__)
_NAME: Final = "check_indexes"
_FIRST_SHARE: Final = 0.1
_FIRST_MOST_S: Final = 600.0
_LOOK_MOST_S: Final = 60.0


class IndexWatch:
    """Checks the indexes of this process once a period, and a tenth of it (ten minutes at most) after the start.

    One process of a store at a time, and none while the job ``check`` runs: each reads all memories of the partitions
    that it holds. A process that has to wait looks again soon.

    Args:    every_s: the period, seconds, > 0.  repair: make anew what differs.
    """

    def __init__(self, jobs: Jobs, service: MemoryService, *, clock: Clock, every_s: float, repair: bool) -> None:
        self.look_every_s: Final = min(_LOOK_MOST_S, _FIRST_SHARE * every_s)
        self._jobs = jobs
        self._service = service
        self._clock = clock
        self._every = timedelta(seconds=every_s)
        self._first = timedelta(seconds=min(_FIRST_MOST_S, _FIRST_SHARE * every_s))
        self._repair = repair
        self._started_at = clock()

    def look(self) -> bool:
        """Check, where it is time and nobody else is at it; whether it did. Raises BackendUnavailable."""
        if not self._due() or self._jobs.list(name="check", state=JobState.RUNNING, limit=1):
            return False
        try:
            with self._jobs.alone(_NAME) as means:
                if means is None:
                    return False
                self._service.check_indexes(repair=self._repair, progress=lambda _done, _all: means.check())
        except (JobInterrupted, LeaseLost) as stopped:
            _LOG.info("the check of this process's indexes stopped: %s", stopped)
            return False
        return True

    def _due(self) -> bool:
        last = self._service.index_checks  # also by a job ``check`` that ran in this process
        since, wait = (self._started_at, self._first) if last is None else (last.at, self._every)
        return not timedelta(0) <= self._clock() - since < wait  # a clock that was set back makes it due
