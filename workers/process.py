"""What one worker process has: a service and its jobs, opened with the first task, after the fork."""

import logging
import os
import threading
from collections.abc import Mapping
from typing import Final

from celery import signals

from vimbank.jobs.registry import JOBS, JobSpec
from vimbank.jobs.runner import Jobs
from vimbank.ports import Clock
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service, utc_now
from vimbank.wiring.jobs import open_jobs

__all__ = ["WorkerProcess"]

_LOG = logging.getLogger("vimbank.workers")


class WorkerProcess:
    """Opens the service once, and closes it when the process ends. Thread-safe.

    A worker that is told to end (SIGTERM) would wait for its jobs, which may take days. Its main process holds the
    writing end of a pipe; when that closes, or the main process is killed, every process of the pool asks its job to
    stop, and the job goes back to the queue.
    """

    def __init__(self, settings: Settings, specs: Mapping[str, JobSpec] = JOBS, *, clock: Clock = utc_now) -> None:
        self._settings: Final = settings
        self._specs: Final = specs
        self._clock: Final = clock
        self._lock = threading.Lock()
        self._service: MemoryService | None = None
        self._jobs: Jobs | None = None
        self._ending = threading.Event()
        self._reading, self._writing = os.pipe()

    def connect(self) -> None:
        """Follow the worker's signals."""
        signals.worker_shutting_down.connect(self._tell, weak=False)
        signals.worker_process_init.connect(self._forked, weak=False)
        signals.worker_process_shutdown.connect(self._close, weak=False)
        signals.worker_shutdown.connect(self._close, weak=False)  # of pools without processes

    @property
    def ending(self) -> bool:
        """Whether the worker was told to end."""
        return self._ending.is_set()

    def jobs(self) -> Jobs:
        """The jobs of this process. Raises what opening the service raises: ConfigError, BackendUnavailable."""
        with self._lock:
            if self._jobs is None:
                self._open()
            assert self._jobs is not None
            return self._jobs

    def _open(self) -> None:
        service = open_service(self._settings, clock=self._clock)
        try:
            self._jobs = open_jobs(self._settings, service, clock=self._clock, specs=self._specs)
        except BaseException:
            service.close()
            raise
        self._service = service
        threading.Thread(target=self._watch, args=(self._jobs,), name="vimbank-ending", daemon=True).start()

    def _watch(self, jobs: Jobs) -> None:
        os.read(self._reading, 1)  # nothing ever comes but the end
        self._ending.set()
        jobs.close()

    def _tell(self, **_given: object) -> None:
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def _forked(self, **_given: object) -> None:
        self._tell()

    def _close(self, **_given: object) -> None:
        with self._lock:
            jobs, service, self._jobs, self._service = self._jobs, self._service, None, None
        if jobs is not None:
            jobs.close()
        if service is not None:
            service.close()
            _LOG.debug("closed")
