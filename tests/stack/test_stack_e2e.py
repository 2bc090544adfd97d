"""The whole stack as processes, by ``scripts/stack``: two API servers, a Celery worker and beat on real engines."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import pytest

from tests.services import REQUIRED, service_url

pytestmark = [pytest.mark.services, pytest.mark.crash]

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = ROOT / "scripts" / "stack"
PATIENCE_S: Final = 30.0
STOPPED_S: Final = 100.0
"""What the stack itself gives its processes to end, all together; then it kills them."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack: what it printed for each process, and where it keeps things."""

    process: subprocess.Popen[str]
    addresses: dict[str, str]
    folder: Path

    def call(self, name: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of one request to the API server of that name."""
        return call(self.addresses[name], method, path, body)

    def status(self) -> dict[str, str]:
        """What ``scripts/stack status`` says of each process."""
        done = run("status", "--data", str(self.folder))
        return {line.split()[0]: line.split(maxsplit=1)[1] for line in done.stdout.splitlines()}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=STOPPED_S)


def call(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        sent = None if body is None else json.dumps(body).encode()
        connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def until(done: Callable[[], Any]) -> Any:
    """What ``done`` gives as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := done()):
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)
    return found


@contextmanager
def running(*arguments: str, prefix: str = "vimbank") -> Iterator[Stack]:
    """A stack with the test encoder on free ports, in a folder that the user postgres may enter."""
    need_servers()
    folder = Path(tempfile.mkdtemp(prefix="vimbank-stack-"))
    folder.chmod(0o711)
    process = subprocess.Popen(
        [SCRIPT, "start", "--data", folder, "--port", "0", *arguments],
        env=os.environ | {
            "VIMBANK_TEST_ENVIRONMENT": sys.prefix,
            "VIMBANK_ENCODER__KIND": "hashing",
            "VIMBANK_ELASTICSEARCH__PREFIX": prefix,
            # What is found matters here and not how soon: other tests run beside this one.
            "VIMBANK_ELASTICSEARCH__SEARCH_TIMEOUT_S": "5",
            "VIMBANK_ELASTICSEARCH__CATCH_UP_TIMEOUT_S": "10",
        },
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield Stack(process, announced(process), folder)
    finally:
        process.terminate()
        left = process.communicate(timeout=STOPPED_S)[0]
        shutil.rmtree(folder)
    assert process.returncode == 0
    assert [line for line in left.splitlines() if not line.endswith(" ended")] == []


def announced(process: subprocess.Popen[str]) -> dict[str, str]:
    """The lines up to ``ready``: names and addresses."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        if line == "ready\n":
            return dict(each.split(maxsplit=1) for each in lines)
        lines.append(line.strip())
    raise AssertionError("\n".join(lines))


def need_servers() -> None:
    """The programs that the stack starts; Debian keeps PostgreSQL's off the path."""
    if shutil.which("redis-server") and (shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin"))):
        return
    reason = "redis-server and PostgreSQL are not installed (apt install redis-server postgresql)"
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """Two API servers on the real Elasticsearch, its indexes removed afterwards."""
    url = service_url("ELASTICSEARCH_B")
    prefix = f"stack-{os.getpid()}"
    try:
        with running("--api", "2", "--elasticsearch", url, prefix=prefix) as started:
            yield started
    finally:
        for index in call(url, "GET", f"/_cat/indices/{prefix}*?format=json&h=index")[1]:
            call(url, "DELETE", f"/{quote(index['index'])}")


def add(stack: Stack, name: str, text: str, **given: Any) -> str:
    body = {"bank": "dialog", "user_id": "ana", "text": text, **given}
    status, added = stack.call(name, "POST", "/v1/memories", body)
    assert status == 201, added
    return str(added["id"])


def search(stack: Stack, name: str, query: str, **given: Any) -> tuple[list[str], list[str]]:
    """Ids of the results, and what was degraded."""
    status, found = stack.call(name, "POST", "/v1/search", {"query": query, "user_id": "ana", **given})
    assert status == 200, found
    return [hit["id"] for hit in found["results"]], found["degraded"]


def test_every_process_is_told_and_runs(stack: Stack) -> None:
    expected = {"postgres", "redis", "api-1", "api-2", "worker", "beat"}
    assert set(stack.addresses) == {*expected, "elasticsearch"}
    assert {name: state.split(",")[0] for name, state in stack.status().items()} == dict.fromkeys(expected, "runs")
    for name in ("api-1", "api-2"):
        assert stack.call(name, "GET", "/health/ready")[0] == 200


def test_what_one_server_acknowledged_the_other_finds_at_once(stack: Stack) -> None:
    """Read-your-writes across processes, on both legs (case 47)."""
    pairs = [("api-1", "api-2"), ("api-2", "api-1")] * 5
    for number, (writer, reader) in enumerate(pairs):
        added = add(stack, writer, f"the locker code number {number} is ZX-{4400 + number}")
        for fusion in ("convex", "sparse", "dense"):
            found, degraded = search(stack, reader, f"ZX-{4400 + number}", fusion=fusion, top_k=3)
            assert degraded == []
            assert found[0] == added, fusion
    stack.call("api-1", "DELETE", f"/v1/memories/{added}")
    assert added not in search(stack, "api-2", "ZX-4409", fusion="sparse")[0]


def test_a_job_asked_for_over_http_is_done_by_the_worker(stack: Stack) -> None:
    add(stack, "api-1", "the boat leaves at noon")
    status, job = stack.call("api-1", "POST", "/v1/jobs", {"name": "check", "key": "e2e"})
    assert (status, job["state"]) == (202, "queued")

    def ended() -> Any:
        seen = stack.call("api-2", "GET", f"/v1/jobs/{job['id']}")[1]
        return seen if seen["finished_at"] else None

    done = until(ended)
    assert (done["state"], done["attempts"], done["error"]) == ("succeeded", 1, None)
    assert done["progress"]["done"] == done["progress"]["total"] > 0
    status, report = stack.call("api-2", "GET", f"/v1/jobs/{job['id']}/result")
    assert (status, report["result"]["ok"]) == (200, True)
    again = stack.call("api-2", "POST", "/v1/jobs", {"name": "check", "key": "e2e"})
    assert (again[0], again[1]["id"]) == (200, job["id"])
    assert job["id"] in (stack.folder / "worker.log").read_text()


def test_what_is_due_beat_sends_and_the_worker_does(stack: Stack) -> None:
    def done() -> set[str]:
        found = stack.call("api-1", "GET", "/v1/jobs?state=succeeded")[1]["items"]
        return {job["name"] for job in found if (job["key"] or "").startswith(f"{job['name']}@")}

    assert until(lambda: "compact" in done())


def test_another_stack_does_not_start_on_the_folder(stack: Stack) -> None:
    refused = run("start", "--data", str(stack.folder))
    assert refused.returncode == 1
    assert "runs on" in refused.stderr


def test_a_killed_server_takes_nothing_with_it(stack: Stack) -> None:
    added = add(stack, "api-1", "the spare key hangs behind the barometer")
    os.kill(int(stack.status()["api-1"].rpartition(" ")[2]), signal.SIGKILL)
    assert until(lambda: stack.status()["api-1"] == "ended")
    assert search(stack, "api-2", "spare key barometer")[0][0] == added
    assert {state.split(",")[0] for name, state in stack.status().items() if name != "api-1"} == {"runs"}


def test_without_elasticsearch_the_stack_starts_and_answers_degraded() -> None:
    """Case 126, where it was never there: writes are kept, the dense leg answers, readiness says what is missing."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with running("--api", "1", "--elasticsearch", url) as stack:
        added = add(stack, "api-1", "the museum closes on Mondays")
        found, degraded = search(stack, "api-1", "the museum closes on Mondays")
        assert (found, len(degraded)) == ([added], 1)
        assert "sparse" in degraded[0]
        assert stack.call("api-1", "GET", "/health/live")[0] == 200
        assert stack.call("api-1", "GET", "/health/ready")[0] == 503


def test_without_elasticsearch_asked_for_nothing_is_degraded() -> None:
    with running("--api", "1") as stack:
        added = add(stack, "api-1", "the museum closes on Mondays")
        assert search(stack, "api-1", "museum", fusion="sparse") == ([added], [])
        assert stack.call("api-1", "GET", "/health/ready")[0] == 200
        children = [int(state.rpartition(" ")[2]) for state in stack.status().values()]
    assert [pid for pid in children if Path(f"/proc/{pid}/stat").exists()] == []


@pytest.mark.parametrize("arguments", [["--api", "0"], ["--port", "x"], ["--what"], ["stop", "--data"]])
def test_wrong_arguments_are_refused(arguments: Sequence[str]) -> None:
    assert run(*arguments).returncode in (1, 2)


def test_stop_and_status_of_a_folder_without_a_stack(tmp_path: Path) -> None:
    assert run("stop", "--data", str(tmp_path)).stdout == f"no stack runs on {tmp_path}\n"
    assert run("status", "--data", str(tmp_path)).stdout == ""
