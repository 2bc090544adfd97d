"""Erasure reaches the indexes in Elasticsearch, and asks them afterwards."""

import uuid
from pathlib import Path

import pytest

from tests.elasticsearch_kit import servers
from tests.services import service_url
from vimbank.domain.models import MemoryDraft, Partition, Query, Scope
from vimbank.portability.erase import erase, leftovers
from vimbank.settings import ElasticsearchSettings, EncoderSettings, IndexSettings, Settings
from vimbank.wiring import open_service
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
