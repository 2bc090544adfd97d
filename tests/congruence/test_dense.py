"""FAISS ranks like the exact reference, whatever share of the rows a mask lets through.

Tolerance: the ten best are the same set (recall@10 = 1), ties within 1e-6 aside; scores are bit-equal.
"""

import numpy as np
import pytest

from vimbank.domain.models import BoolArray, Vectors
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.dense.faiss import FaissIndex

ROWS, DIMENSION, QUERIES = 20_000, 96, 20


def clustered(count: int, seed: int) -> Vectors:
    """Rows close around 50 centres, as embeddings of related texts are: hundreds nearly tie, closer than int8 tells."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(1).standard_normal((50, DIMENSION))
    rows = centres[generator.integers(0, 50, count)] + 0.2 * generator.standard_normal((count, DIMENSION))
    units: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


@pytest.fixture(scope="module")
def exact() -> ExactIndex:
    index = ExactIndex(DIMENSION)
    index.append(clustered(ROWS, seed=2))
    return index


@pytest.fixture(scope="module", params=["int8", "float32"])
def faiss(request: pytest.FixtureRequest) -> FaissIndex:
    index = FaissIndex(DIMENSION, int8_from_rows=1_000 if request.param == "int8" else ROWS + 1)
    index.append(clustered(ROWS, seed=2))
    return index


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.5, 1.0])
def test_the_best_ten_are_the_same_under_every_mask(exact: ExactIndex, faiss: FaissIndex, share: float) -> None:
    generator = np.random.default_rng(3)
    for query in clustered(QUERIES, seed=4):
        allowed: BoolArray | None = None if share == 1.0 else generator.random(ROWS) < share
        expected = exact.search(query, allowed=allowed, top_k=10)
        found = faiss.search(query, allowed=allowed, top_k=10)
        assert len(found) == len(expected) == (10 if allowed is None else min(10, np.count_nonzero(allowed)))
        assert exact.score(query, found) == pytest.approx(exact.score(query, expected), abs=1e-6)
        np.testing.assert_allclose(faiss.score(query, found), exact.score(query, found), atol=1e-6)


def test_two_hundred_candidates_hold_the_best_two_hundred(exact: ExactIndex, faiss: FaissIndex) -> None:
    for query in clustered(QUERIES, seed=5):
        expected = exact.search(query, allowed=None, top_k=200)
        found = faiss.search(query, allowed=None, top_k=200)
        assert exact.score(query, found) == pytest.approx(exact.score(query, expected), abs=1e-6)


def test_one_long_component_does_not_blur_the_others() -> None:
    """A row along an axis stretches the int8 scale for all rows; the best are still among the candidates."""
    rows = clustered(5_000, seed=6)
    rows[17] = 0
    rows[17, 3] = 1.0
    exact, faiss = ExactIndex(DIMENSION), FaissIndex(DIMENSION, int8_from_rows=1_000)
    exact.append(rows)
    faiss.append(rows)
    for query in clustered(QUERIES, seed=7):
        expected = exact.search(query, allowed=None, top_k=10)
        found = faiss.search(query, allowed=None, top_k=10)
        assert exact.score(query, found) == pytest.approx(exact.score(query, expected), abs=1e-6)


def test_int8_codes_follow_every_change() -> None:
    exact, faiss = ExactIndex(DIMENSION), FaissIndex(DIMENSION, int8_from_rows=3_000)
    both = (exact, faiss)
    generator = np.random.default_rng(8)
    for index in both:
        index.append(clustered(7_000, seed=9))
    for row in generator.integers(0, 5_000, 1_500).tolist():
        for index in both:
            index.remove(row)
    replacements = clustered(500, seed=10)
    for row, vector in zip(generator.integers(0, 5_000, 500).tolist(), replacements, strict=True):
        for index in both:
            index.replace(row, vector)
    for index in both:
        index.append(clustered(200, seed=11))
    saved = faiss.dump()
    assert np.array_equal(saved["codes"], np.rint(saved["vectors"] * np.float32(saved["scale"])) + 128)
    for query in clustered(QUERIES, seed=12):
        expected = exact.search(query, allowed=None, top_k=10)
        assert exact.score(query, faiss.search(query, allowed=None, top_k=10)) == pytest.approx(
            exact.score(query, expected), abs=1e-6
        )


def test_codes_are_made_anew_when_a_component_outgrows_their_scale() -> None:
    faiss = FaissIndex(DIMENSION, int8_from_rows=1_000)
    faiss.append(clustered(3_000, seed=13))
    before = faiss.dump()["scale"]
    faiss.append(np.eye(1, DIMENSION, dtype=np.float32))
    after = faiss.dump()
    assert after["scale"] == 127 < before
    assert after["codes"][-1, 0] == 128 + 127
    faiss.replace(5, -np.eye(1, DIMENSION, dtype=np.float32)[0])
    assert faiss.dump()["codes"][5, 0] == 128 - 127
