"""How a long text is cut (V-12)."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.segmentation import Span, segment
from vimbank.errors import InvalidInput


def tokens(text: str) -> list[Span]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def cut(text: str, **options: float) -> list[str]:
    spans = segment(text, tokens(text), **{"window": 10, "size": 10, **options})  # type: ignore[arg-type]
    return [text[start:end] for start, end in spans]


def test_a_text_within_the_window_stays_whole() -> None:
    text = " one two. three\n"
    assert cut(text) == [text]
    assert cut(" ".join("abcdefghij"), size=3) == [" ".join("abcdefghij")]
    assert segment("", [], window=10) == [(0, 0)]


def test_without_sentences_segments_have_the_full_size() -> None:
    # 26 tokens, 10 a segment, 2 repeated: a-j, i-r, q-z.
    assert cut(" ".join("abcdefghijklmnopqrstuvwxyz")) == [
        "a b c d e f g h i j ",
        "i j k l m n o p q r ",
        "q r s t u v w x y z",
    ]


@pytest.mark.parametrize("end", [". ", "! ", "? ", "。", "！", "？", "\n", '." ', ".) ", "… "])
def test_a_cut_moves_back_to_a_sentence_border(end: str) -> None:
    assert cut("a b c d e f g" + end + "h i j k l m n", overlap=0)[0] == "a b c d e f g" + end


def test_a_border_before_the_last_30_percent_is_too_early() -> None:
    assert cut("a b c d. f g h i j k l m n", overlap=0)[0] == "a b c d. f g h i j "


def test_the_last_border_is_taken() -> None:
    assert cut("a b c d e f. h. i j k l m n", overlap=0)[0] == "a b c d e f. h. "


def test_a_point_inside_a_number_is_no_border() -> None:
    assert cut("a b c d e f g 3.11 j k l", overlap=0)[0] == "a b c d e f g 3.11 "


def test_words_of_several_tokens_are_not_torn() -> None:
    text = "aaaa bbbb cccc dddd eeee ffff"
    pairs = [(i, i + 2) for start in range(0, len(text), 5) for i in (start, start + 2)]
    spans = segment(text, pairs, size=5, overlap=0.4, window=5)
    assert [text[start:end] for start, end in spans] == [
        "aaaa bbbb ",
        "bbbb cccc ",
        "cccc dddd ",
        "dddd eeee ",
        "eeee ffff",
    ]


def test_case_112_one_giant_token_survives() -> None:
    giant = "x" * 20_000
    assert cut(giant) == [giant]
    assert "".join(cut(" ".join([giant] * 25), overlap=0)) == " ".join([giant] * 25)


def test_tokens_of_one_character_stay_together() -> None:
    # A byte-level tokenizer makes four tokens of one emoji, all with its span.
    offsets = [(i, i + 1) for i in range(8) for _ in range(4)]
    spans = segment("🎉" * 8, offsets, size=3, overlap=0, window=3)
    assert spans[0][0] == 0
    assert spans[-1][1] == 8
    assert all(start < end for start, end in spans)


@pytest.mark.parametrize("options", [{"size": 0}, {"overlap": 1.0}, {"overlap": -0.1}])
def test_bad_sizes_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        cut("a b", **options)


@given(
    text=st.text(alphabet="ab .!?。\n咖", max_size=400),
    size=st.integers(1, 40),
    overlap=st.floats(0, 0.99),
    window=st.integers(0, 40),
)
def test_segments_cover_the_text_within_their_size(text: str, size: int, overlap: float, window: int) -> None:
    offsets = tokens(text)
    spans = segment(text, offsets, size=size, overlap=overlap, window=window)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(before[0] < after[0] <= before[1] for before, after in pairwise(spans))
    if len(offsets) > window:
        assert all(sum(start <= at < end for at, _ in offsets) <= size for start, end in spans)
    else:
        assert spans == [(0, len(text))]


@given(size=st.integers(1, 200), overlap=st.floats(0, 0.9))
def test_borders_do_not_make_the_cuts_crawl(size: int, overlap: float) -> None:
    text = "a. " * 500
    spans = segment(text, tokens(text), size=size, overlap=overlap, window=0)
    half_of_what_is_new = max(1, (size - min(int(size * overlap), size - 1)) // 2)
    # One token less where a segment begins a word earlier: words have two tokens here, with their point.
    assert len(spans) <= 1_000 / max(1, half_of_what_is_new - 1) + 2
