"""Who takes recalls to the access log, and who folds it: one owner, in every form of deployment."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.runner_kit import until
from vimbank.domain.models import MemoryDraft, RecallEntry, Signal
from vimbank.errors import BackendUnavailable
from vimbank.feed.recalls import RecallBuffer
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.store.in_memory import InMemoryStore
from vimbank.store.sql import SqlStore
from vimbank.wiring import open_service
from vimbank.wiring.jobs import job_schedules, open_jobs

JAN = datetime(2026, 1, 1, tzinfo=UTC)
ENTRY = RecallEntry("t", "x", JAN)


class Folds:
    """Counts folds; fails as often as it is told to."""

    def __init__(self) -> None:
        self.count = 0
        self.done = threading.Event()
        self.failures = 0

    def __call__(self) -> None:
        if self.failures:
            self.failures -= 1
            raise BackendUnavailable("store", "down")
        self.count += 1
        self.done.set()


@pytest.fixture
def folds() -> Folds:
    return Folds()


def buffer(folds: Folds, *, fold_s: float | None = 3_600.0) -> RecallBuffer:
    return RecallBuffer(InMemoryStore(), flush_s=0.01, fold=folds, fold_s=fold_s)


class TestBuffer:
    def test_what_was_never_recalled_is_not_folded(self, folds: Folds) -> None:
        buffer(folds).close()
        assert folds.count == 0

    def test_feedback_alone_is_folded_at_the_close(self, folds: Folds) -> None:
        recalls = buffer(folds)
        recalls.append([ENTRY])
        recalls.close()
        assert folds.count == 1

    def test_feedback_alone_is_folded_in_time(self, folds: Folds) -> None:
        recalls = buffer(folds, fold_s=0.01)
        recalls.append([ENTRY])
        assert folds.done.wait(10)
        recalls.close()

    @pytest.mark.parametrize("left", [True, False], ids=["left to a job", "never its own"])
    def test_who_leaves_it_to_a_job_appends_and_folds_nothing(self, folds: Folds, left: bool) -> None:
        log = InMemoryStore()
        recalls = RecallBuffer(log, flush_s=0.01, fold=folds, fold_s=0.01 if left else None)
        if left:
            recalls.leave_folding()
        recalls.note([ENTRY])
        recalls.append([ENTRY])
        recalls.close()
        assert (folds.count, len(log._log)) == (0, 2)

    def test_a_fold_that_fails_is_tried_again(self, folds: Folds) -> None:
        recalls = buffer(folds, fold_s=0.0)
        folds.failures = 2
        recalls.append([ENTRY])
        assert folds.done.wait(10)
        recalls.close()


def settings(folder: Path, **jobs: object) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": folder,
            "encoder": {"kind": "hashing"},
            "store": {"recalls_flush_s": 0.01, "recalls_fold_s": 0.05},
            "jobs": jobs,
        }
    )


def used(service: MemoryService) -> str:
    name = service.add(MemoryDraft(tenant="t", user_id="ana", bank="dialog", text="tea")).id
    service.feedback("t", name, Signal.USED)
    return name


def recall_count(folder: Path, name: str) -> int:
    store = SqlStore.open(f"sqlite:///{folder / 'vimbank.db'}")
    [memory] = store.get("t", [name])
    store.close()
    return memory.recall_count


def test_an_embedded_program_folds_by_itself(tmp_path: Path) -> None:
    with open_service(settings(tmp_path)) as service:
        name = used(service)
        until(lambda: service.get("t", name).recall_count == 1)
    with open_service(settings(tmp_path)) as service:
        service.feedback("t", name, Signal.USED)
    assert recall_count(tmp_path, name) == 2


def test_a_server_with_a_schedule_leaves_it_to_its_job(tmp_path: Path) -> None:
    configured = settings(tmp_path)
    with open_service(configured) as service:
        jobs = open_jobs(configured, service, serve=True)
        name = used(service)
        until(lambda: service.get("t", name).recall_count == 1)
        jobs.close()  # the schedule has stopped
        service.feedback("t", name, Signal.USED)
    assert recall_count(tmp_path, name) == 1, "the job will fold it"


def test_a_server_without_a_schedule_folds_by_itself(tmp_path: Path) -> None:
    configured = settings(tmp_path, schedule=False)
    with open_service(configured) as service:
        jobs = open_jobs(configured, service, serve=True)
        name = used(service)
        until(lambda: service.get("t", name).recall_count == 1)
        jobs.close()


def test_where_jobs_run_on_celery_only_the_job_folds(tmp_path: Path) -> None:
    configured = settings(tmp_path, runner="celery")
    with open_service(configured) as service:
        name = used(service)
    assert recall_count(tmp_path, name) == 0
    assert "reinforce" in [each.name for each in job_schedules(configured)]
    with open_service(configured) as service:
        assert service.fold_recalls() == 1
    assert recall_count(tmp_path, name) == 1


def test_folding_tells_how_far_it_is_and_ends_where_it_is_told_to(tmp_path: Path) -> None:
    """What is folded by then stays folded."""
    with open_service(settings(tmp_path, runner="celery")) as service:
        name = used(service)

        def stop(done: int) -> None:
            raise BackendUnavailable("worker", f"stopped at {done}")

        with pytest.raises(BackendUnavailable, match="stopped at 1"):
            service.fold_recalls(progress=stop)
        assert service.get("t", name).recall_count == 1
        assert service.fold_recalls() == 0
