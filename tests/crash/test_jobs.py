"""Jobs in separate processes: killed in the middle, delivered twice, started by two schedulers (cases 120-122)."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.test_job_store import postgres_database
from tests.crash.job_worker import LEASE_S
from tests.runner_kit import MEMORIES, GatedEncoder, fill, open_jobs, until
from vimbank.domain.jobs import JobState
from vimbank.domain.models import Partition
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings, StoreSettings
from vimbank.wiring import open_service, utc_now

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]

ANA = Partition("default", "ana", "dialog")
Opened = Callable[[str], tuple[MemoryService, "Worker"]]


class Worker:
    """A process of ``job_worker``."""

    def __init__(self, folder: Path, url: str | None) -> None:
        command = [sys.executable, "-m", "tests.crash.job_worker", str(folder), *([url] if url else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def report(self) -> dict[str, Any]:
        while (line := self.line()) == "batch":
            pass
        report: dict[str, Any] = json.loads(line)
        return report

    def say(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def place(folder: Path, url: str | None) -> Iterator[MemoryService]:
    settings = Settings(data_dir=folder, encoder=EncoderSettings(kind="hashing"), store=StoreSettings(url=url))
    with open_service(settings, claim=False) as service:
        yield service


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with postgres_database() as made:
        yield made


@pytest.fixture
def worker(tmp_path: Path, url: str | None) -> Iterator[Callable[[], Worker]]:
    """Starts workers on the store; kills what is left of them."""
    with ExitStack() as stack:

        def start() -> Worker:
            started = Worker(tmp_path / "data", url)
            stack.callback(started.kill)
            return started

        yield start


def state(service: MemoryService) -> object:
    """All that a reindex may change, and all that it must not."""
    changes = sorted((each for batch in service.store.live(ANA) for each in batch), key=lambda change: change.number)
    return (
        service.store.encoder_identity(),
        service.store.state().generation,
        service.store.state().revision,
        [(each.number, each.memory and each.memory.text) for each in changes],
        [None if each.vector is None else each.vector.tobytes() for each in changes],
    )


def test_case_122_a_killed_worker_s_job_ends_as_an_unbroken_one(
    tmp_path: Path, url: str | None, worker: Callable[[], Worker]
) -> None:
    with place(tmp_path / "whole", None) as whole:
        fill(whole)
        jobs = open_jobs(whole, utc_now)
        assert jobs.run(jobs.start("reindex").id).state is JobState.SUCCEEDED
        unbroken = state(whole)
    with place(tmp_path / "data", url) as service:
        fill(service)
        rest = GatedEncoder()
        jobs = open_jobs(service, utc_now, encoder=rest, lease_s=LEASE_S)
        asked = jobs.start("reindex")
        doomed = worker()
        doomed.say(asked.id)
        assert doomed.line() == "batch"
        doomed.say()
        assert doomed.line() == "batch"  # the first batch is done, the second under way
        doomed.kill()
        assert jobs.get(asked.id).state is JobState.RUNNING
        until(lambda: jobs.requeue() == 1)  # as soon as the lease has run out
        assert jobs.run(asked.id).state is JobState.SUCCEEDED
        ended = jobs.get(asked.id)
        assert (ended.attempts, rest.batches) == (2, 2)
        assert ended.result is not None
        assert 0 < ended.result["memories"] < MEMORIES
        assert state(service) == unbroken
        assert service.check().ok


def test_case_121_a_second_delivery_in_another_process_does_nothing(
    tmp_path: Path, url: str | None, worker: Callable[[], Worker]
) -> None:
    with place(tmp_path / "data", url) as service:
        fill(service)
        jobs = open_jobs(service, utc_now, lease_s=LEASE_S)
        asked = jobs.start("reindex")
        first, second = worker(), worker()
        first.say(asked.id)
        assert first.line() == "batch"
        taken = jobs.get(asked.id).lease_until
        assert taken is not None
        until(lambda: utc_now() > taken)  # longer than the lease: it lives by its renewals
        second.say(asked.id)
        late = second.report()
        assert (late["ran"], late["state"], late["note"]) == (False, "running", "another worker has it")
        for _ in range(3):
            first.say()
        done = first.report()
        assert (done["ran"], done["state"], done["result"]["memories"]) == (True, "succeeded", MEMORIES)
        second.say(asked.id)
        assert second.report()["note"] == "it has ended"
        assert jobs.get(asked.id).attempts == 1


SERVER = """
import sys
from pathlib import Path
from vimbank.settings import EncoderSettings, JobSettings, Settings, StoreSettings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs
settings = Settings(
    data_dir=Path(sys.argv[1]),
    encoder=EncoderSettings(kind="hashing"),
    store=StoreSettings(url=sys.argv[2] or None),
    jobs=JobSettings(check_every_s=0.5, compact_every_s=0.5),
)
with open_service(settings) as service:
    jobs = open_jobs(settings, service, serve=True)
    print("ready", flush=True)
    sys.stdin.read()
    jobs.close()
"""


def test_case_120_two_servers_run_each_period_s_job_once(tmp_path: Path, url: str | None) -> None:
    command = [sys.executable, "-c", SERVER, str(tmp_path / "data"), url or ""]
    with place(tmp_path / "data", url) as service:
        jobs = open_jobs(service, utc_now)
        servers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
        try:
            until(lambda: sum(each.state is JobState.SUCCEEDED for each in jobs.list()) >= 8)
        finally:
            for server in servers:
                server.communicate()  # the end of its input is the sign to close
        assert [server.returncode for server in servers] == [0, 0]
        ran = jobs.list()
        assert len({each.key for each in ran}) == len(ran)
        assert {each.name for each in ran} == {"check", "compact"}
        assert all(each.attempts <= 1 for each in ran)
        assert not [each for each in ran if each.state not in (JobState.SUCCEEDED, JobState.QUEUED)]
