"""The scheduler: one job a period however many beats run, whatever the clock does."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.workers.stage import Stage, stage, until
from vimbank.domain.jobs import Job, JobState
from workers.beat import Periods

_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
"""Debian's package libfaketime; preloaded it moves the clock of one process."""


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
@pytest.mark.skipif(not _FAKETIME.exists(), reason="Debian's package libfaketime is not installed")
@pytest.mark.parametrize("shift", ["+2h", "-2h"])
def test_case_123_a_worker_whose_clock_is_hours_off_does_its_jobs(tmp_path: Path, shift: str) -> None:
    """Case 123: jobs are neither left lying nor done twice by a worker in another time, beside one in ours."""
    shifted = {"LD_PRELOAD": str(_FAKETIME), "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with stage(tmp_path) as here:
        odd = here.worker(**shifted)
        here.beat(**shifted)
        jobs = [here.jobs.start("check", key=f"shift {number}") for number in range(5)]
        done = [here.ended(job) for job in jobs]
        assert {job.state for job in done} == {JobState.SUCCEEDED}
        assert {job.attempts for job in done} == {1}
        assert abs((done[0].finished_at or datetime.now(UTC)) - datetime.now(UTC)) > timedelta(hours=1)
        until(lambda: odd.said("vimbank.scheduled.follow"))


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
