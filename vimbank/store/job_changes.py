"""What each change of a job means, once for all stores: pure decisions on ``Job`` values.

Leases survive a clock that is set. One that ends further ahead than any lease reaches was given before the clock was
set back, and counts as run out; a clock that jumps ahead lets a second worker take up a job that still runs, and the
first hears of it at its next beat. Jobs are idempotent, so two that overlap do no harm.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from vimbank.domain.jobs import Job, JobState, Progress
from vimbank.errors import Conflict

__all__ = [
    "beaten",
    "cancelled",
    "claimed",
    "finished",
    "latest_end",
    "lease_from",
    "refuse_other",
    "released",
    "run_out",
    "waits",
]

_LONGEST: Final = 2
"""In leases: how far ahead a lease may end. Its own length, and as much again for clocks that differ a little."""


def run_out(until: datetime, *, lease_s: float, now: datetime) -> bool:
    """Whether a lease until ``until`` no longer holds."""
    return until <= now or until > latest_end(now, lease_s)


def latest_end(now: datetime, lease_s: float) -> datetime:
    """The end of a lease that was given a moment ago lies no later, on whatever machine."""
    return now + _LONGEST * timedelta(seconds=lease_s)


def lease_from(now: datetime, lease_s: float) -> datetime:
    """Until when a lease taken or renewed now holds."""
    return now + timedelta(seconds=lease_s)


def waits(job: Job, *, lease_s: float, now: datetime) -> bool:
    """Whether nobody works on the job: it is queued, or its worker has fallen silent."""
    if job.state is JobState.QUEUED:
        return True
    abandoned = job.lease_until is None or run_out(job.lease_until, lease_s=lease_s, now=now)
    return job.state is JobState.RUNNING and abandoned


def claimed(job: Job, owner: str, *, lease_s: float, now: datetime) -> Job | None:
    """The job in the hands of ``owner``; None where it has ended or another works on it."""
    if not waits(job, lease_s=lease_s, now=now):
        return None
    return replace(
        job,
        state=JobState.RUNNING,
        owner=owner,
        lease_until=lease_from(now, lease_s),
        attempts=job.attempts + 1,
        started_at=now if job.started_at is None else job.started_at,
    )


def beaten(job: Job, owner: str, progress: Progress, *, lease_s: float, now: datetime) -> Job:
    """The job with a new lease and its progress. Raises Conflict where it is no longer the owner's."""
    _refuse_other(job, owner)
    return replace(job, lease_until=lease_from(now, lease_s), progress=progress)


def finished(
    job: Job, owner: str, state: JobState, *, result: Mapping[str, Any] | None, error: str | None, now: datetime
) -> Job:
    """The job, ended. Raises Conflict where it is no longer the owner's.

    Saying the same once more changes nothing: the first answer may have been lost.
    """
    if (job.state, job.owner) == (state, owner) and state.ended:
        return job
    _refuse_other(job, owner)
    return replace(job, state=state, result=result, error=error, lease_until=None, finished_at=now)


def released(job: Job, owner: str, *, now: datetime) -> Job:
    """The job back in the queue, or cancelled where that was asked for. Raises Conflict as ``finished`` does.

    The attempt does not count: ``attempts`` above the number of tries that went through tells of workers that died.
    """
    _refuse_other(job, owner)
    if job.cancel_requested:
        return replace(job, state=JobState.CANCELLED, lease_until=None, finished_at=now)
    return replace(job, state=JobState.QUEUED, owner=None, lease_until=None, attempts=job.attempts - 1)


def cancelled(job: Job, *, now: datetime) -> Job:
    """The job, ended where it waited, asked to stop where it runs, as it is where it has ended."""
    if job.state is JobState.QUEUED:
        return replace(job, state=JobState.CANCELLED, cancel_requested=True, finished_at=now)
    return job if job.state.ended else replace(job, cancel_requested=True)


def refuse_other(job: Job, *, name: str, params: Mapping[str, Any]) -> Job:
    """The job that a key belongs to. Raises Conflict where it is another one than is asked for."""
    if job.name != name or dict(job.params) != dict(params):
        raise Conflict(f"key {job.key!r} belongs to another job: {job.id}")
    return job


def _refuse_other(job: Job, owner: str) -> None:
    if job.state is not JobState.RUNNING or job.owner != owner:
        raise Conflict(f"job {job.id} was taken over by another worker, or has ended")
