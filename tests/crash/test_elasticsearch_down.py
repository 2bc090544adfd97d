"""Case 126: Elasticsearch killed, frozen, and back; searches, writes and health meanwhile, and both legs after it."""

import json
import os
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cases.doors import settings
from tests.crash.elasticsearch_server import Server, started_server
from tests.services import service_url
from vimbank.domain.models import MemoryDraft, Query
from vimbank.errors import BackendUnavailable
from vimbank.eval.servers import running_server
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.service import MemoryService
from vimbank.wiring import open_service

pytestmark = [pytest.mark.crash, pytest.mark.services, pytest.mark.timeout(240)]

DEADLINE_S: Final = 60.0
OVER_NORMAL_S: Final = 0.2
NOISE_S: Final = 0.15
"""What the first search, a single measurement on a busy machine, may take beyond its bar."""
SEARCHES: Final = 21
WORDS: Final = ("pier", "harbour", "lantern", "rope", "gull", "anchor", "tide", "sail")


@pytest.fixture(scope="module")
def node() -> Iterator[Server]:
    with started_server() as server:
        yield server


@pytest.fixture
def elasticsearch(node: Server) -> Server:
    """The module's own server, running, however the test before left it."""
    node.revive()
    return node


@pytest.fixture
def prefix() -> str:
    return f"vbtest-{os.getpid()}-{uuid.uuid4().hex[:8]}"


