"""A deterministic encoder without a model: hashed words and character trigrams. For tests, never chosen silently."""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import numpy as np

from vimbank.domain.models import FloatArray, Vectors
from vimbank.encoders.vectors import unit_rows, well_formed
from vimbank.errors import ConfigError
from vimbank.ports import EncoderIdentity

__all__ = ["HashingEncoder"]

_WORD: Final = re.compile(r"\w+")
_TRIGRAM_WEIGHT: Final = 0.25  # a word of average length then weighs about as much as all of its trigrams


class HashingEncoder:
    """Words and their trigrams, each hashed to a signed place of the vector, summed and normalised.

    Texts that share words or parts of words are similar, nothing else is: there is no meaning in it.
    The same everywhere, as blake2b has no seed.

    Args:    dimension: d >= 1.  window: tokens (words) a text that is encoded whole; longer text is cut there.
    Raises:  ConfigError: either is below 1.
    """

    def __init__(self, dimension: int = 384, *, window: int = 254) -> None:
        if dimension < 1 or window < 1:
            raise ConfigError("the hashing encoder needs a dimension and a window of at least 1")
        self._window = window
        self._identity = EncoderIdentity("hashing", "1", dimension, pooling="sum")

    @property
    def identity(self) -> EncoderIdentity:
        return self._identity

    @property
    def window(self) -> int:
        return self._window

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self._identity.dimension))
        for row, clean in zip(rows, map(well_formed, texts), strict=True):
            for start, end in self.tokenize(clean)[: self._window]:
                _add_word(row, clean[start:end].lower())
        return unit_rows(rows)

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(well_formed(text))]


def _add_word(row: FloatArray, word: str) -> None:
    for code, weight in _features(word):
        row[code % row.size] += weight if code >> 63 else -weight


@lru_cache(maxsize=50_000)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    padded = f"<{word}>"
    trigrams = (padded[start : start + 3] for start in range(len(padded) - 2))
    return ((_code(f"w{word}"), 1.0), *((_code(f"t{trigram}"), _TRIGRAM_WEIGHT) for trigram in trigrams))


def _code(feature: str) -> int:
    return int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "little")
