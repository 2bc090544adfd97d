"""How many memories a store holds."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["StoreCounts"]


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How many memories there are, deleted ones left out; ``users`` counts users that have any."""

    memories: int
    users: int
    by_bank: Mapping[str, int]
    by_state: Mapping[str, int]
    by_kind: Mapping[str, int]
