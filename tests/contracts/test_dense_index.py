"""The port ``DenseIndex``: every adapter keeps its promises."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vimbank.domain.models import IntArray, Vectors
from vimbank.errors import InvalidInput
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.dense.faiss import FaissIndex
from vimbank.ports import DenseIndex

DIMENSION = 8
ADAPTERS: dict[str, Callable[[], DenseIndex]] = {
    "exact": lambda: ExactIndex(DIMENSION),
    "faiss": lambda: FaissIndex(DIMENSION),
    "faiss-int8": lambda: FaissIndex(DIMENSION, int8_from_rows=1),
    "faiss-crossing": lambda: FaissIndex(DIMENSION, int8_from_rows=6),  # the machine walks over the border
}


@pytest.fixture(params=ADAPTERS)
def index(request: pytest.FixtureRequest) -> DenseIndex:
    return ADAPTERS[request.param]()


def units(count: int, seed: int = 0) -> Vectors:
    rows: Vectors = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def axis(at: int, value: float = 1.0) -> Any:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[at] = value
    return vector


def everything(index: DenseIndex) -> IntArray:
    return np.arange(len(index))


class TestDenseIndex:
    def test_best_first(self, index: DenseIndex) -> None:
        half = (axis(0) + axis(1)) / np.sqrt(2)
        index.append(np.stack([axis(1), half, axis(0), -axis(0)]))
        assert index.search(axis(0), allowed=None, top_k=4).tolist() == [2, 1, 0, 3]
        assert index.score(axis(0), everything(index)) == pytest.approx([0, 0.5**0.5, 1, -1], abs=1e-7)

    def test_other_lengths_are_made_unit_case_10(self, index: DenseIndex) -> None:
        index.append(np.stack([axis(0, 0.1), axis(0, 0.5) + axis(1, 0.5)]))
        assert index.search(axis(0, 3.0), allowed=None, top_k=2).tolist() == [0, 1]
        assert index.score(axis(0, 3.0), everything(index)) == pytest.approx([1.0, 0.70710678], abs=1e-7)

    def test_a_match_scores_above_a_stranger_case_11(self, index: DenseIndex) -> None:
        index.append(np.stack([axis(3), axis(0)]))
        scores = index.score(axis(0), index.search(axis(0), allowed=None, top_k=2))
        assert scores.tolist() == [1.0, 0.0]

    def test_own_vectors_score_within_one_case_12(self, index: DenseIndex) -> None:
        index.append(units(1_000))
        for row, vector in enumerate(units(1_000)):
            score = float(index.score(vector, np.array([row]))[0])
            assert 1 - 1e-6 <= score <= 1

    def test_fewer_rows_than_asked_case_14(self, index: DenseIndex) -> None:
        assert index.search(axis(0), allowed=None, top_k=50).tolist() == []
        assert index.search(axis(0), allowed=np.zeros(0, dtype=np.bool_), top_k=50).tolist() == []
        index.append(units(2))
        assert sorted(index.search(axis(0), allowed=None, top_k=50).tolist()) == [0, 1]
        assert index.search(axis(0), allowed=np.array([False, True]), top_k=50).tolist() == [1]
        assert index.search(axis(0), allowed=np.zeros(2, dtype=np.bool_), top_k=50).tolist() == []
        assert index.search(axis(0), allowed=None, top_k=0).tolist() == []
        assert index.score(axis(0), np.empty(0, dtype=np.int64)).shape == (0,)

    def test_zero_vectors_score_zero_case_15(self, index: DenseIndex) -> None:
        index.append(np.stack([axis(0, 0.0), axis(0), -axis(0)]))
        assert index.search(axis(0), allowed=None, top_k=3).tolist() == [1, 0, 2]
        assert index.score(axis(0), everything(index)).tolist() == [0.0, 1.0, -1.0]
        assert sorted(index.search(axis(0, 0.0), allowed=None, top_k=3).tolist()) == [0, 1, 2]
        assert index.score(axis(0, 0.0), everything(index)).tolist() == [0.0, 0.0, 0.0]

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_what_is_not_finite_is_refused_case_15(self, index: DenseIndex, bad: float) -> None:
        index.append(units(2))
        with pytest.raises(InvalidInput, match="finite"):
            index.append(np.stack([axis(0), axis(1, bad)]))
        with pytest.raises(InvalidInput, match="finite"):
            index.replace(0, axis(1, bad))
        assert len(index) == 2
        assert np.array_equal(index.vectors(everything(index)), units(2))

    def test_another_dimension_is_refused(self, index: DenseIndex) -> None:
        with pytest.raises(InvalidInput, match="8 dimensions"):
            index.append(np.ones((1, DIMENSION + 1), dtype=np.float32))

    def test_deleted_rows_are_gone_case_2(self, index: DenseIndex) -> None:
        index.append(units(3))
        index.remove(1)
        assert len(index) == 2
        assert np.array_equal(index.vectors(everything(index)), units(3)[[0, 2]])
        assert sorted(index.search(units(3)[1], allowed=None, top_k=3).tolist()) == [0, 1]

    def test_masked_rows_never_show_case_8(self, index: DenseIndex) -> None:
        near = axis(0) + 0.01 * units(15)
        far = -axis(0) + 0.01 * units(5)
        index.append(np.concatenate([near, far]))
        allowed = np.arange(20) >= 15
        assert sorted(index.search(axis(0), allowed=allowed, top_k=5).tolist()) == [15, 16, 17, 18, 19]

    def test_a_score_does_not_depend_on_its_company(self, index: DenseIndex) -> None:
        index.append(units(700))
        query = units(1, seed=9)[0]
        together = index.score(query, everything(index))
        backwards = index.score(query, everything(index)[::-1].copy())[::-1]
        alone = [float(index.score(query, np.array([row]))[0]) for row in range(700)]
        assert together.tolist() == backwards.tolist() == alone

    def test_stored_vectors_keep_their_bits(self, index: DenseIndex) -> None:
        index.append(units(30))
        index.replace(7, units(1, seed=5)[0])
        expected = units(30)
        expected[7] = units(1, seed=5)[0]
        assert np.array_equal(index.vectors(everything(index)), expected)

    def test_saved_state_is_memory_mapped_and_copied_on_write(self, index: DenseIndex, tmp_path: Path) -> None:
        index.append(units(40))
        arrays = index.dump()
        for name, array in arrays.items():
            if isinstance(array, np.ndarray):
                np.save(tmp_path / name, array)
        mapped = {
            name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") if isinstance(value, np.ndarray) else value
            for name, value in arrays.items()
        }
        restored = type(index)(DIMENSION) if isinstance(index, ExactIndex) else FaissIndex(DIMENSION, int8_from_rows=1)
        restored.restore(mapped)
        query = units(1, seed=3)[0]
        assert (
            restored.search(query, allowed=None, top_k=9).tolist()
            == index.search(query, allowed=None, top_k=9).tolist()
        )
        restored.remove(0)
        restored.replace(1, axis(2))
        restored.append(units(1, seed=4))
        assert len(restored) == 40
        assert restored.search(axis(2), allowed=None, top_k=1).tolist() == [1]
        assert np.array_equal(np.load(tmp_path / "vectors.npy"), units(40))  # the file is as it was

    def test_size_is_told(self, index: DenseIndex) -> None:
        index.append(units(100))
        assert index.nbytes >= 100 * DIMENSION * 4


class DenseMachine(RuleBasedStateMachine):
    """Any sequence of changes, against a plain array."""

    @initialize(adapter=st.sampled_from(sorted(ADAPTERS)))
    def start(self, adapter: str) -> None:
        self.index = ADAPTERS[adapter]()
        self.rows: Vectors = np.empty((0, DIMENSION), dtype=np.float32)
        self.seed = 0

    def fresh(self, count: int) -> Vectors:
        self.seed += 1
        # Now and then a vector along one axis: its component is far above the others', beyond the int8 scale.
        return units(count, self.seed) if self.seed % 3 else np.stack([axis(self.seed % DIMENSION)] * count)

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        vectors = self.fresh(count)
        self.index.append(vectors)
        self.rows = np.concatenate([self.rows, vectors])

    @precondition(lambda self: len(self.rows) > 0)
    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        row = data.draw(st.integers(0, len(self.rows) - 1))
        vector = self.fresh(1)[0]
        self.index.replace(row, vector)
        self.rows[row] = vector

    @precondition(lambda self: len(self.rows) > 0)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        row = data.draw(st.integers(0, len(self.rows) - 1))
        self.index.remove(row)
        self.rows[row] = self.rows[-1]
        self.rows = self.rows[:-1].copy()

    @rule()
    def save_and_restore(self) -> None:
        arrays = {
            name: value.copy() if isinstance(value, np.ndarray) else value for name, value in self.index.dump().items()
        }
        self.index.restore(arrays)

    @rule(data=st.data(), top_k=st.integers(1, 8))
    def search(self, data: st.DataObject, top_k: int) -> None:
        allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(self.rows), max_size=len(self.rows))), bool)
        query = self.fresh(1)[0]
        exact = self.rows.astype(np.float64) @ query.astype(np.float64)
        for mask in (None, allowed):
            possible = exact if mask is None else exact[mask]
            found = self.index.search(query, allowed=mask, top_k=top_k)
            assert len(set(found.tolist())) == len(found) == min(top_k, len(possible))
            assert mask is None or mask[found].all()
            assert exact[found] == pytest.approx(np.sort(possible)[::-1][:top_k], abs=1e-6)
            assert self.index.score(query, found) == pytest.approx(exact[found], abs=1e-7)

    @invariant()
    def holds_the_same_rows(self) -> None:
        if hasattr(self, "rows"):
            assert len(self.index) == len(self.rows)
            assert np.array_equal(self.index.vectors(np.arange(len(self.rows))), self.rows)


TestDenseMachine = DenseMachine.TestCase
TestDenseMachine.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
