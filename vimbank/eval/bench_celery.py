"""How fast jobs that do nothing go through Celery, against Celery's own tasks that do nothing.

Both go through the same Redis, the same workers with the same settings (late acknowledgement, prefetch 1, time limits),
and everything is sent before the workers start, so that the workers' side alone is measured. The job is ``follow``
with no remote index: it has a record, which is claimed and ended in the store; the bare task has neither.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from celery import Celery

from vimbank.domain.jobs import Job, JobState, QueueName
from vimbank.queues.celery import CeleryQueue
from vimbank.settings import EncoderSettings, JobSettings, RedisSettings, Settings, StoreSettings
from vimbank.wiring import open_service, utc_now
from vimbank.wiring.jobs import open_jobs

__all__ = ["CeleryRate", "celery_rate"]

_QUEUE: Final[QueueName] = "index"
_POLL_S: Final = 0.01
_DEADLINE_S: Final = 300.0
_WARM: Final = 0.1
"""This share at the beginning, in which processes open the store, and half of it at the end are not counted."""


@dataclass(frozen=True, slots=True)
class CeleryRate:
    """Medians over the rounds: bare tasks and jobs a second, and the share that jobs reach, round by round."""

    bare_per_s: float
    jobs_per_s: float
    ratio: float


def celery_rate(
    redis_url: str, *, store_url: str | None = None, count: int = 1_000, concurrency: int = 4, rounds: int = 3
) -> CeleryRate:
    """Measure in turns.

    Args:    redis_url: a database of Redis with nothing in it. store_url: unset: SQLite in a folder of its own.
             count: tasks and jobs a round, >= 100. concurrency: processes of the worker.
    Raises:  RuntimeError: the database of Redis is in use, or a worker did not do its work in five minutes.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings = _settings(Path(folder), redis_url, store_url)
        with _depth(redis_url) as waiting:
            if waiting():
                raise RuntimeError("the queue on that Redis is in use; name another database")

            def work() -> float:
                return _drained_per_s(settings, waiting, count, concurrency)

            pairs = [(_bare(redis_url, count, work), _jobs(settings, count, work)) for _ in range(rounds)]
    return CeleryRate(
        statistics.median(bare for bare, _ in pairs),
        statistics.median(jobs for _, jobs in pairs),
        statistics.median(jobs / bare for bare, jobs in pairs),
    )


def _settings(folder: Path, redis_url: str, store_url: str | None) -> Settings:
    return Settings(
        data_dir=folder,
        store=StoreSettings(url=store_url),
        encoder=EncoderSettings(kind="hashing"),
        redis=RedisSettings.model_validate({"url": redis_url}),
        jobs=JobSettings(runner="celery"),
    )


def _bare(redis_url: str, count: int, work: Callable[[], float]) -> float:
    queue = CeleryQueue(redis_url, timeout_s=5.0)
    for _ in range(count):
        queue.send(_bare_job())
    queue.close()
    return work()


def _bare_job() -> Job:
    return Job(id=uuid.uuid4().hex, name="bare", params={}, queue=_QUEUE, state=JobState.QUEUED, created_at=utc_now())


def _jobs(settings: Settings, count: int, work: Callable[[], float]) -> float:
    with open_service(settings) as service:
        jobs = open_jobs(settings, service)
        started = [jobs.start("follow").id for _ in range(count)]
        rate = work()
        done = sum(jobs.get(job_id).state is JobState.SUCCEEDED for job_id in started)
        jobs.close()
    if done != count:
        raise RuntimeError(f"{count - done} of {count} jobs did not succeed")
    return rate


@contextmanager
def _depth(redis_url: str) -> Iterator[Callable[[], int]]:
    """How many messages wait or are being worked on."""
    app: Any = Celery("vimbank.bench", broker=redis_url, set_as_current=False, fixups=[])
    with app.connection_for_read() as connection:
        client = connection.default_channel.client
        yield lambda: int(client.llen(_QUEUE)) + int(client.hlen("unacked"))
    app.close()


def _drained_per_s(settings: Settings, waiting: Callable[[], int], count: int, concurrency: int) -> float:
    command = [sys.executable, "-m", "celery", "-A", "workers.bench", "worker", "--queues", _QUEUE]
    options = ["--concurrency", str(concurrency), "--without-gossip", "--without-mingle"]
    with subprocess.Popen(
        [*command, *options], env=_environment(settings), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as worker:
        try:
            first, at_first = _wait(waiting, count - int(count * _WARM))
            last, at_last = _wait(waiting, int(count * _WARM / 2))
            _wait(waiting, 0)
        finally:
            worker.terminate()
    return (first - last) / (at_last - at_first)


def _wait(waiting: Callable[[], int], at_most: int) -> tuple[int, float]:
    deadline = time.monotonic() + _DEADLINE_S
    while (left := waiting()) > at_most:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{left} messages are still not worked off")
        time.sleep(_POLL_S)
    return left, time.perf_counter()


def _environment(settings: Settings) -> dict[str, str]:
    assert settings.redis.url is not None
    store = {} if settings.store.url is None else {"VIMBANK_STORE__URL": settings.store.url}
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("VIMBANK_")},
        **store,
        "VIMBANK_DATA_DIR": str(settings.data_dir),
        "VIMBANK_ENCODER__KIND": "hashing",
        "VIMBANK_REDIS__URL": settings.redis.url.get_secret_value(),
        "VIMBANK_JOBS__RUNNER": "celery",
        "VIMBANK_LOG__LEVEL": "WARNING",
    }
