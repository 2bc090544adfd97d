"""How the two legs' scores become one relevance: pure functions over one partition's candidates.

Every fusion returns ``Fused``: what the sparse and what the dense leg contribute, already weighted, row by row.
Their sum is the relevance, in [0, 1], higher is better. A candidate that one leg did not bring still has both
figures, because both legs can score any row; only ``rrf`` works on ranks, and there a row without a rank gets 0.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from vimbank.domain.models import FloatArray, IntArray

__all__ = [
    "RRF_CONSTANT",
    "Fused",
    "convex",
    "dense_only",
    "normalise_bm25",
    "ranks",
    "rrf",
    "similarity",
    "sparse_only",
    "vimbank_eq4",
]

RRF_CONSTANT: Final = 60
"""k in 1 / (k + rank), as in Cormack, Clarke and Büttcher 2009."""

_EQ4_HALF_LIFE_DAYS: Final = 7.0


@dataclass(frozen=True, slots=True)
class Fused:
    """What each leg contributes, weighted: (n,) float64 each, >= 0; the sum is in [0, 1]."""

    sparse: FloatArray
    dense: FloatArray

    @property
    def relevance(self) -> FloatArray:
        """The sum of both parts, (n,) float64 in [0, 1]."""
        return np.minimum(self.sparse + self.dense, 1.0)


def normalise_bm25(bm25: FloatArray, *, best: float, upper_bound: float) -> FloatArray:
    """BM25 in [0, 1]: half of it relative to the best row, half to what the query could reach at most.

    b = 0.5 * bm25 / best + 0.5 * bm25 / upper_bound

    The upper bound is the absolute half: a single weak keyword match does not become 1, and a lone candidate
    becomes neither 0 nor 1 (cases 25, 26).

    Args:    bm25: scores without the constant (k1+1), >= 0, shape (n,).
             best: the largest score of all rows that may be returned, not only of these.
             upper_bound: the sum of the query terms' idf.
    Returns: float64, shape (n,), in [0, 1]; all 0 where ``best`` or ``upper_bound`` is 0: no term was found.
    Source:  errata B13; Bruch, Gai, Ingber 2022 (theoretical min-max) for the absolute half.
    """
    if best <= 0.0 or upper_bound <= 0.0:
        return np.zeros_like(bm25)
    return np.minimum(0.5 * (bm25 / best) + 0.5 * (bm25 / upper_bound), 1.0)


def similarity(cosine: FloatArray) -> FloatArray:
    """max(cosine, 0), at most 1: float64, shape as given. Opposite meaning is no relevance (V-20, B14)."""
    return np.clip(cosine, 0.0, 1.0)


def convex(sparse: FloatArray, dense: FloatArray, *, sparse_weight: float) -> Fused:
    """w * sparse + (1 - w) * dense.

    Args:    sparse: ``normalise_bm25``, dense: ``similarity``, both (n,) in [0, 1].
             sparse_weight: w in [0, 1].
    Source:  Bruch, Gai, Ingber 2022, arXiv 2210.11934: beats RRF in and out of domain (D1).
    """
    return Fused(sparse_weight * sparse, (1.0 - sparse_weight) * dense)


def rrf(sparse_ranks: IntArray, dense_ranks: IntArray) -> Fused:
    """Reciprocal rank fusion, 1 / (60 + rank) a leg, divided by its largest possible sum 2 / 61 to end in [0, 1].

    Args:    sparse_ranks, dense_ranks: (n,) int64, ranks count from 1; 0: the leg did not bring the row, so it
             contributes nothing there. First on both legs gives 1, first on one leg alone 0.5.
    Source:  Cormack, Clarke, Büttcher 2009, k = 60.
    """
    return Fused(_reciprocal(sparse_ranks), _reciprocal(dense_ranks))


def vimbank_eq4(
    sparse: FloatArray, dense: FloatArray, *, age_days: FloatArray, half_life_days: float | None = None
) -> Fused:
    """S = omega * alpha + (1 - omega) * s with omega = exp(-lambda * age_days), lambda = ln 2 / half-life.

    As printed, with the keyword score normalised (B13) and a unit for age (B12). Kept for comparison: it moves
    weight from the keyword score to the similarity as a memory ages, so it rewards age where no keyword matches.

    Args:    sparse, dense: (n,) in [0, 1].  age_days: days since the memory's own time, >= 0, (n,).
             half_life_days: > 0; None: 7 days.
    Source:  VIMBank eqs. 4 and 5 (V-22, V-23; B12, B13).
    """
    omega = np.exp2(-age_days / (_EQ4_HALF_LIFE_DAYS if half_life_days is None else half_life_days))
    return Fused(omega * sparse, (1.0 - omega) * dense)


def dense_only(dense: FloatArray) -> Fused:
    """max(cosine, 0) alone."""
    return Fused(np.zeros_like(dense), dense)


def sparse_only(sparse: FloatArray) -> Fused:
    """The normalised BM25 alone; in the order of BM25, because it is that times one constant."""
    return Fused(sparse, np.zeros_like(sparse))


def ranks(scores: FloatArray, number: FloatArray, *, among: IntArray) -> IntArray:
    """Rank of each row by score, from 1, best first; ties by ``number``; 0 for rows not in ``among``.

    Args:    scores, number: (n,).  among: positions, 0 <= position < n, distinct, in any order.
    Returns: int64, (n,).
    """
    result = np.zeros(len(scores), dtype=np.int64)
    order = among[np.lexsort((number[among], -scores[among]))]
    result[order] = np.arange(1, len(order) + 1)
    return result


def _reciprocal(rank: IntArray) -> FloatArray:
    share = (RRF_CONSTANT + 1) / 2 / (RRF_CONSTANT + rank)
    return np.where(rank > 0, share, 0.0)
