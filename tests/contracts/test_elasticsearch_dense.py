"""The ports ``RemoteIndex`` and ``DenseSearch``, kept by vectors in a real Elasticsearch."""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import orjson
import pytest

from tests.services import service_url
from tests.vectors_kit import HERE, Shelf, archived, change, shelf, tombstone, units
from vimbank.domain.models import Partition
from vimbank.domain.text import analyze
from vimbank.errors import BackendError, BackendRejected, BackendUnavailable, ConfigError
from vimbank.indexes.absent import AbsentDense
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.indexes.elasticsearch.dense import row_clauses
from vimbank.indexes.elasticsearch.vectors import (
    drop_former_vectors,
    former_vectors,
    identity_hash,
    vector_document,
    vectors_alias,
    vectors_index,
)
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


class CountingClient:
    """A real client that counts its searches."""

    def __init__(self, client: ElasticsearchClient) -> None:
        self._client = client
        self.searches = 0

    def search(self, *args: Any, **given: Any) -> list[Mapping[str, Any]]:
        self.searches += 1
        return self._client.search(*args, **given)


class TestRemoteIndex:
    def test_a_new_index_stands_at_0_and_is_made(self, shelved: Shelf) -> None:
        assert shelved.remote.cursor() == 0
        ending = f"vectors-v1-{identity_hash(shelved.identity)}"
        made = shelved.indexes()
        assert sorted(made) == [f"{shelved.prefix}-{bank}-{ending}-1" for bank in ("dialog", "knowledge")]
        mappings = next(iter(made.values()))["mappings"]
        assert mappings["properties"]["vector"]["dims"] == DIMENSION
        assert mappings["_meta"] == {"store": shelved.store_id, "encoder": asdict(shelved.identity), "mapping": 1}
        assert shelved.remote.name == "dense"

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
        """Elasticsearch remembers the version of what it deleted for ``index.gc_deletes``; server A does not.

        However long a writer slept, what it brings back is unknown to the roster.
        """
        shelved.fill(units(2, DIMENSION))
        shelved.put([tombstone(1, 5)])
        shelved.put([change(1, units(2, DIMENSION)[0])], locally=False)
        assert set(shelved.remote.holds(HERE)) in ({2}, {1, 2})
        assert found(shelved, units(2, DIMENSION)[0]) == ["m0002"]

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
        shelved.client.ask("DELETE", f"/{vectors_alias(shelved.prefix, 'dialog', shelved.identity)}-1")
        with pytest.raises(BackendError):
            shelved.remote.apply([change(4, axis(0))])
        with pytest.raises(BackendError):
            shelved.remote.advance(4)
        with pytest.raises(BackendUnavailable):
            found(shelved, axis(0))
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
        foreign = shelved.again(prefix=shelved.prefix + "-x")
        foreign.cursor()
        identity = EncoderIdentity("test", "2", DIMENSION)
        new = shelved.again(identity=identity)
        assert new.cursor() == 0
        assert new.holds(HERE) == {}
        new.apply([change(1, axis(3))])
        new.advance(3)
        assert shelved.remote.holds(HERE) == {1: 1, 2: 2, 3: 3}
        assert found(shelved, units(3, DIMENSION)[0], limit=1) == ["m0001"]
        whose = {"prefix": shelved.prefix, "store_id": shelved.store_id}
        assert former_vectors(shelved.client, identity=identity, prefix=shelved.prefix, store_id="b" * 32) == []
        dropped = drop_former_vectors(shelved.client, identity=identity, **whose)
        assert dropped == [
            f"{vectors_alias(shelved.prefix, bank, shelved.identity)}-1" for bank in ("dialog", "knowledge")
        ]
        assert former_vectors(shelved.client, identity=identity, **whose) == []
        assert new.holds(HERE) == {1: 1}
        assert len(shelved.indexes()) == 4  # the new encoder's, and those of the other prefix

    def test_an_index_of_another_store_is_refused(self, shelved: Shelf) -> None:
        shelved.remote.cursor()
        with pytest.raises(ConfigError, match="another VIMBANK_ELASTICSEARCH__PREFIX"):
            shelved.again(store_id="b" * 32).cursor()

    def test_more_dimensions_than_elasticsearch_keeps_are_refused_at_the_start(self) -> None:
        client = ElasticsearchClient.connect([NOWHERE])
        wide = EncoderIdentity("wide", "1", 4_097)
        with pytest.raises(ConfigError, match="4096 dimensions"):
            vectors_index(client, banks=("dialog",), prefix="p", store_id="", identity=wide)

    def test_out_of_reach_is_unavailable(self, shelved: Shelf) -> None:
        away = ElasticsearchClient.connect([NOWHERE])
        shelved.fill(units(2, DIMENSION))
        with pytest.raises(BackendUnavailable):
            shelved.again(client=away).cursor()
        with pytest.raises(BackendUnavailable):
            former_vectors(away, prefix="p", store_id="", identity=shelved.identity)
        with pytest.raises(BackendUnavailable):
            shelved.search(client=away).search(shelved.index(), axis(0), allowed=None, limit=1)
        away.close()


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

    def test_no_index_yet_is_unavailable(self, shelved: Shelf) -> None:
        """To answer without these vectors, and to say so, is better than to find nothing near."""
        shelved.index().apply([change(1, axis(0))])
        with pytest.raises(BackendUnavailable):
            shelved.dense.search(shelved.index(), axis(0), allowed=None, limit=5)

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
        for limit in (1, 2, 5):
            nearest = shelved.index().dense.search(axis(0), allowed=None, top_k=limit)
            assert found(shelved, axis(0), limit=limit) == sorted(shelved.index().ids(nearest))

    def test_other_users_vectors_are_kept_out_by_the_server_case_30(self, shelved: Shelf) -> None:
        """One request is enough, however near they are: the roster is the second guard, not the first."""
        shelved.fill(units(5, DIMENSION))
        shelved.put([change(100 + at, axis(0), partition=Partition("t", "v", "dialog")) for at in range(30)])
        client = CountingClient(shelved.client)
        leg = shelved.search(client=client).search(shelved.index(), axis(0), allowed=None, limit=2)
        assert leg.rows.tolist() == sorted(shelved.index().dense.search(axis(0), allowed=None, top_k=2).tolist())
        assert client.searches == 1

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


