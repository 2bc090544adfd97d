"""Titles as links: which titles a text mentions (D15, D16). Pure.

Encyclopaedic passages name the titles of others; following such a mention finds what the question itself never
names. A title is compared by its words, so case, punctuation and spacing do not matter.
"""

import re
import unicodedata
from collections.abc import Container
from typing import Final

__all__ = ["MAX_TITLE_WORDS", "mentioned_titles", "normalise_title"]

MAX_TITLE_WORDS: Final = 8
"""Longer titles are not looked for in texts."""

_MIN_SINGLE_WORD_CHARS: Final = 4
_WORD: Final = re.compile(r"\w+")


def normalise_title(title: str) -> str:
    """The title's words, NFKC and case folded, a blank between them: ``Verano de Escándalo (1998)`` gives
    ``verano de escándalo 1998``. Empty for a title without words."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", title).casefold()))


def mentioned_titles(text: str, titles: Container[str]) -> list[str]:
    """The titles that a text mentions, each once, in order of their first mention.

    A mention starts with a capital letter or a digit and is at least two words long, or one of at least four
    letters: «it», «The» or «May» link nothing. Where titles overlap the longest counts: ``New York Times``, not
    ``New York``. Scripts without capitals or blanks are not linked.

    Args:    titles: normalised titles, asked once for every run of words that may be one.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text))
    folded = [word.casefold() for word in words]
    found: dict[str, None] = {}
    start = 0
    while start < len(words):
        first = words[start][0]
        length = _longest_at(folded, start, titles) if first.isupper() or first.isdigit() else 0
        if length:
            found[" ".join(folded[start : start + length])] = None
        start += length or 1
    return list(found)


def _longest_at(words: list[str], start: int, titles: Container[str]) -> int:
    """How many words from ``start`` are the longest title there; 0: none is."""
    for length in range(min(MAX_TITLE_WORDS, len(words) - start), 0, -1):
        if length == 1 and len(words[start]) < _MIN_SINGLE_WORD_CHARS:
            return 0
        if " ".join(words[start : start + length]) in titles:
            return length
    return 0
