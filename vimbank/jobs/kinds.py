"""What can be started, for those who ask."""

from typing import Any

from vimbank.jobs.runner import Jobs

__all__ = ["kind_records"]


def kind_records(jobs: Jobs) -> list[dict[str, Any]]:
    """Each kind of job as a record; ``every_s``: it runs by itself once in so many seconds, None: on demand alone."""
    every_s = {schedule.name: schedule.every.total_seconds() for schedule in jobs.schedules}
    return [
        {
            "name": spec.name,
            "queue": spec.queue,
            "description": spec.description,
            "params": dict(spec.params),
            "every_s": every_s.get(spec.name),
        }
        for spec in jobs.specs()
    ]
