"""Text as sentences, in scripts that put a blank after the full stop and in those that do not."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

__all__ = ["fitted", "sentences"]

_CLOSERS: Final = "\"')\\]}»”’」』）】"
_BORDER: Final = re.compile(rf"[.!?…]+[{_CLOSERS}]*(?=\s)|[。！？｡।॥؟۔]+[{_CLOSERS}]*|\n+")
_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Z]|[A-Za-z]\.[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|approx|Jan|Feb|Mar|Apr|Jun|Jul"
    r"|Aug|Sept?|Oct|Nov|Dec)\.$"
)


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without the blanks around them; nothing else is lost.

    A sentence ends at a line's end, at ``. ! ? …`` before a blank, and at the full stops of Chinese, Japanese, Hindi
    and Arabic wherever they stand; closing quotes and brackets belong to it. A point after an initial or a common
    English abbreviation ends nothing.
    """
    cuts = [0]
    for match in _BORDER.finditer(text):
        if match[0] == "." and _ABBREVIATION.search(text[max(0, match.end() - 10) : match.end()]):
            continue
        cuts.append(match.end())
    cuts.append(len(text))
    pieces = (text[start:end].strip() for start, end in pairwise(cuts))
    return [piece for piece in pieces if piece]


def fitted(text: str, tokenize: Callable[[str], Sequence[tuple[int, int]]], *, limit: int) -> str:
    """As much of ``text`` as ``limit`` tokens hold: whole sentences from its beginning, else the beginning of one.

    Args:    tokenize: character offsets of a text's tokens, as ``Encoder.tokenize``.  limit: tokens, >= 1.
    """
    offsets = tokenize(text)
    if len(offsets) <= limit:
        return text
    end = offsets[limit][0]
    whole = 0
    for match in _BORDER.finditer(text):
        if match.end() > end:
            break
        whole = match.end()
    return text[: whole or end].rstrip()
