"""Query vectors kept in memory: the same question is not encoded twice."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np

from vimbank.domain.models import Vector, Vectors
from vimbank.errors import ConfigError
from vimbank.ports import Encoder, EncoderIdentity, ScriptBound

__all__ = ["CachedEncoder"]


class CachedEncoder:
    """An encoder that remembers the vectors of the last queries; documents pass through.

    Thread-safe: the lock is held for look-ups only, so two threads that miss the same text at once both encode it.
    Answers are new arrays, which the caller may change.

    Args:    inner: the encoder asked on a miss.  size: vectors kept, the least recently used go first; 0 keeps none.
    Raises:  ConfigError: a negative size.
    """

    def __init__(self, inner: Encoder, size: int) -> None:
        if size < 0:
            raise ConfigError(f"a cache cannot keep {size} query vectors")
        self._inner = inner
        self._size = size
        self._lock = Lock()
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    @property
    def identity(self) -> EncoderIdentity:
        return self._inner.identity

    @property
    def window(self) -> int:
        return self._inner.window

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        known = self._known(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            fresh = dict(zip(missing, self._inner.encode_queries(missing), strict=True))
            self._keep(fresh)
            known |= fresh
        rows = np.zeros((len(texts), self.identity.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = known[text]
        return rows

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return self._inner.encode_documents(texts)

    def understood(self, text: str) -> float:
        """As the inner encoder says; 1 where it says nothing."""
        return self._inner.understood(text) if isinstance(self._inner, ScriptBound) else 1.0

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        return self._inner.tokenize(text)

    def clear(self) -> None:
        """Forget every query."""
        with self._lock:
            self._vectors.clear()

    def _known(self, texts: Sequence[str]) -> dict[str, Vector]:
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
            for text in known:
                self._vectors.move_to_end(text)
        return known

    def _keep(self, fresh: dict[str, Vector]) -> None:
        with self._lock:
            for text, vector in fresh.items():
                self._vectors[text] = vector.copy()  # a copy, as a row would keep its whole batch alive
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
