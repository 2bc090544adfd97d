"""``vimbank jobs`` on a folder without a server, beside a worker, and beside a queue that is down."""

import functools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ENVIRONMENT, Vimbank
from tests.jobs_kit import GATES, SPECS, new_gate, until
from tests.project.tree import ROOT
from vimbank.cli import jobs as command
from vimbank.domain.jobs import JobState
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

COMMAND = str(Path(sys.executable).parent / "vimbank")
UNKNOWN = "0" * 32


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command knows the kit's jobs, too."""
    monkeypatch.setattr(command, "open_jobs", functools.partial(open_jobs, specs=SPECS))


@contextmanager
def beside(data: Path) -> Iterator[Jobs]:
    """The jobs of the folder in another process's place."""
    settings = Settings(data_dir=data, encoder=EncoderSettings(kind="hashing"))
    with open_service(settings) as service, closing(open_jobs(settings, service, specs=SPECS)) as opened:
        yield opened


def test_a_job_runs_here_where_no_worker_is_set(vimbank: Vimbank) -> None:
    vimbank("add", "Ana likes tea", "--user", "ana")
    done = vimbank("jobs", "start", "check", "--param", "tenant=default", "--json")
    assert (done.code, done.json["state"], done.json["params"]) == (0, "succeeded", {"tenant": "default"})
    assert done.json["result"] == {
        "ok": True, "partitions": 1, "memories": 1, "problems": [], "differing": 0, "differences": [],
        "components": {}, "repair": False, "repaired_total": {}, "at": done.json["result"]["at"],
    }  # fmt: skip
    shown = vimbank("jobs", "show", done.json["id"], "--json")
    assert shown.json == done.json
    text = vimbank("jobs", "show", done.json["id"]).out
    assert ["state", "succeeded"] in [line.split() for line in text.splitlines()]


def test_values_are_json_where_they_can_be(vimbank: Vimbank) -> None:
    assert vimbank("jobs", "start", "compact", "--param", "keep_days=2.5", "--json").json["params"] == {
        "keep_days": 2.5
    }
    refused = vimbank("jobs", "start", "check", "--param", "tenant=7")
    assert (refused.code, "params.tenant" in refused.err) == (2, True)
    assert vimbank("jobs", "start", "check", "--param", 'tenant="7"', "--json").json["params"] == {"tenant": "7"}


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["nonsense"], "name"),
        (["check", "--param", "tenant"], "params"),
        (["check", "--param", "=x"], "params"),
        (["check", "--param", "tenant=a", "--param", "tenant=b"], "params.tenant"),
        (["check", "--param", "colour=red"], "params.colour"),
        (["check", "--key", " "], "key"),
    ],
)
def test_what_is_wrong_is_named(vimbank: Vimbank, words: list[str], field: str) -> None:
    done = vimbank("jobs", "start", *words, "--json")
    assert (done.code, [error["field"] for error in done.json["error"]["errors"]]) == (2, [field])
    assert vimbank("jobs", "list", "--json").json == {"items": []}


def test_a_key_gives_the_same_job_and_refuses_another(vimbank: Vimbank) -> None:
    first = vimbank("jobs", "start", "check", "--key", "nightly", "--json").json
    again = vimbank("jobs", "start", "check", "--key", "nightly", "--json")
    assert (again.code, again.json) == (0, first)
    assert vimbank("jobs", "start", "compact", "--key", "nightly").code == 1


@pytest.mark.usefixtures("kit")
def test_a_job_that_fails_ends_with_1_and_says_why(vimbank: Vimbank) -> None:
    done = vimbank("jobs", "start", "failing", "--json")
    assert (done.code, done.json["state"], done.json["error"]) == (1, "failed", "it broke")
    assert done.err == "vimbank: failing failed: it broke\n"
    watched = vimbank("jobs", "watch", done.json["id"])
    assert (watched.code, "it broke" in watched.err) == (1, True)
    assert vimbank("jobs", "show", done.json["id"]).code == 0


