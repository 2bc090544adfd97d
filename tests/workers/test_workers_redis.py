"""Redis away and back: jobs go on without a restart, and nothing that needs no Redis waits for it."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.stage import Stage, lines, post, stage, until
from vimbank.domain.jobs import JobState
from vimbank.domain.models import MemoryDraft, Query
from vimbank.errors import BackendUnavailable

pytestmark = [pytest.mark.services, pytest.mark.timeout(240)]

_AWAY_S = 10.0
_RECONNECTED_S = 90.0
"""Celery tries again after 2, 4, 6, ... seconds, up to 30 between two tries, and a try may take 5."""


def test_case_124_jobs_run_again_after_redis_was_away_for_ten_seconds(tmp_path: Path) -> None:
    """Case 124: the same worker and the same beat; what Redis held, and it forgot all, is sent again."""
    with stage(tmp_path, lease_s=1.0) as here:
        here.worker(concurrency=2)
        here.beat()
        before, log, go = here.held()
        until(lambda: lines(log) == ["start"])
        here.redis.stop()
        gone = time.monotonic()
        with pytest.raises(BackendUnavailable, match="redis"):
            here.jobs.start("compact", key="asked while Redis was away")
        meanwhile = here.jobs.start("compact", key="asked while Redis was away")
        time.sleep(_AWAY_S - (time.monotonic() - gone))  # the case says how long
        assert here.state(meanwhile) is JobState.QUEUED
        here.redis.start()
        after = here.jobs.start("check")
        assert here.ended(after, timeout_s=_RECONNECTED_S).state is JobState.SUCCEEDED
        assert here.ended(meanwhile).state is JobState.SUCCEEDED
        go.touch()
        assert here.ended(before).state is JobState.SUCCEEDED
        assert lines(log) == ["start", "end"]
        # The job that ran all the time has ended on a connection that is gone; the worker goes on.
        assert here.ended(here.jobs.start("check")).state is JobState.SUCCEEDED


def _median_s(call: Callable[[], object], times: int = 7) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def _write(here: Stage) -> None:
    text = f"it is {time.time_ns()}"
    here.service.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=text))


def _search(here: Stage) -> None:
    assert here.service.search(Query(tenant="default", user_id="ana", text="what time is it", top_k=5)).results


@pytest.mark.parametrize("away", ["stopped", "frozen"])
def test_case_125_without_redis_reads_and_writes_take_no_longer(tmp_path: Path, away: str) -> None:
    """Case 125: less than 200 ms over normal, also where Redis accepts connections and never answers."""
    with stage(tmp_path) as here:
        _write(here)
        normal_s = max(_median_s(lambda: _write(here)), _median_s(lambda: _search(here)))
        here.redis.stop() if away == "stopped" else here.redis.freeze()
        assert _median_s(lambda: _write(here)) < normal_s + 0.2
        assert _median_s(lambda: _search(here)) < normal_s + 0.2
        started = time.perf_counter()
        with pytest.raises(BackendUnavailable, match="redis"):
            here.jobs.start("check")
        assert time.perf_counter() - started < 3 * here.settings.redis.timeout_s


def test_case_125_the_api_answers_503_and_names_redis(tmp_path: Path) -> None:
    """Case 125: and the job is not lost: asked for again with its key, it is the same one."""
    with stage(tmp_path) as here:
        _, address = here.server()
        here.redis.stop()
        status, answer = post(f"{address}/v1/jobs", {"name": "check", "key": "today"})
        assert status == 503
        assert "redis" in answer["detail"]
        status, _ = post(f"{address}/v1/memories", {"bank": "dialog", "user_id": "ana", "text": "it still works"})
        assert status == 201
        here.redis.start()
        status, answer = post(f"{address}/v1/jobs", {"name": "check", "key": "today"})
        assert (status, answer["state"]) == (200, "queued")
