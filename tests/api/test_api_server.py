"""A real server process: it says where it listens, serves, and ends in order."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import settings_in
from tests.project.tree import ROOT
from vimbank.api.server import serve
from vimbank.errors import ConfigError
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

_PROGRAM = """
import sys
from contextlib import closing
from tests.jobs_kit import SPECS
from vimbank.api.server import serve
from vimbank.observability.logs import set_up_logging
from vimbank.settings import Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

settings = Settings(data_dir=sys.argv[1], encoder={"kind": "hashing"}, api={"allow_anonymous": True, "port": 0})
set_up_logging("INFO", "text")
with open_service(settings) as service, closing(open_jobs(settings, service, serve=True, specs=SPECS)) as jobs:
    serve(service, settings, jobs, ready=lambda address: print(address, flush=True))
print("ended in order", flush=True)
"""


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server process on a free port, and that port."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.communicate(timeout=5)
        yield process, int(address.rpartition(":")[2])
    finally:
        process.kill()
        process.communicate()


@contextmanager
def opened(settings: Settings) -> Iterator[tuple[MemoryService, Jobs]]:
    """What `serve` is given."""
    with open_service(settings) as service, closing(open_jobs(settings, service)) as jobs:
        yield service, jobs


def call(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of one request, its path sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        sent = None if body is None else json.dumps(body).encode()
        connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_server_serves_ends_on_a_signal_and_finds_everything_again_cases_82_84(tmp_path: Path) -> None:
    memory = {"bank": "dialog", "text": "Anna is allergic to peanuts", "user_id": "anna", "id": "a/b c?#%20"}
    query = {"query": "peanuts", "user_id": "anna"}
    with running(tmp_path) as (process, port):
        assert call(port, "GET", "/health/ready")[0] == 200
        assert call(port, "POST", "/v1/memories", memory)[0] == 201
        status, found = call(port, "POST", "/v1/search", query)
        assert (status, [hit["id"] for hit in found["results"]]) == (200, ["a/b c?#%20"])
        assert call(port, "GET", "/v1/memories/a%2Fb%20c%3F%23%2520")[1]["text"] == memory["text"]
        for path in ("../../etc", "%2e%2e/%2e%2e/etc", "%00", "%ff", "x" * 5_000):
            assert call(port, "GET", f"/v1/memories/{path}")[0] in (404, 422)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=15)
        assert (out, process.returncode) == ("ended in order\n", 0), err
        assert "POST /v1/search 200" in err
        assert "peanuts" not in err
        assert "Traceback" not in err
    with running(tmp_path) as (process, port):
        again = call(port, "POST", "/v1/search", query)[1]["results"]
        assert [(hit["id"], hit["text"]) for hit in again] == [("a/b c?#%20", memory["text"])]


def test_a_port_that_is_taken_is_a_setting_that_is_wrong(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = settings_in(tmp_path, api={"port": taken.getsockname()[1]})
        with opened(settings) as (service, jobs), pytest.raises(ConfigError, match="cannot listen"):
            serve(service, settings, jobs)


def test_a_server_without_keys_does_not_start_and_lets_the_folder_go(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, api={"keys": (), "host": "0.0.0.0"})
    with opened(settings) as (service, jobs), pytest.raises(ConfigError, match="no API key"):
        serve(service, settings, jobs)
    with MemoryService.open(tmp_path / "data", encoder={"kind": "hashing"}) as again:
        assert again.stats("default").memories == 0


def test_the_server_process_inherits_no_setting() -> None:
    assert not [name for name in os.environ if name.startswith("VIMBANK_") and not name.startswith("VIMBANK_TEST_")]
