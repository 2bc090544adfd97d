"""The jobs that look after the store, on a real service: what they do, and what they must leave alone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import SettableClock
from tests.runner_kit import GatedEncoder, fill, open_folder, open_jobs
from vimbank.domain.jobs import JobState
from vimbank.domain.models import ListQuery, MemoryDraft, Partition, Query, Signal
from vimbank.errors import BackendUnavailable, NotFound
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService


@pytest.fixture
def filled(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    with open_folder(tmp_path / "data", clock=clock) as service:
        fill(service, 30)
        yield service


def found(
    service: MemoryService, text: str = "pier", *, user_id: str = "ana", consistency: str = "strong"
) -> list[str]:
    query = Query(
        tenant="default",
        user_id=user_id,
        text=text,
        banks=["dialog"],
        fusion="sparse",
        top_k=50,
        reinforce=False,
        consistency=consistency,  # type: ignore[arg-type]
    )
    return [each.memory.id for each in service.search(query).results]


def ids(service: MemoryService) -> list[str]:
    return [each.id for each in service.list(ListQuery(tenant="default", limit=100)).items]


def forget(service: MemoryService, count: int) -> list[str]:
    gone = ids(service)[:count]
    for each in gone:
        service.delete("default", each)
    return gone


def done(jobs: Jobs, name: str, **params: object) -> dict[str, object]:
    run = jobs.run(jobs.start(name, params).id)
    assert run.state is JobState.SUCCEEDED, run
    return dict(run.result or {})


class TestCompact:
    def test_tombstones_and_ended_jobs_go_after_their_time(self, filled: MemoryService, clock: SettableClock) -> None:
        jobs = open_jobs(filled, clock)
        (gone,) = forget(filled, 1)
        done(jobs, "check")
        assert done(jobs, "compact") == {"tombstones": 0, "jobs": 0, "recalls": 0}
        clock.advance(days=8)
        assert done(jobs, "compact") == {"tombstones": 1, "jobs": 2, "recalls": 0}
        assert [entry.event.value for entry in filled.history("default", gone)] == ["add", "delete"]
        with pytest.raises(NotFound):
            filled.get("default", gone)
        assert done(jobs, "check")["ok"]

    def test_days_may_be_given(self, filled: MemoryService, clock: SettableClock) -> None:
        jobs = open_jobs(filled, clock)
        forget(filled, 3)
        clock.advance(hours=3)
        assert done(jobs, "compact", keep_days=1) == {"tombstones": 0, "jobs": 0, "recalls": 0}
        assert done(jobs, "compact", keep_days=0.1) == {"tombstones": 3, "jobs": 0, "recalls": 0}

    def test_folded_lines_of_the_access_log_go_after_their_own_time(
        self, filled: MemoryService, clock: SettableClock
    ) -> None:
        jobs = open_jobs(filled, clock)
        recalled = ids(filled)[0]
        for _ in range(3):
            filled.feedback("default", recalled, Signal.USED)
        clock.advance(days=31)
        assert done(jobs, "compact")["recalls"] == 0, "they are not folded in yet"
        assert filled.fold_recalls() == 3
        filled.feedback("default", recalled, Signal.USED)
        filled.fold_recalls()
        assert done(jobs, "compact")["recalls"] == 3
        clock.advance(days=29)
        assert done(jobs, "compact")["recalls"] == 0
        assert done(jobs, "compact", keep_days=28)["recalls"] == 1
        assert (filled.fold_recalls(), filled.get("default", recalled).recall_count) == (0, 4)
        assert done(jobs, "check")["ok"]

    def test_what_a_remote_index_has_not_passed_stays(self, filled: MemoryService, clock: SettableClock) -> None:
        class Remote:
            def catch_up(self) -> dict[str, int]:
                return {"sparse": 31, "dense": 40}

        jobs = open_jobs(filled, clock, remotes=[Remote()])
        forget(filled, 3)
        clock.advance(days=8)
        assert done(jobs, "compact")["tombstones"] == 1

    def test_a_remote_index_out_of_reach_holds_all_back(self, filled: MemoryService, clock: SettableClock) -> None:
        class Remote:
            def catch_up(self) -> dict[str, int]:
                raise BackendUnavailable("elasticsearch", "no answer")

        jobs = open_jobs(filled, clock, remotes=[Remote()])
        forget(filled, 3)
        clock.advance(days=8)
        job = jobs.start("compact")
        with pytest.raises(BackendUnavailable):
            jobs.run(job.id)
        assert jobs.get(job.id).state is JobState.QUEUED
        assert filled.store.state().compacted == 0

    def test_a_remote_index_out_of_reach_holds_no_line_of_the_access_log(
        self, filled: MemoryService, clock: SettableClock
    ) -> None:
        class Remote:
            def catch_up(self) -> dict[str, int]:
                raise BackendUnavailable("elasticsearch", "no answer")

        filled.feedback("default", ids(filled)[0], Signal.USED)
        filled.fold_recalls()
        clock.advance(days=31)
        jobs = open_jobs(filled, clock, remotes=[Remote()])
        with pytest.raises(BackendUnavailable):
            jobs.run(jobs.start("compact").id)
        assert list(filled.trim_recalls(before=clock())) == []


class TestFollowersThatMissedDeletions:
    """An index that stands before a removed tombstone is rebuilt, and never shows what was deleted."""

    def test_in_another_process(self, filled: MemoryService, clock: SettableClock, tmp_path: Path) -> None:
        with open_folder(tmp_path / "data", clock=clock) as other:
            assert len(found(other)) == 30
            gone = forget(filled, 4)
            clock.advance(days=8)
            assert done(open_jobs(filled, clock), "compact")["tombstones"] == 4
            assert set(found(other)) == set(ids(filled))
            assert not set(found(other)) & set(gone)
            assert other.check().ok

    def test_in_a_snapshot(self, filled: MemoryService, clock: SettableClock, tmp_path: Path) -> None:
        assert len(found(filled)) == 30
        filled.flush()
        with open_folder(tmp_path / "data", clock=clock) as other:
            forget(other, 4)
            clock.advance(days=8)
            done(open_jobs(other, clock), "compact")
        with open_folder(tmp_path / "data", clock=clock) as third:  # starts from the snapshot of all thirty
            assert set(found(third)) == set(ids(third))
            assert len(found(third)) == 26
            assert third.check().ok

    def test_an_eventual_reader_sees_it_in_the_end(
        self, filled: MemoryService, clock: SettableClock, tmp_path: Path
    ) -> None:
        with open_folder(tmp_path / "data", clock=clock) as other:
            found(other)
            forget(filled, 1)
            clock.advance(days=8)
            done(open_jobs(filled, clock), "compact")
            found(other)
            assert len(found(other, consistency="eventual")) == 29

    def test_between_the_state_and_the_changes(
        self, filled: MemoryService, clock: SettableClock, tmp_path: Path
    ) -> None:
        """A search reads the state first and the changes then; tombstones may go in between."""
        ana = Partition("default", "ana", "dialog")
        with open_folder(tmp_path / "data", clock=clock) as other:
            found(other)
            (gone,) = forget(filled, 1)
            state = filled.store.state()
            clock.advance(days=8)
            assert filled.compact(deleted_before=clock()) == 1
            with other._indexes.read(ana, state=state) as index:
                assert len(index) == 29
            assert gone not in found(other)

    def test_while_others_write_delete_and_search(
        self, filled: MemoryService, clock: SettableClock, tmp_path: Path
    ) -> None:
        def churn() -> None:
            for place in range(40):
                draft = MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=f"a passing pier {place}")
                filled.delete("default", filled.add(draft).id)
                filled.compact(deleted_before=clock() + timedelta(days=1))

        with open_folder(tmp_path / "data", clock=clock) as other, ThreadPoolExecutor(1) as pool:
            churning = pool.submit(churn)
            while not churning.done():
                found(other)
            churning.result()
            assert set(found(other)) == set(ids(filled))
            assert other.check().ok

    def test_only_the_partition_that_missed_one_is_rebuilt(
        self, filled: MemoryService, clock: SettableClock, tmp_path: Path
    ) -> None:
        with open_folder(tmp_path / "data", clock=clock) as other:
            filled.add(MemoryDraft(tenant="default", user_id="ben", bank="dialog", text="the pier at night"))
            assert (len(found(other)), len(found(other, user_id="ben"))) == (30, 1)
            slots = other._indexes._slots
            before = {partition: slot.index for partition, slot in slots.items()}
            forget(filled, 2)
            clock.advance(days=8)
            done(open_jobs(filled, clock), "compact")
            assert (len(found(other)), len(found(other, user_id="ben"))) == (28, 1)
            rebuilt = {partition.user_id for partition, slot in slots.items() if slot.index is not before[partition]}
            assert rebuilt == {"ana"}


class TestCheck:
    def test_a_difference_is_a_result(self, filled: MemoryService, clock: SettableClock, tmp_path: Path) -> None:
        assert done(open_jobs(filled, clock), "check", tenant="default")["ok"]
        found(filled)
        filled.flush()
        (file,) = (tmp_path / "data" / "indexes").glob("*.index")
        file.write_bytes(file.read_bytes()[:-9])
        with open_folder(tmp_path / "data", clock=clock) as other:
            result = done(open_jobs(other, clock), "check")
        assert result["ok"] is False
        assert "damaged" in str(result["differences"])


class TestReindex:
    def test_the_service_goes_on_with_the_new_encoder(self, filled: MemoryService, clock: SettableClock) -> None:
        encoder = GatedEncoder()
        result = done(open_jobs(filled, clock, encoder=encoder), "reindex")
        assert result["memories"] == 30
        assert result["current"] == str(encoder.identity)
        assert filled.stats("default").encoder == str(encoder.identity)
        assert len(found(filled)) == 30
        assert filled.check().ok
