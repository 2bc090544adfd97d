"""What every in-process sparse index promises (port ``SparseIndex``)."""

from collections.abc import Callable
from math import log
from pathlib import Path

import numpy as np
import pytest

from vimbank.errors import IndexCorrupt, InvalidInput
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.indexes.sparse.rank_bm25 import RankBM25Index
from vimbank.ports import SparseIndex

MAKERS: dict[str, Callable[..., SparseIndex]] = {"postings": PostingsIndex, "rank-bm25": RankBM25Index}


@pytest.fixture(params=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Callable[..., SparseIndex]:
    return MAKERS[request.param]


def filled(make: Callable[..., SparseIndex], *documents: str) -> SparseIndex:
    index = make()
    index.append([document.split() for document in documents])
    return index


def scores(index: SparseIndex, query: str) -> list[float]:
    return [round(float(score), 9) for score in index.score(query.split()).scores]


class TestSparseIndex:
    def test_scores_are_lucenes_bm25_without_k1_plus_1(self, make: Callable[..., SparseIndex]) -> None:
        index = filled(make, "tea tea milk", "tea", "milk milk milk milk")
        # N = 3, avgdl = (3 + 1 + 4) / 3 = 8/3; tea is in 2 rows: idf = ln(1 + 1.5/2.5) = ln 1.6.
        # Row 0: tf 2, norm 1.2 * (0.25 + 0.75 * 3 / (8/3)) = 1.3125. Row 1: tf 1, norm 1.2 * (0.25 + 0.28125) = 0.6375.
        result = index.score(["tea"])
        assert result.scores.dtype == np.float64
        assert result.scores == pytest.approx([log(1.6) * 2 / 3.3125, log(1.6) * 1 / 1.6375, 0.0], abs=1e-12)
        assert result.upper_bound == pytest.approx(log(1.6), abs=1e-12)

    def test_an_unknown_term_raises_the_upper_bound_alone(self, make: Callable[..., SparseIndex]) -> None:
        index = filled(make, "tea", "milk")
        # tea: ln(1 + 1.5/1.5) = ln 2. rum: ln(1 + 2.5/0.5) = ln 6.
        assert scores(index, "tea rum") == scores(index, "tea")
        assert index.score(["tea", "rum"]).upper_bound == pytest.approx(log(2) + log(6))

    def test_a_term_repeated_in_the_query_counts_once(self, make: Callable[..., SparseIndex]) -> None:
        index = filled(make, "tea milk", "tea")
        assert scores(index, "tea tea milk tea") == scores(index, "tea milk")
        assert index.score(["tea", "tea"]).upper_bound == index.score(["tea"]).upper_bound

    def test_k1_and_b(self, make: Callable[..., SparseIndex]) -> None:
        index = make(k1=2.0, b=0.0)
        index.append([["tea", "tea"], ["milk"] * 9])
        assert index.score(["tea"]).scores == pytest.approx([log(2) * 2 / 4, 0])
        full = make(k1=1.0, b=1.0)
        full.append([["tea", "tea"], ["milk"] * 6])
        assert full.score(["tea"]).scores == pytest.approx([log(2) * 2 / (2 + 2 / 4), 0])

    @pytest.mark.parametrize("options", [{"k1": 0.0}, {"k1": float("nan")}, {"b": -0.1}, {"b": 1.1}])
    def test_bad_parameters_are_refused(self, make: Callable[..., SparseIndex], options: dict[str, float]) -> None:
        with pytest.raises(InvalidInput):
            make(**options)

    def test_an_empty_index_answers(self, make: Callable[..., SparseIndex]) -> None:
        index = make()
        assert len(index) == 0
        assert index.score(["tea"]).scores.shape == (0,)
        assert index.score(["tea"]).upper_bound == pytest.approx(log(2))  # ln(1 + 0.5 / 0.5)
        index.append([])
        assert len(index) == 0

    def test_no_terms_no_scores(self, make: Callable[..., SparseIndex]) -> None:
        result = filled(make, "tea", "milk").score([])
        assert result.scores.tolist() == [0, 0]
        assert result.upper_bound == 0

    def test_empty_documents_are_rows(self, make: Callable[..., SparseIndex]) -> None:
        index = filled(make, "", "")
        assert scores(index, "tea") == [0, 0]
        index.append([["tea"], []])
        # avgdl = 1/4, so that the norm of row 2 is 1.2 * (0.25 + 0.75 * 4).
        assert index.score(["tea"]).scores == pytest.approx([0, 0, log(1 + 3.5 / 1.5) / (1 + 3.9), 0])

    def test_remove_moves_the_last_row(self, make: Callable[..., SparseIndex]) -> None:
        index = filled(make, "tea", "milk", "rum rum")
        index.remove(0)
        assert len(index) == 2
        assert scores(index, "rum milk") == scores(filled(make, "rum rum", "milk"), "rum milk")
        index.remove(1)
        assert scores(index, "rum") == scores(filled(make, "rum rum"), "rum")
        index.remove(0)
        assert len(index) == 0
        index.append([["tea"]])
        assert scores(index, "tea") == scores(filled(make, "tea"), "tea")

    def test_remove_finds_the_row_among_others_with_its_terms(self, make: Callable[..., SparseIndex]) -> None:
        index = filled(make, "tea", "tea milk milk", "tea rum", "tea tea tea milk")
        index.remove(1)
        expected = filled(make, "tea", "tea tea tea milk", "tea rum")
        for query in ("tea", "milk", "rum"):
            assert scores(index, query) == scores(expected, query)

    def test_replace_changes_one_row(self, make: Callable[..., SparseIndex]) -> None:
        index = filled(make, "tea milk", "milk", "rum")
        index.replace(1, ["tea", "tea", "port"])
        expected = filled(make, "tea milk", "tea tea port", "rum")
        for query in ("tea", "milk", "port rum", "tea milk rum port"):
            assert scores(index, query) == scores(expected, query)
            assert index.score(query.split()).upper_bound == expected.score(query.split()).upper_bound

    @pytest.mark.parametrize("row", [-1, 2])
    def test_rows_that_are_not_there_are_refused(self, make: Callable[..., SparseIndex], row: int) -> None:
        index = filled(make, "tea", "milk")
        with pytest.raises(IndexError):
            index.remove(row)
        with pytest.raises(IndexError):
            index.replace(row, ["rum"])
        assert scores(index, "tea milk") == scores(filled(make, "tea", "milk"), "tea milk")

    def test_terms_may_be_any_text(self, make: Callable[..., SparseIndex]) -> None:
        odd = ["", "\n", "é", "咖啡", "🎂", "\ud83d", "a b", "\x00"]
        index = make()
        index.append([odd, odd[:3]])
        restored = make()
        restored.restore(index.dump())
        for term in odd:
            assert restored.score([term]).scores.tolist() == index.score([term]).scores.tolist()
            assert restored.score([term]).scores[0] > 0

    def test_a_restored_index_is_the_same_and_changes_alone(
        self, make: Callable[..., SparseIndex], tmp_path: Path
    ) -> None:
        index = filled(make, "tea milk tea", "", "milk rum", "tea")
        index.remove(2)
        saved = index.dump()
        restored = make()
        restored.append([["something", "else"]])
        restored.restore(mapped(saved, tmp_path))
        query = ["tea", "milk", "rum"]
        assert len(restored) == len(index) == 3
        assert restored.score(query).scores.tolist() == index.score(query).scores.tolist()
        for each in (index, restored):
            each.append([["rum", "tea"]])
            each.replace(0, ["milk"])
            each.remove(1)
        assert restored.score(query).scores.tolist() == index.score(query).scores.tolist()
        again = make()
        again.restore(restored.dump())
        assert again.score(query).scores.tolist() == index.score(query).scores.tolist()

    def test_an_empty_index_is_saved_and_restored(self, make: Callable[..., SparseIndex]) -> None:
        restored = filled(make, "tea")
        restored.restore(make().dump())
        assert len(restored) == 0
        restored.append([["tea"]])
        assert scores(restored, "tea") == scores(filled(make, "tea"), "tea")

    @pytest.mark.parametrize("name", ["format", "analyzer"])
    def test_another_version_is_refused(self, make: Callable[..., SparseIndex], name: str) -> None:
        saved = filled(make, "tea").dump()
        index = filled(make, "milk")
        with pytest.raises(IndexCorrupt):
            index.restore({**saved, name: "another"})
        assert scores(index, "milk") == scores(filled(make, "milk"), "milk")

    def test_memory_is_estimated(self, make: Callable[..., SparseIndex]) -> None:
        small, large = filled(make, "tea"), filled(make, *(f"tea milk number {i}" for i in range(100)))
        assert 0 < small.nbytes < large.nbytes


def mapped(saved: dict[str, object], folder: Path) -> dict[str, object]:
    """The saved arrays as read-only memory maps, as a snapshot gives them; what is empty cannot be mapped."""
    arrays: dict[str, object] = {}
    for name, value in saved.items():
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
            value = np.load(folder / f"{name}.npy", mmap_mode="r" if value.size else None)
        arrays[name] = value
    return arrays


@pytest.mark.parametrize("damage", ["terms", "rows", "frequencies", "row_terms", "lengths", "posting_offsets"])
def test_postings_refuse_arrays_that_do_not_fit(damage: str) -> None:
    index = filled(PostingsIndex, "tea milk", "tea")
    saved = index.dump()
    lost = {name: value for name, value in saved.items() if name != damage}
    for bad in (lost, {**saved, damage: saved[damage][:-1]}) if damage != "terms" else (lost,):
        with pytest.raises(IndexCorrupt):
            PostingsIndex().restore(bad)
