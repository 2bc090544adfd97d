"""What of a partition goes, when and why: read from the store, decided by ``domain.lifecycle``."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import numpy as np

from vimbank.domain.curves import Curve, Traces
from vimbank.domain.lifecycle import (
    DEFAULT_MAX_SHARE,
    TARGETS,
    Departures,
    LifeColumns,
    LifecyclePolicy,
    Reason,
    departures,
    forecast,
    retained,
    tally,
)
from vimbank.domain.models import FloatArray, IntArray, MemoryState, Partition
from vimbank.domain.times import from_micros, to_seconds
from vimbank.domain.units import Units, heads, units
from vimbank.ports import Lives, MemoryStore

__all__ = ["Forecast", "Leaving", "Lifecycles", "Plan", "forecast_record"]

_ANY_AGE_DAYS: Final = 1.0
"""Which of two traces retains more does not depend on the age; at a short one no retention is too small to tell."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """One memory that goes, with its parts: to which state, when and why, and its retention now, in [0, 1]."""

    partition: Partition
    id: str
    to: MemoryState
    at: datetime
    reason: Reason
    retention: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What goes until then: how many, for which reasons, and the first to go in order of time."""

    until: datetime
    total: int
    memories: int
    reasons: Mapping[Reason, int]
    items: Sequence[Leaving]


@dataclass(frozen=True, slots=True)
class Plan:
    """When each memory of a partition goes, decided at ``revision`` of the store. A document or task run is one.

    ``ids`` (m,) in the order of the departures; ``retention`` (m,) in [0, 1], as of the plan's now.
    """

    partition: Partition
    revision: int
    ids: Sequence[str]
    leaving: Departures
    retention: FloatArray

    @property
    def memories(self) -> int:
        """How many were looked at: active, archived, and superseded where the bank lets those go."""
        return len(self.ids)

    def counts(self, until: float) -> Mapping[Reason, int]:
        """How many go until then (epoch seconds), by reason."""
        return tally(self.leaving, until=until)

    def rows(self, until: float) -> IntArray:
        """Which go until then (epoch seconds), the first to go first."""
        return forecast(self.leaving, until=until)

    def items(self, rows: IntArray) -> Iterator[Leaving]:
        """These, told in full."""
        for row in rows.tolist():
            reason = self.leaving.reason(row)
            assert reason is not None
            at = from_micros(round(self.leaving.at[row] * 1e6))
            yield Leaving(self.partition, self.ids[row], TARGETS[reason], at, reason, float(self.retention[row]))


class Lifecycles:
    """How the memories of each bank live and go.

    Args:    policies: by bank; a bank that is not named has ``LifecyclePolicy()``.
             make_curve: the curve that a policy names.  max_share: what one run may take at most, in [0, 1].
    """

    def __init__(
        self,
        store: MemoryStore,
        policies: Mapping[str, LifecyclePolicy],
        make_curve: Callable[[LifecyclePolicy], Curve],
        *,
        max_share: float = DEFAULT_MAX_SHARE,
    ) -> None:
        self._store = store
        self._policies = policies
        self._curves = {bank: make_curve(policy) for bank, policy in policies.items()}
        self._other_curve = make_curve(LifecyclePolicy())
        self.max_share: Final = max_share

    def partitions(self, tenant: str | None = None) -> list[Partition]:
        """All that hold a memory which may go: active, archived, superseded where its bank lets go of those; sorted."""
        states = (MemoryState.ACTIVE, MemoryState.ARCHIVED)
        found = {each for state in states for each in self._store.partitions(tenant, state=state)}
        if any(policy.superseded_grace_days is not None for policy in self._policies.values()):
            superseded = self._store.partitions(tenant, state=MemoryState.SUPERSEDED)
            found.update(each for each in superseded if self._prunes_superseded(each.bank))
        return sorted(found)

    def _prunes_superseded(self, bank: str) -> bool:
        policy = self._policies.get(bank)
        return policy is not None and policy.superseded_grace_days is not None

    def curve_of(self, bank: str) -> Curve:
        """How the memories of a bank fade, and what a recall does to them."""
        return self._curves.get(bank, self._other_curve)

    def plan(self, partition: Partition, *, now: datetime) -> Plan:
        """What of a partition goes when; changes nothing, not even a time of access (case 101)."""
        lives = self._store.lives(partition, superseded=self._prunes_superseded(partition.bank))
        policy, curve = self._policies.get(partition.bank, LifecyclePolicy()), self.curve_of(partition.bank)
        made = _units(lives, curve)
        instant = to_seconds(now)
        # An archived or superseded memory has left already; there its grace alone counts.
        columns = _active_expiry(made.columns)
        return Plan(
            partition,
            lives.revision,
            [lives.ids[row] for row in made.rows.tolist()],
            departures(columns, policy, curve, now=instant),
            retained(columns, policy, curve, now=instant),
        )

    def forecast(self, partitions: Sequence[Partition], *, now: datetime, until: datetime, limit: int) -> Forecast:
        """What goes until then if nothing happens to it, and the ``limit`` that go first. The rule is that of a run."""
        plans = [self.plan(partition, now=now) for partition in partitions]
        end = to_seconds(until)
        reasons: Counter[Reason] = Counter()
        items: list[Leaving] = []
        for plan in plans:
            reasons.update(plan.counts(end))
            items += plan.items(plan.rows(end)[:limit])
        items.sort(key=lambda each: (each.at, each.partition, each.id))
        return Forecast(until, reasons.total(), sum(plan.memories for plan in plans), dict(reasons), items[:limit])


def forecast_record(value: Forecast) -> dict[str, Any]:
    """A forecast as every entry point tells it."""
    return {
        "until": value.until,
        "total": value.total,
        "memories": value.memories,
        "reasons": {reason.value: count for reason, count in sorted(value.reasons.items())},
        "items": [
            {
                "id": each.id,
                "bank": each.partition.bank,
                "at": each.at,
                "reason": each.reason.value,
                "to": each.to.value,
                "retention": each.retention,
            }
            for each in value.items
        ],
    }


def _units(lives: Lives, curve: Curve) -> Units:
    traces = Traces(lives.strength, lives.stability_days)
    return units(
        heads(lives.ids, lives.parents, lives.archived + 2 * lives.superseded, lives.expires_at),
        archived=lives.archived,
        created_at=lives.created_at,
        updated_at=lives.updated_at,
        recalled_at=lives.recalled_at,
        expires_at=lives.expires_at,
        importance=lives.importance,
        information=lives.information,
        pinned=lives.pinned,
        traces=traces,
        lasting=curve.retention(traces, np.full(len(lives.ids), _ANY_AGE_DAYS)),
        superseded=lives.superseded,
        successor=_successors(lives),
    )


def _successors(lives: Lives) -> IntArray | None:
    """The row of what superseded each; None where nothing is superseded."""
    if not lives.superseded.any():
        return None
    places = {name: row for row, name in enumerate(lives.ids)}
    rows = [-1 if name is None else places.get(name, -1) for name in lives.successors]
    return np.array(rows, dtype=np.int64)


def _active_expiry(columns: LifeColumns) -> LifeColumns:
    return replace(columns, expires_at=np.where(columns.active, columns.expires_at, np.nan))
