"""``vimbank es``: status, migrate and reindex on a real Elasticsearch."""

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.conftest import Outcome, Vimbank
from tests.elasticsearch_kit import servers
from tests.services import service_url
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex

Run = Callable[..., Outcome]
BANKS = {"dialog", "knowledge", "task"}


class Cluster:
    """The indexes of one test on a server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.prefix = f"vbtest-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.client = ElasticsearchClient.connect([url], search_timeout_s=10)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "VIMBANK_INDEX__SPARSE": "elasticsearch",
            "VIMBANK_ELASTICSEARCH__URL": self.url,
            "VIMBANK_ELASTICSEARCH__PREFIX": self.prefix,
            "VIMBANK_ELASTICSEARCH__SEARCH_TIMEOUT_S": "10",
            "VIMBANK_ELASTICSEARCH__CATCH_UP_TIMEOUT_S": "20",
        }

    def indexes(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.ask("GET", f"/{self.prefix}-*")
        return found

    def close(self) -> None:
        for index in self.indexes():
            self.client.ask("DELETE", f"/{index}")
        self.client.close()


@pytest.fixture(params=servers())
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    made = Cluster(service_url(request.param))
    yield made
    made.close()


@pytest.fixture
def run(vimbank: Vimbank, cluster: Cluster) -> Run:
    """The command with its sparse leg in the cluster."""
    return lambda *arguments, **given: vimbank(*arguments, **(cluster.environment | given))


@pytest.fixture
def filled(run: Run) -> Run:
    for text in ("the pier at dusk", "the harbour at dawn", "a lantern on the pier"):
        assert run("add", "--user", "ana", "--bank", "dialog", text).code == 0
    assert found(run, "pier") == 2
    return run


def found(run: Run, query: str, **given: str) -> int:
    done = run("search", "--user", "ana", "--json", "--fusion", "sparse", "--no-reinforce", query, **given)
    assert done.code == 0, done.err
    return len(done.json["results"])


@pytest.mark.parametrize("name", ["status", "migrate", "reindex"])
def test_each_has_help_with_an_example_and_the_common_options(vimbank: Vimbank, name: str) -> None:
    done = vimbank("es", name, "--help")
    assert done.code == 0
    assert f"vimbank es {name}" in done.out
    assert "--json" in done.out


@pytest.mark.parametrize("name", ["status", "migrate", "reindex"])
def test_without_an_index_there_they_say_which_setting_puts_one(vimbank: Vimbank, name: str) -> None:
    done = vimbank("es", name)
    assert done.code == 2
    assert "VIMBANK_INDEX__SPARSE=elasticsearch" in done.err


def test_without_an_address_they_name_the_setting(vimbank: Vimbank) -> None:
    done = vimbank("es", "status", VIMBANK_INDEX__SPARSE="elasticsearch")
    assert done.code == 2
    assert "VIMBANK_ELASTICSEARCH__URL" in done.err


@pytest.mark.parametrize("name", ["status", "migrate", "reindex"])
def test_a_cluster_out_of_reach_is_exit_code_3(vimbank: Vimbank, name: str) -> None:
    away = {"VIMBANK_INDEX__SPARSE": "elasticsearch", "VIMBANK_ELASTICSEARCH__URL": "http://127.0.0.1:1"}
    done = vimbank("es", name, "--json", **away)
    assert done.code == 3
    assert done.json["error"]["type"] == "BackendUnavailable"


def test_status_tells_of_cluster_and_indexes(filled: Run, cluster: Cluster) -> None:
    done = filled("es", "status", "--json")
    assert done.code == 0
    assert done.json["cluster"]["url"] == cluster.url
    assert done.json["revision"] == 3
    lines = {each["bank"]: each for each in done.json["indexes"]}
    assert set(lines) == BANKS
    dialog = lines["dialog"]
    assert (dialog["leg"], dialog["documents"], dialog["cursor"], dialog["lag"]) == ("sparse", 3, 3, 0)
    assert dialog["current"]
    assert dialog["nbytes"] > 0
    text = filled("es", "status").out
    assert dialog["index"] in text
    assert "NO" not in text


def test_status_of_indexes_that_are_not_there_makes_none(run: Run, cluster: Cluster) -> None:
    assert run("store", "migrate").code == 0
    done = run("es", "status", "--json")
    assert done.code == 0
    assert [each["index"] for each in done.json["indexes"]] == [None] * 3
    assert cluster.indexes() == {}


def test_migrate_makes_anew_what_was_made_with_other_settings(filled: Run, cluster: Cluster) -> None:
    before = set(cluster.indexes())
    other = {"VIMBANK_INDEX__K1": "1.7"}
    assert "NO" in filled("es", "status", **other).out
    done = filled("es", "migrate", "--json", **other)
    assert done.code == 0, done.err
    assert done.json["rebuilt"] == [{"name": "sparse", "memories": 3, "revision": 3}]
    assert not before & set(cluster.indexes())
    assert "NO" not in filled("es", "status", **other).out
    assert found(filled, "pier", **other) == 2


def test_migrate_twice_changes_nothing(filled: Run, cluster: Cluster) -> None:
    before = set(cluster.indexes())
    done = filled("es", "migrate")
    assert (done.code, done.out) == (0, "all indexes are current\n")
    assert set(cluster.indexes()) == before


def test_reindex_puts_a_new_index_in_the_place_of_a_damaged_one(filled: Run, cluster: Cluster) -> None:
    before = set(cluster.indexes())
    cluster.client.ask("DELETE", f"/{cluster.prefix}-dialog/_doc/1", params={"routing": "default/ana/dialog"})
    cluster.client.ask("POST", f"/{cluster.prefix}-dialog/_refresh")
    assert found(filled, "pier") == 1
    check = filled("check")
    assert check.code == 1
    assert "sparse: " in check.out
    assert "missing from the index" in check.out
    done = filled("es", "reindex", "--leg", "sparse")
    assert (done.code, done.out) == (0, "sparse: made anew with 3 memories, at revision 3\n")
    assert not before & set(cluster.indexes())
    assert len(cluster.indexes()) == len(before)
    assert found(filled, "pier") == 2
    assert filled("check").code == 0


def test_reindex_of_a_leg_that_is_in_process_is_refused(filled: Run) -> None:
    assert filled("es", "reindex", "--leg", "dense").code == 2


def test_an_interrupted_reindex_is_taken_up(filled: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(cluster.indexes())

    def stop(_index: ElasticsearchIndex) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ElasticsearchIndex, "publish", stop)
        assert filled("es", "reindex").code != 0
    left = set(cluster.indexes()) - before
    assert len(left) == len(before)
    assert found(filled, "pier") == 2  # the present one serves
    assert filled("add", "--user", "ana", "--bank", "dialog", "gulls over the pier").code == 0
    assert filled("es", "reindex").code == 0
    assert set(cluster.indexes()) == left
    assert found(filled, "pier") == 3
