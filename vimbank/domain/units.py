"""What is kept or let go as one: a document with its segments, a task run with its steps. Pure.

Only segments and steps are searched, so only they are recalled; the parent would fade whatever is recalled of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vimbank.domain.curves import Traces
from vimbank.domain.lifecycle import LifeColumns
from vimbank.domain.models import BoolArray, FloatArray, IntArray

__all__ = ["Units", "heads", "units"]

_DEEPEST = 32  # levels of parts, and what ends the search where ids name each other in a ring


@dataclass(frozen=True, slots=True)
class Units:
    """``rows``: where the head of each unit stands among the memories, ascending, (m,); ``columns``: (m,) each."""

    rows: IntArray
    columns: LifeColumns


def heads(
    ids: Sequence[str], parents: Sequence[str | None], states: BoolArray | IntArray, expires_at: FloatArray
) -> IntArray:
    """The row of the head of each memory's unit: of the parent that has none itself; its own without a parent.

    A part in another state than its parent, or one that expires before it, is a unit of its own.

    Args:    all (n,); parents by id, None: it is no part; a parent that is not among ``ids`` counts as none.
             states: a number for the state of each.  expires_at: epoch seconds, NaN: never.
    Returns: int64 (n,).
    """
    places = {name: row for row, name in enumerate(ids)}
    own = np.arange(len(ids), dtype=np.int64)
    parent = np.array(
        [row if name is None else places.get(name, row) for row, name in enumerate(parents)], dtype=np.int64
    )
    sooner = np.nan_to_num(expires_at, nan=np.inf) < np.nan_to_num(expires_at[parent], nan=np.inf)
    parent = np.where((states == states[parent]) & ~sooner, parent, own)
    for _ in range(_DEEPEST):
        above = parent[parent]
        if np.array_equal(above, parent):
            break
        parent = above
    return parent


def units(
    head: IntArray,
    *,
    archived: BoolArray,
    created_at: FloatArray,
    updated_at: FloatArray,
    recalled_at: FloatArray,
    expires_at: FloatArray,
    importance: FloatArray,
    information: FloatArray,
    pinned: BoolArray,
    traces: Traces,
    lasting: FloatArray,
    superseded: BoolArray | None = None,
    successor: IntArray | None = None,
) -> Units:
    """Each unit as one life: as young, as lately recalled, as lasting, as important as the best of its parts.

    It tells as much as the part that tells most, is pinned where one of them is, archived since the last of them was,
    and expires with its head.

    Args:    head: of ``heads``.  lasting: larger where a trace fades more slowly, no NaN.
             successor: the row of what superseded each, -1: none. The rest as in
             ``ports.Lives``: (n,) each, times in epoch seconds, NaN: none; superseded None: none of them is.
    """
    rows, place = np.unique(head, return_inverse=True)

    def most(column: FloatArray) -> FloatArray:
        if len(rows) == len(column):
            return column
        best = np.full(len(rows), np.nan)
        np.fmax.at(best, place, column)
        return best

    # By part and then by how long it lasts, the last of each unit lasts longest.
    longest = np.lexsort((lasting, place))[np.cumsum(np.bincount(place, minlength=len(rows))) - 1]
    columns = LifeColumns(
        created_at=most(created_at),
        recalled_at=most(recalled_at),
        expires_at=expires_at[rows],
        archived_at=np.where(archived[rows], most(updated_at), np.nan),
        importance=most(importance),
        information=most(information),
        pinned=most(pinned.astype(np.float64)) > 0,
        traces=Traces(traces.strength[longest], traces.stability_days[longest]),
        superseded_at=None if superseded is None else np.where(superseded[rows], most(updated_at), np.nan),
        successor=None if successor is None else np.where(successor[rows] < 0, -1, place[successor[rows]]),
    )
    return Units(rows, columns)
