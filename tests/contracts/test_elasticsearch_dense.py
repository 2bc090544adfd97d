"""The ports ``RemoteIndex`` and ``DenseSearch``, kept by vectors in a real Elasticsearch."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from elasticsearch import Elasticsearch

from tests.services import service_url
from tests.vectors_kit import DEFINITION, HERE, Shelf, archived, change, shelf, tombstone, units
from vimbank.domain.models import Partition
from vimbank.domain.text import analyze
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError, InvalidInput
from vimbank.indexes.dense.elsewhere import ElsewhereIndex
from vimbank.indexes.elasticsearch.dense import ElasticsearchDense, row_clauses
from vimbank.indexes.elasticsearch.vectors import ElasticsearchVectors, identity_hash, partition_key, vector_document
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.ports import EncoderIdentity

DIMENSION = 8
NOTES = Partition("t", "u", "knowledge")
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def shelved() -> Iterator[Shelf]:
    with shelf(service_url("ELASTICSEARCH_A"), DIMENSION) as made:
        yield made


def axis(at: int, value: float = 1.0) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[at] = value
    return vector


def found(shelved: Shelf, vector: np.ndarray[tuple[int], np.dtype[np.float32]], limit: int = 10) -> list[str]:
    index = shelved.index()
    return sorted(index.ids(shelved.dense.search(index, vector, allowed=None, limit=limit).rows))


class TestRemoteIndex:
    def test_a_new_index_stands_at_0_and_is_made(self, shelved: Shelf) -> None:
        assert shelved.remote.cursor() == 0
        made = shelved.client.indices.get_mapping(index=f"{shelved.given['prefix']}-*").body
        ending = f"vectors-v1-{identity_hash(shelved.given['identity'])}"
        assert sorted(made) == [f"{shelved.given['prefix']}-{bank}-{ending}" for bank in ("dialog", "knowledge")]
        mapping = next(iter(made.values()))["mappings"]
        assert mapping["properties"]["vector"]["dims"] == DIMENSION
        assert mapping["_meta"]["encoder"]["name"] == "test"
        assert mapping["_meta"]["store"] == shelved.given["store_id"]
        assert mapping["_meta"]["mapping"] == 1

    def test_what_is_applied_is_found_after_the_advance(self, shelved: Shelf) -> None:
        shelved.fill(units(5, DIMENSION))
        assert shelved.remote.cursor() == 5
        assert shelved.remote.holds(HERE) == {number: number for number in range(1, 6)}
        assert shelved.remote.holds(NOTES) == {}
        assert shelved.again().cursor() == 5

    def test_applying_twice_and_out_of_order_changes_nothing(self, shelved: Shelf) -> None:
        old, new = change(1, axis(0)), change(1, axis(1), revision=3)
        shelved.put([new])
        shelved.put([old, new])
        shelved.put([old])
        assert shelved.remote.holds(HERE) == {1: 3}
        index = shelved.index()
        leg = shelved.dense.search(index, axis(1), allowed=None, limit=5)
        assert leg.score(leg.rows).tolist() == pytest.approx([1.0], abs=1e-6)

    def test_deleted_and_archived_ones_are_gone_case_70(self, shelved: Shelf) -> None:
        shelved.fill(units(4, DIMENSION))
        shelved.put([tombstone(1, 5), archived(2, units(4, DIMENSION)[1], 6)])
        assert shelved.remote.holds(HERE) == {3: 3, 4: 4}
        assert found(shelved, units(4, DIMENSION)[0]) == ["m0003", "m0004"]

    def test_a_deletion_that_a_late_write_undoes_is_seen_by_the_check_and_by_no_search_case_70(
        self, shelved: Shelf
    ) -> None:
        """Elasticsearch remembers the version of what it deleted, for ``index.gc_deletes``; server A does not.

        However long a writer slept, what it brings back is unknown to the roster.
        """
        shelved.fill(units(2, DIMENSION))
        shelved.put([tombstone(1, 5)])
        shelved.put([change(1, units(2, DIMENSION)[0])], locally=False)
        assert set(shelved.remote.holds(HERE)) in ({2}, {1, 2})
        assert found(shelved, units(2, DIMENSION)[0]) == ["m0002"]
        settings = next(iter(shelved.client.indices.get_settings(index=f"{shelved.given['prefix']}-*").body.values()))
        assert settings["settings"]["index"]["gc_deletes"] == "1h"

    def test_an_update_replaces_the_vector_case_19(self, shelved: Shelf) -> None:
        shelved.put([change(1, axis(0)), change(2, axis(1))])
        shelved.put([change(1, axis(2), revision=3)])
        index = shelved.index()
        leg = shelved.dense.search(index, axis(2), allowed=None, limit=1)
        assert index.ids(leg.rows) == ["m0001"]
        assert shelved.dense.search(index, axis(0), allowed=None, limit=2).score(np.arange(2)).tolist() == [0.0, 0.0]

    def test_no_vector_and_a_zero_vector_are_left_out_case_15(self, shelved: Shelf) -> None:
        shelved.put([change(1, None), change(2, axis(0, 0.0)), change(3, axis(0))])
        assert shelved.remote.holds(HERE) == {3: 3}
        shelved.put([change(3, axis(0, 0.0), revision=4)])
        assert shelved.remote.holds(HERE) == {}

    def test_a_vector_that_is_refused_is_named(self, shelved: Shelf) -> None:
        with pytest.raises(BackendRejected, match="memory 7"):
            shelved.put([change(7, np.ones(DIMENSION + 1, dtype=np.float32))], locally=False)

    def test_the_cursor_is_never_set_back(self, shelved: Shelf) -> None:
        shelved.fill(units(3, DIMENSION))
        shelved.again().advance(2)
        assert shelved.remote.cursor() == 3
        shelved.remote.advance(9)
        shelved.remote.advance(9)
        assert shelved.again().cursor() == 9

    def test_reset_forgets_everything(self, shelved: Shelf) -> None:
        shelved.fill(units(3, DIMENSION))
        shelved.remote.reset()
        assert found(shelved, axis(0)) == ["m0001", "m0002", "m0003"]  # as rows without a vector
        assert (
            shelved.dense.search(shelved.index(), axis(0), allowed=None, limit=3).score(np.arange(3)).tolist()
            == [0] * 3
        )
        assert shelved.remote.cursor() == 0
        assert shelved.remote.holds(HERE) == {}
        shelved.fill(units(3, DIMENSION))
        assert len(shelved.remote.holds(HERE)) == 3

    def test_an_index_that_is_lost_is_not_made_by_a_write_but_by_the_next_look(self, shelved: Shelf) -> None:
        """A write that made it would leave it without a mapping, and its cursor ahead of what it holds."""
        shelved.fill(units(3, DIMENSION))
        lost = next(name for name in shelved.client.indices.get_mapping(index="*").body if "dialog-vectors" in name
                    and name.startswith(shelved.given["prefix"]))  # fmt: skip
        shelved.client.indices.delete(index=lost)
        with pytest.raises(BackendUnavailable):
            shelved.remote.apply([change(4, axis(0))])
        with pytest.raises(BackendUnavailable):
            shelved.remote.advance(4)
        assert shelved.remote.cursor() == 0
        assert shelved.remote.holds(HERE) == {}

    def test_a_bank_declared_later_is_filled_from_the_start(self, shelved: Shelf) -> None:
        shelved.put([change(1, axis(0)), change(2, axis(1), partition=Partition("t", "u", "diary"))], locally=False)
        wider = shelved.again(banks=("diary", "dialog", "knowledge"))
        assert shelved.remote.cursor() == 2
        assert wider.cursor() == 0
        wider.apply([change(1, axis(0)), change(2, axis(1), partition=Partition("t", "u", "diary"))])
        wider.advance(2)
        assert wider.holds(Partition("t", "u", "diary")) == {2: 2}
        assert wider.cursor() == 2

    def test_two_writers_at_once_leave_the_newest(self, shelved: Shelf) -> None:
        shelved.remote.cursor()
        changes = [
            change(number, axis(number % 8), revision=number + 100 * turn) for turn in (0, 1) for number in range(1, 41)
        ]
        orders = [changes, changes[::-1]]
        writers = [threading.Thread(target=shelved.again(batch_size=7).apply, args=(order,)) for order in orders]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(30)
        shelved.remote.advance(140)
        assert shelved.remote.holds(HERE) == {number: number + 100 for number in range(1, 41)}

    def test_another_encoder_has_an_index_of_its_own_cases_16_134(self, shelved: Shelf) -> None:
        """Also at equal dimension; the former's is dropped when the new one is full, and nobody else's is."""
        shelved.fill(units(3, DIMENSION))
        foreign = shelved.again(prefix=shelved.given["prefix"] + "-x", store_id="b" * 32)
        foreign.cursor()
        new = shelved.again(identity=EncoderIdentity("test", "2", DIMENSION))
        assert new.cursor() == 0
        assert new.holds(HERE) == {}
        new.apply([change(1, axis(3))])
        new.advance(3)
        assert shelved.remote.holds(HERE) == {1: 1, 2: 2, 3: 3}
        dropped = new.drop_others()
        assert len(dropped) == 2
        assert all(name.endswith(identity_hash(shelved.given["identity"])) for name in dropped)
        assert new.others() == []
        assert new.holds(HERE) == {1: 1}
        assert foreign.cursor() == 0
        assert len(foreign.others()) == 0

    def test_an_index_of_another_store_is_refused(self, shelved: Shelf) -> None:
        shelved.remote.cursor()
        with pytest.raises(ConfigError, match="another VIMBANK_ELASTICSEARCH__PREFIX"):
            shelved.again(store_id="b" * 32).cursor()

    def test_more_dimensions_than_elasticsearch_keeps_are_refused_at_the_start(self) -> None:
        with Elasticsearch(NOWHERE) as client, pytest.raises(ConfigError, match="4096 dimensions"):
            ElasticsearchVectors(
                client, prefix="p", banks=(), identity=EncoderIdentity("wide", "1", 4_097), store_id="",
                definition=DEFINITION, search_timeout_s=1.0,
            )  # fmt: skip

    def test_out_of_reach_is_unavailable(self, shelved: Shelf) -> None:
        with Elasticsearch(NOWHERE, max_retries=0) as client:
            away = ElasticsearchVectors(client, **shelved.given)
            for call in (away.cursor, lambda: away.apply([change(1, axis(0))]), lambda: away.advance(1),
                         lambda: away.holds(HERE), away.reset, away.others):  # fmt: skip
                with pytest.raises(BackendUnavailable):
                    call()
            shelved.fill(units(2, DIMENSION))
            with pytest.raises(BackendUnavailable):
                ElasticsearchDense(away.search).search(shelved.index(), axis(0), allowed=None, limit=1)


class TestDenseSearch:
    def test_it_is_remote(self, shelved: Shelf) -> None:
        assert shelved.dense.remote

    def test_an_empty_index_and_a_zero_vector_bring_nothing_case_14(self, shelved: Shelf) -> None:
        assert found(shelved, axis(0)) == []
        shelved.fill(units(3, DIMENSION))
        leg = shelved.dense.search(shelved.index(), axis(0, 0.0), allowed=None, limit=3)
        assert (leg.rows.tolist(), leg.asked, leg.score(np.arange(3)).tolist()) == ([], False, [0.0, 0.0, 0.0])

    def test_more_than_there_are_gives_all_case_14(self, shelved: Shelf) -> None:
        shelved.fill(units(2, DIMENSION))
        assert found(shelved, axis(0), limit=50) == ["m0001", "m0002"]

    def test_no_index_yet_is_no_hits(self, shelved: Shelf) -> None:
        shelved.index().apply([change(1, axis(0))])
        leg = shelved.dense.search(shelved.index(), axis(0), allowed=None, limit=5)
        assert leg.score(leg.rows).tolist() == [0.0]

    def test_far_ones_that_may_be_returned_are_case_8(self, shelved: Shelf) -> None:
        near, far = axis(0) + 0.01 * units(15, DIMENSION), -axis(0) + 0.01 * units(5, DIMENSION)
        shelved.fill(np.concatenate([near, far]))
        index = shelved.index()
        leg = shelved.dense.search(index, axis(0), allowed=np.arange(20) >= 15, limit=5)
        assert leg.rows.tolist() == [15, 16, 17, 18, 19]
        assert leg.score(leg.rows).max() < -0.9

    def test_nothing_that_may_be_returned_brings_nothing(self, shelved: Shelf) -> None:
        shelved.fill(units(3, DIMENSION))
        leg = shelved.dense.search(shelved.index(), axis(0), allowed=np.zeros(3, dtype=np.bool_), limit=5)
        assert leg.rows.tolist() == []
        assert leg.score(np.array([2])) == pytest.approx(units(3, DIMENSION)[2] @ axis(0), abs=1e-6)

    def test_a_row_without_a_vector_scores_0_and_fills_a_place_that_is_left_case_15(self, shelved: Shelf) -> None:
        shelved.put([change(1, axis(0)), change(2, axis(0, 0.0)), change(3, axis(1)), change(4, None)])
        index = shelved.index()
        leg = shelved.dense.search(index, axis(0), allowed=None, limit=3)
        assert index.ids(leg.rows) == ["m0001", "m0002", "m0003"]
        assert leg.score(np.arange(4)).tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0], abs=1e-6)

    def test_memories_that_only_others_know_take_no_places(self, shelved: Shelf) -> None:
        """Another process has indexed 30 nearer ones that are not in this process's roster yet."""
        shelved.fill(units(5, DIMENSION))
        shelved.put([change(100 + each, axis(0)) for each in range(30)], locally=False)
        assert found(shelved, axis(0), limit=5) == [f"m000{number}" for number in range(1, 6)]

    def test_an_id_given_again_is_another_memory_case_5(self, shelved: Shelf) -> None:
        """The vector of its former life, which stayed behind, is not taken for its own."""
        shelved.put([replace(change(1, axis(0)), id="same")], locally=False)
        shelved.put([change(2, axis(1), id="same")])
        index = shelved.index()
        leg = shelved.dense.search(index, axis(0), allowed=None, limit=1)
        assert index.ids(leg.rows) == ["same"]
        assert leg.score(leg.rows).tolist() == [pytest.approx(0.0, abs=1e-6)]

    def test_a_vector_of_another_length_is_refused(self, shelved: Shelf) -> None:
        shelved.fill(units(3, DIMENSION))
        with pytest.raises(BackendRejected):
            shelved.dense.search(shelved.index(), np.ones(4, dtype=np.float32), allowed=None, limit=1)


