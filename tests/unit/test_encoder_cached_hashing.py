"""The query cache counted by the texts that reach the encoder, and the hashing encoder."""

from collections.abc import Sequence

import numpy as np
import pytest

from vimbank.domain.models import Vectors
from vimbank.encoders.cached import CachedEncoder
from vimbank.encoders.hashing import HashingEncoder
from vimbank.encoders.vectors import encode_by_length, has_signal, unit_rows, well_formed
from vimbank.errors import ConfigError, ModelError


class CountingEncoder(HashingEncoder):
    """A hashing encoder that notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(16)
        self.asked: list[list[str]] = []

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return super().encode_queries(texts)


def test_a_query_is_encoded_once_and_in_one_batch_with_the_others_missing() -> None:
    inner = CountingEncoder()
    cached = CachedEncoder(inner, 10)
    cached.encode_queries(["a", "b", "a"])
    answer = cached.encode_queries(["c", "a", "b"])
    assert inner.asked == [["a", "b"], ["c"]]
    np.testing.assert_array_equal(answer, HashingEncoder(16).encode_queries(["c", "a", "b"]))


def test_the_least_recently_used_goes_first() -> None:
    inner = CountingEncoder()
    cached = CachedEncoder(inner, 2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.encode_queries([text])
    assert inner.asked == [["a"], ["b"], ["c"], ["b"]]


def test_a_batch_larger_than_the_cache_is_answered_whole() -> None:
    inner = CountingEncoder()
    answer = CachedEncoder(inner, 1).encode_queries(["a", "b", "c"])
    np.testing.assert_array_equal(answer, HashingEncoder(16).encode_queries(["a", "b", "c"]))


def test_size_zero_keeps_nothing() -> None:
    inner = CountingEncoder()
    cached = CachedEncoder(inner, 0)
    cached.encode_queries(["a"])
    cached.encode_queries(["a"])
    assert inner.asked == [["a"], ["a"]]


def test_documents_are_not_cached_and_the_rest_passes_through() -> None:
    inner = CountingEncoder()
    cached = CachedEncoder(inner, 5)
    np.testing.assert_array_equal(cached.encode_documents(["a b"]), inner.encode_documents(["a b"]))
    assert cached.identity == inner.identity
    assert cached.window == inner.window
    assert cached.tokenize("a b") == [(0, 1), (2, 3)]


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ConfigError):
        CachedEncoder(HashingEncoder(), -1)


@pytest.mark.parametrize("dimension", [1, 7, 384, 1024])
def test_hashing_has_the_dimension_asked_for(dimension: int) -> None:
    encoder = HashingEncoder(dimension)
    assert encoder.encode_documents(["river bank"]).shape == (1, dimension)
    assert encoder.identity.dimension == dimension


def test_hashing_is_the_same_in_every_process() -> None:
    """Pinned: a seed or another byte order would change the places."""
    row = HashingEncoder(8).encode_documents(["a"])[0]
    # «a» is the word wa (weight 1) and the trigram t<a> (weight 1/4)
    assert sorted(np.abs(row[row != 0]).round(4)) == [0.2425, 0.9701]
    assert (int(np.argmax(np.abs(row))), float(np.sign(row[np.argmax(np.abs(row))]))) == (6, -1.0)


def test_hashing_sees_shared_words_and_parts_of_words() -> None:
    query, same_word, same_stem, other = HashingEncoder().encode_documents(
        ["walking home", "home again", "walked there", "blue ink"]
    )
    assert query @ same_word > query @ same_stem > query @ other
    assert abs(query @ other) < 0.1


def test_hashing_cuts_at_its_window() -> None:
    encoder = HashingEncoder(window=2)
    assert encoder.window == 2
    np.testing.assert_array_equal(encoder.encode_documents(["a b c"]), encoder.encode_documents(["a b"]))


@pytest.mark.parametrize(("dimension", "window"), [(0, 1), (1, 0), (-3, 5)])
def test_hashing_refuses_a_size_below_one(dimension: int, window: int) -> None:
    with pytest.raises(ConfigError):
        HashingEncoder(dimension, window=window)


def test_unit_rows_by_hand() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0], [1e30, 0.0]]))
    np.testing.assert_allclose(rows, np.array([[0.6, 0.8], [0, 0], [1, 0], [1, 0]]), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_unit_rows_refuses_what_is_not_finite(bad: float) -> None:
    """Case 15: no NaN reaches an index."""
    with pytest.raises(ModelError):
        unit_rows(np.array([[1.0, bad]]))


def test_batches_are_of_like_length_and_rows_in_the_order_given() -> None:
    seen: list[list[str]] = []

    def encode(texts: list[str]) -> Vectors:
        seen.append(texts)
        return np.array([[len(text)] for text in texts], np.float32)

    rows = encode_by_length(["ccc", "a", "dddd", "bb", "eeeee"], encode, dimension=1, batch_size=2)
    assert seen == [["a", "bb"], ["ccc", "dddd"], ["eeeee"]]
    assert rows[:, 0].tolist() == [3, 1, 4, 2, 5]


@pytest.mark.parametrize(
    ("text", "signal"), [("", False), (" \t", False), ("\u200b\ufeff", False), ("\0", False), ("é", True), ("🎉", True)]
)
def test_signal(text: str, signal: bool) -> None:
    assert has_signal(text) is signal


def test_well_formed_text_is_left_alone_and_keeps_its_length() -> None:
    assert well_formed("naïve 🎉") == "naïve 🎉"
    assert well_formed("a\ud83d\udc00b") == "a\ufffd\ufffdb"
