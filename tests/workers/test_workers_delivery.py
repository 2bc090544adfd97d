"""Jobs delivered twice, workers that die, and workers that are told to end: the lease in the store decides."""

import os
import signal
from pathlib import Path

import pytest

from tests.workers.jobs import USER
from tests.workers.stage import Stage, lines, stage, until
from vimbank.domain.jobs import JobState
from vimbank.domain.models import Event, ListQuery, MemoryDraft
from vimbank.queues.celery import CeleryQueue

pytestmark = [pytest.mark.services, pytest.mark.timeout(120)]


def test_case_121_a_job_delivered_twice_runs_once(tmp_path: Path) -> None:
    """Case 121: the second delivery sees that the job runs, and ends."""
    with stage(tmp_path) as here:
        worker = here.worker(concurrency=2)
        job, log, go = here.held()
        until(lambda: lines(log) == ["start"])
        queue = CeleryQueue(here.redis.url, timeout_s=1)
        queue.send(job)
        until(lambda: worker.said("another worker has it"))
        go.touch()
        assert here.ended(job).state is JobState.SUCCEEDED
        queue.send(job)
        until(lambda: worker.said("it has ended"))
        queue.close()
        assert lines(log) == ["start", "end"]
        assert here.jobs.get(job.id).attempts == 1


def test_case_121_a_job_longer_than_the_visibility_timeout_runs_once(tmp_path: Path) -> None:
    """Case 121: Redis delivers it again while it runs, to another worker, as often as it likes."""
    with stage(tmp_path) as here:
        first = here.worker(VIMBANK_TEST_VISIBILITY_S="1")
        job, log, go = here.held()
        until(lambda: lines(log) == ["start"])
        second = here.worker(VIMBANK_TEST_VISIBILITY_S="1")
        until(lambda: second.said("another worker has it"))
        go.touch()
        assert here.ended(job).state is JobState.SUCCEEDED
        assert first.children()
        assert lines(log) == ["start", "end"]


def _fill(here: Stage, count: int) -> None:
    texts = [f"the crowd said number {number}" for number in range(count)]
    drafts = [MemoryDraft(tenant="default", user_id=USER, bank="dialog", text=text) for text in texts]
    here.service.add_many(drafts)


def _left(here: Stage) -> int:
    return here.service.list(ListQuery(tenant="default", user_id=USER, limit=1)).total


def test_case_122_a_worker_killed_amid_a_prune_of_a_thousand_is_replaced(tmp_path: Path) -> None:
    """Case 122: kill -9 of the whole worker; another one finishes, and the end is that of an unbroken run."""
    with stage(tmp_path, lease_s=1.0) as here:
        _fill(here, 1_000)
        before = [
            memory.id for memory in here.service.list(ListQuery(tenant="default", user_id=USER, limit=1_000)).items
        ]
        first = here.worker()
        go = tmp_path / "go"
        job = here.jobs.start("prune", {"go": str(go), "half": 500})
        until(lambda: _left(here) <= 500)
        first.kill()
        go.touch()
        here.worker()
        here.beat()
        done = here.ended(job)
        assert (done.state, done.attempts) == (JobState.SUCCEEDED, 2)
        assert _left(here) == 0
        actions = [[entry.event for entry in here.service.history("default", each)] for each in before[::50]]
        assert all(each.count(Event.DELETE) == 1 for each in actions), actions
        assert here.service.check().ok


def test_case_122_a_pool_process_killed_amid_a_job_is_replaced_by_its_worker(tmp_path: Path) -> None:
    """Case 122: the out-of-memory killer takes one process of the pool; the same worker does the job again."""
    with stage(tmp_path, lease_s=1.0) as here:
        here.worker()
        here.beat()
        job, log, go = here.held()
        until(lambda: lines(log) == ["start"])
        os.kill(int(log.read_text().split()[1]), signal.SIGKILL)
        until(lambda: lines(log) == ["start", "start"])
        go.touch()
        assert here.ended(job).attempts == 2


def test_a_worker_told_to_end_hands_its_job_to_another(tmp_path: Path) -> None:
    """SIGTERM: the job stops between two batches and runs elsewhere at once, long before a lease would run out."""
    with stage(tmp_path, lease_s=60.0) as here:
        first = here.worker()
        job, log, go = here.held()
        until(lambda: lines(log) == ["start"])
        first.signal(signal.SIGTERM)
        assert first.wait() == 0
        assert here.state(job) is JobState.QUEUED
        here.worker()
        until(lambda: lines(log) == ["start", "start"], timeout_s=10)
        go.touch()
        assert here.ended(job).attempts == 1


def test_a_job_over_its_time_limit_is_ended_and_says_so(tmp_path: Path) -> None:
    """The soft limit of Celery: the record tells, and the worker goes on."""
    with stage(tmp_path) as here:
        here.worker()
        job, log, _go = here.held("limited")
        ended = here.ended(job)
        assert ended.state is JobState.FAILED
        assert "SoftTimeLimitExceeded" in (ended.error or "")
        assert lines(log) == ["start"]


def test_only_an_engine_that_is_down_is_tried_again(tmp_path: Path) -> None:
    """With back-off by Celery, not by the lease; a job that broke stays broken."""
    with stage(tmp_path, lease_s=60.0) as here:
        worker = here.worker()
        broken, broken_log, _ = here.held("broken")
        assert here.ended(broken).error == "it broke"
        needy, log, go = here.held("needy")
        until(lambda: len(lines(log)) >= 2)
        go.touch()
        assert here.ended(needy).state is JobState.SUCCEEDED
        assert worker.said("Retry in")
        assert lines(broken_log) == ["start"]
