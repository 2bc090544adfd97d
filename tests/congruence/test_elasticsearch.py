"""The keyword leg on Elasticsearch ranks like the one in process.

With one partition an index and at most 40 terms a memory, where Lucene keeps lengths exactly, scores agree to 1e-4 and
ids come in the same order. What is left beyond that is measured and printed (docs/adr/0005).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.elasticsearch_kit import HERE, Bookshelf, bookshelf, change, lexical, servers, tombstone
from vimbank.domain.models import BoolArray, FloatArray, IntArray, Partition
from vimbank.domain.text import analyze
from vimbank.errors import BackendUnavailable
from vimbank.indexes.elasticsearch.sparse import ElasticsearchSparse
from vimbank.indexes.partition import LocalPartition
from vimbank.ports import LexicalQuery, SparseLeg
from vimbank.retrieval.legs import LocalSparse

EXACT_TERMS = 40  # up to here Lucene keeps lengths as they are
TOLERANCE = 1e-4
SAME = 1e-6  # what Elasticsearch's float32 cannot tell apart
_ENGLISH = "tea coffee milk sugar river running marathon error pump valve ZX-4471 #682 foo_bar café Lisbon Mochi cello"
_CHINESE = "我喜欢喝咖啡 明天去北京开会 東京タワー 커피를좋아해"
WORDS = [*_ENGLISH.split(), *_CHINESE.split()]
QUERIES = ["tea", "running the marathon", "pump error ZX-4471 #682", "咖啡", "東京 大阪", "커피", "cafe in lisbon",
           "nothing of the kind", "what is the error of the pump", "a AND (b", "* -x NEAR( foo:bar"]  # fmt: skip


def texts(count: int, *, words: int, most_terms: int = EXACT_TERMS, seed: int = 7) -> list[str]:
    """Some words more often than others, as in running text."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, len(WORDS) + 1)
    made: list[str] = []
    while len(made) < count:
        text = " ".join(rng.choice(WORDS, size=rng.integers(1, words + 1), p=shares / shares.sum()))
        if len(analyze(text)) <= most_terms:
            made.append(text)
    return made


def both(
    shelf: Bookshelf,
    query: str | LexicalQuery,
    *,
    allowed: BoolArray | None = None,
    limit: int = 1_000,
    place: Partition = HERE,
    sparse: ElasticsearchSparse | None = None,
) -> tuple[SparseLeg, SparseLeg]:
    """Elasticsearch's leg and the one in process."""
    asked = lexical(query) if isinstance(query, str) else query
    index = shelf.index(place)
    remote = (sparse or shelf.sparse).search(index, asked, allowed=allowed, limit=limit)
    return remote, LocalSparse().search(index, asked, allowed=allowed, limit=limit)


def ranked(index: LocalPartition, scores: FloatArray, rows: IntArray) -> list[float]:
    """Scores of the rows, best first, ties by number."""
    order = np.lexsort((index.column("number")[rows], -np.round(scores, 6)))
    return [float(row) for row in rows[order]]


@pytest.fixture(scope="module", params=servers())
def small(request: pytest.FixtureRequest) -> Iterator[Bookshelf]:
    """200 memories of one user, on either server."""
    with bookshelf(request.param) as shelf:
        shelf.put([change(n, text) for n, text in enumerate(texts(200, words=8), 1)])
        yield shelf


@pytest.fixture(scope="module", params=servers("similarity", "thousands"))
def tuned(request: pytest.FixtureRequest) -> Iterator[Bookshelf]:
    """3,000 memories of at most 40 terms, with k1 and b of their own."""
    with bookshelf(request.param, k1=1.7, b=0.4) as shelf:
        shelf.put([change(n, text) for n, text in enumerate(texts(3_000, words=10), 1)])
        yield shelf