class Client:
    """A client of a server process."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, content, {"Content-Type": "application/json"})
        request.method = method
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:
                return response.status, _json(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _json(error.read())

    def add(self, *texts: str) -> list[str]:
        items = [{"text": text, "user_id": "ana", "bank": "dialog"} for text in texts]
        status, answer = self.ask("POST", "/v1/memories/batch", {"items": items})
        assert (status, answer["failed"]) == (200, 0), answer
        return [each["id"] for each in answer["results"]]

    def search(self, query: str, **given: Any) -> tuple[dict[str, Any], float]:
        """The answer, and how long it took, seconds."""
        started = time.perf_counter()
        status, answer = self.ask(
            "POST", "/v1/search", {"query": query, "user_id": "ana", "reinforce": False, "top_k": 5, **given}
        )
        assert status == 200, answer
        return answer, time.perf_counter() - started

    def median_s(self) -> float:
        return statistics.median(self.search(WORDS[number % len(WORDS)])[1] for number in range(SEARCHES))

    def ready(self) -> tuple[int, dict[str, str]]:
        status, answer = self.ask("GET", "/health/ready")
        return status, answer["components"]


def _json(content: bytes) -> Any:
    return json.loads(content) if content else None


def _texts(count: int, start: int = 0) -> list[str]:
    return [
        f"note {number} of the {WORDS[number % len(WORDS)]} and what came of it"
        for number in range(start, start + count)
    ]


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_case_126_the_whole_story(elasticsearch: Server, prefix: str, tmp_path: Path, how: str) -> None:
    environment = {
        "VIMBANK_ENCODER__KIND": "hashing",
        "VIMBANK_INDEX__SPARSE": "elasticsearch",
        "VIMBANK_ELASTICSEARCH__URL": elasticsearch.url,
        "VIMBANK_ELASTICSEARCH__PREFIX": prefix,
    }
    with running_server(tmp_path, environment) as port:
        client = Client(port)
        ids = client.add(*_texts(200))
        _until_whole(client)
        client.median_s()
        normal_s = client.median_s()

        elasticsearch.kill() if how == "killed" else elasticsearch.freeze()
        answer, first_s = client.search("lantern")
        assert answer["degraded"] == ["sparse"]
        assert answer["results"]
        late_s = client.median_s()
        assert client.search("lantern")[0]["degraded"] == ["sparse"]
        assert client.ask("GET", "/health/live")[0] == 200
        status, components = client.ready()
        assert status == 503
        assert components["sparse"] != "ok"
        assert components["store"] == "ok"

        written = client.add(*_texts(20, start=200))
        assert client.ask("DELETE", f"/v1/memories/{ids[0]}")[0] == 200
        assert client.ask("PATCH", f"/v1/memories/{ids[1]}", {"text": "the figurehead was repainted"})[0] == 200
        after_write, write_s = client.search("anchor")
        assert after_write["degraded"] == ["sparse"]

        elasticsearch.start() if how == "killed" else elasticsearch.thaw()
        back_s = _until_whole(client)
        found, _ = client.search("figurehead", fusion="sparse")
        assert [each["id"] for each in found["results"]] == [ids[1]]
        assert client.search(f"note {200}", fusion="sparse")[0]["results"][0]["id"] == written[0]
    print(
        f"Elasticsearch {how}: a search takes {1e3 * normal_s:.1f} ms, the first without it {1e3 * first_s:.1f} ms, "
        f"those after that {1e3 * late_s:.1f} ms, one after a write {1e3 * write_s:.1f} ms; "
        f"whole again {back_s:.1f} s after its return"
    )
    assert first_s <= normal_s + OVER_NORMAL_S + NOISE_S
    assert write_s <= normal_s + OVER_NORMAL_S + NOISE_S
    assert late_s <= normal_s + OVER_NORMAL_S
    _like_new(elasticsearch.url, prefix, tmp_path)


def _until_whole(client: Client) -> float:
    """Wait until a search is answered by both legs and readiness is green; how long that took, seconds."""
    started = time.monotonic()
    while client.search("pier")[0]["degraded"] or client.ready()[0] != 200:
        assert time.monotonic() - started < DEADLINE_S, client.ready()
        time.sleep(0.05)
    return time.monotonic() - started


def _service(url: str, prefix: str, folder: Path, **elasticsearch: Any) -> MemoryService:
    patient = {"url": url, "prefix": prefix, "search_timeout_s": 10, "catch_up_timeout_s": 20, **elasticsearch}
    return open_service(settings(folder, index={"sparse": "elasticsearch"}, elasticsearch=patient))


def _like_new(url: str, prefix: str, folder: Path) -> None:
    """The index holds what the store has, and answers as one does that was made of it just now."""
    with _service(url, prefix, folder) as service, _service(url, prefix + "-new", folder) as fresh:
        report = service.check()
        assert report.ok, report
        for word in (*WORDS, "figurehead", "came"):
            query = Query(tenant="default", user_id="ana", text=word, fusion="sparse", reinforce=False, top_k=300)
            assert sorted(each.memory.id for each in service.search(query).results) == sorted(
                each.memory.id for each in fresh.search(query).results
            )


def _fill(service: MemoryService, count: int) -> None:
    for start in range(0, count, 1_000):
        drafts = [
            MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=text) for text in _texts(1_000, start)
        ]
        service.add_many(drafts)


def test_case_126_killed_in_the_middle_of_following(elasticsearch: Server, prefix: str, tmp_path: Path) -> None:
    with _service(elasticsearch.url, prefix, tmp_path, batch_size=50) as service:
        _fill(service, 5_000)
        assert service.remotes is not None
        service.remotes.start()
        deadline = time.monotonic() + DEADLINE_S
        (follower,) = service.remotes.followers
        while follower.cursor <= 0:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        elasticsearch.kill()
        reached = follower.cursor
        assert 0 < reached < 5_000
        with pytest.raises(BackendUnavailable):
            service.follow_remote()
        elasticsearch.start()
        while follower.cursor < 5_000 or follower.breaker.outage is not None:
            assert time.monotonic() < deadline + DEADLINE_S
            time.sleep(0.01)
    print(f"killed at revision {reached} of 5,000")
    _like_new(elasticsearch.url, prefix, tmp_path)


def test_case_126_a_follower_killed_between_bulk_and_advance(prefix: str, tmp_path: Path) -> None:
    url = service_url("ELASTICSEARCH_B")
    try:
        with _service(url, prefix, tmp_path) as service:
            _fill(service, 1_000)
            command = [sys.executable, "-m", "tests.crash.remote_follower", str(tmp_path), url, prefix]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                assert process.stdout.readline().strip() == "applied"
                process.kill()
            assert service.follow_remote() == {"sparse": 1_000}
        _like_new(url, prefix, tmp_path)
    finally:
        client = ElasticsearchClient.connect([url])
        for index in client.ask("GET", f"/{prefix}*/_mapping"):
            client.ask("DELETE", f"/{index}")
        client.close()


def test_an_elasticsearch_that_is_down_at_the_start_stops_no_server(prefix: str, tmp_path: Path) -> None:
    with _service("http://127.0.0.1:1", prefix, tmp_path) as service:
        added = service.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="the pier at dusk"))
        recall = service.search(Query(tenant="default", user_id="ana", text="pier", reinforce=False))
        assert [each.memory.id for each in recall.results] == [added.id]
        assert recall.degraded == ("sparse",)
        assert not service.ready().ok
