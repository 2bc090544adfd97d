"""The tasks: each calls one function of the jobs and gives its report."""

from collections.abc import Callable
from typing import Any, Final

from celery.exceptions import Reject

from vimbank.errors import BackendUnavailable
from vimbank.jobs.registry import JOBS, JobSpec
from vimbank.queues.celery import scheduled_name, task_name
from workers.app import KILL_AFTER_S, app, settings
from workers.process import WorkerProcess
from workers.schedule import REQUEUE

__all__ = ["requeue", "runners", "schedulers"]

_RETRY: Final[dict[str, Any]] = {
    "autoretry_for": (BackendUnavailable,),
    "retry_backoff": 1,  # seconds, doubled each time, times a random share
    "retry_backoff_max": 60,
    "retry_jitter": True,
    "max_retries": 6,  # after about a minute; then the job waits in the store for ``requeue``
}

process: Final = WorkerProcess(settings)
process.connect()


def _runner(spec: JobSpec) -> Any:
    def run_job(job_id: str) -> dict[str, Any]:
        run = process.jobs().run(job_id)
        if process.ending:  # the job may have been interrupted: another worker is to have a look at it
            raise Reject("the worker ends", requeue=True)
        return run.as_dict()

    return _task(task_name(spec.name), spec, run_job)


def _scheduler(spec: JobSpec) -> Any:
    def run_scheduled() -> dict[str, Any]:
        return process.jobs().run_scheduled(spec.name).as_dict()

    return _task(scheduled_name(spec.name), spec, run_scheduled)


def _task(name: str, spec: JobSpec, function: Callable[..., dict[str, Any]]) -> Any:
    limits = {"soft_time_limit": spec.time_limit_s, "time_limit": spec.time_limit_s + KILL_AFTER_S}
    return app.task(function, name=name, shared=False, **limits, **_RETRY)


@app.task(name=REQUEUE, soft_time_limit=600.0, time_limit=600.0 + KILL_AFTER_S, shared=False)  # type: ignore[untyped-decorator]
def requeue() -> int:
    """Send again what lost its worker or its message; how many. The next period is the next try."""
    return process.jobs().requeue()


runners: Final = {spec.name: _runner(spec) for spec in JOBS.values()}
"""By job name: the task that runs a recorded job, given its id."""
schedulers: Final = {spec.name: _scheduler(spec) for spec in JOBS.values()}
"""By job name: the task of its schedule."""
