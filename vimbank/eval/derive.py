"""Summaries and portraits written over a loaded data folder by the product's own jobs, to measure what they cost."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vimbank.errors import VimbankError
from vimbank.settings import load_settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

__all__ = ["write_derived"]


def write_derived(data: Path, tenant: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Bring the summaries and portraits of a tenant up to date: what each job reports, by its name.

    Args:    data: the data folder.  settings: as for ``MemoryService.open``.
    Raises:  VimbankError: a job failed, stopped or left something out.
    """
    chosen = load_settings(data_dir=data, **settings)
    reports = {}
    with open_service(chosen) as service:
        jobs = open_jobs(chosen, service)
        try:
            for name in ("summarise", "portrait"):
                job = jobs.start(name, {"tenant": tenant})
                report = jobs.run(job.id).result
                if report is None or report["failed"] or report["stopped"]:
                    raise VimbankError(f"{name}: {jobs.get(job.id).error or report}")
                reports[name] = dict(report)
        finally:
            jobs.close()
        service.flush()
    return reports
