"""The beat table: what runs by itself, in UTC."""

from typing import Any, Final

from vimbank.domain.jobs import Schedule
from vimbank.queues.celery import scheduled_name
from vimbank.settings import Settings
from vimbank.wiring.jobs import job_schedules
from workers.beat import Periods

__all__ = ["REQUEUE", "beat_schedule"]

REQUEUE: Final = "vimbank.requeue"
"""The task that sends again what lost its worker or its message."""


def beat_schedule(settings: Settings) -> dict[str, dict[str, Any]]:
    """Celery's ``beat_schedule``: an entry a schedule, and the requeueing."""
    table = {schedule.name: _entry(schedule) for schedule in job_schedules(settings)}
    table["requeue"] = {
        "task": REQUEUE,
        "schedule": Periods(settings.jobs.lease_s / 2),
        "options": {"queue": "lifecycle"},
    }
    return table


def _entry(schedule: Schedule) -> dict[str, Any]:
    return {
        "task": scheduled_name(schedule.name),
        "schedule": Periods(schedule.every.total_seconds()),
        "options": {"queue": schedule.queue},
    }
