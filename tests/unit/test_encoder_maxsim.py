"""Late interaction worked by hand, and what compression costs (V-13, B15)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.maxsim import compress_tokens, expand_tokens, maxsim, maxsim_many, pool_tokens
from vimbank.domain.models import Vectors
from vimbank.errors import InvalidInput


def unit(rows: list[list[float]]) -> Vectors:
    matrix = np.array(rows, dtype=np.float32)
    scaled: Vectors = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return scaled


def random_unit(rows: int, dimension: int, seed: int) -> Vectors:
    return unit(np.random.default_rng(seed).normal(size=(rows, dimension)).tolist())


QUERY = unit([[1, 0], [0, 1]])


def test_each_query_token_takes_its_best_document_token() -> None:
    document = unit([[1, 0], [3, 4]])  # bests: 1 for (1, 0), 0.8 for (0, 1)
    assert maxsim(QUERY, document) == pytest.approx((1 + 0.8) / 2)


def test_a_document_holding_every_query_token_scores_one() -> None:
    assert maxsim(QUERY, unit([[0, 1], [1, 0], [-1, 0]])) == pytest.approx(1)


def test_an_opposed_document_scores_zero_not_less() -> None:
    assert maxsim(QUERY, unit([[-1, -1]])) == 0


def test_one_opposed_token_lowers_the_mean_before_the_floor() -> None:
    # bests: 0.8 for (1, 0), -0.6 for (0, 1)
    assert maxsim(QUERY, unit([[4, -3]])) == pytest.approx((0.8 - 0.6) / 2)


@pytest.mark.parametrize(("queries", "tokens"), [(0, 3), (3, 0), (0, 0)])
def test_nothing_to_compare_scores_zero(queries: int, tokens: int) -> None:
    assert maxsim(np.ones((queries, 1), np.float32), np.ones((tokens, 1), np.float32)) == 0


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(1, 5), st.integers(0, 1000))
def test_many_documents_score_as_each_alone(lengths: list[int], queries: int, seed: int) -> None:
    query = random_unit(queries, 4, seed)
    documents = [
        random_unit(length, 4, seed + number) if length else np.zeros((0, 4), np.float32)
        for number, length in enumerate(lengths, 1)
    ]
    expected = [
        max(0.0, float(np.mean([max(float(q @ d) for d in document) for q in query]))) if len(document) else 0.0
        for document in documents
    ]
    np.testing.assert_allclose(maxsim_many(query, documents), expected, atol=1e-6)


def test_pooling_is_the_mean_at_length_one_and_zero_for_no_token() -> None:
    pooled = pool_tokens([QUERY, np.zeros((0, 2), np.float32)], 2)
    np.testing.assert_allclose(pooled, [[0.5**0.5, 0.5**0.5], [0, 0]], atol=1e-6)
    assert pool_tokens([], 7).shape == (0, 7)


@pytest.mark.parametrize("dimension", [1, 96, 128, 384, 1024])
def test_compression_keeps_direction_and_score(dimension: int) -> None:
    tokens = random_unit(150, dimension, seed=dimension)
    kept = expand_tokens(compress_tokens(tokens))
    assert len(compress_tokens(tokens)) == 5 + tokens.size
    assert np.sum(kept * tokens, axis=1).min() > 0.9999
    query = random_unit(32, dimension, seed=1)
    assert maxsim(query, kept) == pytest.approx(maxsim(query, tokens), abs=0.001)


def test_compression_keeps_zero_rows_and_no_rows() -> None:
    rows = np.array([[0, 0, 0], [0, 1, 0]], np.float32)
    np.testing.assert_array_equal(expand_tokens(compress_tokens(rows)), rows)
    assert expand_tokens(compress_tokens(rows[:0])).shape == (0, 3)


def test_compression_leaves_its_argument_alone() -> None:
    rows = random_unit(3, 8, seed=0)
    before = rows.copy()
    compress_tokens(rows)
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize(
    "data", [b"", b"\x01\x02", b"\x09\x02\x00\x00\x00ab", b"\x01\x00\x00\x00\x00", b"\x01\x02\x00\x00\x00abc"]
)
def test_bytes_that_are_no_packet_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        expand_tokens(data)


@pytest.mark.parametrize(
    "rows", [np.array([[np.nan]], np.float32), np.ones(3, np.float32), np.ones((2, 0), np.float32)]
)
def test_what_is_no_matrix_of_numbers_is_not_compressed(rows: Vectors) -> None:
    with pytest.raises(InvalidInput):
        compress_tokens(rows)
