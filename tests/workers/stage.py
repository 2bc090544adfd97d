"""A Redis server, workers and beats of a test's own, as real processes, and the same store opened in the test."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.services import service_url
from tests.workers.jobs import SPECS
from vimbank.domain.jobs import Job, JobState
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, JobSettings, RedisSettings, Settings, StoreSettings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

__all__ = ["DEADLINE_S", "Process", "RedisServer", "Stage", "lines", "post", "stage", "until"]

DEADLINE_S: Final = 30.0
ROOT: Final = Path(__file__).parents[2]


def until(condition: Callable[[], object], *, timeout_s: float = DEADLINE_S) -> float:
    """Wait until it holds; how long that took, seconds."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + timeout_s, "it did not come about in time"
        time.sleep(0.02)
    return time.monotonic() - started


def lines(path: Path) -> list[str]:
    """First words of what jobs noted in a file."""
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def post(url: str, body: object) -> tuple[int, Any]:
    """Status and answer of a POST of JSON."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


class RedisServer:
    """A server without persistence: what it held is gone when it stops."""

    def __init__(self, folder: Path) -> None:
        service_url("REDIS_URL")  # skips, or fails where services are required
        if shutil.which("redis-server") is None:
            pytest.skip("redis-server is not installed")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Listen, once more on the same port."""
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([*command, "--dir", str(self._folder)], stdout=subprocess.DEVNULL)
        until(self._answers)

    def stop(self) -> None:
        """Go away."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Accept connections, and answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


class Process:
    """A process with its output in a file."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=ROOT, start_new_session=True
            )
        self.pid = self._process.pid

    def said(self, text: str) -> bool:
        """Whether its output has this; fails where the process has ended without."""
        output = self.log.read_text(errors="replace")
        assert text in output or self._process.poll() is None, output[-3_000:]
        return text in output

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9, children included."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait(DEADLINE_S)

    def children(self) -> list[int]:
        """Processes that it started and that run."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


class Stage:
    """Everything of one test; closes what it started."""

    def __init__(self, folder: Path, *, lease_s: float = 2.0, store_url: str | None = None, **jobs: Any) -> None:
        self.folder = folder
        self.redis = RedisServer(folder)
        self.settings = Settings(
            data_dir=folder / "data",
            store=StoreSettings(url=store_url, recalls_fold_s=3_600),
            encoder=EncoderSettings(kind="hashing"),
            redis=RedisSettings.model_validate({"url": self.redis.url}),
            jobs=JobSettings(runner="celery", lease_s=lease_s, **jobs),
        )
        self.service: MemoryService = open_service(self.settings)
        self.jobs: Jobs = open_jobs(self.settings, self.service, specs=SPECS)
        self._processes: list[Process] = []
        self._number = 0

    def environment(self) -> dict[str, str]:
        """Of every process: the settings that differ from the defaults."""
        jobs = {f"VIMBANK_JOBS__{name.upper()}": str(value) for name, value in self.settings.jobs if value is not None}
        store = {} if self.settings.store.url is None else {"VIMBANK_STORE__URL": self.settings.store.url}
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("VIMBANK_")},
            **jobs,
            **store,
            "VIMBANK_DATA_DIR": str(self.settings.data_dir),
            "VIMBANK_ENCODER__KIND": "hashing",
            "VIMBANK_REDIS__URL": self.redis.url,
            "VIMBANK_STORE__RECALLS_FOLD_S": "3600",
        }

    def start(self, command: Sequence[str], **environment: str) -> Process:
        """Any process."""
        self._number += 1
        log = self.folder / f"process-{self._number}.log"
        self._processes.append(Process(command, log, self.environment() | environment))
        return self._processes[-1]

    def worker(self, *, concurrency: int = 1, **environment: str) -> Process:
        """A worker that is ready."""
        process = self._celery("worker", "--concurrency", str(concurrency), "-n", f"w{self._number}@test", environment)
        until(lambda: process.said(" ready."))
        return process

    def beat(self, **environment: str) -> Process:
        """A beat that has started."""
        process = self._celery("beat", environment)
        until(lambda: process.said("beat: Starting"))
        return process

    def server(self) -> tuple[Process, str]:
        """An API server that answers, and its address."""
        process = self.start([sys.executable, "-m", "vimbank", "serve", "--port", "0", "--allow-anonymous"])
        until(lambda: process.said("http://127.0.0.1:"))
        return process, next(line for line in process.log.read_text().splitlines() if line.startswith("http://"))

    def held(self, name: str = "held") -> tuple[Job, Path, Path]:
        """A job that goes on until a file is there: the job, what it notes, and that file."""
        self._number += 1
        log, go = self.folder / f"log-{self._number}", self.folder / f"go-{self._number}"
        return self.jobs.start(name, {"log": str(log), "go": str(go)}), log, go

    def state(self, job: Job) -> JobState:
        """Where the job is now."""
        return self.jobs.get(job.id).state

    def ended(self, job: Job, *, timeout_s: float = DEADLINE_S) -> Job:
        """The job, once it has ended; fails with what the processes said last."""
        try:
            until(lambda: self.state(job).ended, timeout_s=timeout_s)
        except AssertionError as late:
            said = [process.log.read_text(errors="replace")[-2_000:] for process in self._processes]
            raise AssertionError(
                "\n---\n".join([f"{job.name} is {self.state(job)} after {timeout_s} s", *said])
            ) from late
        return self.jobs.get(job.id)

    def close(self) -> None:
        """End all."""
        for process in self._processes:
            process.kill()
        self.jobs.close()
        self.service.close()
        self.redis.stop()

    def _celery(self, *words: Any) -> Process:
        *command, environment = words
        return self.start([sys.executable, "-m", "celery", "-A", "tests.workers.app", *command], **environment)


@contextmanager
def stage(folder: Path, **given: Any) -> Iterator[Stage]:
    """A stage, closed in the end whatever happens."""
    opened = Stage(folder, **given)
    try:
        yield opened
    finally:
        opened.close()
