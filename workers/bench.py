"""``celery -A workers.bench worker``: the workers' application with a task that does nothing, for the bench."""

from typing import Any

from vimbank.queues.celery import task_name
from workers.app import app

__all__ = ["app"]


def _bare(job_id: str) -> dict[str, Any]:
    del job_id
    return {}


app.task(_bare, name=task_name("bare"), shared=False)
