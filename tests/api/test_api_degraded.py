"""What clients see while Elasticsearch is away: degraded answers, health, stats; and Redis away costs nothing."""

import statistics
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import add, client_of, documented, settings_in
from vimbank.api.app import create_app
from vimbank.errors import ConfigError
from vimbank.settings import Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

AWAY = "http://127.0.0.1:1"


@contextmanager
def client_in(folder: Path, **given: Any) -> Iterator[TestClient]:
    """The administrator of a server of its own."""
    settings = settings_in(folder, jobs={"schedule": False}, **given)
    with open_service(settings) as service, closing(open_jobs(settings, service, serve=True)) as jobs:
        app = create_app(service, settings, jobs)
        with client_of(app, "key-a-0", documented(app)) as client:
            yield client


@pytest.fixture(params=["without", "with a fallback"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestClient]:
    """Its keyword leg is in an Elasticsearch that is away."""
    elasticsearch = {"url": AWAY, "sparse_fallback": request.param == "with a fallback"}
    with client_in(tmp_path, index={"sparse": "elasticsearch"}, elasticsearch=elasticsearch) as made:
        yield made


def _search(client: TestClient, **given: Any) -> Any:
    return client.post("/v1/search", json={"query": "lighthouse pier", "user_id": "alice", **given})


def test_case_126_a_search_is_answered_and_says_what_was_missing(client: TestClient) -> None:
    wanted = add(client, "the lighthouse by the pier")
    answer = _search(client)
    assert answer.status_code == 200
    assert answer.json()["degraded"] == ["sparse"]
    assert [each["id"] for each in answer.json()["results"]] == [wanted]


def test_case_126_readiness_is_red_with_the_reason_and_liveness_green(client: TestClient) -> None:
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    components = answer.json()["components"]
    assert "no answer" in components["sparse"]
    assert components["store"] == "ok"
    assert client.get("/health/live").status_code == 200


def test_case_126_writes_are_acknowledged(client: TestClient) -> None:
    one = add(client, "the lighthouse by the pier")
    assert client.patch(f"/v1/memories/{one}", json={"text": "the lamp by the pier"}).status_code == 200
    assert client.delete(f"/v1/memories/{one}").status_code == 200


def test_stats_tell_how_far_the_index_is_behind(client: TestClient) -> None:
    add(client, "the lighthouse by the pier")
    (remote,) = client.get("/v1/stats").json()["remote"]
    assert (remote["name"], remote["state"], remote["documents"]) == ("sparse", "down", None)
    assert remote["lag"] >= 1
    assert remote["error"]
    assert remote["since"]


def test_the_keyword_leg_alone_is_503_without_a_fallback_and_answered_with_one(tmp_path: Path) -> None:
    for fallback, status in ((False, 503), (True, 200)):
        given = {"index": {"sparse": "elasticsearch"}, "elasticsearch": {"url": AWAY, "sparse_fallback": fallback}}
        with client_in(tmp_path / str(fallback), **given) as client:
            add(client, "the lighthouse by the pier")
            answer = _search(client, fusion="sparse")
            assert answer.status_code == status
            if fallback:
                assert (len(answer.json()["results"]), answer.json()["degraded"]) == (1, ["sparse"])


def test_a_past_is_searched_in_process_whatever_engine_is_away(client: TestClient) -> None:
    wanted = add(client, "the lighthouse by the pier", created_at="2026-01-01T00:00:00Z")
    answer = _search(client, as_of="2026-02-01T00:00:00Z", fusion="sparse")
    assert answer.status_code == 200
    assert [each["id"] for each in answer.json()["results"]] == [wanted]
    assert answer.json()["degraded"] == []


def test_case_125_redis_away_costs_neither_a_write_nor_a_search(tmp_path: Path) -> None:
    """With followers to tell of writes; the same server without a Redis is the yardstick."""
    took_s: dict[str, list[float]] = {}
    for name, redis in (("without Redis", {}), ("Redis away", {"url": "redis://127.0.0.1:1/0"})):
        given = {"index": {"sparse": "elasticsearch"}, "elasticsearch": {"url": AWAY}, "redis": redis}
        with client_in(tmp_path / name, **given) as client:
            took_s[name] = []
            for number in range(20):
                started = time.perf_counter()
                add(client, f"note {number} of the lighthouse")
                assert _search(client).status_code == 200
                took_s[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(each) for name, each in took_s.items()}
    print({name: f"{1e3 * each:.1f} ms a write and a search" for name, each in medians.items()})
    assert medians["Redis away"] <= medians["without Redis"] + 0.2
    assert max(took_s["Redis away"]) < 1.0


@pytest.mark.parametrize("leg", ["sparse", "dense"])
def test_an_index_in_an_elasticsearch_without_address_is_no_start(tmp_path: Path, leg: str) -> None:
    with pytest.raises(ConfigError, match="VIMBANK_ELASTICSEARCH__URL"):
        open_service(Settings.model_validate(settings_in(tmp_path).model_dump() | {"index": {leg: "elasticsearch"}}))
