"""Jobs of a real server process: streams that cost no thread, and an end in order that loses no job."""

import http.client
import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_api_server import call, running
from tests.jobs_kit import until
from vimbank.domain.jobs import JobState
from vimbank.settings import EncoderSettings, Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

STREAMS = 60
"""More than the threads of the web framework (40)."""
HELD = {"name": "held", "params": {"gate": "shut"}}


class Stream:
    """A client that follows a job."""

    def __init__(self, port: int, job_id: str, last_event_id: str | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        self._connection.request("GET", f"/v1/jobs/{job_id}/events", headers=headers)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status

    def event(self) -> dict[str, Any] | None:
        """The next event; None where the stream has ended."""
        fields: dict[str, Any] = {}
        while line := self._answer.readline().decode():
            if line == "\n" and "event" in fields:
                return {**fields, "data": json.loads(fields["data"])}
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        return None

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


@pytest.fixture
def follow() -> Iterator[Callable[..., Stream]]:
    """Opens streams, and closes them after the test."""
    with ExitStack() as opened:
        yield lambda *given: opened.enter_context(closing(Stream(*given)))


def started(port: int) -> str:
    """A job that goes on until it is cancelled, once it runs."""
    status, job = call(port, "POST", "/v1/jobs", HELD)
    assert status == 202, job
    until(lambda: call(port, "GET", f"/v1/jobs/{job['id']}")[1]["progress"]["done"] > 0)
    return str(job["id"])


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def sockets(pid: int) -> int:
    return sum(is_socket(link) for link in Path(f"/proc/{pid}/fd").iterdir())


def is_socket(link: Path) -> bool:
    try:
        return "socket:" in str(link.readlink())
    except FileNotFoundError:  # the server closed it between the listing and the look
        return False


def test_many_streams_hold_no_thread_and_leave_nothing_behind(tmp_path: Path, follow: Callable[..., Stream]) -> None:
    with running(tmp_path) as (process, port):
        job_id = started(port)
        before = threads(process.pid), sockets(process.pid)
        streams = [follow(port, job_id) for _ in range(STREAMS)]
        first = [stream.event() for stream in streams]
        assert [event and event["event"] for event in first] == ["progress"] * STREAMS
        began = time.monotonic()
        assert call(port, "GET", "/health/ready")[0] == 200
        assert time.monotonic() - began < 2
        for stream in streams[1:]:
            stream.close()
        until(lambda: sockets(process.pid) <= before[1] + 1)
        # Looking at the store takes one for a moment, out of a pool that stays.
        assert threads(process.pid) < before[0] + STREAMS / 2

        assert call(port, "POST", f"/v1/jobs/{job_id}/cancel")[0] == 200
        events = [event for event in iter(streams[0].event, None) if event is not None]
        assert [event["event"] for event in events][-1] == "end"
        assert events[-1]["data"]["state"] == "cancelled"
        assert follow(port, job_id, events[-1]["id"]).status == 204
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=15)
        assert (out, process.returncode) == ("ended in order\n", 0), err
        assert "Traceback" not in err


def test_a_server_that_ends_lets_its_streams_and_its_jobs_go(tmp_path: Path, follow: Callable[..., Stream]) -> None:
    """The job is back in the queue, and the next server takes it up."""
    with running(tmp_path) as (process, port):
        job_id = started(port)
        stream = follow(port, job_id)
        assert stream.event() is not None
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        rest = list(iter(stream.event, None))
        assert all(event["event"] == "progress" for event in rest if event is not None)
        out, err = process.communicate(timeout=15)
        assert (out, process.returncode) == ("ended in order\n", 0), err
        assert time.monotonic() - began < 5
        assert "Traceback" not in err
    settings = Settings(data_dir=tmp_path, encoder=EncoderSettings(kind="hashing"))
    with open_service(settings) as service, closing(open_jobs(settings, service)) as jobs:
        assert jobs.get(job_id).state is JobState.QUEUED
    with running(tmp_path) as (_process, port):
        until(lambda: call(port, "GET", f"/v1/jobs/{job_id}")[1]["state"] == "running")
        events = follow(port, job_id)
        call(port, "POST", f"/v1/jobs/{job_id}/cancel")
        *_, end = [event for event in iter(events.event, None) if event is not None]
        assert (end["event"], end["data"]["state"]) == ("end", "cancelled")
