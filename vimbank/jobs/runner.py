"""Jobs: start, watch, cancel and run them. Every entry point uses this facade; the store says what is true."""

import logging
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from vimbank.domain.jobs import Job, JobState, Progress, Schedule
from vimbank.domain.sanitize import clean_id
from vimbank.errors import BackendUnavailable, Conflict, InvalidInput, VimbankError
from vimbank.jobs.context import JobContext, Surroundings
from vimbank.jobs.pulse import JobCancelled, JobInterrupted, LeaseLost, Pulses
from vimbank.jobs.registry import JOBS, JobSpec, spec_of
from vimbank.ports import JobQueue

__all__ = ["Jobs", "Run"]

_LOG = logging.getLogger(__name__)
_POLL_S: Final = 0.25
_BEAT_S: Final = 1.0
"""The longest time until a running job hears that it is to stop, where the lease is long."""
_MOST_ATTEMPTS: Final = 5
"""Workers that may die of a job before it is given up."""
_LEASES_QUEUED: Final = 5
"""How long a job may wait for a worker, in leases, before it is sent again: its message may be lost."""
_REQUEUE: Final = "jobs.requeue"
"""The lease of ``requeue``; that of an unrecorded job is ``jobs.`` and its name."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a call of ``run`` or ``run_scheduled`` did. ``ran`` false: nothing, and ``note`` says why."""

    name: str
    ran: bool
    note: str = ""
    job_id: str | None = None
    state: JobState | None = None
    result: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "name": self.name,
            "ran": self.ran,
            "note": self.note,
            "job_id": self.job_id,
            "state": None if self.state is None else self.state.value,
            "result": None if self.result is None else dict(self.result),
        }