@pytest.mark.usefixtures("kit")
def test_an_engine_that_is_down_ends_with_3_and_leaves_the_job_in_the_queue(vimbank: Vimbank) -> None:
    done = vimbank("jobs", "start", "refused", "--json")
    assert (done.code, done.json["error"]["message"]) == (3, "engine: refused")
    (job,) = vimbank("jobs", "list", "--state", "queued", "--json").json["items"]
    assert (job["name"], job["finished_at"]) == ("refused", None)


def test_the_list_is_newest_first_and_can_be_narrowed(vimbank: Vimbank) -> None:
    assert vimbank("jobs", "list").out == "No jobs.\n"
    ids = [vimbank("jobs", "start", name, "--json").json["id"] for name in ("check", "compact", "check")]
    assert [job["id"] for job in vimbank("jobs", "list", "--json").json["items"]] == ids[::-1]
    assert [
        job["id"] for job in vimbank("jobs", "list", "--name", "check", "--limit", "1", "--json").json["items"]
    ] == [ids[2]]
    rows = [line.split() for line in vimbank("jobs", "list").out.splitlines()]
    assert [row[:3] for row in rows] == [
        ["id", "name", "state"],
        *[[each, name, "succeeded"] for each, name in zip(ids[::-1], ("check", "compact", "check"), strict=True)],
    ]
    assert vimbank("jobs", "list", "--limit", "0").code == 2


@pytest.mark.parametrize("words", [["show"], ["watch"], ["cancel"]])
def test_what_can_be_no_id_is_refused(vimbank: Vimbank, words: list[str]) -> None:
    """Case 114: a byte of the command line that is no text."""
    done = vimbank("jobs", *words, "a\udcff")
    assert (done.code, "id: " in done.err) == (2, True)
    assert vimbank("jobs", "list", "--name", "a\udcff").code == 2


@pytest.mark.parametrize("words", [["show"], ["watch"], ["cancel"]])
def test_an_unknown_job_ends_with_1(vimbank: Vimbank, words: list[str]) -> None:
    done = vimbank("jobs", *words, UNKNOWN)
    assert (done.code, UNKNOWN in done.err) == (1, True)


def test_names_tell_parameters_and_periods(vimbank: Vimbank) -> None:
    kinds = {kind["name"]: kind for kind in vimbank("jobs", "names", "--json").json["items"]}
    assert set(kinds["check"]["params"]) == {"tenant", "repair"}
    assert (kinds["snapshot"]["every_s"], kinds["reindex"]["every_s"]) == (300, None)
    line = next(line for line in vimbank("jobs", "names").out.splitlines() if line.startswith("compact "))
    assert line.split()[1:4] == ["3600", "s", "lifecycle"]
    assert "--param keep_days=" in line


@pytest.mark.usefixtures("kit")
def test_a_job_of_another_process_is_watched_and_cancelled(vimbank: Vimbank, data: Path) -> None:
    with beside(data) as worker:
        job = worker.start("held", {"gate": new_gate()})
        running = threading.Thread(target=worker.run, args=[job.id])
        running.start()
        until(lambda: worker.get(job.id).progress.done > 0)
        asked = vimbank("jobs", "cancel", job.id)
        assert (asked.code, asked.out.split()[:2]) == (0, [job.id, "running"])
        watched = vimbank("jobs", "watch", job.id, "--json")
        assert (watched.code, watched.json["state"]) == (1, "cancelled")
        running.join(5)
        assert vimbank("jobs", "cancel", job.id, "--json").json == watched.json


def test_a_job_that_waits_is_cancelled_at_once(vimbank: Vimbank, data: Path) -> None:
    with beside(data) as other:
        job = other.start("check")
    assert vimbank("jobs", "cancel", job.id).out == f"{job.id} cancelled\n"


@pytest.mark.usefixtures("kit")
def test_a_server_that_was_quicker_does_the_job(vimbank: Vimbank, data: Path) -> None:
    gate = new_gate()
    with beside(data) as server:
        given = server.start("held", {"gate": gate}, key="k")
        running = threading.Thread(target=server.run, args=[given.id])
        running.start()
        until(lambda: server.get(given.id).state is JobState.RUNNING)
        threading.Timer(0.3, GATES[gate].set).start()
        done = vimbank("jobs", "start", "held", "--param", f"gate={json.dumps(gate)}", "--key", "k", "--json")
        running.join(5)
    assert (done.code, done.json["id"], done.json["state"], done.json["attempts"]) == (0, given.id, "succeeded", 1)


