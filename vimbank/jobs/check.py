"""Compare the store with itself, and everything made from it with it; repair what differs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vimbank.domain.checks import COMPONENTS, CheckReport, Problem
from vimbank.domain.jobs import JobState
from vimbank.domain.json_values import flag_value
from vimbank.domain.models import Partition
from vimbank.domain.sanitize import clean_id
from vimbank.domain.times import format_time
from vimbank.jobs.context import JobContext
from vimbank.jobs.params import only
from vimbank.jobs.portrait import portrait
from vimbank.jobs.summarise import summarise

__all__ = ["PARAMS", "check", "check_all", "validate"]

PARAMS: Final[Mapping[str, str]] = {
    "tenant": "only this tenant's memories; left out: all",
    "repair": "true: make anew what differs from the store; left out: only tell",
}

_MOST: Final = 100
"""Partitions with problems that a report lists, and problems of each; the rest is counted."""


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tenant``, ``repair``; see ``PARAMS``."""
    only(params, *PARAMS)
    tenant = params.get("tenant")
    given: dict[str, Any] = {} if tenant is None else {"tenant": clean_id(tenant, "params.tenant")}
    return given | ({"repair": flag_value(params["repair"], "params.repair")} if "repair" in params else {})


def check(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """What differs, partition by partition. That something differs is a result and no failure of the job."""
    tenant, repair = params.get("tenant"), params.get("repair", False)

    def progress(done: int, total: int) -> None:
        context.report(done, total, "partitions")
        context.check()

    report = check_all(context, tenant, repair=repair, progress=progress)
    bad = [each for each in report.partitions if each.problems]
    return {
        "ok": report.ok,
        "repair": repair,
        "at": format_time(context.around.clock()),
        "partitions": len(report.partitions),
        "memories": sum(each.memories for each in report.partitions),
        "components": _by_component(report),
        "repaired_total": _total(context, report),
        "problems": _told(report.problems),
        "differing": len(bad),
        "differences": [
            {
                "tenant": each.partition.tenant,
                "user_id": each.partition.user_id,
                "bank": each.partition.bank,
                "problems": _told(each.problems),
            }
            for each in bad[:_MOST]
        ],
    }


def check_all(
    context: JobContext, tenant: str | None, *, repair: bool, progress: Callable[[int, int], None]
) -> CheckReport:
    """``MemoryService.check``, with the jobs that keep summaries and portraits up to date for what is stale of them."""

    def rewrite(partition: Partition, stale: frozenset[str]) -> None:
        params = {"tenant": partition.tenant, "user": partition.user_id, "bank": partition.bank}
        summarise(context, params, only=stale)
        portrait(context, params, only=stale)

    return context.service.check(tenant, repair=repair, rewrite=rewrite, progress=progress)


def _by_component(report: CheckReport) -> Mapping[str, Mapping[str, int]]:
    """Of each component that anything was wrong with: problems found, and how many of them are gone."""
    found, repaired = report.found, report.repaired
    return {
        each: {"found": found[each], "repaired": repaired.get(each, 0)} for each in COMPONENTS if found.get(each, 0)
    }


def _total(context: JobContext, report: CheckReport) -> Mapping[str, int]:
    """What all checks have repaired, by component, as long as the record of the one before is kept."""
    before = context.around.store.list(name="check", state=JobState.SUCCEEDED, limit=1)
    result = before[0].result if before else None
    total = {} if result is None else result.get("repaired_total", {})
    repaired = {each: total.get(each, 0) + report.repaired.get(each, 0) for each in COMPONENTS}
    return {each: count for each, count in repaired.items() if count}


def _told(problems: Sequence[Problem]) -> list[str]:
    """The first of them, and how many there are besides."""
    told = [f"{problem.component}: {problem}" for problem in problems[:_MOST]]
    return told if len(problems) <= _MOST else [*told, f"and {len(problems) - _MOST} more"]
