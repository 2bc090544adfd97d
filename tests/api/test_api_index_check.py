"""Real servers of the scaled-out form: each checks and repairs the indexes that it alone holds, and tells of it."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.api.test_api_server import call
from tests.contracts.postgres import empty_store
from tests.jobs_kit import until
from tests.project.tree import ROOT
from tests.repair_kit import fill
from tests.services import service_url
from vimbank.domain.models import Partition
from vimbank.settings import Settings
from vimbank.wiring import open_service

TEXTS = ("red kite over the pier", "blue heron in the reeds", "grey owl at dusk")


def settings(folder: Path, url: str, **jobs: Any) -> dict[str, Any]:
    """Of a server that leaves its jobs to workers."""
    return {
        "data_dir": str(folder),
        "encoder": {"kind": "hashing", "dimension": 32},
        "store": {"url": url},
        "redis": {"url": service_url("REDIS_URL")},
        "jobs": {"runner": "celery", "check_every_s": 0.5, **jobs},
        "api": {"allow_anonymous": True, "port": 0},
    }


@contextmanager
def serving(given: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """The port and the process number of ``vimbank serve`` with these settings."""
    variables = {
        f"VIMBANK_{room}__{name}".upper(): json.dumps(value) if isinstance(value, bool) else str(value)
        for room, values in given.items()
        if isinstance(values, dict)
        for name, value in values.items()
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "vimbank", "serve"],
        cwd=ROOT,
        env=os.environ | variables | {"VIMBANK_DATA_DIR": given["data_dir"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), process.communicate(timeout=5)
        yield int(address.rpartition(":")[2]), process.pid
    finally:
        process.kill()
        process.communicate()


def nearest(port: int, text: str) -> str:
    """The best by vectors alone."""
    body = {"query": text, "user_id": "ana", "fusion": "dense", "top_k": 1, "reinforce": False}
    status, answer = call(port, "POST", "/v1/search", body)
    assert status == 200, answer
    return str(answer["results"][0]["text"])


def metrics(port: int) -> dict[str, float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    samples = (line.rsplit(" ", 1) for line in lines if line.startswith("vimbank_index_check"))
    return {name: float(value) for name, value in samples}


def told(port: int, pid: int) -> dict[str, float]:
    """What the server says of its index, by the end of each metric's name."""
    name = f'{{component="index",process="{os.uname().nodename}:{pid}"}}'
    samples = metrics(port)
    return {
        what: samples[f"vimbank_index_check_{what}{name}"]
        for what in ("problems", "remaining", "repaired_total")
        if f"vimbank_index_check_{what}{name}" in samples
    }


def until_told(port: int, pid: int, **expected: float) -> None:
    until(lambda: told(port, pid) | expected == told(port, pid))


def leave_a_wrong_snapshot(folder: Path, url: str) -> None:
    """Whole and of the newest revision, but with the vectors of two memories changed over."""
    given = settings(folder, url)
    with open_service(Settings.model_validate(given | {"jobs": {}})) as service:
        if not service.store.counts().memories:
            fill(service, TEXTS)
        with service._indexes.read(Partition("default", "ana", "knowledge")) as index:
            kite, heron = np.array(index.dense.vectors(np.array([0, 1])))
            index.dense.replace(0, heron)
            index.dense.replace(1, kite)


@pytest.mark.services
def test_each_server_finds_its_own_damaged_index_and_repairs_it_where_it_may(tmp_path: Path) -> None:
    url = empty_store()
    folders = {repair: tmp_path / str(repair) for repair in (True, False)}
    for folder in folders.values():
        leave_a_wrong_snapshot(folder, url)
    with ExitStack() as opened:
        servers = {
            repair: opened.enter_context(serving(settings(folder, url, check_repair=repair)))
            for repair, folder in folders.items()
        }
        for port, _ in servers.values():
            nearest(port, TEXTS[0])  # loads the snapshot
        until_told(*servers[True], repaired_total=2)
        until_told(*servers[False], problems=2, remaining=2, repaired_total=0)
        assert [nearest(port, TEXTS[0]) for port, _ in servers.values()] == [TEXTS[0], TEXTS[1]]
        # The check after that finds nothing, and what was repaired is not forgotten.
        until_told(*servers[True], problems=0, remaining=0, repaired_total=2)
