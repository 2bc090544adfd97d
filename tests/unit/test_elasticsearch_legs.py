"""A service whose legs are in a real Elasticsearch: as one with both legs in process, also after another encoder."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases.doors import settings
from tests.elasticsearch_kit import servers
from tests.runner_kit import until
from tests.services import service_url
from vimbank.domain.models import MemoryDraft, MemoryPatch, Query, Recall, Scope
from vimbank.encoders.hashing import HashingEncoder
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.service import MemoryService
from vimbank.wiring import open_service

pytestmark = pytest.mark.services

DENSE = "ELASTICSEARCH_A"  # kNN is not in the other one
QUERIES = ("peanuts", "the pump's valve", "Lisbon", "quiet hours", "who is allergic", "archive on Fridays")
Open = Callable[..., MemoryService]


@pytest.fixture
def prefix() -> str:
    return f"vbtest-{os.getpid()}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def opened(tmp_path: Path, prefix: str, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens the test's folder with legs in the server named; its indexes are removed in the end."""
    used: set[str] = set()

    def open_(server: str, *legs: str, **given: Any) -> MemoryService:
        used.add(service_url(server))
        patient = {"url": service_url(server), "prefix": prefix, "search_timeout_s": 10, "catch_up_timeout_s": 20}
        index = dict.fromkeys(legs, "elasticsearch")
        return open_service(settings(tmp_path / "data", index=index, elasticsearch=patient), **given)

    yield open_
    for url in used:
        client = ElasticsearchClient.connect([url])
        for index in client.ask("GET", f"/{prefix}-*/_mapping"):
            client.ask("DELETE", f"/{index}")
        client.close()


def _recall(service: MemoryService, text: str, **given: Any) -> Recall:
    recall = service.search(Query(tenant="default", user_id="ana", text=text, reinforce=False, **given))
    assert recall.degraded == ()
    return recall


def _ids(service: MemoryService, text: str, **given: Any) -> list[str]:
    return [each.memory.id for each in _recall(service, text, **given).results]


@pytest.mark.parametrize("server", servers("similarity"))
def test_the_keyword_leg_finds_what_postings_find(opened: Open, server: str, memories: list[MemoryDraft]) -> None:
    with opened(server) as here:
        here.add_many(memories)
        wanted = {query: sorted(_ids(here, query, fusion="sparse")) for query in QUERIES}
    with opened(server, "sparse") as there:
        assert {query: sorted(_ids(there, query, fusion="sparse")) for query in QUERIES} == wanted
        assert there.check().ok
    with opened(server) as here:  # snapshots of the other form are not taken for this one's
        assert {query: sorted(_ids(here, query, fusion="sparse")) for query in QUERIES} == wanted


def test_the_vector_leg_scores_as_vectors_in_process_do(opened: Open, memories: list[MemoryDraft]) -> None:
    def figures(service: MemoryService) -> list[tuple[str, float]]:
        return [
            (each.memory.id, each.score)
            for query in QUERIES
            for each in _recall(service, query, fusion="dense", banks=["dialog"]).results
        ]

    with opened(DENSE) as here:
        here.add_many(memories)
        wanted = figures(here)
    with opened(DENSE, "dense") as there:
        found = figures(there)
        assert there.check().ok
    assert [one for one, _ in found] == [one for one, _ in wanted]
    assert [score for _, score in found] == pytest.approx([score for _, score in wanted], abs=1e-6)


def test_both_legs_follow_every_kind_of_change(opened: Open, memories: list[MemoryDraft]) -> None:
    with opened(DENSE, "sparse", "dense") as service:
        peanuts, lisbon, *_ = [result.id for result in service.add_many(memories)]  # type: ignore[union-attr]
        assert _ids(service, "peanuts", fusion="sparse") == [peanuts]
        service.update("default", peanuts, MemoryPatch(text="Ana likes figs"))
        assert _ids(service, "peanuts", fusion="sparse") == []
        assert _ids(service, "figs", fusion="sparse") == [peanuts]
        service.delete("default", lisbon)
        assert lisbon not in _ids(service, "Lisbon", fusion="dense", top_k=50)
        service.delete_all(Scope("default", "ana"))
        assert _ids(service, "figs", include_shared=False) == []
        report = service.check()
        assert report.ok, report
        assert [(each.name, each.state, each.lag) for each in service.remote_status()] == [
            ("sparse", "ok", 0),
            ("dense", "ok", 0),
        ]


def test_another_encoder_fills_an_index_of_its_own_and_the_former_one_goes(
    opened: Open, memories: list[MemoryDraft], prefix: str
) -> None:
    client = ElasticsearchClient.connect([service_url(DENSE)])
    with opened(DENSE, "dense") as service:
        service.add_many(memories)
        before = _ids(service, "peanuts", fusion="dense")
        former = set(client.ask("GET", f"/{prefix}-*/_mapping"))
        service.reindex(HashingEncoder(64))
        assert sorted(_ids(service, "peanuts", fusion="dense")) == sorted(before)
        current = set(client.ask("GET", f"/{prefix}-*/_mapping"))
        assert service.check().ok
    client.close()
    assert former
    assert current
    assert not former & current


@pytest.mark.parametrize("server", servers())
def test_indexes_that_somebody_deleted_are_made_and_filled_again(
    opened: Open, server: str, memories: list[MemoryDraft], prefix: str
) -> None:
    client = ElasticsearchClient.connect([service_url(server)])
    with opened(server, "sparse") as service:
        service.add_many(memories)
        wanted = _ids(service, "peanuts", fusion="sparse")
        for index in client.ask("GET", f"/{prefix}-*/_mapping"):
            client.ask("DELETE", f"/{index}")
        query = Query(tenant="default", user_id="ana", text="peanuts", reinforce=False)
        assert service.search(query).degraded == ("sparse",)  # and not an answer that nothing matches
        until(lambda: service.search(query).degraded == ())
        assert _ids(service, "peanuts", fusion="sparse") == wanted
        assert service.check().ok
    client.close()
