"""Late interaction as a reranker: MaxSim of the query's token vectors with those stored beside each memory (D4)."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vimbank.domain.maxsim import maxsim_many
from vimbank.domain.models import FloatArray, Memory, Vectors
from vimbank.ports import TokenEncoder

__all__ = ["MaxSimReranker", "TokenVectors"]

TokenVectors = Callable[[str, Sequence[str]], Mapping[str, Vectors]]
"""(tenant, ids) -> id -> (t, d) float32 unit rows; ids without token vectors are left out."""


class MaxSimReranker:
    """A ``Reranker`` for stores that keep token vectors (V-13, B15).

    The score is MaxSim over the number of query tokens, in [0, 1].
    """

    def __init__(self, encoder: TokenEncoder, token_vectors: TokenVectors) -> None:
        self._encoder = encoder
        self._token_vectors = token_vectors

    def rerank(self, query: str, memories: Sequence[Memory]) -> FloatArray:
        """(n,) float64 in [0, 1], in the order given; NaN where a memory has no token vectors.

        Raises: ModelError, BackendUnavailable: as the encoder does.
        """
        scores = np.full(len(memories), np.nan)
        if not memories:
            return scores
        stored = self._token_vectors(memories[0].tenant, [memory.id for memory in memories])
        if not stored:
            return scores
        tokens = self._encoder.encode_query_tokens(query)
        known = [i for i, memory in enumerate(memories) if len(stored.get(memory.id, ()))]
        if len(tokens) and known:
            scores[known] = maxsim_many(tokens, [stored[memories[i].id] for i in known])
        return scores
