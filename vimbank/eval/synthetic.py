"""Made-up memories of any number: words as frequent as in running text, clustered vectors, known selectivities."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vimbank.domain.filters import Filter
from vimbank.domain.models import FloatArray, MemoryDraft, Query, Vector, Vectors

__all__ = ["Corpus"]

_WORDS = 20_000
_CLUSTERS = 200


@dataclass(frozen=True, slots=True)
class Corpus:
    """A reproducible corpus: ``size`` memories spread evenly over ``users``, all in one bank.

    Metadata ``pass`` makes filters of known selectivity: ``permille``, ``percent``, ``tenth`` and ``all`` are True
    for 0.1 %, 1 %, 10 % and 100 % of the memories.
    """

    size: int
    users: int = 1
    bank: str = "dialog"
    dimension: int = 384
    seed: int = 7
    words_per_text: int = 20

    def drafts(self) -> Iterator[MemoryDraft]:
        """All memories, in order; the same ones each time."""
        rng = np.random.default_rng(self.seed)
        centres = self._centres()
        for start in range(0, self.size, 1_000):
            count = min(1_000, self.size - start)
            texts = self._texts(rng, count)
            vectors = self._vectors(rng, centres, count)
            for offset in range(count):
                yield self._draft(start + offset, texts[offset], vectors[offset])

    def queries(self, count: int, *, filter: Filter | None = None, top_k: int = 10) -> list[Query]:
        """Queries of eight words with a vector near some cluster, each by one of the users."""
        rng = np.random.default_rng(self.seed + 1)
        vectors = self._vectors(rng, self._centres(), count)
        texts = self._texts(rng, count, words=8)
        return [
            Query(
                tenant="default",
                user_id=self.user(int(rng.integers(self.users))),
                text=text,
                banks=[self.bank],
                vector=vector,
                filter=filter,
                top_k=top_k,
                include_shared=False,
            )
            for text, vector in zip(texts, vectors, strict=True)
        ]

    def user(self, number: int) -> str:
        """Name of a user."""
        return f"user-{number:04d}"

    def _draft(self, number: int, text: str, vector: Vector) -> MemoryDraft:
        position = number // self.users
        return MemoryDraft(
            tenant="default",
            user_id=self.user(number % self.users),
            bank=self.bank,
            text=text,
            session_id=f"session-{position // 50}",
            metadata={
                "permille": position % 1_000 == 7,
                "percent": position % 100 == 7,
                "tenth": position % 10 == 7,
                "all": True,
            },
            vector=vector,
            deduplicate=False,
        )

    def _centres(self) -> FloatArray:
        return np.random.default_rng(self.seed + 2).standard_normal((_CLUSTERS, self.dimension))

    def _vectors(self, rng: np.random.Generator, centres: FloatArray, count: int) -> Vectors:
        chosen = centres[rng.integers(len(centres), size=count)]
        vectors = chosen + rng.standard_normal((count, self.dimension))
        unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _texts(self, rng: np.random.Generator, count: int, words: int | None = None) -> Sequence[str]:
        ranks = np.arange(1, _WORDS + 1)
        weights = 1 / (ranks + 2.7)  # Zipf-Mandelbrot, as running text without its stop words
        chosen = rng.choice(_WORDS, size=(count, words or self.words_per_text), p=weights / weights.sum())
        return [" ".join(_word(number) for number in row) for row in chosen]


def _word(number: int) -> str:
    """A pronounceable made-up word, one a number."""
    syllables = []
    number = int(number) + 27
    while number:
        number, rest = divmod(number, 60)
        syllables.append("bdfgklmnprst"[rest % 12] + "aeiou"[rest // 12])
    return "".join(syllables)