class Jobs:
    """Everything about jobs for one process. Thread-safe.

    Args:    around: service, store and clock, and what jobs need beside them.
             queue: brings a job to whoever runs it.
             lease_s: after this silence a worker's job is taken over, seconds.
             schedules: what ``run_scheduled`` may be asked for.
             specs: the jobs there are, by name; the processes of one store should agree on them.
    """

    def __init__(
        self,
        around: Surroundings,
        queue: JobQueue,
        *,
        lease_s: float,
        schedules: Sequence[Schedule] = (),
        specs: Mapping[str, JobSpec] = JOBS,
    ) -> None:
        self.schedules: Final = tuple(schedules)
        self.requeue_every_s: Final = lease_s / 2
        self._specs = specs
        self._around = around
        self._store = around.store
        self._clock = around.clock
        self._queue = queue
        self._lease_s = lease_s
        self._stopping = threading.Event()
        self._pulses = Pulses(every_s=min(_BEAT_S, lease_s / 3), stopping=self._stopping)
        self.process: Final = f"{socket.gethostname()}:{os.getpid()}"
        self._closers: list[Callable[[], None]] = []

    # -- ask and watch --

    def specs(self) -> Sequence[JobSpec]:
        """Every kind of job."""
        return tuple(self._specs.values())

    def start(self, name: str, params: Mapping[str, Any] | None = None, *, key: str | None = None) -> Job:
        """``ask``, for those who do not care whether the job is a new one."""
        return self.ask(name, params, key=key)[0]

    def ask(self, name: str, params: Mapping[str, Any] | None = None, *, key: str | None = None) -> tuple[Job, bool]:
        """A new job and True; with a ``key`` that is known, the job that has it, and False.

        Raises InvalidInput (``name``, ``key``, ``params.<field>``); Conflict where the key belongs to another job;
        BackendUnavailable where the queue is out of reach: the job is recorded, and sent when the queue is back.
        """
        spec = spec_of(name, self._specs)
        given = spec.validate({} if params is None else params)
        key = None if key is None else clean_id(key, "key")
        job, created = self._store.create(name, given, queue=spec.queue, key=key, now=self._clock())
        if created:
            self._queue.send(job)
        return job, created

    def get(self, job_id: str) -> Job:
        """Raises NotFound; InvalidInput where this can be no id."""
        return self._store.get(clean_id(job_id, "id"))

    def list(self, *, name: str | None = None, state: JobState | None = None, limit: int = 100) -> Sequence[Job]:
        """The newest first."""
        if not 1 <= limit <= 1_000:
            raise InvalidInput.of("limit", "must be between 1 and 1000")
        return self._store.list(name=None if name is None else clean_id(name, "name"), state=state, limit=limit)

    def cancel(self, job_id: str) -> Job:
        """End a job that waits, ask a running one to stop after its batch; an ended one stays. Raises NotFound."""
        return self._store.cancel(clean_id(job_id, "id"), now=self._clock())

    def events(self, job_id: str, *, timeout_s: float) -> Iterator[Job]:
        """The job now and after each change, until it has ended, ``timeout_s`` has passed or this object closes.

        Raises NotFound.
        """
        deadline = time.monotonic() + timeout_s
        seen: Job | None = None
        while True:
            job = self.get(job_id)
            if seen is None or _visible(job) != _visible(seen):
                seen = job
                yield job
            if job.state.ended or time.monotonic() >= deadline or self._stopping.wait(_POLL_S):
                return

    # -- run --

    def run(self, job_id: str) -> Run:
        """Do the job, if nobody else does or did: a second delivery is harmless (case 121).

        A job that fails says so in its record. Raises NotFound; BackendUnavailable when an engine is down: the job
        is back in the queue then, and the caller should try again after a while.
        """
        owner = self._owner()
        job = self._store.claim(job_id, owner, lease_s=self._lease_s, now=self._clock())
        if job is None:
            job = self._store.get(job_id)
            return _run(job, ran=False, note="it has ended" if job.state.ended else "another worker has it")
        if job.cancel_requested:
            return self._end(job, owner, JobState.CANCELLED)
        if job.attempts > _MOST_ATTEMPTS:
            return self._end(job, owner, JobState.FAILED, error=f"given up: {_MOST_ATTEMPTS} workers died of it")
        return self._perform(job, owner)

    def run_scheduled(self, name: str) -> Run:
        """What a scheduler calls when a job is due; two schedulers start one job a period and not two (case 120).

        A recorded job is sent to the queue, unless the last one of the schedule still waits or runs. An unrecorded
        one runs here and now, unless another process is at it. Raises InvalidInput; BackendUnavailable.
        """
        schedule = next((each for each in self.schedules if each.name == name), None)
        if schedule is None:
            raise InvalidInput.of("name", f"{name!r} is not scheduled")
        spec = spec_of(name, self._specs)
        if not spec.recorded:
            return self._run_unrecorded(spec, schedule.params)
        unfinished = self._unfinished(schedule)
        if unfinished is not None:
            return _run(unfinished, ran=False, note="the last one has not ended")
        now = self._clock()
        params = spec.validate(schedule.params)
        job, created = self._store.create(name, params, queue=schedule.queue, key=schedule.key(now), now=now)
        if not created:
            return _run(job, ran=False, note="it was started in this period")
        self._queue.send(job)
        return _run(job, ran=False, note="sent")

    @contextmanager
    def by_hand(self) -> Iterator[JobContext]:
        """The means of a run here and now that is no job: nobody else hears of it, and nothing is recorded."""
        with self._pulses.of(lambda _progress: True, limit_s=math.inf) as pulse:
            yield JobContext(self._around, pulse)

    @contextmanager
    def alone(self, name: str, *, limit_s: float = math.inf) -> Iterator[JobContext | None]:
        """The means of a run that one process of the store does at a time; None: another is at it, or its lease holds.

        Nothing is recorded. The means' ``check`` raises as in a job. Raises BackendUnavailable.

        Args:    name: of what is done.  limit_s: how long it may take, seconds.
        """
        owner, lease = self._owner(), f"jobs.{name}"

        def hold() -> bool:
            return self._store.hold(lease, owner, lease_s=self._lease_s, now=self._clock())

        def beat(_progress: Progress) -> bool:
            if not hold():
                raise Conflict(f"another process holds {name}")
            return True

        if not hold():
            yield None
            return
        try:
            with self._pulses.of(beat, limit_s=limit_s) as pulse:
                yield JobContext(self._around, pulse)
        finally:
            with suppress(BackendUnavailable):  # the lease runs out by itself
                self._store.let_go(lease, owner)

    def requeue(self, *, queued_s: float | None = None) -> int:
        """Send again what lost its worker (case 122) or waits for longer than ``queued_s``; how many.

        One process at a time does so. Raises BackendUnavailable.
        """
        now, owner = self._clock(), self._owner()
        if not self._store.hold(_REQUEUE, owner, lease_s=self._lease_s, now=now):
            return 0
        patience = timedelta(seconds=_LEASES_QUEUED * self._lease_s if queued_s is None else queued_s)
        try:
            stale = self._store.stale(sent_before=now - patience, lease_s=self._lease_s, now=now)
            for job in stale:
                self._queue.send(job)
                self._store.note_sent(job.id, now=now)
        finally:
            self._store.let_go(_REQUEUE, owner)
        return len(stale)

    def before_close(self, closer: Callable[[], None]) -> None:
        """Have ``closer`` called when this object closes, before the queue is."""
        self._closers.append(closer)

    def close(self) -> None:
        """Ask the running jobs to stop, which puts them back in the queue, and let go; a second call does nothing."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        for closer in self._closers:
            closer()
        self._queue.close()

    # -- inside --

    def _perform(self, job: Job, owner: str) -> Run:
        def beat(progress: Progress) -> bool:
            return self._store.beat(job.id, owner, progress, lease_s=self._lease_s, now=self._clock())

        try:
            result = self._call(spec_of(job.name, self._specs), job.params, beat)
            return self._end(job, owner, JobState.SUCCEEDED, result=result)
        except JobCancelled:
            return self._end(job, owner, JobState.CANCELLED)
        except LeaseLost:
            return _run(job, ran=True, note="another worker has taken it over")
        except JobInterrupted:
            self._release(job, owner)
            return _run(job, ran=True, note="interrupted; it is back in the queue")
        except (BackendUnavailable, KeyboardInterrupt, SystemExit):
            self._release(job, owner)
            raise
        except VimbankError as error:
            return self._end(job, owner, JobState.FAILED, error=str(error))
        except Exception as error:  # noqa: BLE001 - the outermost loop of a job: its record has to say what happened
            _LOG.exception("job %s (%s) failed", job.id, job.name)
            return self._end(job, owner, JobState.FAILED, error=f"{type(error).__name__}: {error}")

    def _call(self, spec: JobSpec, params: Mapping[str, Any], beat: Callable[[Progress], bool]) -> Mapping[str, Any]:
        with self._pulses.of(beat, limit_s=spec.time_limit_s) as pulse:
            return spec.run(JobContext(self._around, pulse), params)

    def _run_unrecorded(self, spec: JobSpec, params: Mapping[str, Any]) -> Run:
        try:
            with self.alone(spec.name, limit_s=spec.time_limit_s) as context:
                if context is None:
                    return Run(spec.name, ran=False, note="another process is at it")
                return Run(spec.name, ran=True, result=spec.run(context, params))
        except (LeaseLost, JobInterrupted) as stopped:
            return Run(spec.name, ran=True, note=str(stopped))

    def _unfinished(self, schedule: Schedule) -> Job | None:
        """A job that this schedule started and that has not ended."""
        states = (JobState.QUEUED, JobState.RUNNING)
        found = (job for state in states for job in self._store.list(name=schedule.name, state=state))
        return next((job for job in found if (job.key or "").startswith(f"{schedule.name}@")), None)

    def _end(
        self,
        job: Job,
        owner: str,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        error: str | None = None,
    ) -> Run:
        try:
            ended = self._store.finish(job.id, owner, state, result=result, error=error, now=self._clock())
        except Conflict:
            return _run(job, ran=True, note="another worker has taken it over")
        return _run(ended, ran=True, note=error or "")

    def _release(self, job: Job, owner: str) -> None:
        # Where the store is down or another worker has the job, the lease sees to it.
        with suppress(BackendUnavailable, Conflict):
            self._store.release(job.id, owner, now=self._clock())

    def _owner(self) -> str:
        """A name for one run: a process may lose a job and take it up again."""
        return f"{self.process}:{uuid.uuid4().hex[:12]}"


def _run(job: Job, *, ran: bool, note: str) -> Run:
    return Run(job.name, ran, note, job.id, job.state, job.result)


def _visible(job: Job) -> tuple[object, ...]:
    """What a watcher is told of; a lease that is renewed is no news."""
    return (job.state, job.progress, job.attempts, job.cancel_requested)
