"""Fusion: numbers worked by hand."""

import numpy as np
import pytest

from vimbank.domain.fusion import (
    Fused,
    convex,
    dense_only,
    normalise_bm25,
    ranks,
    rrf,
    similarity,
    sparse_only,
    vimbank_eq4,
)


def figures(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_normalised_bm25_is_half_relative_and_half_absolute() -> None:
    got = normalise_bm25(figures(4.0, 2.0, 0.0), best=4.0, upper_bound=8.0)
    # 0.5*4/4 + 0.5*4/8 = 0.75; 0.5*2/4 + 0.5*2/8 = 0.375
    assert got == pytest.approx([0.75, 0.375, 0.0])


def test_a_single_weak_match_does_not_become_1() -> None:
    """Case 25: the best of a bad lot is 0.5 plus what it reached of the upper bound."""
    assert normalise_bm25(figures(0.1), best=0.1, upper_bound=10.0) == pytest.approx([0.5 + 0.005])


@pytest.mark.parametrize(("best", "upper_bound"), [(0.0, 0.0), (0.0, 3.0)])
def test_no_term_found_is_0_everywhere(best: float, upper_bound: float) -> None:
    assert normalise_bm25(figures(0.0, 0.0), best=best, upper_bound=upper_bound).tolist() == [0.0, 0.0]


def test_similarity_drops_opposites_and_rounding_above_1() -> None:
    assert similarity(figures(-0.4, 0.0, 0.7, 1.0000001)).tolist() == [0.0, 0.0, 0.7, 1.0]


def test_convex_weighs_both_legs() -> None:
    fused = convex(figures(0.8, 0.0), figures(0.5, 1.0), sparse_weight=0.25)
    assert fused.sparse == pytest.approx([0.2, 0.0])
    assert fused.dense == pytest.approx([0.375, 0.75])
    assert fused.relevance == pytest.approx([0.575, 0.75])


def test_rrf_counts_ranks_from_1_with_60() -> None:
    fused = rrf(np.array([1, 2, 0]), np.array([1, 0, 3]))
    # (1/61 + 1/61) / (2/61) = 1;  (1/62) / (2/61) = 61/124;  (1/63) / (2/61) = 61/126
    assert fused.relevance == pytest.approx([1.0, 61 / 124, 61 / 126])
    assert fused.sparse == pytest.approx([0.5, 61 / 124, 0.0])


def test_eq4_moves_weight_from_keyword_to_similarity_with_age() -> None:
    fused = vimbank_eq4(figures(1.0, 1.0, 1.0), figures(0.3, 0.3, 0.3), age_days=figures(0.0, 7.0, 14.0))
    # omega = 1, 1/2, 1/4 at the default half-life of a week
    assert fused.relevance == pytest.approx([1.0, 0.5 + 0.15, 0.25 + 0.225])


def test_eq4_rewards_age_without_a_keyword_as_printed() -> None:
    """B12: the newest paraphrase scores 0. That is why it is not the default."""
    fused = vimbank_eq4(figures(0.0, 0.0), figures(0.9, 0.9), age_days=figures(0.0, 2.0), half_life_days=2.0)
    assert fused.relevance == pytest.approx([0.0, 0.45])


def test_single_legs_show_that_leg() -> None:
    leg = figures(0.9, 0.1)
    assert dense_only(leg).relevance.tolist() == sparse_only(leg).relevance.tolist() == [0.9, 0.1]
    assert dense_only(leg).sparse.tolist() == sparse_only(leg).dense.tolist() == [0.0, 0.0]


def test_ranks_break_ties_by_number_and_leave_others_at_0() -> None:
    got = ranks(figures(0.5, 0.9, 0.5, 0.9), figures(30, 20, 10, 40), among=np.array([2, 0, 1]))
    assert got.tolist() == [3, 1, 2, 0]


def test_ranks_of_nothing() -> None:
    assert ranks(figures(0.5), figures(1), among=np.empty(0, dtype=np.int64)).tolist() == [0]


def test_relevance_is_cut_at_1() -> None:
    assert Fused(figures(0.7), figures(0.30000000000000004)).relevance[0] <= 1.0
