"""Vectors kept on disk between the runs of a replay, which keeps the same memories again and again."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from vimbank.domain.models import Vector, Vectors
from vimbank.ports import Encoder, EncoderIdentity, ScriptBound

__all__ = ["KeptEncoder"]


class KeptEncoder:
    """An encoder that encodes a text once. ``save`` writes what it knows; not thread-safe.

    Args:    inner: asked for what is not known.  folder: where one file an encoder identity lies; None: nowhere.
    """

    def __init__(self, inner: Encoder, folder: Path | None) -> None:
        self._inner = inner
        name = hashlib.sha256(str(inner.identity).encode()).hexdigest()[:16]
        self._file = None if folder is None else folder / f"vectors-{name}.npz"
        self._known: dict[str, Vector] = {}
        self._saved = 0
        if self._file is not None and self._file.exists():
            with np.load(self._file) as kept:
                self._known = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))
            self._saved = len(self._known)

    @property
    def identity(self) -> EncoderIdentity:
        """The inner encoder's."""
        return self._inner.identity

    @property
    def window(self) -> int:
        """The inner encoder's."""
        return self._inner.window

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """See ``Encoder``."""
        return self._look_up("q", texts, self._inner.encode_queries)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """See ``Encoder``."""
        return self._look_up("d", texts, self._inner.encode_documents)

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        """See ``Encoder``."""
        return self._inner.tokenize(text)

    def understood(self, text: str) -> float:
        """As the inner encoder says; 1 where it says nothing."""
        return self._inner.understood(text) if isinstance(self._inner, ScriptBound) else 1.0

    def save(self) -> None:
        """Write all vectors to the folder, if there is one and there are new ones."""
        if self._file is None or len(self._known) == self._saved:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".tmp.npz")
        np.savez(fresh, keys=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))
        fresh.replace(self._file)
        self._saved = len(self._known)

    def _look_up(self, kind: str, texts: Sequence[str], encode: Callable[[Sequence[str]], Vectors]) -> Vectors:
        keys = [hashlib.sha256(f"{kind}:{text}".encode()).hexdigest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if missing:
            self._known.update(zip(missing, encode(list(missing.values())), strict=True))
        rows = np.zeros((len(texts), self.identity.dimension), dtype=np.float32)
        for row, key in zip(rows, keys, strict=True):
            row[:] = self._known[key]
        return rows
