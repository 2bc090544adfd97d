"""Jobs as values: what runs beside the requests, when, and how far it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, TypeAlias

__all__ = ["Job", "JobState", "Progress", "QueueName", "Schedule"]

QueueName: TypeAlias = Literal["index", "lifecycle", "summaries", "evaluation"]
"""One queue a kind of work, so that a long evaluation holds no index job up."""


class JobState(StrEnum):
    """Where a job is: it waits, runs, or has ended in one of three ways."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: ``done`` of ``total`` units (None: not known beforehand), and what it is at."""

    done: int = 0
    total: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of a job, asked for by somebody or due by the schedule. Times are aware UTC.

    ``key`` makes asking idempotent: a second request with the key of a known job is that job. ``owner`` is the
    worker that runs it, ``lease_until`` the time until which the others leave it alone; ``attempts`` counts the
    workers that took it up. ``result`` is the report of a job that succeeded, ``error`` what stopped one that failed.
    """

    id: str
    name: str
    params: Mapping[str, Any]
    queue: QueueName
    state: JobState
    created_at: datetime
    key: str | None = None
    progress: Progress = Progress()
    attempts: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    cancel_requested: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: Mapping[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A job that runs by itself: once in each period of ``every``, counted from the epoch in UTC."""

    name: str
    every: timedelta
    queue: QueueName
    params: Mapping[str, Any] = field(default_factory=dict)

    def key(self, now: datetime) -> str:
        """The same for all of one period, so that two schedulers start one job and not two (case 120)."""
        return f"{self.name}@{int(now.timestamp() // self.every.total_seconds())}"
