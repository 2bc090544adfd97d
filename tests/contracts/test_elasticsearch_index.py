"""What the writer promises beside the port: its indexes, their names, whom they belong to, how they are replaced."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.elasticsearch_kit import HERE, Bookshelf, bookshelf, change, lexical, servers, tombstone
from vimbank.domain.models import Partition
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError
from vimbank.indexes.elasticsearch.mappings import IndexPlan, sparse_document, sparse_plans
from vimbank.indexes.elasticsearch.sparse import ElasticsearchSparse
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex


@pytest.fixture(params=servers())
def shelf(request: pytest.FixtureRequest) -> Iterator[Bookshelf]:
    with bookshelf(request.param) as made:
        yield made


@pytest.fixture
def big(request: pytest.FixtureRequest) -> Iterator[Bookshelf]:
    """On a server that takes thousands of memories."""
    with bookshelf("ELASTICSEARCH_B") as made:
        yield made


def found(shelf: Bookshelf, text: str, partition: Partition = HERE) -> list[str]:
    index = shelf.index(partition)
    leg = shelf.sparse.search(index, lexical(text), allowed=None, limit=100)
    return index.ids(leg.rows)


class TestWhoseIndex:
    def test_the_index_of_another_store_is_left_alone(self, shelf: Bookshelf) -> None:
        shelf.put([change(1, "tea")])
        stranger = shelf.again(store_id="b" * 32)
        with pytest.raises(ConfigError, match=f"{'a' * 32}.*{'b' * 32}"):
            stranger.cursor()
        with pytest.raises(ConfigError, match="belongs to the store"):
            stranger.reset()
        assert shelf.again().cursor() == 1
        assert shelf.remote.holds(HERE) == {1: 1}

    @pytest.mark.parametrize("other", [{"k1": 1.5}, {"b": 0.5}])
    def test_other_parameters_need_a_reindex_which_then_succeeds(
        self, shelf: Bookshelf, other: dict[str, float]
    ) -> None:
        shelf.put([change(1, "tea")])
        changed = shelf.again(**other)
        with pytest.raises(ConfigError, match="run `vimbank es reindex`"):
            changed.cursor()
        new = changed.rebuild()
        new.apply([change(1, "tea")])
        new.advance(1)
        new.publish()
        assert changed.cursor() == 1
        with pytest.raises(ConfigError, match="run `vimbank es reindex`"):
            shelf.again().cursor()

    def test_an_index_in_the_place_of_the_alias_is_told_of_and_replaced_by_reindex(self, shelf: Bookshelf) -> None:
        """As Elasticsearch makes one by itself, for a write that comes when the index is gone."""
        shelf.client.ask("PUT", f"/{shelf.prefix}-dialog", {})
        with pytest.raises(ConfigError, match="belongs to the store None"):
            shelf.remote.cursor()
        shelf.remote.rebuild().publish()
        assert shelf.remote.cursor() == 0


class TestMaking:
    def test_each_bank_has_one_index_behind_an_alias(self, shelf: Bookshelf) -> None:
        shelf.remote.cursor()
        assert sorted(shelf.indexes()) == [f"{shelf.prefix}-{bank}-v1-a1-1" for bank in ("dialog", "knowledge")]
        status = shelf.remote.status()
        assert {bank: each.index for bank, each in status.items()} == {
            bank: f"{shelf.prefix}-{bank}-v1-a1-1" for bank in ("dialog", "knowledge")
        }

    def test_several_processes_that_make_the_indexes_at_once_make_them_once(self, shelf: Bookshelf) -> None:
        cursors: list[int] = []

        def start() -> None:
            cursors.append(shelf.again().cursor())

        threads = [threading.Thread(target=start) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cursors == [0] * 6
        shelf.put([change(1, "tea")])
        assert shelf.again().cursor() == 1
        assert len(shelf.indexes()) == 2

    def test_a_bank_that_is_declared_later_begins_at_0(self, shelf: Bookshelf) -> None:
        """And so the feed is read again from the beginning, which changes nothing for the others."""
        elsewhere = Partition("t", "u", "Mein Bänk!")
        changes = [change(1, "tea"), change(2, "milk", partition=elsewhere)]
        shelf.put(changes[:1])
        shelf.remote.apply(changes[1:])
        shelf.remote.advance(2)
        assert shelf.remote.holds(elsewhere) == {}
        more = shelf.again(banks=("dialog", "knowledge", elsewhere.bank))
        assert more.cursor() == 0
        more.apply(changes)
        more.advance(2)
        assert more.cursor() == 2
        assert more.holds(elsewhere) == {2: 2}

    def test_an_index_without_its_alias_gets_it_back(self, shelf: Bookshelf) -> None:
        """A backup may be restored without aliases."""
        shelf.put([change(1, "tea")])
        index, alias = f"{shelf.prefix}-dialog-v1-a1-1", f"{shelf.prefix}-dialog"
        shelf.client.ask("POST", "/_aliases", {"actions": [{"remove": {"index": index, "alias": alias}}]})
        assert shelf.again().cursor() == 1

    def test_data_and_cursor_are_lost_together(self, shelf: Bookshelf) -> None:
        shelf.put([change(1, "tea")])
        shelf.client.ask("DELETE", f"/{shelf.prefix}-dialog-v1-a1-1")
        with pytest.raises(BackendUnavailable):
            shelf.sparse.search(shelf.index(), lexical("tea"), allowed=None, limit=5)
        assert shelf.remote.cursor() == 0
        shelf.put([change(1, "tea")])
        assert found(shelf, "tea") == ["m1"]

    @pytest.mark.parametrize("server", servers("require_alias"))
    def test_a_write_to_an_index_that_is_gone_does_not_bring_it_back(self, server: str) -> None:
        with bookshelf(server) as shelf:
            shelf.put([change(1, "tea")])
            shelf.client.ask("DELETE", f"/{shelf.prefix}-dialog-v1-a1-1")
            with pytest.raises(BackendUnavailable):
                shelf.remote.apply([change(2, "milk"), tombstone(1, 3)])
            assert list(shelf.indexes()) == [f"{shelf.prefix}-knowledge-v1-a1-1"]


class TestReplacing:
    def test_the_old_index_is_searched_until_the_new_one_is_published(self, shelf: Bookshelf) -> None:
        shelf.put([change(1, "tea"), change(2, "tea and milk")])
        new = shelf.remote.rebuild()
        assert new.cursor() == 0
        new.apply([change(2, "tea and milk")])
        new.advance(2)
        assert new.cursor() == 2
        assert new.holds(HERE) == {2: 2}
        assert found(shelf, "tea") == ["m1", "m2"]
        new.publish()
        assert found(shelf, "tea") == ["m2"]
        assert shelf.remote.holds(HERE) == {2: 2}
        assert shelf.remote.cursor() == 2
        assert len(shelf.indexes()) == 2

    def test_a_new_index_that_is_not_wanted_goes(self, shelf: Bookshelf) -> None:
        shelf.put([change(1, "tea")])
        new = shelf.remote.rebuild()
        assert len(shelf.indexes()) == 4
        new.discard()
        shelf.remote.discard()  # it was not built beside anything
        assert len(shelf.indexes()) == 2
        assert found(shelf, "tea") == ["m1"]

    def test_a_writer_that_did_not_notice_a_reset_is_not_believed(self, shelf: Bookshelf) -> None:
        late = shelf.again()
        late.cursor()
        late.apply([change(n, "tea") for n in range(1, 10)])
        shelf.remote.reset()
        late.advance(9)
        assert shelf.again().cursor() == 0
        assert shelf.remote.cursor() == 0
        shelf.put([change(n, "tea") for n in range(1, 10)])
        assert shelf.again().cursor() == 9


class TestSearchable:
    def test_the_bookkeeping_counts_in_no_statistics(self, shelf: Bookshelf) -> None:
        shelf.put([change(1, "tea"), change(2, "milk")])
        leg = shelf.sparse.search(shelf.index(), lexical("tea"), allowed=None, limit=5)
        assert leg.upper_bound == shelf.index().sparse.score(["tea"]).upper_bound
        assert {bank: each.documents for bank, each in shelf.remote.status().items()} == {"dialog": 2, "knowledge": 0}

    @pytest.mark.parametrize("server", servers("shards"))
    def test_whatever_the_cursor_says_is_searchable_on_every_shard(self, server: str) -> None:
        """Case 47: also where no refresh happens by itself."""
        with bookshelf(server) as shelf:
            plans = sparse_plans(["dialog"], prefix=shelf.prefix, store_id="a" * 32)
            remote = ElasticsearchIndex(shelf.client, "sparse", _with(plans, shards=3), sparse_document)
            remote.cursor()
            places = [Partition("t", f"u{n}", "dialog") for n in range(8)]
            for revision, place in enumerate(places, 1):
                changes = [change(revision, "tea", partition=place)]
                remote.apply(changes)
                remote.advance(revision)
                assert remote.cursor() == revision
                shelf.index(place).apply(changes)
                assert found(shelf, "tea", place) == [f"m{revision}"]
                assert remote.holds(place) == {revision: revision}

    def test_added_then_searched_a_hundred_times(self, big: Bookshelf) -> None:
        """Case 47."""
        for n in range(1, 101):
            big.put([change(n, f"tea number w{n}")])
            assert found(big, f"w{n}") == [f"m{n}"]

    def test_metadata_of_any_size_and_kind_is_no_matter(self, big: Bookshelf) -> None:
        """Cases 54 and 56: 3,000 new keys, 40,000 bytes, 40,000 bytes of CJK, and a key of two types."""
        values: list[Any] = ["x" * 40_000, "漢" * 13_334, 1, "one", {"deep": [{}]}]
        changes = [
            change(n, "tea", metadata={f"key{n}": values[n % 5], "same": values[n % 5]}) for n in range(1, 3_001)
        ]
        big.put(changes)
        assert len(big.remote.holds(HERE)) == 3_000
        mapping = big.indexes()[f"{big.prefix}-dialog-v1-a1-1"]["mappings"]
        assert not any(name.startswith("key") for name in mapping["properties"])

    def test_a_text_of_40_000_bytes_without_a_space(self, shelf: Bookshelf) -> None:
        """Case 54: no term is larger than Lucene's 32,766 bytes, whatever the text."""
        shelf.put([change(1, "x" * 40_000), change(2, "漢" * 13_334), change(3, "ß" * 250), change(4, "tea")])
        assert found(shelf, "漢") == ["m2"]
        assert found(shelf, "ß" * 250) == ["m3"]
        assert found(shelf, "x" * 40_000) == ["m1"]

    def test_names_of_any_kind_part_the_users(self, shelf: Bookshelf) -> None:
        """Case 45, and names longer than the first line of a request may be."""
        names = ["team-a", "team-b", "a,b", "a/b", "a%2Fb", "ü" * 256, "ü" * 255 + "u", "*", "_local", "A"]
        places = [Partition("t", name, "dialog") for name in names]
        shelf.put([change(n, "tea", partition=place) for n, place in enumerate(places, 1)])
        for n, place in enumerate(places, 1):
            assert found(shelf, "tea", place) == [f"m{n}"]
            assert shelf.remote.holds(place) == {n: n}


