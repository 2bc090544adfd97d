"""The scheduler: one job a period however many beats run, whatever the clock does."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.workers.stage import Stage, lines, stage, until
from vimbank.domain.jobs import Job, JobState
from workers.beat import Periods


def _checks(here: Stage) -> list[Job]:
    return list(here.jobs.list(name="check", limit=1_000))


@pytest.mark.services
@pytest.mark.timeout(120)
def test_case_120_two_beats_start_one_job_a_period(tmp_path: Path) -> None:
    """Case 120: for several periods; and every job ends, none is skipped."""
    with stage(tmp_path, check_every_s=1.0) as here:
        here.worker(concurrency=2)
        here.beat()
        here.beat()
        until(lambda: len({job.key for job in _checks(here)}) >= 6)
        keys = Counter(job.key for job in _checks(here))
        assert set(keys.values()) == {1}, keys
        numbers = sorted(int((job.key or "").partition("@")[2]) for job in _checks(here))
        # One may be left out while a busy machine still runs the last one.
        assert numbers[-1] - numbers[0] <= len(numbers) + 2
        until(lambda: _checks(here)[-1].state is JobState.SUCCEEDED)


@pytest.mark.services
@pytest.mark.timeout(120)
@pytest.mark.parametrize("ahead_s", [7_200, -7_200])
def test_case_123_a_worker_whose_clock_is_hours_off_does_its_jobs(tmp_path: Path, ahead_s: int) -> None:
    """Case 123: jobs are neither left lying nor done twice by a worker in another time, beside one in ours."""
    clock = tmp_path / "clock"
    clock.write_text(str(ahead_s))
    with stage(tmp_path) as here:
        here.worker(VIMBANK_TEST_CLOCK=str(clock))
        here.beat()
        jobs = [here.jobs.start("check", key=f"shift {number}") for number in range(5)]
        done = [here.ended(job) for job in jobs]
        assert {job.state for job in done} == {JobState.SUCCEEDED}
        assert {job.attempts for job in done} == {1}
        assert done[0].finished_at is not None
        assert abs(done[0].finished_at - datetime.now(UTC)) > timedelta(hours=1)
        here.worker()
        job, log, go = here.held()
        until(lambda: lines(log) == ["start"])
        go.touch()
        assert here.ended(job).state is JobState.SUCCEEDED


@pytest.mark.services
@pytest.mark.timeout(120)
@pytest.mark.parametrize("to_s", [7_200, -7_200])
def test_case_123_beat_and_worker_go_on_when_the_clock_is_set(tmp_path: Path, to_s: int) -> None:
    """Case 123: after a step back Celery's own scheduler would wait for two hours."""
    clock = tmp_path / "clock"
    clock.write_text("0")
    with stage(tmp_path, check_every_s=1.0) as here:
        here.worker(VIMBANK_TEST_CLOCK=str(clock))
        here.beat(VIMBANK_TEST_CLOCK=str(clock))
        until(lambda: len(_checks(here)) >= 2)
        clock.write_text(str(to_s))
        known = len(_checks(here))
        until(lambda: len([job for job in _checks(here) if job.state.ended]) >= known + 2, timeout_s=20)


def test_a_period_is_due_once_also_after_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    periods = Periods(60.0)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)

    def at(seconds: float) -> datetime:
        monkeypatch.setattr("workers.beat.time.time", lambda: seconds)
        return epoch + timedelta(seconds=seconds)

    last = at(6_030.0)
    assert periods.is_due(last) == (False, 30.0)
    at(6_059.0)
    assert periods.is_due(last) == (False, 1.0)
    at(6_060.0)
    assert periods.is_due(last) == (True, 60.0)
    at(2_400.0)
    assert periods.is_due(last) == (True, 60.0)
