"""Scores of one ranked run against the ids that should have been found (qrels). Pure; binary relevance.

All take ``run``, ids best first, and ``relevant``, the ids that should be found. An id that a run repeats counts
once, at its first place. A question without relevant ids has no score: that is an error, not a 0 or a 1.
"""

import math
from collections.abc import Sequence, Set

from vimbank.errors import InvalidInput

__all__ = ["all_at_k", "any_at_k", "mrr", "ndcg_at_k", "recall_at_k"]


def recall_at_k(run: Sequence[str], relevant: Set[str], k: int) -> float:
    """Share of the relevant ids that are among the first ``k``: |run[:k] & relevant| / |relevant|, in [0, 1]."""
    return len(_top(run, relevant, k) & relevant) / len(relevant)


def all_at_k(run: Sequence[str], relevant: Set[str], k: int) -> float:
    """1 if every relevant id is among the first ``k``, else 0 (LongMemEval's recall_all)."""
    return float(relevant <= _top(run, relevant, k))


def any_at_k(run: Sequence[str], relevant: Set[str], k: int) -> float:
    """1 if at least one relevant id is among the first ``k``, else 0 (hit rate)."""
    return float(not relevant.isdisjoint(_top(run, relevant, k)))


def mrr(run: Sequence[str], relevant: Set[str]) -> float:
    """1 / rank of the first relevant id, ranks from 1; 0 where none is in the run."""
    _top(run, relevant, 1)
    return next((1.0 / rank for rank, item in enumerate(_distinct(run), start=1) if item in relevant), 0.0)


def ndcg_at_k(run: Sequence[str], relevant: Set[str], k: int) -> float:
    """DCG of the first ``k`` over the best possible DCG, in [0, 1]; a hit at rank r is worth 1 / log2(r + 1).

    Source: Järvelin and Kekäläinen 2002, with binary gains.
    """
    _top(run, relevant, k)
    found = sum(1.0 / math.log2(rank + 1) for rank, item in enumerate(_distinct(run)[:k], start=1) if item in relevant)
    ideal = sum(1.0 / math.log2(rank + 1) for rank in range(1, min(k, len(relevant)) + 1))
    return found / ideal


def _top(run: Sequence[str], relevant: Set[str], k: int) -> set[str]:
    if k < 1:
        raise InvalidInput.of("k", "must be at least 1")
    if not relevant:
        raise InvalidInput.of("relevant", "is empty: the question has no score")
    return set(_distinct(run)[:k])


def _distinct(run: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(run))
