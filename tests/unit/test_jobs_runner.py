"""The runner: a job is done once, its record is true, and whatever breaks it leaves a way on."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import SettableClock
from tests.runner_kit import MEMORIES, Gate, GatedEncoder, fill, open_folder, open_jobs, until
from vimbank.domain.jobs import Job, JobState
from vimbank.domain.models import Query
from vimbank.errors import BackendUnavailable, Conflict, InvalidInput, NotFound
from vimbank.jobs.registry import JOBS
from vimbank.jobs.runner import Jobs, Run
from vimbank.queues.threads import ThreadQueue
from vimbank.service import MemoryService


class Line:
    """A queue that keeps what was sent, and can be out of reach."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.down = False

    def send(self, job: Job) -> None:
        if self.down:
            raise BackendUnavailable("line", "out of reach")
        self.sent.append(job.id)

    def close(self) -> None:
        pass


@pytest.fixture
def filled(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    with open_folder(tmp_path / "data", clock=clock) as service:
        fill(service)
        yield service


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def jobs(service: MemoryService, clock: SettableClock, line: Line) -> Jobs:
    return open_jobs(service, clock, queue=line)


class Background:
    """A run in a thread of its own."""

    def __init__(self, jobs: Jobs, job_id: str) -> None:
        self.run: Run | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, args=(jobs, job_id))
        self._thread.start()

    def _work(self, jobs: Jobs, job_id: str) -> None:
        try:
            self.run = jobs.run(job_id)
        except BackendUnavailable as error:
            self.error = error

    def wait(self) -> Run | None:
        self._thread.join()
        return self.run


