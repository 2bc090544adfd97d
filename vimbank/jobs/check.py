"""Compare every index with the store."""

from collections.abc import Mapping
from typing import Any, Final

from vimbank.domain.sanitize import clean_id
from vimbank.jobs.context import JobContext
from vimbank.jobs.params import only

__all__ = ["check", "validate"]

_MOST: Final = 100
"""Partitions with problems that a report lists; the rest is counted."""


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``tenant``: only this one's partitions; left out: all."""
    only(params, "tenant")
    tenant = params.get("tenant")
    return {} if tenant is None else {"tenant": clean_id(tenant, "params.tenant")}


def check(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """What differs, partition by partition. That something differs is a result and no failure of the job."""

    def progress(done: int, total: int) -> None:
        context.report(done, total, "partitions")
        context.check()

    report = context.service.check(params.get("tenant"), progress=progress)
    bad = [each for each in report.partitions if each.problems]
    return {
        "ok": report.ok,
        "partitions": len(report.partitions),
        "memories": sum(each.memories for each in report.partitions),
        "problems": list(report.problems),
        "differing": len(bad),
        "differences": [
            {
                "tenant": each.partition.tenant,
                "user_id": each.partition.user_id,
                "bank": each.partition.bank,
                "problems": list(each.problems),
            }
            for each in bad[:_MOST]
        ],
    }
