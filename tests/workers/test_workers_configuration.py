"""What Celery is told, and the tasks that there are."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from vimbank.domain.jobs import Job, JobState, QueueName
from vimbank.errors import BackendUnavailable, ConfigError
from vimbank.jobs.registry import JOBS
from vimbank.queues.celery import CeleryQueue, scheduled_name, task_name
from vimbank.settings import JobSettings, RedisSettings, Settings
from vimbank.wiring import utc_now
from vimbank.wiring.jobs import job_schedules
from workers.application import configuration, create_app
from workers.beat import Periods, PeriodScheduler
from workers.schedule import REQUEUE


def _settings(url: str | None = "redis://127.0.0.1:1/0", runner: str = "celery") -> Settings:
    return Settings(
        redis=RedisSettings.model_validate({"url": url}), jobs=JobSettings.model_validate({"runner": runner})
    )


@pytest.fixture(scope="module")
def app() -> Any:
    return create_app(_settings())


def test_every_job_has_a_task_on_its_queue_with_its_time_limit(app: Any) -> None:
    for spec in JOBS.values():
        for name in (task_name(spec.name), scheduled_name(spec.name)):
            task = app.tasks[name]
            assert task.soft_time_limit == spec.time_limit_s < task.time_limit
            assert task.acks_late
            assert task.reject_on_worker_lost
            assert task.ignore_result
            assert task.autoretry_for == (BackendUnavailable,)
        assert app.amqp.router.route({}, task_name(spec.name))["queue"].name == spec.queue
    assert not getattr(app.tasks[REQUEUE], "autoretry_for", ())


def test_nothing_but_json_goes_through_the_queue(app: Any) -> None:
    conf = app.conf
    assert conf.accept_content == ["json"]
    assert {conf.task_serializer, conf.result_serializer, conf.event_serializer} == {"json"}
    assert not conf.task_always_eager
    assert conf.timezone == "UTC"


def test_the_queues_are_those_of_the_jobs_and_no_other_is_made(app: Any) -> None:
    assert set(app.amqp.queues) == set(get_args(QueueName))
    assert not app.conf.task_create_missing_queues


def test_redis_waits_longer_than_the_longest_job(app: Any) -> None:
    longest_s = max(task.time_limit for name, task in app.tasks.items() if name.startswith("vimbank."))
    assert app.conf.broker_transport_options["visibility_timeout"] > longest_s


@pytest.mark.parametrize("settings", [_settings(url=None), _settings(runner="embedded")])
def test_workers_need_a_redis_and_the_runner_celery(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="VIMBANK_"):
        configuration(settings)


def test_the_beat_table_is_that_of_the_jobs_and_the_requeueing(app: Any) -> None:
    table = dict(app.conf.beat_schedule)
    requeueing = table.pop("requeue")
    assert requeueing["task"] == REQUEUE
    assert requeueing["schedule"] == Periods(_settings().jobs.lease_s / 2)
    for schedule in job_schedules(_settings()):
        entry = table.pop(schedule.name)
        assert entry["task"] in app.tasks
        assert entry["schedule"] == Periods(schedule.every.total_seconds())
        assert entry["options"] == {"queue": schedule.queue}
    assert not table


class _Scheduler(PeriodScheduler):
    """Sends into a list; ``away`` while Redis is."""

    def __init__(self, app: Any) -> None:
        self.away = False
        self.sent: list[str] = []
        super().__init__(app)

    producer = None

    def apply_async(self, entry: Any, **_given: object) -> None:
        if self.away:
            raise OSError("Redis is away")
        self.sent.append(entry.name)


def test_what_could_not_be_sent_is_sent_when_redis_is_back(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.beat.time.time", lambda: 86_400.0 * 20_000 + 7)
    scheduler = _Scheduler(app)
    scheduler.away = True
    assert scheduler.tick() == 5.0
    assert scheduler.sent == []
    scheduler.away = False
    scheduler.tick()
    assert sorted(scheduler.sent) == sorted(app.conf.beat_schedule)


def test_a_sender_without_redis_says_so_at_once() -> None:
    queue = CeleryQueue("redis://127.0.0.1:1/0", timeout_s=0.2)
    job = Job(id="j", name="check", params={}, queue="index", state=JobState.QUEUED, created_at=utc_now())
    with pytest.raises(BackendUnavailable, match=r"redis: .*refused"):
        queue.send(job)
    queue.close()


def test_celery_is_used_by_the_workers_the_sender_and_the_bench_alone() -> None:
    root = Path(__file__).parents[2]
    files = [file for folder in ("vimbank", "workers") for file in (root / folder).rglob("*.py")]
    users = {
        file.relative_to(root)
        for file in files
        if re.search(r"^\s*(from|import) (celery|kombu)\b", file.read_text(), re.M)
    }
    others = {user for user in users if user.parts[0] != "workers"}
    assert others == {Path("vimbank/queues/celery.py"), Path("vimbank/eval/bench_celery.py")}
