"""What forget, prune and expire have in common: look at everything, decide, stop if it is too much, then act."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from vimbank.domain.json_values import flag_value
from vimbank.domain.lifecycle import TARGETS, Reason, share_guard
from vimbank.domain.models import IntArray, Partition, StateChange
from vimbank.domain.times import to_seconds
from vimbank.jobs.context import JobContext
from vimbank.jobs.params import only, tenant_and_share
from vimbank.lifecycle.planning import Plan

__all__ = ["PARAMS", "take", "validate"]

PARAMS: Final[Mapping[str, str]] = {
    "dry_run": "true: only say what would go",
    "tenant": "only this tenant's memories; left out: all",
    "max_share": "what the run may take at most, 0 to 1; left out: as the settings say",
}

_BATCH: Final = 500
"""Memories in one transaction, and between two looks for a cancellation."""
_KEPT: Final = 200_000
"""Memories whose plans are kept between the look and the move, at about 200 bytes each; beyond, it looks again."""
_SHOWN: Final = 100
"""Partitions and ids that a report names; the rest is counted."""


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """See ``PARAMS``."""
    only(params, *PARAMS)
    checked: dict[str, Any] = {}
    if "dry_run" in params:
        checked["dry_run"] = flag_value(params["dry_run"], "params.dry_run")
    return checked | tenant_and_share(params)


@dataclass(slots=True)
class _Survey:
    """What a run would take, before it takes any of it."""

    memories: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)
    due: list[tuple[Partition, Mapping[Reason, int]]] = field(default_factory=list)
    sample: list[Mapping[str, Any]] = field(default_factory=list)
    plans: dict[Partition, Plan] = field(default_factory=dict)
    kept: int = 0


def take(context: JobContext, params: Mapping[str, Any], reasons: Sequence[Reason]) -> Mapping[str, Any]:
    """Move all that is due for these reasons. Every partition is looked at before the first memory moves.

    Idempotent: what has moved is not due again, so a second run, or one that goes on where another was killed, takes
    what is left of the same (cases 120, 122). What was written between the decision and the move stays (``skipped``).
    """
    now = context.around.clock()
    lifecycles = context.service.lifecycles
    survey = _survey(context, params, reasons)
    guard = share_guard(survey.reasons, survey.memories, max_share=params.get("max_share", lifecycles.max_share))
    dry_run = bool(params.get("dry_run", False))
    moved, skipped = Counter[Reason](), 0
    if not dry_run and not guard.stops:
        for partition, _counts in survey.due:
            plan = survey.plans.pop(partition, None) or lifecycles.plan(partition, now=now)
            for rows in _batches(_due(plan, reasons, to_seconds(now))):
                refused = _move(context, plan, rows)
                skipped += len(refused)
                moved.update(
                    reason for row in rows.tolist() if row not in refused and (reason := plan.leaving.reason(row))
                )
                context.report(moved.total() + skipped, survey.reasons.total(), "memories")
                context.check()
    return {
        "dry_run": dry_run,
        "stopped": f"it would take {guard}" if guard.stops else None,
        "memories": survey.memories,
        "due": survey.reasons.total(),
        "reasons": {reason.value: count for reason, count in sorted(survey.reasons.items())},
        "moved": moved.total(),
        "skipped": skipped,
        "partitions": [_record(partition, counts) for partition, counts in survey.due[:_SHOWN]],
        "partitions_due": len(survey.due),
        "sample": survey.sample,
    }


def _survey(context: JobContext, params: Mapping[str, Any], reasons: Sequence[Reason]) -> _Survey:
    now = context.around.clock()
    lifecycles = context.service.lifecycles
    survey = _Survey()
    partitions = lifecycles.partitions(params.get("tenant"))
    for done, partition in enumerate(partitions, 1):
        plan = lifecycles.plan(partition, now=now)
        survey.memories += plan.memories
        counts = {reason: count for reason, count in plan.counts(to_seconds(now)).items() if reason in reasons}
        if counts:
            survey.reasons.update(counts)
            survey.due.append((partition, counts))
            if survey.kept + plan.memories <= _KEPT:
                survey.kept += plan.memories
                survey.plans[partition] = plan
            rows = _due(plan, reasons, to_seconds(now))[: _SHOWN - len(survey.sample)]
            survey.sample += [
                {"id": each.id, "reason": each.reason.value, "retention": round(each.retention, 4)}
                for each in plan.items(rows)
            ]
        context.report(done, len(partitions), "partitions looked at")
        context.check()
    return survey


def _due(plan: Plan, reasons: Sequence[Reason], now: float) -> IntArray:
    rows = plan.rows(now)
    wanted = np.array([plan.leaving.reason(row) in reasons for row in rows.tolist()], dtype=np.bool_)
    return rows[wanted]


def _batches(rows: IntArray) -> Iterator[IntArray]:
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]


def _move(context: JobContext, plan: Plan, rows: IntArray) -> set[int]:
    """Those that stayed, since somebody wrote to them."""
    places = rows.tolist()
    changes = [
        StateChange(id=plan.ids[row], to=TARGETS[reason], seen=plan.revision)
        for row in places
        if (reason := plan.leaving.reason(row)) is not None
    ]
    results = context.service.change_states(plan.partition.tenant, changes, actor="lifecycle")
    return {row for row, result in zip(places, results, strict=True) if isinstance(result, Exception)}


def _record(partition: Partition, counts: Mapping[Reason, int]) -> Mapping[str, Any]:
    return {
        "tenant": partition.tenant,
        "user_id": partition.user_id,
        "bank": partition.bank,
        **{reason.value: count for reason, count in counts.items()},
    }
