"""Rows beside the candidates: the turns around them, the passages they mention, the windows around results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray, IntArray
from vimbank.domain.titles import mentioned_titles
from vimbank.ports import PartitionIndex

__all__ = [
    "Links",
    "beside",
    "follow_titles",
    "neighbour_pairs",
    "positions",
    "revisions",
    "support",
    "union",
    "window_rows",
    "windows",
]

_REACH: Final = 2
"""How many positions away the next one that is still there may be: one may have been forgotten in between."""


@dataclass(frozen=True, slots=True)
class Links:
    """Which row lends support to which: row numbers, (n,) each, pair by pair."""

    sources: IntArray
    targets: IntArray


def beside(index: PartitionIndex, rows: IntArray) -> IntArray:
    """(n, 2): of each row the one before it and the one after it in its group, -1 where there is none.

    Where that one is gone it is the next but one: what was forgotten between two turns does not part them.
    """
    near = index.neighbours(rows, 1)[:, [0, -1]]
    lone = np.flatnonzero((near < 0).any(axis=1))
    if len(lone):
        far = index.neighbours(rows[lone], _REACH)[:, [0, -1]]
        near[lone] = np.where(near[lone] < 0, far, near[lone])
    return near


def neighbour_pairs(index: PartitionIndex, rows: IntArray, *, allowed: BoolArray | None) -> Links:
    """Each of these rows with the allowed rows ``beside`` it.

    Both ways round, because a neighbour supports as well as it is supported: sources and targets are each other's.
    """
    around = beside(index, rows)
    there = around >= 0 if allowed is None else (around >= 0) & allowed[around]
    found, middle = around[there], np.repeat(rows, there.sum(axis=1))
    return Links(np.concatenate([found, middle]), np.concatenate([middle, found]))


def positions(rows: IntArray, wanted: IntArray) -> IntArray:
    """Where each wanted row stands in ``rows``, which are ascending and distinct; -1 where it does not.

    Returns: int64, the shape of ``wanted``.
    """
    if not len(rows):
        return np.full(wanted.shape, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    return np.where(rows[at] == wanted, at, -1)


def union(index: PartitionIndex, *several: IntArray) -> IntArray:
    """All of these rows, ascending, each once."""
    marked = np.zeros(len(index), dtype=np.bool_)  # 40 times faster than sorting, also over 100,000 rows
    for rows in several:
        marked[rows] = True
    return np.flatnonzero(marked)


def follow_titles(
    index: PartitionIndex, sources: IntArray, texts: Sequence[str], *, allowed: BoolArray | None
) -> Links:
    """The allowed rows whose title one of these texts mentions; a row does not link to itself.

    Args:    sources: rows, texts: the text of each.
    """
    titles = index.titles()
    pairs = [
        (int(source), row)
        for source, text in zip(sources, texts, strict=True)
        for title in mentioned_titles(text, titles)
        for row in titles[title]
        if row != source and (allowed is None or allowed[row])
    ]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Links(both[:, 0], both[:, 1])


def support(links: Links, rows: IntArray, relevance: FloatArray) -> FloatArray:
    """The relevance of the best source that each row is the target of; 0 where it is none's.

    Args:    rows: ascending, with all of the links' rows.  relevance: of each of them, (n,) in [0, 1].
    Returns: float64, (n,), in [0, 1].
    """
    best = np.zeros(len(rows))
    np.maximum.at(best, positions(rows, links.targets), relevance[positions(rows, links.sources)])
    return best


def window_rows(index: PartitionIndex, rows: IntArray, *, radius: int, allowed: BoolArray | None) -> IntArray:
    """(n, 2*radius+1): each row among the allowed rows around it, in the order of their group; -1 where none.

    (n, 0) without a radius. A row that stands alone has no window but itself.
    """
    if radius < 1 or not len(rows):
        return np.empty((len(rows), 0), dtype=np.int64)
    around = index.neighbours(rows, radius).copy()
    around[:, radius] = rows  # a row without a group has no place in one, but is its own window
    return around if allowed is None else np.where((around >= 0) & allowed[around], around, -1)


def windows(index: PartitionIndex, around: IntArray) -> list[tuple[str, ...]]:
    """The ids of each window of ``window_rows``; () where there is no neighbour to show."""
    if not around.shape[1]:
        return [()] * len(around)
    there = around >= 0
    ids = index.ids(around[there])
    ends = np.cumsum(there.sum(axis=1)).tolist()
    found = [tuple(ids[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    return [window if len(window) > 1 else () for window in found]


def revisions(index: PartitionIndex, rows: IntArray) -> dict[str, int]:
    """id -> the revision at which the index knows it, of these rows; -1 stands for no row."""
    rows = rows[rows >= 0]
    return dict(zip(index.ids(rows), index.column("revision")[rows].astype(np.int64).tolist(), strict=True))
