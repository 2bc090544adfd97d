"""Titles as links."""

import pytest

from vimbank.domain.titles import mentioned_titles, normalise_title

TITLES = {"new york", "new york times", "badr hari", "kick boxer", "paris", "the", "1984 novel", "rió"}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Verano de Escándalo (1998)", "verano de escándalo 1998"),
        ("  The  Wall ", "the wall"),
        ("\uff21\uff22\uff23", "abc"),
        ("e\u0301te\u0301", "été"),
        ("...", ""),
    ],
)
def test_a_title_is_its_words(title: str, expected: str) -> None:
    assert normalise_title(title) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He fought Badr Hari in Paris.", ["badr hari", "paris"]),
        ("The New York Times of New York", ["new york times", "new york"]),
        ("Badr Hari met Badr Hari", ["badr hari"]),
        ("he fought badr hari in paris", []),  # no capitals: common words are no links
        ("The wall", []),  # one word of three letters
        ("He read 1984 (novel).", ["1984 novel"]),
        ("", []),
    ],
)
def test_mentions(text: str, expected: list[str]) -> None:
    assert mentioned_titles(text, TITLES) == expected
