"""Folding the access log into the memories, once for all stores: read by the batch, decide, write by the batch."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from vimbank.domain.curves import Curve
from vimbank.domain.models import RecallEntry, Signal
from vimbank.domain.reinforcement import Standing, reinforce

__all__ = ["Recalled", "RecallRows", "Touched", "fold_recalls"]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What folding reads of a memory."""

    number: int
    id: str
    bank: str
    created_at: datetime
    standing: Standing


@dataclass(frozen=True, slots=True)
class Touched:
    """What folding writes of a memory: its new standing, at a new revision."""

    number: int
    standing: Standing
    revision: int


class RecallRows(Protocol):
    """What folding needs of a writing transaction."""

    def take_revision(self) -> int: ...

    def recalled(self, tenant: str, ids: Sequence[str]) -> Sequence[Recalled]:
        """Those of these memories that there are, whatever their state but deleted, in any order."""
        ...

    def touch(self, touched: Sequence[Touched]) -> None:
        """Write standings and revisions only."""
        ...


def fold_recalls(
    rows: RecallRows, entries: Iterable[RecallEntry], curve_of: Callable[[str], Curve], *, now: datetime
) -> int:
    """Fold lines of the access log into their memories; of how many lines' memories there is nothing left.

    Those say nothing. What a memory's lines leave as it is, writes nothing; a memory takes one revision at most.

    Args:    curve_of: the curve of a bank.
    """
    signals: dict[str, dict[str, list[tuple[datetime, Signal]]]] = {}
    lines = 0
    for entry in entries:
        signals.setdefault(entry.tenant, {}).setdefault(entry.memory_id, []).append((entry.at, entry.signal))
        lines += 1
    found = [
        (memory, by_id[memory.id]) for tenant, by_id in signals.items() for memory in rows.recalled(tenant, list(by_id))
    ]
    found.sort(key=lambda pair: pair[0].number)  # the order of revisions is the same on every store
    changed = []
    for memory, noted in found:
        new = reinforce(memory.standing, noted, curve_of(memory.bank), created_at=memory.created_at, now=now)
        if new != memory.standing:
            changed.append((memory.number, new))
    if changed:  # nothing was written before all was decided
        rows.touch([Touched(number, new, rows.take_revision()) for number, new in changed])
    return lines - sum(len(noted) for _, noted in found)
