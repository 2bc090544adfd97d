"""LexRank: which sentences of a text stand for the others, and a choice of them that does not repeat itself."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from vimbank.domain.models import FloatArray, Vectors
from vimbank.errors import InvalidInput

__all__ = ["centrality", "chosen"]

DAMPING: Final = 0.85
THRESHOLD: Final = 0.1
_ITERATIONS: Final = 100
_TOLERANCE: Final = 1e-9


def centrality(
    vectors: Vectors, *, bias: FloatArray | None = None, threshold: float = THRESHOLD, damping: float = DAMPING
) -> FloatArray:
    """How central each sentence is: the stationary distribution of a walk from sentence to similar sentence.

    p = (1 - d) * b + d * W^T p, where W is the matrix of cosines, those below ``threshold`` taken as 0, each row
    divided by its sum (a row of zeros: b in its place), and b the bias, divided by its sum.

    Args:    vectors: (n, d), unit or zero rows.  bias: (n,), > 0, what a sentence weighs before any comparison; None:
             all the same.  threshold: cosine in [0, 1].  damping: d in [0, 1).
    Returns: float64, (n,), each >= 0, sum 1; (0,) for no sentence.
    Raises:  InvalidInput: a bias that is not positive, or of another length.
    Source:  Erkan and Radev 2004, continuous LexRank; the bias as in Otterbacher et al. 2005, biased LexRank.
    """
    count = len(vectors)
    if not count:
        return np.zeros(0)
    prior = np.ones(count) if bias is None else np.asarray(bias, dtype=np.float64)
    if prior.shape != (count,) or not (prior > 0).all():
        raise InvalidInput.of("bias", f"must be {count} positive numbers")
    prior = prior / prior.sum()
    wide = vectors.astype(np.float64)
    similar = wide @ wide.T
    similar[similar < threshold] = 0.0
    sums = similar.sum(axis=1, keepdims=True)
    walk = np.where(sums > 0, similar / np.where(sums > 0, sums, 1.0), prior)
    rank: FloatArray = prior
    for _ in range(_ITERATIONS):
        following: FloatArray = (1 - damping) * prior + damping * (rank @ walk)
        if np.abs(following - rank).sum() < _TOLERANCE:
            return following
        rank = following
    return rank


def chosen(
    scores: FloatArray, vectors: Vectors, costs: Sequence[int], *, budget: int, most: int, same: float = 0.9
) -> list[int]:
    """The best sentences that fit, in the order of the text: none that says what a chosen one says.

    Args:    scores: (n,), higher is better; ties go to the earlier.  costs: tokens of each.  budget: tokens in all.
             most: sentences.  same: cosine from which two sentences say the same.
    Returns: positions, ascending; at least one where n > 0 and ``most`` >= 1, though it be above the budget.
    """
    taken: list[int] = []
    spent = 0
    for place in sorted(range(len(scores)), key=lambda each: (-scores[each], each)):
        if len(taken) == most:
            break
        if taken and (spent + costs[place] > budget or float((vectors[taken] @ vectors[place]).max()) >= same):
            continue
        taken.append(place)
        spent += costs[place]
    return sorted(taken)