class TestAbsent:
    """The roster's rows in process, their vectors in Elasticsearch alone."""

    def test_the_answers_are_those_of_a_process_that_holds_the_vectors(self, shelved: Shelf) -> None:
        changes = [change(number, vector) for number, vector in enumerate(units(20, DIMENSION), start=1)]
        changes += [tombstone(3, 21), change(5, axis(0), revision=22), tombstone(20, 23)]
        shelved.put(changes)
        light = LocalPartition(HERE, AbsentDense(DIMENSION), PostingsIndex(), analyze)
        for each in changes:
            light.apply([each])
        held, elsewhere = (
            shelved.dense.search(index, axis(0), allowed=None, limit=7) for index in (shelved.index(), light)
        )
        rows = np.arange(18)
        assert elsewhere.rows.tolist() == held.rows.tolist()
        assert elsewhere.score(rows).tolist() == held.score(rows).tolist()


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
        document = orjson.dumps(vector_document(change(1, vector)))
        assert np.array_equal(np.array(json.loads(document)["vector"], dtype=np.float32), vector)
        assert len(document) < 0.65 * len(json.dumps(vector.tolist()))

    def test_any_difference_of_encoders_is_another_index(self) -> None:
        one = EncoderIdentity("a", "1", 8)
        others = [replace(one, **each) for each in ({"name": "b"}, {"revision": "2"}, {"dimension": 9},
                                                    {"pooling": "cls"}, {"prefix": "query: "})]  # fmt: skip
        assert len({identity_hash(each) for each in [one, *others]}) == 6