def test_with_workers_a_job_is_queued_and_watched_where_that_is_asked(
    vimbank: Vimbank, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_redis(settings: Settings, service: MemoryService) -> Jobs:
        stored = settings.model_copy(update={"jobs": settings.jobs.model_copy(update={"runner": "embedded"})})
        return open_jobs(stored, service, specs=SPECS)

    monkeypatch.setattr(command, "open_jobs", without_redis)
    workers = {"VIMBANK_JOBS__RUNNER": "celery", "VIMBANK_REDIS__URL": "redis://127.0.0.1:1/0"}
    queued = vimbank("jobs", "start", "check", "--json", **workers)
    assert (queued.code, queued.json["state"]) == (0, "queued")
    with beside(data) as worker:

        def work() -> None:
            until(lambda: bool(worker.list(name="failing", state=JobState.QUEUED)))
            worker.run(worker.list(name="failing")[0].id)

        working = threading.Thread(target=work)
        working.start()
        waited = vimbank("jobs", "start", "failing", "--wait", "--json", **workers)
        working.join(5)
    assert (waited.code, waited.json["state"]) == (1, "failed")


def test_a_queue_that_is_down_ends_with_3_names_it_and_keeps_the_job(vimbank: Vimbank) -> None:
    pytest.importorskip("celery")
    workers = {"VIMBANK_JOBS__RUNNER": "celery", "VIMBANK_REDIS__URL": "redis://127.0.0.1:1/0"}
    done = vimbank("jobs", "start", "check", **workers)
    assert (done.code, "redis" in done.err) == (3, True)
    assert [job["state"] for job in vimbank("jobs", "list", "--json").json["items"]] == ["queued"]


def test_a_server_does_what_waits_and_what_is_due(vimbank: Vimbank, data: Path) -> None:
    """The embedded form: no worker and no Redis, the server has threads and a schedule of its own."""
    with beside(data) as other:
        waiting = other.start("check")
    words = [COMMAND, "serve", "--port", "0", "--allow-anonymous", "--data", str(data)]
    environment = {**ENVIRONMENT, "PATH": "/usr/bin", "VIMBANK_JOBS__COMPACT_EVERY_S": "0.5"}
    with (
        beside(data) as other,
        subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server,
    ):
        try:
            until(lambda: other.get(waiting.id).state.ended, timeout_s=20)
            until(lambda: len(other.list(name="compact", state=JobState.SUCCEEDED)) >= 2, timeout_s=20)
        finally:
            server.send_signal(signal.SIGTERM)
            _, err = server.communicate(timeout=20)
        assert other.get(waiting.id).state is JobState.SUCCEEDED
        keys = [job.key for job in other.list(name="compact")]
        assert len(set(keys)) == len(keys)
    assert (server.returncode, err) == (0, "")


_PROGRAM = """
import functools
import sys
from tests.jobs_kit import SPECS
from vimbank.cli import jobs
from vimbank.cli.main import main
from vimbank.wiring.jobs import open_jobs

jobs.open_jobs = functools.partial(open_jobs, specs=SPECS)
main(sys.argv[1:])
"""


def test_an_interrupt_cancels_the_job_that_runs_here(vimbank: Vimbank, data: Path) -> None:
    """A real process, as Ctrl-C would stop it."""
    words = ["jobs", "start", "held", "--param", "gate=shut", "--data", str(data)]
    environment: dict[str, Any] = {**ENVIRONMENT, "PATH": "/usr/bin", "PYTHONPATH": str(ROOT)}
    with beside(data) as other:
        with subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *words], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            until(lambda: any(job.progress.done for job in other.list(name="held")), timeout_s=20)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=10)
        (job,) = other.list(name="held")
    assert (process.returncode, job.state) == (1, JobState.CANCELLED), err
    assert "Traceback" not in err
