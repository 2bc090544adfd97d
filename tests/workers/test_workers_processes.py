"""A worker, an API server, the command line and a program write one store at the same time."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contracts.postgres import new_database
from tests.workers.jobs import USER
from tests.workers.stage import ROOT, Stage, post, stage
from vimbank.domain.jobs import JobState
from vimbank.domain.models import Event, ListQuery, MemoryDraft

pytestmark = [pytest.mark.services, pytest.mark.timeout(120)]

_EACH = 50


@pytest.fixture(params=["sqlite", "postgresql"])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    if request.param == "sqlite":
        with stage(tmp_path) as opened:
            yield opened
    else:
        with new_database() as url, stage(tmp_path, store_url=url) as opened:
            yield opened


def test_case_117_four_processes_write_two_hundred_memories(here: Stage) -> None:
    """Cases 117 and 118: none is lost, none doubled, revisions are gap-free, each has its entry in the history."""
    here.worker()
    _, address = here.server()
    job = here.jobs.start("write", {"writer": "a job", "count": _EACH})
    writers = [lambda: _over_http(address), lambda: _on_the_command_line(here), lambda: _in_this_process(here)]
    _at_once(writers)
    assert here.ended(job).state is JobState.SUCCEEDED
    kept = here.service.list(ListQuery(tenant="default", user_id=USER, limit=1_000)).items
    assert len(kept) == len({memory.text for memory in kept}) == 4 * _EACH
    assert sorted(memory.revision for memory in kept) == list(range(1, 4 * _EACH + 1))
    events = [[entry.event for entry in here.service.history("default", memory.id)] for memory in kept]
    assert events == [[Event.ADD]] * (4 * _EACH)
    assert here.service.check().ok


def _texts(writer: str) -> list[str]:
    return [f"{writer} wrote number {number}" for number in range(_EACH)]


def _over_http(address: str) -> None:
    for text in _texts("the API"):
        status, answer = post(f"{address}/v1/memories", {"user_id": USER, "bank": "dialog", "text": text})
        assert status == 201, answer


def _on_the_command_line(here: Stage) -> None:
    file = here.folder / "lines.jsonl"
    file.write_text("".join(json.dumps({"text": text, "bank": "dialog"}) + "\n" for text in _texts("the command")))
    command = [sys.executable, "-m", "vimbank", "ingest", str(file), "--user", USER]
    subprocess.run(command, env=here.environment(), cwd=ROOT, check=True, capture_output=True, timeout=60)


def _in_this_process(here: Stage) -> None:
    for text in _texts("the program"):
        here.service.add(MemoryDraft(tenant="default", user_id=USER, bank="dialog", text=text))


def _at_once(writers: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def guarded(write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:  # noqa: BLE001 - shown by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(write,)) for write in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