class TestElsewhere:
    """The roster's rows in process, their vectors in Elasticsearch."""

    def partition(self) -> LocalPartition:
        return LocalPartition(HERE, ElsewhereIndex(DIMENSION), PostingsIndex(), analyze)

    def test_the_answers_are_those_of_a_process_that_holds_the_vectors(self, shelved: Shelf) -> None:
        changes = [change(number, vector) for number, vector in enumerate(units(20, DIMENSION), start=1)]
        changes += [tombstone(3, 21), change(5, axis(0), revision=22), tombstone(20, 23)]
        shelved.put(changes)
        light = self.partition()
        for each in changes:
            light.apply([each])
        held, elsewhere = (
            shelved.dense.search(index, axis(0), allowed=None, limit=7) for index in (shelved.index(), light)
        )
        rows = np.arange(18)
        assert elsewhere.rows.tolist() == held.rows.tolist()
        assert elsewhere.score(rows).tolist() == held.score(rows).tolist()
        assert light.dense.nbytes == 0

    def test_it_is_saved_restored_and_compared_with_the_store(self) -> None:
        changes = [change(number, vector) for number, vector in enumerate(units(5, DIMENSION), start=1)]
        light, again = self.partition(), self.partition()
        light.apply(changes)
        again.restore(light.dump())
        assert len(again) == len(again.dense) == 5
        assert again.compare(changes) == []
        assert again.compare(changes[:4]) != []

    def test_vectors_that_the_other_form_refuses_are_refused_case_15(self) -> None:
        index = ElsewhereIndex(DIMENSION)
        for bad in (np.ones((1, DIMENSION + 1)), np.full((1, DIMENSION), np.nan)):
            with pytest.raises(InvalidInput):
                index.append(bad.astype(np.float32))
            with pytest.raises(InvalidInput):
                index.replace(0, bad[0].astype(np.float32))
        assert len(index) == 0

    def test_every_row_is_near_nothing(self) -> None:
        index = ElsewhereIndex(DIMENSION)
        index.append(units(4, DIMENSION))
        assert index.search(axis(0), allowed=np.array([False, True, True, True]), top_k=2).tolist() == [1, 2]
        assert index.score(axis(0), np.arange(4)).tolist() == [0.0] * 4
        assert not index.vectors(np.arange(4)).any()


