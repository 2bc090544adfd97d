"""How a text longer than the encoder's window is cut, so that nothing behind the window is lost (V-12, case 113)."""

from collections.abc import Sequence
from math import ceil
from typing import Final, TypeAlias

from vimbank.errors import InvalidInput

__all__ = ["Span", "segment"]

Span: TypeAlias = tuple[int, int]
"""Character offsets: start, and end (not included)."""

_BORDER_SHARE: Final = 0.3  # a cut may move back over this share of a segment to find a border
_WORD_REACH: Final = 8  # tokens a start may move back to the beginning of its word
_SPACED_ENDS: Final = frozenset(".!?…")
_UNSPACED_ENDS: Final = frozenset("。！？｡।॥؟۔")
_CLOSERS: Final = "\"')]}»”’」』）】"


def segment(text: str, offsets: Sequence[Span], *, size: int = 200, overlap: float = 0.2, window: int) -> list[Span]:
    """Cut ``text`` into overlapping segments of at most ``size`` tokens (V-12).

    A segment ends at the last sentence border of its last 30 %, else between two words there, else after ``size``
    tokens; the next begins ``overlap * size`` tokens before that end, at the beginning of a word where one is near.

    Args:    offsets: character span of each of the encoder's tokens, in order.  size: tokens, >= 1.
             overlap: share of a segment that the next repeats, in [0, 1).  window: tokens the encoder takes whole.
    Returns: character spans in order, starts growing; together they cover all of the text, white space included.
             One span, the whole text, where it has at most ``window`` tokens.
    Raises:  InvalidInput: size < 1 or overlap outside [0, 1).
    """
    if size < 1:
        raise InvalidInput.of("size", "must be at least 1")
    if not 0 <= overlap < 1:
        raise InvalidInput.of("overlap", "must be in [0, 1)")
    count = len(offsets)
    if count <= window:
        return [(0, len(text))]
    repeated = min(int(size * overlap), size - 1)
    # Half of what is new in a segment at least: borders must not make the cuts crawl where the overlap is large.
    shortest = max(ceil(size * (1 - _BORDER_SHARE)), repeated + max(1, (size - repeated) // 2))
    spans: list[Span] = []
    first = 0
    while True:
        start = offsets[first][0] if spans else 0
        if first + size >= count:
            spans.append((start, len(text)))
            return spans
        cut = _cut(text, offsets, earliest=first + shortest, latest=first + size)
        end = offsets[cut][0]
        if end > start:
            spans.append((start, end))
        first = _word_start(offsets, cut - repeated, after=first)


def _cut(text: str, offsets: Sequence[Span], *, earliest: int, latest: int) -> int:
    """The token before which to cut: the last border of a sentence, else of a word, else the last one possible."""
    candidates = range(latest, earliest - 1, -1)
    for is_border in (_ends_sentence, _ends_word):
        for cut in candidates:
            if is_border(text, offsets, cut):
                return cut
    return latest


def _ends_sentence(text: str, offsets: Sequence[Span], cut: int) -> bool:
    before, after = offsets[cut - 1][1], offsets[cut][0]
    gap = text[before:after]
    if "\n" in gap:
        return True
    last = text[max(0, before - 4) : before].rstrip(_CLOSERS)[-1:]
    return last in _UNSPACED_ENDS or (last in _SPACED_ENDS and gap.isspace())


def _ends_word(text: str, offsets: Sequence[Span], cut: int) -> bool:
    return text[offsets[cut - 1][1] : offsets[cut][0]].isspace()


def _word_start(offsets: Sequence[Span], token: int, *, after: int) -> int:
    """The nearest token at or before ``token``, but above ``after``, that begins a word; else ``token``."""
    for candidate in range(token, max(after, token - _WORD_REACH), -1):
        if offsets[candidate][0] > offsets[candidate - 1][1]:
            return candidate
    return token