class TestRefusal:
    def test_a_document_that_is_refused_is_named_without_its_text(self, shelf: Bookshelf) -> None:
        plans = sparse_plans(["dialog"], prefix=shelf.prefix, store_id="a" * 32)
        remote = ElasticsearchIndex(shelf.client, "sparse", plans, lambda _change: {"surprise": "secret words"})
        remote.cursor()
        with pytest.raises(BackendRejected, match="memory 7: status 400, strict_dynamic_mapping_exception") as caught:
            remote.apply([change(7, "secret words")])
        assert "secret" not in str(caught.value)

    def test_a_server_that_is_away(self, shelf: Bookshelf) -> None:
        away = shelf.client.connect(["http://127.0.0.1:1"], search_timeout_s=0.2, request_timeout_s=0.2)
        remote = shelf.again(client=away)
        for call in (remote.cursor, remote.reset, lambda: remote.holds(HERE), lambda: remote.apply([change(1, "tea")])):
            with pytest.raises(BackendUnavailable):
                call()
        search = ElasticsearchSparse(away, prefix=shelf.prefix)
        shelf.index().apply([change(1, "tea")])
        with pytest.raises(BackendUnavailable):
            search.search(shelf.index(), lexical("tea"), allowed=None, limit=5)
        search.close()
        away.close()