class TestOnePartitionAnIndex:
    @pytest.mark.parametrize("query", QUERIES)
    def test_scores_and_hits_are_equal(self, small: Bookshelf, query: str) -> None:
        """Cases 39, 40, 42, 43, 46: one analyzer on both sides of both backends."""
        remote, local = both(small, query)
        rows = np.arange(len(small.index()))
        assert remote.rows.tolist() == local.rows.tolist()
        np.testing.assert_allclose(remote.score(rows), local.score(rows), rtol=0, atol=TOLERANCE)
        assert remote.best == pytest.approx(local.best, abs=TOLERANCE)
        assert remote.upper_bound == pytest.approx(local.upper_bound, abs=1e-9)

    @pytest.mark.parametrize("query", QUERIES)
    @pytest.mark.parametrize("limit", [1, 25, 200])
    def test_with_parameters_of_their_own(self, tuned: Bookshelf, query: str, limit: int) -> None:
        """Case 49, too: the limit is what decides how many come."""
        remote, local = both(tuned, query, limit=limit)
        index = tuned.index()
        rows = np.arange(len(index))
        np.testing.assert_allclose(remote.score(rows), local.score(rows), rtol=0, atol=TOLERANCE)
        assert remote.upper_bound == pytest.approx(local.upper_bound, abs=1e-9)
        assert remote.best <= remote.upper_bound
        assert len(remote.rows) == len(local.rows)
        mine, theirs = (ranked(index, leg.score(leg.rows), leg.rows) for leg in (remote, local))
        # Where two scores lie closer than a float32 can tell, either may come first.
        close = local.score(np.array(mine, np.int64)) - local.score(np.array(theirs, np.int64))
        assert np.abs(close).max(initial=0.0) <= SAME

    @pytest.mark.parametrize("query", QUERIES)
    def test_scores_of_rows_that_are_named_beside_come_with_the_hits(self, tuned: Bookshelf, query: str) -> None:
        """In one round trip, whether they share a term or not, are hits or not, or are named twice."""
        also = np.array([7, 2_999, 0, 7, 512, *range(100, 180)])
        remote, local = both(tuned, LexicalQuery(query, lexical(query).terms, also), limit=20)
        tuned.client.ask("POST", f"/{tuned.prefix}-dialog/_close")
        try:
            np.testing.assert_allclose(remote.score(also), local.score(also), rtol=0, atol=TOLERANCE)
        finally:
            tuned.client.ask("POST", f"/{tuned.prefix}-dialog/_open", params={"wait_for_active_shards": "all"})
        assert np.abs(np.sort(local.score(remote.rows)) - np.sort(local.score(local.rows))).max(initial=0.0) <= SAME

    def test_of_ties_at_the_cut_the_smallest_numbers_stay(self, small: Bookshelf) -> None:
        place = Partition("t", "ties", "knowledge")
        small.put([change(n, "the very same words", partition=place) for n in (905, 903, 901, 904, 902)])
        remote, local = both(small, "same words", limit=3, place=place)
        assert small.index(place).column("number")[remote.rows].tolist() == [903, 901, 902]
        assert remote.rows.tolist() == local.rows.tolist()

    def test_an_empty_partition(self, small: Bookshelf) -> None:
        remote, _ = both(small, "tea", place=Partition("t", "nobody", "dialog"))
        assert remote.rows.tolist() == []
        assert remote.best == remote.upper_bound == 0.0

    @pytest.mark.parametrize("server", servers("similarity"))
    def test_query_of_1_024_terms(self, server: str) -> None:
        """Case 57: no more clauses than Elasticsearch allows one query, filters apart."""
        with bookshelf(server) as shelf:
            words = [f"w{n}" for n in range(5_000)]
            shelf.put([change(n, " ".join(words[10 * n : 10 * n + 10])) for n in range(1, 200)])
            query = lexical(" ".join(words))
            assert len(query.terms) == 1_024
            mask = np.ones(len(shelf.index()), np.bool_)
            mask[::3] = False
            remote, local = both(shelf, query, allowed=mask)
            assert remote.rows.tolist() == local.rows.tolist()
            assert remote.upper_bound == pytest.approx(local.upper_bound, abs=1e-6)


