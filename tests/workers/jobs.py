"""Jobs that tests can watch and hold up, beside the real ones."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from vimbank.domain.models import ListQuery, MemoryDraft
from vimbank.errors import BackendUnavailable, ModelError
from vimbank.jobs.context import JobContext
from vimbank.jobs.registry import JOBS, JobSpec

__all__ = ["SPECS", "USER", "note"]

USER: Final = "crowd"
_BATCH: Final = 20


def note(log: Path, line: str) -> None:
    """Append a line to a file that several processes write."""
    with log.open("a") as file:
        file.write(f"{line} {os.getpid()}\n")


def _held(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Goes on until the file ``go`` is there."""
    log, go = Path(params["log"]), Path(params["go"])
    note(log, "start")
    while not go.exists():
        context.check()
        time.sleep(0.02)
    note(log, "end")
    return {"pid": os.getpid()}


def _needy(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """An engine is down until the file ``go`` is there."""
    del context
    note(Path(params["log"]), "start")
    if not Path(params["go"]).exists():
        raise BackendUnavailable("engine", "is down")
    return {}


def _broken(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    del context
    note(Path(params["log"]), "start")
    raise ModelError("it broke")


def _prune(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Deletes every memory of a user, in small batches; waits at the half until the file ``go`` is there."""
    go, half, deleted = Path(params["go"]), int(params["half"]), 0
    while True:
        context.check()
        page = context.service.list(ListQuery(tenant="default", user_id=USER, limit=_BATCH))
        if not page.items:
            return {"deleted": deleted}
        if page.total <= half and not go.exists():
            time.sleep(0.02)
            continue
        for memory in page.items:
            context.service.delete("default", memory.id, actor="prune")
            deleted += 1
        context.report(deleted)


def _write(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds memories, one by one."""
    for number in range(params["count"]):
        text = f"{params['writer']} wrote number {number}"
        context.service.add(MemoryDraft(tenant="default", user_id=USER, bank="dialog", text=text), actor="job")
    return {"written": params["count"]}


def _free(params: Mapping[str, Any]) -> Mapping[str, Any]:
    return params


def _spec(name: str, run: Any, *, limit_s: float = 3_600.0) -> JobSpec:
    return JobSpec(name=name, queue="lifecycle", run=run, description="", validate=_free, time_limit_s=limit_s)


SPECS: Final[Mapping[str, JobSpec]] = {
    **JOBS,
    "held": _spec("held", _held),
    "limited": _spec("limited", _held, limit_s=1.0),
    "needy": _spec("needy", _needy),
    "broken": _spec("broken", _broken),
    "prune": _spec("prune", _prune),
    "write": _spec("write", _write),
}
"""The real jobs, and these; all on one queue."""
