"""Laws of BM25, and of the analyzer that feeds it."""

import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.text import STOP_WORDS, analyze, analyze_query
from vimbank.indexes.sparse.postings import PostingsIndex

TEXT = st.text(max_size=80) | st.text(alphabet="ab-_.'#é咖東커กา1 ", max_size=40)
DOCUMENT = st.lists(st.sampled_from("abcdef"), max_size=10)


def index_of(documents: list[list[str]], k1: float = 1.2, b: float = 0.75) -> PostingsIndex:
    index = PostingsIndex(k1, b)
    index.append(documents)
    return index


@given(
    documents=st.lists(DOCUMENT, min_size=1, max_size=12),
    query=st.lists(st.sampled_from("abcdefz"), min_size=1, max_size=7),
    k1=st.floats(0.01, 10),
    b=st.floats(0, 1),
)
def test_scores_lie_in_0_to_the_upper_bound(documents: list[list[str]], query: list[str], k1: float, b: float) -> None:
    result = index_of(documents, k1, b).score(query)
    assert (result.scores >= 0).all()
    assert (result.scores < result.upper_bound).all()


@given(documents=st.lists(DOCUMENT, min_size=1, max_size=12), query=st.permutations("abcdef"))
def test_the_order_of_rows_and_of_query_terms_does_not_matter(documents: list[list[str]], query: list[str]) -> None:
    scores = index_of(documents).score(sorted(query)).scores
    np.testing.assert_allclose(index_of(documents).score(query).scores, scores, atol=1e-12)
    np.testing.assert_array_equal(index_of(documents[::-1]).score(sorted(query)).scores[::-1], scores)


@given(others=st.lists(DOCUMENT, max_size=8), repeats=st.integers(1, 20))
def test_a_score_rises_with_frequency_at_equal_length(others: list[list[str]], repeats: int) -> None:
    fewer, more = ["x"] * repeats + ["y"] * (21 - repeats), ["x"] * (repeats + 1) + ["y"] * (20 - repeats)
    scores = index_of([fewer, more, *others]).score(["x"]).scores
    assert scores[0] < scores[1]


@given(text=TEXT)
def test_a_text_is_found_by_itself(text: str) -> None:
    assert set(analyze_query(text, max_terms=10_000)) <= set(analyze(text))
    assert bool(analyze_query(text)) == bool(analyze(text))


@given(text=TEXT)
def test_normal_forms_give_the_same_terms(text: str) -> None:
    terms = analyze(unicodedata.normalize("NFC", text))
    assert analyze(unicodedata.normalize("NFD", text)) == terms


@given(text=st.text(alphabet="abcXYZ-_.#1 ", max_size=40))
def test_a_part_finds_its_identifier(text: str) -> None:
    """Every word between separators is a term, by itself or within what the analyzer made of it."""
    terms = set(analyze(text))
    for word in text.replace("-", " ").replace("_", " ").replace("#", " ").replace(".", " ").split():
        if len(word) > 1:  # single letters between points are initials
            assert set(analyze(word)) & terms


@given(text=TEXT, max_terms=st.integers(1, 10))
def test_a_shorter_query_is_a_beginning_of_the_longer(text: str, max_terms: int) -> None:
    assert analyze_query(text, max_terms=max_terms) == analyze_query(text)[:max_terms]


@given(text=TEXT)
def test_a_query_has_stop_words_only_where_it_has_nothing_else(text: str) -> None:
    stops = [term for term in analyze_query(text) if term in STOP_WORDS]
    assert stops in ([], analyze_query(text))
