"""Recency among rivals: of two results that are near each other the newer one stands first.

It decides between what no rule has decided: two memories that tell of one thing, at two times. Only the order of the
results changes, never which they are.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import numpy as np

from vimbank.domain.banks import BankPolicy
from vimbank.domain.models import Memory, ScoredMemory, Vectors
from vimbank.domain.news import Telling, asks_for_now, telling
from vimbank.domain.statements import testimony
from vimbank.domain.superseding import said_at, takes_part

__all__ = ["COMPARED", "Near", "near_pairs", "nearness", "newer_rivals"]

COMPARED: Final = 10
"""How many of the best of a partition are compared with each other."""

_ASKED_FOR_NOW: Final = 0.3
"""What a question for the present takes off the cosine from which two results rival."""
_NEWS_GAP: Final = 4.0
"""How many times the gap is as wide where the newer one tells news."""

_TOLERANCE: Final = 1e-6
"""Of a cosine of float32 vectors, so that equal texts have one of 1."""

Near: TypeAlias = tuple[str, str]
"""The ids of two memories of one partition that are near each other."""


def nearness(policy: BankPolicy, question: str) -> float:
    """The cosine from which two results of a bank rival for this question."""
    return policy.recency_cosine - (_ASKED_FOR_NOW if asks_for_now(question) else 0.0)


def near_pairs(ids: Sequence[str], vectors: Vectors, *, cosine: float) -> list[Near]:
    """The pairs of ids whose vectors have at least this cosine, to 1e-6.

    Args:    vectors: (n, d) float32, of any length; one of zeros is near nothing.
    """
    wide = vectors.astype(np.float64)
    products = wide @ wide.T
    lengths = np.sqrt(products.diagonal())
    lengths = np.where(lengths > 0.0, lengths, np.nan)
    near = np.nonzero(products >= (cosine - _TOLERANCE) * np.outer(lengths, lengths))
    return [(ids[one], ids[other]) for one, other in zip(*map(np.ndarray.tolist, near), strict=True) if one < other]


def newer_rivals(
    results: Sequence[ScoredMemory], near: Collection[Near], policies: Mapping[str, BankPolicy], *, moment: datetime
) -> dict[str, set[str]]:
    """Of the results, id -> ids of the newer ones that rival it; nothing where all of these stand above it already.

    Rivals are near each other, of one agent, speaker and title, from different sessions, and said at different times;
    neither is a part or a derivative of others, or an assistant's word. The newer one is not of later than ``moment``,
    tells of the present, and has scored at least 1 - gap of what the older one has (``BankPolicy.recency_gap``).

    Args:    near: pairs of memories, at least as near as their bank asks.  moment: of the search, aware UTC.
    """
    if not near:
        return {}
    found = {result.memory.id: result for result in results if result.score > 0.0 and said_at(result.memory) <= moment}
    rivals = [pair for pair in _in_order(near, found) if _comparable(*(each.memory for each in pair))]
    newer: defaultdict[str, set[str]] = defaultdict(set)
    if any(later.score <= older.score for older, later in rivals):
        for older, later in rivals:
            if _may_stand_first(later, older, gap=policies[older.memory.bank].recency_gap):
                newer[older.memory.id].add(later.memory.id)
    return dict(newer)


def _in_order(near: Collection[Near], found: Mapping[str, ScoredMemory]) -> Iterator[tuple[ScoredMemory, ScoredMemory]]:
    """The pairs of which both are there, each the older one first."""
    for one, other in near:
        if one in found and other in found:
            older, later = sorted((found[one], found[other]), key=lambda each: said_at(each.memory))
            yield older, later


def _may_stand_first(later: ScoredMemory, older: ScoredMemory, *, gap: float) -> bool:
    told = telling(testimony(later.memory) or "")
    widened = gap * _NEWS_GAP if told is Telling.NEWS else gap
    return told is not Telling.NOT_NOW and later.score >= (1.0 - min(1.0, widened)) * older.score


def _comparable(older: Memory, later: Memory) -> bool:
    """Whether two memories, near each other, can be tellings of one thing at two times."""
    if (older.agent_id, older.speaker, older.title) != (later.agent_id, later.speaker, later.title):
        return False
    if said_at(older) == said_at(later):
        return False
    if older.session_id is not None and older.session_id == later.session_id:
        return False
    return all(takes_part(memory) and testimony(memory) is not None for memory in (older, later))
