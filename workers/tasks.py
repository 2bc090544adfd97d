"""The tasks: each calls one function of the jobs and gives its report."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from celery.exceptions import Reject

from vimbank.errors import BackendUnavailable
from vimbank.jobs.registry import JobSpec
from vimbank.queues.celery import scheduled_name, task_name
from workers.process import WorkerProcess
from workers.schedule import REQUEUE

__all__ = ["KILL_AFTER_S", "add_tasks"]

KILL_AFTER_S: Final = 60.0
"""From the time limit, which a job can still note in its record, to the end of its process."""

_REQUEUE_LIMIT_S: Final = 600.0
_RETRY: Final[Mapping[str, Any]] = {
    "autoretry_for": (BackendUnavailable,),
    "retry_backoff": 1,  # seconds, doubled each time, times a random share
    "retry_backoff_max": 60,
    "retry_jitter": True,
    "max_retries": 6,  # about a minute; then the job waits in the store for ``requeue``, and a schedule for its period
}


def add_tasks(app: Any, process: WorkerProcess, specs: Mapping[str, JobSpec]) -> None:
    """Give the application two tasks a job, so that Celery's tools tell the jobs apart, and the requeueing."""
    for spec in specs.values():
        _add(app, task_name(spec.name), spec.time_limit_s, _runner(process), **_RETRY)
        _add(app, scheduled_name(spec.name), spec.time_limit_s, _scheduler(process, spec.name), **_RETRY)
    _add(app, REQUEUE, _REQUEUE_LIMIT_S, _requeuer(process))


def _runner(process: WorkerProcess) -> Callable[[str], dict[str, Any]]:
    def run_job(job_id: str) -> dict[str, Any]:
        run = process.jobs().run(job_id)
        if process.ending:  # the job may have been interrupted: another worker is to have a look at it
            raise Reject("the worker ends", requeue=True)
        return run.as_dict()

    return run_job


def _scheduler(process: WorkerProcess, name: str) -> Callable[[], dict[str, Any]]:
    def run_scheduled() -> dict[str, Any]:
        return process.jobs().run_scheduled(name).as_dict()

    return run_scheduled


def _requeuer(process: WorkerProcess) -> Callable[[], int]:
    def requeue() -> int:
        return process.jobs().requeue()

    return requeue


def _add(app: Any, name: str, limit_s: float, function: Callable[..., object], **options: Any) -> None:
    app.task(function, name=name, shared=False, soft_time_limit=limit_s, time_limit=limit_s + KILL_AFTER_S, **options)
