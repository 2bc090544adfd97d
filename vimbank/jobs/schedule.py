"""What runs by itself, and how often."""

from collections.abc import Sequence
from datetime import timedelta

from vimbank.domain.jobs import Schedule
from vimbank.jobs.registry import JOBS

__all__ = ["schedules"]


def schedules(
    *,
    follow_every_s: float,
    snapshot_every_s: float,
    compact_every_s: float,
    check_every_s: float,
    reinforce_every_s: float,
    forget_every_s: float = 86_400.0,
    expire_every_s: float = 86_400.0,
    prune_every_s: float = 86_400.0,
    summarise_every_s: float = 86_400.0,
    portrait_every_s: float = 86_400.0,
) -> Sequence[Schedule]:
    """The table of all schedulers: Celery's beat, and the one inside a server. Seconds, > 0."""
    periods = {
        "follow": follow_every_s,
        "snapshot": snapshot_every_s,
        "compact": compact_every_s,
        "check": check_every_s,
        "reinforce": reinforce_every_s,
        "forget": forget_every_s,
        "expire": expire_every_s,
        "prune": prune_every_s,
        "summarise": summarise_every_s,
        "portrait": portrait_every_s,
    }
    return [Schedule(name, timedelta(seconds=every_s), JOBS[name].queue) for name, every_s in periods.items()]
