"""Erasure reaches the indexes in Elasticsearch, and asks them afterwards."""

import json
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from tests.elasticsearch_kit import servers
from tests.services import service_url
from vimbank.domain.models import MemoryDraft, Partition, Query, Scope
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.ingestion.dialog import Turn
from vimbank.portability.erase import erase, leftovers
from vimbank.settings import ElasticsearchSettings, EncoderSettings, IndexSettings, Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_eraser


@pytest.mark.parametrize("server", servers("knn"))
def test_an_erased_user_is_in_neither_index(server: str, tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path,
        encoder=EncoderSettings(kind="hashing"),
        index=IndexSettings(sparse="elasticsearch", dense="elasticsearch"),
        elasticsearch=ElasticsearchSettings(
            url=service_url(server), prefix=f"erase-{uuid.uuid4().hex}", catch_up_timeout_s=30.0
        ),
    )
    with open_service(settings) as service:
        service.add_many(
            [
                MemoryDraft(tenant="t", user_id=user, bank="dialog", text=f"quagmire {n}", id=f"{user}{n}")
                for user in ("ana", "ben")
                for n in range(20)
            ]
        )
        ana, ben = (Query(tenant="t", user_id=user, text="quagmire", reinforce=False) for user in ("ana", "ben"))
        assert service.search(ana).results
        assert not service.search(ana).degraded
        receipt = erase(service, open_eraser(service), Scope("t", "ana"), actor="test")
        assert sorted(receipt.remote) == ["dense", "sparse"]
        assert service.remotes is not None
        for follower in service.remotes.followers:
            assert follower.holds(Partition("t", "ana", "dialog")) == {}
            assert len(follower.holds(Partition("t", "ben", "dialog"))) == 20
        assert service.search(ana).results == []
        assert len(service.search(ben).results) == 10
        assert leftovers(service, open_eraser(service), receipt, user_id="ana") == []
        for follower in service.remotes.followers:
            follower._index.reset()


@pytest.mark.parametrize("server", servers("knn"))
def test_an_erased_session_is_in_no_document(server: str, tmp_path: Path) -> None:
    """Nor are the summaries that were made of it; those of another session stay."""
    url, prefix = service_url(server), f"erase-{uuid.uuid4().hex}"
    settings = Settings(
        data_dir=tmp_path,
        encoder=EncoderSettings(kind="hashing"),
        index=IndexSettings(sparse="elasticsearch", dense="elasticsearch"),
        elasticsearch=ElasticsearchSettings(url=url, prefix=prefix, catch_up_timeout_s=30.0),
    )
    client = ElasticsearchClient.connect([url])

    def documents() -> list[str]:
        client.ask("POST", f"/{prefix}-*/_refresh")
        answer = client.ask("POST", f"/{prefix}-*/_search", {"size": 1_000, "query": {"match_all": {}}})
        return [json.dumps(hit) for hit in answer["hits"]["hits"]]

    with open_service(settings) as service, closing(open_jobs(settings, service)) as jobs:
        for session in ("sessmark", "other"):
            turns = [Turn("user", f"I like the pier of {session} number {n}.") for n in range(6)]
            service.add_turns(tenant="default", user_id="ana", session_id=session, turns=turns)
        for name in ("summarise", "portrait"):
            jobs.run(jobs.start(name, {}).id)
        service.follow_remote()
        ids = [each.id for each in service.derived("default", "ana", "summary").items if "sessmark" in each.text]
        assert sum("sessmark" in each for each in documents()) > 6
        receipt = erase(service, open_eraser(service), Scope("default", "ana", None, None, "sessmark"), actor="test")
        assert sorted(receipt.remote) == ["dense", "sparse"]
        left = documents()
        assert left
        assert not any(word in each for each in left for word in ("sessmark", *ids))
        assert leftovers(service, open_eraser(service), receipt, user_id="ana") == []
        assert service.check().ok
        assert service.remotes is not None
        for follower in service.remotes.followers:
            follower._index.reset()
    client.close()
