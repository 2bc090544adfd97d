"""Every JobStore keeps the same promises (ports.JobStore)."""

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, make_url, text

from tests.services import service_url
from vimbank.domain.jobs import JobState, Progress
from vimbank.errors import Conflict, NotFound
from vimbank.ports import JobStore
from vimbank.store.in_memory_jobs import InMemoryJobStore
from vimbank.store.sql import SqlStore

NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
LEASE_S: Final = 60.0
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)


@contextmanager
def postgres_database() -> Iterator[str]:
    """The URL of a new database on the test server; dropped afterwards."""
    server = make_url(service_url("POSTGRES_URL"))
    name = f"jobs_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        try:
            yield server.set(database=name).render_as_string(hide_password=False)
        finally:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JobStore]:
    if request.param == "memory":
        yield InMemoryJobStore()
        return
    if request.param == "sqlite":
        opened = SqlStore.open(f"sqlite:///{tmp_path / 'jobs.db'}")
        yield opened.jobs
        opened.close()
        return
    with postgres_database() as url:
        opened = SqlStore.open(url)
        yield opened.jobs
        opened.close()


def queued(store: JobStore, name: str = "check", *, key: str | None = None, now: datetime = NOW) -> str:
    return store.create(name, {"tenant": "t"}, queue="index", key=key, now=now)[0].id


def running(store: JobStore, owner: str = "a", *, now: datetime = NOW) -> str:
    job_id = queued(store, now=now)
    assert store.claim(job_id, owner, lease_s=LEASE_S, now=now) is not None
    return job_id


class TestAsking:
    def test_a_new_job_waits_with_all_it_was_given(self, store: JobStore) -> None:
        job, created = store.create("check", {"tenant": "t", "deep": [1, None]}, queue="index", key="k", now=NOW)
        assert created
        assert store.get(job.id) == job
        assert (job.name, job.params, job.queue, job.key) == ("check", {"tenant": "t", "deep": [1, None]}, "index", "k")
        assert (job.state, job.created_at, job.attempts, job.progress) == (JobState.QUEUED, NOW, 0, Progress())

    def test_a_key_is_one_job(self, store: JobStore) -> None:
        first, _ = store.create("check", {"a": 1, "b": 2}, queue="index", key="k", now=NOW)
        again, created = store.create("check", {"b": 2, "a": 1}, queue="index", key="k", now=NOW + HOUR)
        assert (again, created) == (first, False)
        assert len(store.list()) == 1

    def test_a_key_of_another_job_is_refused(self, store: JobStore) -> None:
        store.create("check", {}, queue="index", key="k", now=NOW)
        with pytest.raises(Conflict):
            store.create("compact", {}, queue="index", key="k", now=NOW)
        with pytest.raises(Conflict):
            store.create("check", {"tenant": "t"}, queue="index", key="k", now=NOW)

    def test_jobs_without_a_key_are_many(self, store: JobStore) -> None:
        assert queued(store) != queued(store)

    def test_one_of_many_that_ask_at_once_makes_the_job(self, store: JobStore) -> None:
        made: list[bool] = []

        def ask() -> None:
            made.append(store.create("check", {}, queue="index", key="same", now=NOW)[1])

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(made) == [False] * 7 + [True]

    def test_unknown_ids(self, store: JobStore) -> None:
        for call in (
            lambda: store.get("nope"),
            lambda: store.cancel("nope", now=NOW),
            lambda: store.claim("nope", "a", lease_s=LEASE_S, now=NOW),
            lambda: store.beat("nope", "a", Progress(), lease_s=LEASE_S, now=NOW),
            lambda: store.note_sent("nope", now=NOW),
        ):
            with pytest.raises(NotFound):
                call()

    def test_the_newest_come_first(self, store: JobStore) -> None:
        ids = [queued(store, name) for name in ("check", "compact", "check")]
        assert [job.id for job in store.list()] == ids[::-1]
        assert [job.id for job in store.list(name="check")] == [ids[2], ids[0]]
        assert [job.id for job in store.list(limit=1)] == [ids[2]]
        store.cancel(ids[1], now=NOW)
        assert [job.id for job in store.list(state=JobState.CANCELLED)] == [ids[1]]
        assert store.list(state=JobState.RUNNING) == []


