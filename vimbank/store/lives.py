"""From rows to the columns that forgetting decides by (see ``MemoryStore.lives``)."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from vimbank.domain.models import FloatArray, Memory, MemoryState
from vimbank.domain.times import to_micros
from vimbank.ports import Lives

__all__ = ["LIFE_COLUMNS", "life_row", "life_states", "lives"]

_SUPERSEDED: Final = MemoryState.SUPERSEDED.value
_STATES: Final = (MemoryState.ACTIVE.value, MemoryState.ARCHIVED.value)


def life_states(*, superseded: bool) -> Sequence[str]:
    """The states of the memories that ``lives`` tells of."""
    return (*_STATES, _SUPERSEDED) if superseded else _STATES


LIFE_COLUMNS: Final = (
    "id",
    "parent_id",
    "state",
    "superseded_by",
    "created_at",
    "updated_at",
    "last_recalled_at",
    "expires_at",
    "importance",
    "pinned",
    "strength",
    "stability_days",
    "information",
)
"""What ``lives`` reads, in its order."""

_MICROS: Final = 1e-6


def life_row(memory: Memory) -> Sequence[Any]:
    """The columns of a memory."""
    times = (memory.created_at, memory.updated_at, memory.last_recalled_at, memory.expires_at)
    return (
        memory.id,
        memory.source.parent_id,
        memory.state.value,
        memory.superseded_by,
        *(None if time is None else to_micros(time) for time in times),
        memory.importance,
        memory.pinned,
        memory.strength,
        memory.stability_days,
        memory.information,
    )


def lives(revision: int, batches: Iterable[Sequence[Sequence[Any]]]) -> Lives:
    """The columns of all rows. A batch is turned into arrays before the next is read, so that no row stays."""
    ids: list[str] = []
    parents: list[str | None] = []
    archived: list[bool] = []
    superseded: list[bool] = []
    successors: list[str | None] = []
    parts: list[FloatArray] = []
    for batch in batches:
        ids += [row[0] for row in batch]
        parents += [row[1] for row in batch]
        archived += [row[2] == MemoryState.ARCHIVED.value for row in batch]
        superseded += [row[2] == _SUPERSEDED for row in batch]
        successors += [row[3] for row in batch]
        parts.append(np.array([row[4:] for row in batch], dtype=np.float64).T)  # None becomes NaN
    created, updated, recalled, expires, importance, pinned, strength, stability, information = (
        np.concatenate(parts, axis=1) if parts else np.empty((9, 0))
    )
    return Lives(
        revision=revision,
        ids=ids,
        parents=parents,
        archived=np.array(archived, dtype=np.bool_),
        superseded=np.array(superseded, dtype=np.bool_),
        successors=successors,
        created_at=created * _MICROS,
        updated_at=updated * _MICROS,
        recalled_at=recalled * _MICROS,
        expires_at=expires * _MICROS,
        importance=importance,
        pinned=pinned > 0,
        strength=strength,
        stability_days=stability,
        information=information,
    )
