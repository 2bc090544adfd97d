"""Scores of a run: numbers worked by hand."""

from math import log2

import pytest

from vimbank.errors import InvalidInput
from vimbank.eval.metrics import all_at_k, any_at_k, mrr, ndcg_at_k, recall_at_k

RUN = ["a", "b", "c", "d"]


def test_recall_is_the_share_found() -> None:
    assert recall_at_k(RUN, {"b", "d", "x"}, 2) == pytest.approx(1 / 3)
    assert recall_at_k(RUN, {"b", "d", "x"}, 10) == pytest.approx(2 / 3)


def test_all_and_any() -> None:
    assert (all_at_k(RUN, {"a", "c"}, 2), all_at_k(RUN, {"a", "c"}, 3)) == (0.0, 1.0)
    assert (any_at_k(RUN, {"c", "x"}, 2), any_at_k(RUN, {"c", "x"}, 3)) == (0.0, 1.0)


def test_mrr_counts_from_1() -> None:
    assert mrr(RUN, {"c", "d"}) == pytest.approx(1 / 3)
    assert mrr(RUN, {"x"}) == 0.0


def test_ndcg_by_hand() -> None:
    # found at ranks 2 and 4; ideal at ranks 1 and 2
    assert ndcg_at_k(RUN, {"b", "d"}, 4) == pytest.approx((1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3)))
    assert ndcg_at_k(["a", "b"], {"a", "b", "c"}, 2) == pytest.approx(1.0)
    assert ndcg_at_k(RUN, {"x"}, 4) == 0.0


def test_a_repeated_id_counts_once_at_its_first_place() -> None:
    assert recall_at_k(["a", "a", "b"], {"a", "b"}, 2) == 1.0
    assert ndcg_at_k(["a", "a"], {"a"}, 2) == 1.0
    assert mrr(["x", "x", "a"], {"a"}) == pytest.approx(1 / 2)


def test_an_empty_run_scores_0() -> None:
    assert (recall_at_k([], {"a"}, 5), mrr([], {"a"}), ndcg_at_k([], {"a"}, 5)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("score", [recall_at_k, all_at_k, any_at_k, ndcg_at_k])
def test_what_has_no_score_is_an_error(score: object) -> None:
    with pytest.raises(InvalidInput, match="relevant"):
        score(RUN, set(), 5)  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="k"):
        score(RUN, {"a"}, 0)  # type: ignore[operator]


def test_mrr_without_relevant_ids_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="relevant"):
        mrr(RUN, set())
