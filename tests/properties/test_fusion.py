"""What every fusion obeys."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.fusion import Fused, convex, normalise_bm25, ranks, rrf, similarity, vimbank_eq4

UNIT = st.floats(0.0, 1.0)
ROWS = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0.0, 30.0), min_size=n, max_size=n).map(np.array),
        st.lists(st.floats(-1.0, 1.0), min_size=n, max_size=n).map(np.array),
        st.lists(st.floats(0.0, 5_000.0), min_size=n, max_size=n).map(np.array),
    )
)


def normalised(bm25: np.ndarray) -> np.ndarray:
    return normalise_bm25(bm25, best=float(bm25.max()), upper_bound=30.0)


def all_fusions(rows: tuple[np.ndarray, ...], weight: float) -> list[Fused]:
    bm25, cosine, age = rows
    sparse, dense = normalised(bm25), similarity(cosine)
    number = np.arange(len(bm25), dtype=np.float64)
    every = np.arange(len(bm25))
    return [
        convex(sparse, dense, sparse_weight=weight),
        vimbank_eq4(sparse, dense, age_days=age, half_life_days=7.0),
        rrf(ranks(bm25, number, among=every), ranks(cosine, number, among=every)),
    ]


@given(ROWS, UNIT)
def test_relevance_and_parts_are_in_0_1_and_add_up(rows: tuple[np.ndarray, ...], weight: float) -> None:
    for fused in all_fusions(rows, weight):
        assert (fused.sparse >= 0).all()
        assert (fused.dense >= 0).all()
        assert (fused.relevance <= 1).all()
        np.testing.assert_allclose(fused.sparse + fused.dense, fused.relevance, atol=1e-12)


@given(ROWS, UNIT)
def test_arguments_are_left_alone(rows: tuple[np.ndarray, ...], weight: float) -> None:
    before = [row.copy() for row in rows]
    all_fusions(rows, weight)
    for row, copy in zip(rows, before, strict=True):
        np.testing.assert_array_equal(row, copy)


@given(ROWS)
def test_rrf_is_unmoved_by_monotone_rescaling(rows: tuple[np.ndarray, ...]) -> None:
    bm25, cosine, _ = rows
    number = np.arange(len(bm25), dtype=np.float64)
    every = np.arange(len(bm25))
    plain = rrf(ranks(bm25, number, among=every), ranks(cosine, number, among=every))
    # times a power of two: exact, so that no two scores fall together
    scaled = rrf(ranks(bm25 * 8.0, number, among=every), ranks(cosine * 4.0, number, among=every))
    np.testing.assert_array_equal(plain.relevance, scaled.relevance)


@given(ROWS)
def test_the_sparse_score_keeps_the_order_of_bm25(rows: tuple[np.ndarray, ...]) -> None:
    """Case 143."""
    bm25 = np.sort(rows[0])
    assert (np.diff(normalised(bm25)) >= 0).all()


@given(ROWS, UNIT, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_convex_never_falls_when_a_leg_rises(
    rows: tuple[np.ndarray, ...], weight: float, more_sparse: float, more_dense: float
) -> None:
    sparse, dense = normalised(rows[0]), similarity(rows[1])
    before = convex(sparse, dense, sparse_weight=weight).relevance
    after = convex(
        np.minimum(sparse + more_sparse, 1.0), np.minimum(dense + more_dense, 1.0), sparse_weight=weight
    ).relevance
    assert (after >= before - 1e-12).all()