def _with(plans: dict[str, IndexPlan], *, shards: int) -> dict[str, IndexPlan]:
    """The plans with so many shards, and without refreshes of their own."""
    index = {"number_of_shards": shards, "refresh_interval": "-1"}
    return {
        bank: replace(plan, body={**plan.body, "settings": {"index": {**plan.body["settings"]["index"], **index}}})
        for bank, plan in plans.items()
    }


def test_terms_of_random_characters_are_kept_whole(big: Bookshelf) -> None:
    """What our analyzer calls a term is one term in Elasticsearch: lengths agree, so scores do."""
    random = Random(7)
    texts = ["".join(chr(_character(random)) for _ in range(60)) for _ in range(150)]
    big.put([change(n, text) for n, text in enumerate(texts, 1)])
    index = big.index()
    for text in texts[::10]:
        ours, theirs = index.sparse.score(lexical(text).terms), None
        theirs = big.sparse.search(index, lexical(text), allowed=None, limit=len(texts))
        assert theirs.upper_bound == pytest.approx(ours.upper_bound, abs=1e-9)
        assert (theirs.rows == ours.scores.nonzero()[0]).all()


def _character(random: Random) -> int:
    low, high = random.choice([(0x20, 0x7F), (0xA0, 0x2FF), (0x900, 0x1FFF), (0x2000, 0x2FFF), (0x3040, 0xD7FF),
                               (0xF900, 0xFFFD), (0x10000, 0x1FFFF)])  # fmt: skip
    return random.randrange(low, high)