class TestMasks:
    @settings(max_examples=40, deadline=None, derandomize=True,
              suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
    @given(
        share=st.sampled_from([0.0, 0.02, 0.3, 0.7, 0.98, 1.0]),
        seed=st.integers(0, 99),
        query=st.sampled_from(QUERIES),
        limit=st.integers(1, 60),
        filtered=st.sampled_from([0, 20, 10_000]),
    )
    def test_any_mask_in_any_way(
        self, tuned: Bookshelf, share: float, seed: int, query: str, limit: int, filtered: int
    ) -> None:
        """As a filter on what is allowed, on what is not, or page by page: the same rows (case 8)."""
        mask = np.random.default_rng(seed).random(len(tuned.index())) < share
        sparse = ElasticsearchSparse(tuned.client, prefix=tuned.prefix, k1=1.7, most_filtered_rows=filtered)
        remote, local = both(tuned, query, allowed=mask, limit=limit, sparse=sparse)
        sparse.close()
        assert len(remote.rows) == len(local.rows)
        assert mask[remote.rows].all()
        np.testing.assert_allclose(
            np.sort(local.score(remote.rows)), np.sort(local.score(local.rows)), rtol=0, atol=SAME
        )
        assert remote.best == pytest.approx(local.best, abs=TOLERANCE)

    def test_a_memory_that_this_process_does_not_know_yet_takes_no_place(self, tuned: Bookshelf) -> None:
        place = Partition("t", "two processes", "dialog")
        tuned.put([change(n, "tea and more", partition=place) for n in (5_001, 5_002)])
        tuned.remote.apply([change(n, "tea", partition=place) for n in (5_003, 5_004)])
        tuned.remote.apply([change(5_005, "tea", partition=place, id="m5001")])  # the id was given again
        tuned.remote.advance(5_005)
        remote, _ = both(tuned, "tea", limit=2, place=place)
        assert remote.rows.tolist() == [0, 1]
        assert (remote.score(np.array([0, 1])) > 0).all()

    def test_no_time_left(self, tuned: Bookshelf) -> None:
        hasty = tuned.client.connect(["http://127.0.0.1:1"], search_timeout_s=0.05)
        with pytest.raises(BackendUnavailable):
            both(tuned, "tea", sparse=ElasticsearchSparse(hasty, prefix=tuned.prefix))
        hasty.close()


class TestManyUsers:
    @pytest.mark.parametrize("server", servers("similarity"))
    def test_a_name_that_one_user_always_writes_counts_by_his_own_memories(self, server: str) -> None:
        """Rare in the index, in each of his memories: it must not outweigh what he asks for."""
        his, hers = Partition("t", "his", "dialog"), Partition("t", "hers", "dialog")
        with bookshelf(server) as shelf:
            shelf.put([change(n, f"caroline likes w{n}", partition=his) for n in range(1, 40)])
            shelf.put([change(40, "the market opens", partition=his)])
            shelf.put([change(n, f"the market w{n}", partition=hers) for n in range(41, 240)])
            remote, local = both(shelf, "caroline market", place=his)
            rows = np.arange(40)
            np.testing.assert_allclose(remote.score(rows), local.score(rows), rtol=0, atol=TOLERANCE)
            assert remote.score(rows).argmax() == 39
            assert remote.upper_bound == pytest.approx(local.upper_bound, abs=1e-6)
            nothing, _ = both(shelf, "zeppelin", place=his)
            assert not len(nothing.rows)
            assert not nothing.score(rows).any()


class TestWhatDiffers:
    """Printed, and held to a floor that a mistake would miss: `pytest -s` shows the figures."""

    @pytest.mark.parametrize("server", servers("similarity", "thousands"))
    def test_many_partitions_an_index(self, server: str) -> None:
        """Terms are weighed by the partition; the average length is of the index. Floor: what that can move."""
        with bookshelf(server) as shelf:
            places = [Partition("t", f"u{n}", "dialog") for n in range(20)]
            drawn = texts(4_000, words=10)
            shelf.put([change(n, text, partition=places[n % 20]) for n, text in enumerate(drawn, 1)])
            overlaps, bounds = [], []
            for place in places:
                for query in QUERIES[:7]:
                    remote, local = both(shelf, query, limit=10, place=place)
                    overlaps.append(_overlap(remote.rows, local.rows))
                    bounds.append(remote.upper_bound / local.upper_bound)
            print(f"\n20 partitions of 200: top-10 overlap {np.mean(overlaps):.3f} (least {min(overlaps):.1f}), "
                  f"upper bound {min(bounds):.2f} to {max(bounds):.2f} of the partition's own")  # fmt: skip
            assert np.mean(overlaps) >= 0.97
            assert min(bounds) == pytest.approx(1.0, abs=1e-6) == max(bounds)

    @pytest.mark.parametrize("server", servers("similarity", "thousands"))
    def test_memories_longer_than_40_terms(self, server: str) -> None:
        """Lucene keeps a length in a byte: up to 1/16 short. Floor: that moves a score by less than 6.25 %."""
        with bookshelf(server) as shelf:
            shelf.put([change(n, text) for n, text in enumerate(texts(2_000, words=120, most_terms=1_000), 1)])
            overlaps, errors = [], []
            rows = np.arange(2_000)
            for query in QUERIES[:7]:
                remote, local = both(shelf, query, limit=10)
                overlaps.append(_overlap(remote.rows, local.rows))
                wanted = local.score(rows)
                hit = wanted > 0
                errors.append(np.abs(remote.score(rows)[hit] / wanted[hit] - 1.0).max())
            print(f"\nup to 240 terms: top-10 overlap {np.mean(overlaps):.3f} (least {min(overlaps):.1f}), "
                  f"scores at most {100 * max(errors):.2f} % off")  # fmt: skip
            assert max(errors) < 0.0625
            assert np.mean(overlaps) >= 0.8

    @pytest.mark.parametrize("server", servers("similarity", "merges"))
    def test_deleted_memories_count_until_a_merge(self, server: str) -> None:
        with bookshelf(server) as shelf:
            drawn = texts(600, words=10)
            shelf.put([change(n, text) for n, text in enumerate(drawn, 1)])
            shelf.put([tombstone(n, 1_000 + n) for n in range(1, 301)])
            rows = np.arange(300)
            apart = []
            for query in QUERIES[:7]:
                remote, local = both(shelf, query)
                apart.append(np.abs(remote.score(rows) - local.score(rows)).max())
            index = f"{shelf.prefix}-dialog"
            shelf.client.ask("POST", f"/{index}/_flush", params={"force": "true"})  # what is not safe yet is kept
            shelf.client.ask("POST", f"/{index}/_forcemerge", params={"max_num_segments": "1"})
            shelf.client.ask("POST", f"/{index}/_refresh")
            merged = []
            for query in QUERIES[:7]:
                remote, local = both(shelf, query)
                merged.append(np.abs(remote.score(rows) - local.score(rows)).max())
            print(f"\nhalf of 600 deleted: scores at most {max(apart):.3f} off, {max(merged):.1e} after a merge")
            assert max(merged) <= TOLERANCE


def _overlap(mine: Sequence[int] | IntArray, theirs: Sequence[int] | IntArray) -> float:
    if not len(theirs):
        return 1.0
    return len(np.intersect1d(mine, theirs)) / len(theirs)