class TestWorking:
    def test_one_worker_has_it(self, store: JobStore) -> None:
        job_id = queued(store)
        job = store.claim(job_id, "a", lease_s=LEASE_S, now=NOW)
        assert job is not None
        assert (job.state, job.owner, job.attempts, job.started_at) == (JobState.RUNNING, "a", 1, NOW)
        assert job.lease_until == NOW + MINUTE
        assert store.claim(job_id, "b", lease_s=LEASE_S, now=NOW) is None
        assert store.get(job_id) == job

    def test_progress_and_lease_are_kept(self, store: JobStore) -> None:
        job_id = running(store)
        assert store.beat(job_id, "a", Progress(3, 10, "halfway"), lease_s=LEASE_S, now=NOW + MINUTE / 2)
        job = store.get(job_id)
        assert job.progress == Progress(3, 10, "halfway")
        assert job.lease_until == NOW + MINUTE * 1.5

    def test_the_result_stays(self, store: JobStore) -> None:
        job_id = running(store)
        job = store.finish(job_id, "a", JobState.SUCCEEDED, result={"ok": False, "n": [1.5]}, now=NOW + MINUTE)
        assert store.get(job_id) == job
        assert (job.state, job.result, job.finished_at) == (JobState.SUCCEEDED, {"ok": False, "n": [1.5]}, NOW + MINUTE)
        assert store.claim(job_id, "b", lease_s=LEASE_S, now=NOW + HOUR) is None

    def test_an_error_stays(self, store: JobStore) -> None:
        job_id = running(store)
        job = store.finish(job_id, "a", JobState.FAILED, error="no", now=NOW)
        assert (job.state, job.error, job.result) == (JobState.FAILED, "no", None)

    def test_who_lost_it_can_neither_beat_nor_end_it(self, store: JobStore) -> None:
        job_id = running(store)
        later = NOW + 2 * MINUTE
        taken = store.claim(job_id, "b", lease_s=LEASE_S, now=later)
        assert taken is not None
        assert (taken.attempts, taken.started_at) == (2, NOW)
        for call in (
            lambda: store.beat(job_id, "a", Progress(), lease_s=LEASE_S, now=later),
            lambda: store.finish(job_id, "a", JobState.SUCCEEDED, now=later),
            lambda: store.release(job_id, "a", now=later),
        ):
            with pytest.raises(Conflict):
                call()
        assert store.get(job_id) == taken
        assert store.finish(job_id, "b", JobState.SUCCEEDED, now=later).state is JobState.SUCCEEDED

    def test_an_ended_job_ends_once(self, store: JobStore) -> None:
        job_id = running(store)
        store.finish(job_id, "a", JobState.SUCCEEDED, now=NOW)
        with pytest.raises(Conflict):
            store.finish(job_id, "a", JobState.FAILED, now=NOW)

    def test_an_end_whose_answer_was_lost_may_be_said_again(self, store: JobStore) -> None:
        job_id = running(store)
        ended = store.finish(job_id, "a", JobState.SUCCEEDED, result={"n": 1}, now=NOW)
        assert store.finish(job_id, "a", JobState.SUCCEEDED, result={"n": 1}, now=NOW + HOUR) == ended
        with pytest.raises(Conflict):
            store.finish(job_id, "b", JobState.SUCCEEDED, now=NOW)

    def test_many_that_claim_at_once_are_one(self, store: JobStore) -> None:
        job_ids = [queued(store) for _ in range(10)]
        taken: list[tuple[str, str]] = []

        def claim(owner: str) -> None:
            taken.extend(
                (job_id, owner)
                for job_id in job_ids
                if store.claim(job_id, owner, lease_s=LEASE_S, now=NOW) is not None
            )

        threads = [threading.Thread(target=claim, args=(owner,)) for owner in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(job_id for job_id, _ in taken) == sorted(job_ids)
        assert all(store.get(job_id).owner == owner for job_id, owner in taken)

    def test_a_cancellation_beside_the_end_undoes_no_end(self, store: JobStore) -> None:
        for _ in range(10):
            job_id = running(store)
            threads = [
                threading.Thread(target=store.cancel, args=(job_id,), kwargs={"now": NOW}),
                threading.Thread(target=store.finish, args=(job_id, "a", JobState.SUCCEEDED), kwargs={"now": NOW}),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert store.get(job_id).state is JobState.SUCCEEDED

    def test_a_released_job_waits_again_and_the_try_does_not_count(self, store: JobStore) -> None:
        job_id = running(store)
        store.release(job_id, "a", now=NOW)
        job = store.get(job_id)
        assert (job.state, job.owner, job.lease_until, job.attempts) == (JobState.QUEUED, None, None, 0)
        assert store.claim(job_id, "b", lease_s=LEASE_S, now=NOW) is not None


class TestCancelling:
    def test_a_waiting_job_ends(self, store: JobStore) -> None:
        job_id = queued(store)
        assert store.cancel(job_id, now=NOW).state is JobState.CANCELLED
        assert store.claim(job_id, "a", lease_s=LEASE_S, now=NOW) is None

    def test_a_running_job_hears_of_it(self, store: JobStore) -> None:
        job_id = running(store)
        assert store.cancel(job_id, now=NOW).state is JobState.RUNNING
        assert not store.beat(job_id, "a", Progress(1), lease_s=LEASE_S, now=NOW)
        assert store.finish(job_id, "a", JobState.CANCELLED, now=NOW).state is JobState.CANCELLED

    def test_an_ended_job_stays_as_it_is(self, store: JobStore) -> None:
        job_id = running(store)
        ended = store.finish(job_id, "a", JobState.SUCCEEDED, result={"n": 1}, now=NOW)
        assert store.cancel(job_id, now=NOW + HOUR) == ended

    def test_a_released_job_that_was_to_stop_is_cancelled(self, store: JobStore) -> None:
        job_id = running(store)
        store.cancel(job_id, now=NOW)
        store.release(job_id, "a", now=NOW)
        assert store.get(job_id).state is JobState.CANCELLED


class TestLeases:
    """Of jobs and of names; a clock may be set (cases 120-122)."""

    @pytest.mark.parametrize(
        ("passed", "free"),
        [
            (timedelta(), False),
            (MINUTE - timedelta(microseconds=1), False),
            (MINUTE, True),
            (HOUR, True),  # or the clock was set forward
            (-MINUTE, False),  # clocks of two machines differ, or it was set back a little
            (-MINUTE - timedelta(microseconds=1), True),
            (-3 * HOUR, True),  # the clock was set back: the lease would last for hours
        ],
    )
    def test_a_lease_holds_for_its_length_whatever_the_clock_does(
        self, store: JobStore, passed: timedelta, free: bool
    ) -> None:
        job_id = running(store)
        assert store.hold("feed", "a", lease_s=LEASE_S, now=NOW)
        now = NOW + passed
        assert [job.id for job in store.stale(sent_before=now - HOUR, lease_s=LEASE_S, now=now)] == [job_id] * free
        if free:
            store.note_sent(job_id, now=now)  # so that a busy worker finds it once and not a hundred times
            assert store.stale(sent_before=now, lease_s=LEASE_S, now=now + MINUTE / 2) == []
        assert store.hold("feed", "b", lease_s=LEASE_S, now=now) is free
        assert (store.claim(job_id, "b", lease_s=LEASE_S, now=now) is not None) is free

    def test_a_worker_renews_its_lease_after_the_clock_was_set(self, store: JobStore) -> None:
        job_id = running(store)
        back = NOW - 3 * HOUR
        assert store.beat(job_id, "a", Progress(), lease_s=LEASE_S, now=back)
        assert store.claim(job_id, "b", lease_s=LEASE_S, now=back) is None

    def test_one_holds_a_name(self, store: JobStore) -> None:
        assert store.hold("feed", "a", lease_s=LEASE_S, now=NOW)
        assert not store.hold("feed", "b", lease_s=LEASE_S, now=NOW)
        assert store.hold("other", "b", lease_s=LEASE_S, now=NOW)
        assert store.hold("feed", "a", lease_s=LEASE_S, now=NOW + MINUTE / 2)  # renewed
        assert not store.hold("feed", "b", lease_s=LEASE_S, now=NOW + MINUTE)
        store.let_go("feed", "b")
        assert not store.hold("feed", "b", lease_s=LEASE_S, now=NOW + MINUTE)
        store.let_go("feed", "a")
        assert store.hold("feed", "b", lease_s=LEASE_S, now=NOW + MINUTE)


class TestUpkeep:
    def test_what_nobody_takes_up_is_stale(self, store: JobStore) -> None:
        first, second = queued(store), queued(store)
        running(store)
        later = NOW + MINUTE / 2

        def stale(sent_before: datetime, now: datetime = later) -> list[str]:
            return [job.id for job in store.stale(sent_before=sent_before, lease_s=LEASE_S, now=now)]

        assert stale(NOW) == []
        assert stale(later) == [first, second]
        store.note_sent(first, now=later)
        assert stale(later) == [second]
        assert stale(NOW - 3 * HOUR, NOW - MINUTE / 2) == [first, second]  # the clock was set back

    def test_old_ends_are_forgotten(self, store: JobStore) -> None:
        old, new, waiting = running(store), running(store), queued(store)
        store.finish(old, "a", JobState.SUCCEEDED, now=NOW)
        store.finish(new, "a", JobState.FAILED, now=NOW + HOUR)
        assert store.forget(finished_before=NOW + HOUR) == 1
        assert store.forget(finished_before=NOW + HOUR) == 0
        assert {job.id for job in store.list()} == {new, waiting}


STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from(["claim", "beat", "finish", "release", "cancel"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([0, 1, 30, 61, 3_700, -90, -7_200]),  # what the clock does before, seconds
    ),
    max_size=25,
)


def end_once(store: JobStore, steps: list[tuple[str, str, int]]) -> None:
    """Whatever two workers do in whatever order, and whatever the clock does: a job ends at most once."""
    job_id = queued(store)
    now, ends = NOW, 0
    calls: dict[str, Callable[[str, datetime], object]] = {
        "claim": lambda owner, now: store.claim(job_id, owner, lease_s=LEASE_S, now=now),
        "beat": lambda owner, now: store.beat(job_id, owner, Progress(1), lease_s=LEASE_S, now=now),
        "finish": lambda owner, now: store.finish(job_id, owner, JobState.SUCCEEDED, result={"by": owner}, now=now),
        "release": lambda owner, now: store.release(job_id, owner, now=now),
        "cancel": lambda _owner, now: store.cancel(job_id, now=now),
    }
    for action, owner, passed in steps:
        now += timedelta(seconds=passed)
        before = store.get(job_id)
        try:
            calls[action](owner, now)
        except Conflict:
            assert store.get(job_id) == before
        after = store.get(job_id)
        ends += after.state.ended and not before.state.ended
        if before.state.ended:
            assert after == before
        if action == "finish" and after != before:
            assert (before.owner, after.owner) == (owner, owner)
    assert ends <= 1


@given(steps=STEPS)
def test_no_interleaving_ends_a_job_twice(steps: list[tuple[str, str, int]]) -> None:
    end_once(InMemoryJobStore(), steps)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_no_interleaving_ends_a_job_twice_in_any_store(store: JobStore, steps: list[tuple[str, str, int]]) -> None:
    end_once(store, steps)
