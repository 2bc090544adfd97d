"""The embedded form: threads that run jobs, the scheduler inside a server, and what a dead server left."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apscheduler.triggers.interval import IntervalTrigger

from tests.runner_kit import Gate, GatedEncoder, fill, open_folder, until
from tests.runner_kit import open_jobs as jobs_of
from vimbank.domain.jobs import Job, JobState
from vimbank.errors import BackendUnavailable, ConfigError
from vimbank.jobs.registry import JOBS
from vimbank.queues.periodic import PeriodicCalls
from vimbank.queues.threads import ThreadQueue
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, JobSettings, Settings
from vimbank.store.sql import SqlStore
from vimbank.wiring import utc_now
from vimbank.wiring.jobs import job_schedules, open_jobs


def settings(folder: Path, **jobs: object) -> Settings:
    return Settings(
        data_dir=folder,
        encoder=EncoderSettings(kind="hashing"),
        jobs=JobSettings.model_validate({"lease_s": 1, **jobs}),
    )


def job(name: str) -> Job:
    return Job(
        id=name,
        name="check",
        params={},
        queue="index",
        state=JobState.QUEUED,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.fixture
def now_service(tmp_path: Path) -> Iterator[MemoryService]:
    """A service whose clock is the machine's, as the schedule's is."""
    with open_folder(tmp_path / "data") as service:
        yield service


class TestThreadQueue:
    def test_jobs_run_in_the_order_they_came(self) -> None:
        queue = ThreadQueue(1)
        ran: list[str] = []
        for name in "abc":
            queue.send(job(name))
        queue.start(ran.append)
        queue.send(job("d"))
        until(lambda: len(ran) == 4)
        queue.close()
        assert ran == list("abcd")

    def test_as_many_run_at_once_as_there_are_threads(self) -> None:
        queue, meeting = ThreadQueue(3), threading.Barrier(3, timeout=20)
        met: list[str] = []

        def run(job_id: str) -> None:
            meeting.wait()
            met.append(job_id)

        queue.start(run)
        for name in "abc":
            queue.send(job(name))
        until(lambda: sorted(met) == list("abc"))
        queue.close()

    def test_an_engine_that_is_down_is_tried_again_later(self) -> None:
        queue, tries = ThreadQueue(1), []

        def run(job_id: str) -> None:
            tries.append(job_id)
            if job_id == "a" and tries.count("a") == 1:
                raise BackendUnavailable("engine", "no answer")

        queue.start(run)
        queue.send(job("a"))
        queue.send(job("b"))
        until(lambda: len(tries) == 3)
        queue.close()
        assert tries == ["a", "b", "a"]  # another one does not wait for it

    def test_a_job_that_breaks_the_rules_does_not_end_the_thread(self, caplog: pytest.LogCaptureFixture) -> None:
        queue, ran = ThreadQueue(1), []

        def run(job_id: str) -> None:
            ran.append(job_id)
            raise ZeroDivisionError

        queue.start(run)
        queue.send(job("a"))
        queue.send(job("b"))
        until(lambda: len(ran) == 2)
        queue.close()
        assert "job a could not be run" in caplog.text

    def test_nothing_starts_after_closing(self) -> None:
        queue = ThreadQueue(1)
        ran: list[str] = []
        queue.start(ran.append)
        queue.close()
        queue.send(job("a"))
        assert ran == []


class TestPeriodicCalls:
    def test_calls_come_again_and_a_failure_does_not_end_them(self, caplog: pytest.LogCaptureFixture) -> None:
        calls, good, bad = PeriodicCalls(), [], []

        def fail() -> None:
            bad.append(1)
            raise BackendUnavailable("engine", "no answer") if len(bad) % 2 else ZeroDivisionError

        calls.every(0.05, lambda: good.append(1), name="good")
        calls.every(0.05, fail, name="bad")
        calls.once(0.05, lambda: good.append(100), name="late")
        calls.start()
        until(lambda: len(bad) > 3 and sum(good) > 103)
        calls.close()
        assert sum(good) // 100 == 1
        assert "bad: engine: no answer" in caplog.text
        assert "bad failed" in caplog.text

    def test_a_slow_call_is_not_called_twice_at_once(self) -> None:
        calls, gate, entered = PeriodicCalls(), Gate(), []

        def slow() -> None:
            entered.append(1)
            gate()

        other: list[int] = []
        calls.every(0.05, slow, name="slow")
        calls.every(0.05, lambda: other.append(1), name="other")
        calls.start()
        until(lambda: len(other) > 4)
        assert entered == [1]
        gate.open.set()
        calls.close()

    def test_periods_count_from_the_epoch(self) -> None:
        """So a restart puts nothing off, and all schedulers agree on a period."""
        calls = PeriodicCalls()
        calls.every(86_400, lambda: None, name="daily")
        calls.start()
        due = calls._scheduler.get_job("daily").next_run_time
        calls.close()
        assert (due.hour, due.minute, due.second) == (0, 0, 0)
        assert timedelta() < due - datetime.now(UTC) <= timedelta(days=1)

    def test_a_clock_set_back_does_not_stop_the_calls(self) -> None:
        wall = [1e9]
        calls, called = PeriodicCalls(wall=lambda: wall[0]), []
        calls.every(0.5, lambda: called.append(1), name="often")
        calls.start()
        # As it is after the machine's clock went back: the next time lies hours ahead.
        calls._scheduler.get_job("often").modify(next_run_time=datetime.now(UTC) + timedelta(hours=3))
        seen = len(called)
        wall[0] -= 3 * 3_600
        until(lambda: len(called) > seen + 1)
        assert isinstance(calls._scheduler.get_job("often").trigger, IntervalTrigger)
        calls.close()


class TestServer:
    def test_it_runs_what_it_is_asked_for(self, now_service: MemoryService, tmp_path: Path) -> None:
        jobs = open_jobs(settings(tmp_path / "data", schedule=False), now_service, serve=True)
        asked = jobs.start("check")
        assert list(jobs.events(asked.id, timeout_s=20))[-1].state is JobState.SUCCEEDED
        jobs.close()
        jobs.close()

    def test_it_runs_what_is_due_by_itself(self, now_service: MemoryService, tmp_path: Path) -> None:
        due = settings(tmp_path / "data", compact_every_s=1.0, check_every_s=86_400)
        jobs = open_jobs(due, now_service, serve=True)
        until(lambda: any(each.state is JobState.SUCCEEDED for each in jobs.list(name="compact")))
        jobs.close()
        assert all((each.key or "").startswith("compact@") for each in jobs.list(name="compact"))

    def test_it_takes_up_what_a_dead_server_left(self, now_service: MemoryService, tmp_path: Path) -> None:
        store = now_service.store
        assert isinstance(store, SqlStore)
        now = utc_now()
        waiting, _ = store.jobs.create("check", {}, queue="index", key=None, now=now - timedelta(seconds=1))
        broken, _ = store.jobs.create("compact", {}, queue="lifecycle", key=None, now=now - timedelta(seconds=9))
        assert store.jobs.claim(broken.id, "dead", lease_s=1.0, now=now - timedelta(seconds=9)) is not None
        jobs = open_jobs(settings(tmp_path / "data", schedule=False), now_service, serve=True)
        until(lambda: all(jobs.get(each.id).state is JobState.SUCCEEDED for each in (waiting, broken)))
        jobs.close()

    def test_closing_in_the_middle_loses_nothing(self, now_service: MemoryService) -> None:
        fill(now_service)
        gate, threads = Gate(), ThreadQueue(1)
        jobs = jobs_of(now_service, utc_now, encoder=GatedEncoder(gate), queue=threads)
        threads.start(jobs.run)
        asked = jobs.start("reindex")
        gate.reached.wait()
        closing = threading.Thread(target=jobs.close)
        closing.start()
        until(jobs._stopping.is_set)
        gate.open.set()
        closing.join()
        assert jobs.get(asked.id).state is JobState.QUEUED

    def test_who_serves_nothing_runs_nothing(self, now_service: MemoryService, tmp_path: Path) -> None:
        before = set(threading.enumerate())
        jobs = open_jobs(settings(tmp_path / "data"), now_service)
        asked = jobs.start("check")
        started = set(threading.enumerate()) - before
        assert not [each.name for each in started if each.name.startswith("vimbank-job")]
        assert jobs.get(asked.id).state is JobState.QUEUED
        assert jobs.run(asked.id).state is JobState.SUCCEEDED  # as the command line does
        jobs.close()

    def test_celery_needs_redis(self, now_service: MemoryService, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="VIMBANK_REDIS__URL"):
            open_jobs(settings(tmp_path / "data", runner="celery"), now_service)

    def test_an_encoder_may_be_named(self, now_service: MemoryService, tmp_path: Path) -> None:
        jobs = open_jobs(settings(tmp_path / "data"), now_service)
        assert jobs.run(jobs.start("reindex", {"encoder": "hashing"}).id).state is JobState.SUCCEEDED
        run = jobs.run(jobs.start("reindex", {"encoder": "crystal-ball"}).id)
        assert run.state is JobState.FAILED
        assert run.note.startswith("params.encoder: must be one of onnx,")
        jobs.close()


def test_the_schedule_is_what_the_settings_say(tmp_path: Path) -> None:
    planned = {each.name: each for each in job_schedules(settings(tmp_path, check_every_s=7))}
    assert planned["check"].every == timedelta(seconds=7)
    assert set(planned) == {"follow", "snapshot", "compact", "check", "reinforce", "expire", "conflicts"}
    names = {"forget", "prune", "summarise", "portrait", "consolidate", "assess"}
    asked = {f"{name}_every_s": 60.0 for name in names}
    planned = {each.name: each for each in job_schedules(settings(tmp_path, **asked))}
    assert names < set(planned)
    assert all(each.queue == JOBS[name].queue for name, each in planned.items())