class TestRequests:
    """What is sent: these need no server."""

    def test_the_shorter_list_is_the_filter(self) -> None:
        numbers = np.arange(10, 20)
        assert row_clauses(numbers, np.arange(10)) == []
        assert row_clauses(numbers, np.array([1, 2])) == [{"terms": {"number": [11, 12]}}]
        assert row_clauses(numbers, np.arange(1, 10)) == [{"bool": {"must_not": [{"terms": {"number": [10]}}]}}]

    def test_no_terms_clause_is_longer_than_the_server_allows(self) -> None:
        numbers = np.arange(200_000)
        [few] = row_clauses(numbers, np.arange(0, 140_000, 2))
        parts = [clause["terms"]["number"] for clause in few["bool"]["should"]]
        assert few["bool"]["minimum_should_match"] == 1
        assert [len(part) for part in parts] == [65_536, 70_000 - 65_536]
        assert [number for part in parts for number in part] == list(range(0, 140_000, 2))
        [many] = row_clauses(numbers, np.arange(70_000, 200_000))
        assert [len(clause["terms"]["number"]) for clause in many["bool"]["must_not"]] == [65_536, 70_000 - 65_536]

    def test_numbers_of_a_vector_keep_their_float32_bits_in_few_digits(self) -> None:
        vector = units(1, 384)[0]
        document = vector_document(change(1, vector))
        assert document is not None
        assert np.array_equal(np.array(document["vector"], dtype=np.float32), vector)
        assert len(json.dumps(document["vector"])) < 0.65 * len(json.dumps(vector.tolist()))

    def test_parts_of_a_partition_are_not_glued_case_63(self) -> None:
        keys = {partition_key(Partition(*parts)) for parts in [("ab", "c", "d"), ("a", "bc", "d"), ("a", "b", "cd")]}
        assert len(keys) == 3

    def test_any_difference_of_encoders_is_another_index(self) -> None:
        one = EncoderIdentity("a", "1", 8)
        others = [replace(one, **each) for each in ({"name": "b"}, {"revision": "2"}, {"dimension": 9},
                                                    {"pooling": "cls"}, {"prefix": "query: "})]  # fmt: skip
        assert len({identity_hash(each) for each in [one, *others]}) == 6
