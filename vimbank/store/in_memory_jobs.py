"""Jobs and leases in plain dicts: the reference for tests and demonstrations. Nothing outlives the process."""

import threading
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from vimbank.domain.jobs import Job, JobState, Progress, QueueName
from vimbank.errors import NotFound
from vimbank.store import job_changes

__all__ = ["InMemoryJobStore"]


class InMemoryJobStore:
    """``JobStore`` with the meaning of ``SqlJobStore``. Thread-safe; each call scans everything."""

    def __init__(self) -> None:
        self._lock: Final = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._sent: dict[str, datetime] = {}
        self._leases: dict[str, tuple[str, datetime]] = {}

    def create(
        self, name: str, params: Mapping[str, Any], *, queue: QueueName, key: str | None, now: datetime
    ) -> tuple[Job, bool]:
        """See ``JobStore.create``."""
        own: dict[str, Any] = orjson.loads(orjson.dumps(dict(params)))
        with self._lock:
            known = next((each for each in self._jobs.values() if key is not None and each.key == key), None)
            if known is not None:
                return job_changes.refuse_other(known, name=name, params=own), False
            job = Job(
                id=uuid.uuid4().hex,
                name=name,
                params=own,
                queue=queue,
                state=JobState.QUEUED,
                created_at=now,
                key=key,
            )
            self._sent[job.id] = now
            return self._keep(job), True

    def get(self, job_id: str) -> Job:
        """See ``JobStore.get``."""
        with self._lock:
            if job_id not in self._jobs:
                raise NotFound(f"no job with the id {job_id!r}")
            return self._jobs[job_id]

    def list(self, *, name: str | None = None, state: JobState | None = None, limit: int = 100) -> Sequence[Job]:
        """See ``JobStore.list``."""
        with self._lock:
            newest = reversed(self._jobs.values())
            return [job for job in newest if name in (None, job.name) and state in (None, job.state)][:limit]

    def claim(self, job_id: str, owner: str, *, lease_s: float, now: datetime) -> Job | None:
        """See ``JobStore.claim``."""
        with self._lock:
            job = job_changes.claimed(self.get(job_id), owner, lease_s=lease_s, now=now)
            return None if job is None else self._keep(job)

    def beat(self, job_id: str, owner: str, progress: Progress, *, lease_s: float, now: datetime) -> bool:
        """See ``JobStore.beat``."""
        with self._lock:
            job = self._keep(job_changes.beaten(self.get(job_id), owner, progress, lease_s=lease_s, now=now))
            return not job.cancel_requested

    def finish(
        self,
        job_id: str,
        owner: str,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        error: str | None = None,
        now: datetime,
    ) -> Job:
        """See ``JobStore.finish``."""
        own = None if result is None else orjson.loads(orjson.dumps(dict(result)))
        with self._lock:
            job = job_changes.finished(self.get(job_id), owner, state, result=own, error=error, now=now)
            return self._keep(job)

    def release(self, job_id: str, owner: str, *, now: datetime) -> None:
        """See ``JobStore.release``."""
        with self._lock:
            self._keep(job_changes.released(self.get(job_id), owner, now=now))
            self._sent[job_id] = now

    def cancel(self, job_id: str, *, now: datetime) -> Job:
        """See ``JobStore.cancel``."""
        with self._lock:
            return self._keep(job_changes.cancelled(self.get(job_id), now=now))

    def stale(self, *, sent_before: datetime, lease_s: float, now: datetime) -> Sequence[Job]:
        """See ``JobStore.stale``."""
        since = {
            JobState.QUEUED: sent_before,
            JobState.RUNNING: now - timedelta(seconds=lease_s) + timedelta.resolution,
        }
        with self._lock:
            waiting = [job for job in self._jobs.values() if job_changes.waits(job, lease_s=lease_s, now=now)]
            return [job for job in waiting if not since[job.state] <= self._sent[job.id] <= now]

    def note_sent(self, job_id: str, *, now: datetime) -> None:
        """See ``JobStore.note_sent``."""
        with self._lock:
            self._sent[self.get(job_id).id] = now

    def forget(self, *, finished_before: datetime) -> int:
        """See ``JobStore.forget``."""
        with self._lock:
            old = [job.id for job in self._jobs.values() if job.finished_at and job.finished_at < finished_before]
            for job_id in old:
                del self._jobs[job_id], self._sent[job_id]
            return len(old)

    def hold(self, name: str, owner: str, *, lease_s: float, now: datetime) -> bool:
        """See ``JobStore.hold``."""
        with self._lock:
            holder, until = self._leases.get(name, (owner, now))
            if holder != owner and not job_changes.run_out(until, lease_s=lease_s, now=now):
                return False
            self._leases[name] = (owner, job_changes.lease_from(now, lease_s))
            return True

    def let_go(self, name: str, owner: str) -> None:
        """See ``JobStore.let_go``."""
        with self._lock:
            if name in self._leases and self._leases[name][0] == owner:
                del self._leases[name]

    def _keep(self, job: Job) -> Job:
        self._jobs[job.id] = job
        return job