class TestAsking:
    def test_a_job_is_recorded_and_sent(self, jobs: Jobs, line: Line) -> None:
        job = jobs.start("check", {"tenant": "default"})
        assert line.sent == [job.id]
        assert (job.state, job.queue, job.params) == (JobState.QUEUED, "index", {"tenant": "default"})
        assert jobs.get(job.id) == jobs.list()[0] == job

    def test_a_key_is_sent_once(self, jobs: Jobs, line: Line) -> None:
        assert jobs.start("check", key="k").id == jobs.start("check", key="k").id
        assert len(line.sent) == 1
        with pytest.raises(Conflict):
            jobs.start("compact", key="k")

    @pytest.mark.parametrize(
        ("name", "params", "key", "field"),
        [
            ("nonsense", {}, None, "name"),
            ("check", {"depth": 1}, None, "params.depth"),
            ("check", {"tenant": ""}, None, "params.tenant"),
            ("snapshot", {"tenant": "t"}, None, "params.tenant"),
            ("compact", {"keep_days": 0}, None, "params.keep_days"),
            ("compact", {"keep_days": True}, None, "params.keep_days"),
            ("compact", {"keep_days": float("nan")}, None, "params.keep_days"),
            ("reindex", {"encoder": 3}, None, "params.encoder"),
            ("check", {}, "", "key"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, jobs: Jobs, name: str, params: dict[str, object], key: str | None, field: str
    ) -> None:
        with pytest.raises(InvalidInput) as caught:
            jobs.start(name, params, key=key)
        assert [error.field for error in caught.value.errors] == [field]
        assert jobs.list() == []

    def test_a_queue_out_of_reach_is_said_and_made_good(self, jobs: Jobs, line: Line, clock: SettableClock) -> None:
        line.down = True
        with pytest.raises(BackendUnavailable):
            jobs.start("check", key="k")
        (job,) = jobs.list()
        assert job.state is JobState.QUEUED
        line.down = False
        assert jobs.requeue() == 0  # its message may be on its way
        clock.advance(minutes=6)
        assert jobs.requeue() == 1
        assert line.sent == [job.id]
        assert jobs.requeue() == 0

    def test_unknown_jobs(self, jobs: Jobs) -> None:
        for call in (jobs.get, jobs.cancel, jobs.run, lambda job_id: next(jobs.events(job_id, timeout_s=0))):
            with pytest.raises(NotFound):
                call("nope")


class TestRunning:
    def test_a_job_tells_what_it_did(self, jobs: Jobs) -> None:
        run = jobs.run(jobs.start("check").id)
        assert (run.ran, run.state) == (True, JobState.SUCCEEDED)
        job = jobs.list()[0]
        assert (job.state, job.result, job.attempts) == (JobState.SUCCEEDED, run.result, 1)
        assert job.result is not None
        assert job.result["ok"]
        assert run.as_dict()["state"] == "succeeded"

    def test_progress_reaches_the_record(self, filled: MemoryService, clock: SettableClock) -> None:
        gate = Gate()
        gate.open.set()
        jobs = open_jobs(filled, clock, encoder=GatedEncoder(gate))
        jobs.run(jobs.start("reindex").id)
        job = jobs.list()[0]
        assert (job.progress.done, job.progress.message) == (MEMORIES, "memories")
        assert job.result is not None
        assert job.result["memories"] == MEMORIES

    def test_case_121_a_second_delivery_does_nothing(self, filled: MemoryService, clock: SettableClock) -> None:
        gate = Gate()
        encoder = GatedEncoder(gate)
        jobs = open_jobs(filled, clock, encoder=encoder)
        job = jobs.start("reindex")
        first = Background(jobs, job.id)
        gate.reached.wait()
        second = jobs.run(job.id)
        assert (second.ran, second.state, second.note) == (False, JobState.RUNNING, "another worker has it")
        gate.open.set()
        assert first.wait() is not None
        third = jobs.run(job.id)
        assert (third.ran, third.state, third.note) == (False, JobState.SUCCEEDED, "it has ended")
        assert encoder.batches == 3
        assert jobs.get(job.id).attempts == 1

    def test_cancelling_stops_after_the_batch(self, filled: MemoryService, clock: SettableClock) -> None:
        gate = Gate()
        encoder = GatedEncoder(gate)
        jobs = open_jobs(filled, clock, encoder=encoder, lease_s=1.0)
        job = jobs.start("reindex")
        running = Background(jobs, job.id)
        gate.reached.wait()
        assert jobs.cancel(job.id).cancel_requested
        before = jobs.get(job.id).lease_until
        clock.advance(seconds=0.1)
        until(lambda: jobs.get(job.id).lease_until != before)  # a beat, which hears of it
        gate.open.set()
        run = running.wait()
        assert run is not None
        assert run.state is JobState.CANCELLED
        assert encoder.batches == 1

    def test_closing_puts_the_job_back_and_it_goes_on_where_it_was(
        self, filled: MemoryService, clock: SettableClock
    ) -> None:
        gate = Gate()
        jobs = open_jobs(filled, clock, encoder=GatedEncoder(gate))
        job = jobs.start("reindex")
        running = Background(jobs, job.id)
        gate.reached.wait()
        jobs.close()
        gate.open.set()
        run = running.wait()
        assert run is not None
        assert run.note.startswith("interrupted")
        assert jobs.get(job.id).state is JobState.QUEUED
        rest = GatedEncoder()
        later = open_jobs(filled, clock, encoder=rest)
        assert later.run(job.id).state is JobState.SUCCEEDED
        assert rest.batches == 2
        jobs.close()

    def test_an_engine_that_is_down_is_tried_again(self, filled: MemoryService, clock: SettableClock) -> None:
        down = True

        def fail() -> None:
            if down:
                raise BackendUnavailable("encoder", "no answer")

        jobs = open_jobs(filled, clock, encoder=GatedEncoder(fail))
        job = jobs.start("reindex")
        for _ in range(10):  # however often: nobody died of it
            with pytest.raises(BackendUnavailable):
                jobs.run(job.id)
            assert jobs.get(job.id).state is JobState.QUEUED
        down = False
        assert jobs.run(job.id).state is JobState.SUCCEEDED

    def test_a_job_that_takes_too_long_fails(self, filled: MemoryService, clock: SettableClock) -> None:
        whole = open_jobs(filled, clock)
        limited = {"reindex": replace(JOBS["reindex"], time_limit_s=0.0)}
        jobs = Jobs(whole._around, whole._queue, lease_s=60.0, specs=limited)
        assert jobs.run(jobs.start("reindex").id).state is JobState.FAILED
        assert jobs.list()[0].error == "it took longer than 0 s"

    def test_a_long_job_that_says_nothing_keeps_its_lease(self, filled: MemoryService, clock: SettableClock) -> None:
        gate = Gate()
        jobs = open_jobs(filled, clock, encoder=GatedEncoder(gate), lease_s=0.5)
        running = Background(jobs, jobs.start("reindex").id)
        gate.reached.wait()
        for _ in range(3):
            clock.advance(seconds=0.4)
            until(lambda: jobs.list()[0].lease_until == clock() + timedelta(seconds=0.5))
        gate.open.set()
        assert running.wait() is not None
        assert jobs.list()[0].attempts == 1

    def test_a_refusal_is_the_end(self, filled: MemoryService, clock: SettableClock) -> None:
        def fail() -> None:
            raise Conflict("the model says no")

        jobs = open_jobs(filled, clock, encoder=GatedEncoder(fail))
        run = jobs.run(jobs.start("reindex").id)
        job = jobs.list()[0]
        assert (run.state, job.state, job.error) == (JobState.FAILED, JobState.FAILED, "the model says no")

    def test_what_nobody_expected_is_recorded_and_logged(
        self, filled: MemoryService, clock: SettableClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> None:
            raise ZeroDivisionError("by chance")

        jobs = open_jobs(filled, clock, encoder=GatedEncoder(fail))
        assert jobs.run(jobs.start("reindex").id).state is JobState.FAILED
        assert jobs.list()[0].error == "ZeroDivisionError: by chance"
        assert "Traceback" in caplog.text

    def test_who_lost_the_lease_lets_go(self, filled: MemoryService, clock: SettableClock) -> None:
        gate = Gate()
        jobs = open_jobs(filled, clock, encoder=GatedEncoder(gate), lease_s=60.0)
        job = jobs.start("reindex")
        slow = Background(jobs, job.id)
        gate.reached.wait()
        clock.advance(hours=1)  # the machine slept, or its clock was set forward
        other = open_jobs(filled, clock, encoder=GatedEncoder())
        taken = other.run(job.id)
        if taken.ran:  # else a beat came first, and the lease holds on
            assert taken.state is JobState.SUCCEEDED
        gate.open.set()
        run = slow.wait()
        assert run is not None
        assert jobs.get(job.id).state is JobState.SUCCEEDED
        assert filled.check().ok

    def test_a_job_that_kills_its_workers_is_given_up(self, jobs: Jobs, clock: SettableClock) -> None:
        job = jobs.start("check")
        for place in range(5):
            assert jobs._store.claim(job.id, f"dead {place}", lease_s=60.0, now=clock()) is not None
            clock.advance(minutes=2)
        run = jobs.run(job.id)
        assert run.state is JobState.FAILED
        assert "5 workers died" in (jobs.get(job.id).error or "")

    def test_a_job_that_was_cancelled_after_its_worker_died_ends(self, jobs: Jobs, clock: SettableClock) -> None:
        job = jobs.start("check")
        jobs._store.claim(job.id, "dead", lease_s=60.0, now=clock())
        assert jobs.cancel(job.id).state is JobState.RUNNING
        clock.advance(minutes=2)
        assert jobs.requeue() == 1
        assert jobs.run(job.id).state is JobState.CANCELLED

    def test_a_job_of_a_newer_version_fails_with_its_name(self, jobs: Jobs, clock: SettableClock) -> None:
        job, _ = jobs._store.create("unheard-of", {}, queue="index", key=None, now=clock())
        assert jobs.run(job.id).state is JobState.FAILED
        assert "name: must be one of follow" in (jobs.get(job.id).error or "")


class TestWatching:
    def test_events_end_with_the_job(self, jobs: Jobs) -> None:
        job = jobs.start("check")
        stream = jobs.events(job.id, timeout_s=20)
        assert next(stream).state is JobState.QUEUED
        jobs.run(job.id)
        assert [each.state for each in stream] == [JobState.SUCCEEDED]

    def test_events_show_progress(self, filled: MemoryService, clock: SettableClock) -> None:
        threads = ThreadQueue(1)
        jobs = open_jobs(filled, clock, queue=threads)
        job = jobs.start("reindex")
        stream = jobs.events(job.id, timeout_s=20)
        seen = [next(stream)]
        threads.start(jobs.run)
        seen += stream
        assert (seen[0].state, seen[-1].state) == (JobState.QUEUED, JobState.SUCCEEDED)
        assert seen[-1].progress.done == MEMORIES
        assert [each.progress.done for each in seen] == sorted(each.progress.done for each in seen)
        jobs.close()

    def test_events_end_in_time_and_with_the_process(self, jobs: Jobs) -> None:
        job = jobs.start("check")
        assert len(list(jobs.events(job.id, timeout_s=0.01))) == 1
        stream = jobs.events(job.id, timeout_s=3_600)
        next(stream)
        jobs.close()
        assert list(stream) == []


class TestSchedule:
    def test_case_120_two_schedulers_start_one_job_a_period(
        self, service: MemoryService, jobs: Jobs, clock: SettableClock, line: Line
    ) -> None:
        other = open_jobs(service, clock, queue=line)
        runs: list[Run] = []
        threads = [
            threading.Thread(target=lambda who: runs.append(who.run_scheduled("check")), args=(who,))
            for who in (jobs, other) * 4
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (job,) = jobs.list()
        assert line.sent == [job.id]
        notes = [run.note for run in runs]
        assert (len(notes), notes.count("sent")) == (8, 1)
        assert jobs.run(job.id).state is JobState.SUCCEEDED
        assert other.run(job.id).ran is False
        assert jobs.run_scheduled("check").note == "it was started in this period"
        clock.advance(days=1)
        assert other.run_scheduled("check").note == "sent"
        assert len(jobs.list()) == 2

    def test_jobs_do_not_pile_up_while_no_worker_is_there(self, jobs: Jobs, clock: SettableClock, line: Line) -> None:
        for _ in range(5):
            jobs.run_scheduled("compact")
            clock.advance(hours=1)
        assert len(jobs.list()) == len(line.sent) == 1

    def test_what_is_not_recorded_runs_at_once_and_leaves_nothing(self, jobs: Jobs) -> None:
        run = jobs.run_scheduled("follow")
        assert (run.ran, run.result) == (True, {"cursors": {}})
        assert jobs.list() == []
        assert jobs.run_scheduled("follow").ran

    def test_one_process_at_a_time_runs_it(self, service: MemoryService, clock: SettableClock) -> None:
        gate = Gate()

        class Slow:
            def catch_up(self) -> dict[str, int]:
                gate()
                return {"sparse": 7}

        one = open_jobs(service, clock, remotes=[Slow()])
        other = open_jobs(service, clock)
        runs: list[Run] = []
        thread = threading.Thread(target=lambda: runs.append(one.run_scheduled("follow")))
        thread.start()
        gate.reached.wait()
        assert other.run_scheduled("follow") == Run("follow", False, "another process is at it")
        gate.open.set()
        thread.join()
        assert runs[0].result == {"cursors": {"sparse": 7}}
        assert other.run_scheduled("follow").ran

    def test_only_what_is_scheduled_is(self, jobs: Jobs) -> None:
        with pytest.raises(InvalidInput):
            jobs.run_scheduled("reindex")


class TestTakingOver:
    def test_case_122_what_lost_its_worker_is_sent_again(self, jobs: Jobs, clock: SettableClock, line: Line) -> None:
        job = jobs.start("check")
        jobs._store.claim(job.id, "dead", lease_s=60.0, now=clock())
        assert jobs.requeue() == 0
        clock.advance(minutes=1)
        assert jobs.requeue() == 1
        assert jobs.requeue() == 0
        assert line.sent == [job.id, job.id]
        assert jobs.run(job.id).state is JobState.SUCCEEDED
        assert jobs.get(job.id).attempts == 2

    @pytest.mark.parametrize("hours", [-30, -3, 3, 30])
    def test_a_clock_that_is_set_stops_nothing(
        self, service: MemoryService, clock: SettableClock, line: Line, hours: float
    ) -> None:
        """Case 120 and 122 under a clock that is set: what is due still starts, what died is still taken over."""
        jobs = open_jobs(service, clock, queue=line)
        dead = jobs.start("check")
        jobs._store.claim(dead.id, "dead", lease_s=60.0, now=clock())
        waiting = jobs.start("compact")
        clock.now += timedelta(hours=hours)
        assert jobs.requeue() == 2
        for job_id in (dead.id, waiting.id):
            assert jobs.run(job_id).state is JobState.SUCCEEDED
        assert jobs.run_scheduled("follow").ran
        assert jobs.run_scheduled("check").note == "sent"


def test_reports_are_json(jobs: Jobs) -> None:
    for name in ("check", "snapshot", "compact", "reinforce", "follow", "reindex"):
        run = jobs.run(jobs.start(name).id)
        assert run.state is JobState.SUCCEEDED, run
        assert json.loads(json.dumps(run.as_dict()))["result"] == jobs.get(run.job_id or "").result


def test_recalls_are_reinforced(service: MemoryService, jobs: Jobs, clock: SettableClock) -> None:
    fill(service, 3)
    service.search(Query(tenant="default", user_id="ana", text="memory number"))
    assert jobs.run(jobs.start("reinforce").id).result == {"folded": 3}
    assert jobs.run(jobs.start("reinforce").id).result == {"folded": 0}
