"""The job check: scheduled with a repair unless the settings say otherwise; its report is bounded."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import SettableClock
from tests.repair_kit import fill
from vimbank.jobs.registry import JOBS
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, JobSettings, Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import job_schedules, open_jobs


@pytest.mark.parametrize("repair", [True, False])
def test_the_schedule_repairs_as_the_settings_say(tmp_path: Path, clock: SettableClock, repair: bool) -> None:
    settings = Settings(
        data_dir=tmp_path, encoder=EncoderSettings(kind="hashing"), jobs=JobSettings(check_repair=repair)
    )
    with open_service(settings, clock=clock) as service, closing(open_jobs(settings, service, clock=clock)) as jobs:
        fill(service, ["red kite", "blue heron"])
        with service.store._connections.writing() as cursor:  # type: ignore[attr-defined]
            cursor.execute("DELETE FROM embeddings")
        sent = jobs.run_scheduled("check")
        assert sent.job_id is not None
        result = jobs.run(sent.job_id).result
        assert result is not None
        assert (result["repair"], result["ok"]) == (repair, repair)
        assert result["components"] == {"embeddings": {"found": 2, "repaired": 2 if repair else 0}}
        assert service.check().ok is repair


def test_repair_is_the_default_of_the_schedule_and_not_of_a_job_that_is_asked_for() -> None:
    (check,) = [each for each in job_schedules(Settings()) if each.name == "check"]
    assert JOBS["check"].validate(check.params) == {"repair": True}
    assert JOBS["check"].validate({}) == {}


def test_a_report_of_many_problems_is_cut(service: MemoryService, tmp_path: Path, clock: SettableClock) -> None:
    fill(service, [f"memory number {n}" for n in range(150)])
    with service.store._connections.writing() as cursor:  # type: ignore[attr-defined]
        cursor.execute("DELETE FROM embeddings")
    jobs: Jobs
    with closing(open_jobs(Settings(data_dir=tmp_path), service, clock=clock)) as jobs:
        result = jobs.run(jobs.start("check").id).result
    assert result is not None
    assert len(result["problems"]) == 101
    assert result["problems"][-1] == "and 50 more"
    assert result["components"]["embeddings"] == {"found": 150, "repaired": 0}
