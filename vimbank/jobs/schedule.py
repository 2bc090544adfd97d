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
    check_repair: bool = True,
    reinforce_every_s: float,
    expire_every_s: float = 86_400.0,
    conflicts_every_s: float = 3_600.0,
    forget_every_s: float | None = None,
    prune_every_s: float | None = None,
    summarise_every_s: float | None = None,
    portrait_every_s: float | None = None,
    consolidate_every_s: float | None = None,
    assess_every_s: float | None = None,
) -> Sequence[Schedule]:
    """The table of all schedulers: Celery's beat, and the one inside a server. Seconds, > 0; None: never by itself.

    What takes memories away or writes new ones waits for somebody to ask: how much recall each costs is not measured
    on every set yet. Extractive summaries and portraits in the dialog bank gain LoCoMo 0.3 points of recall@5, and cost
    MemoryBank one of 99 English and one of 100 Chinese questions: their words count in BM25's statistics.

    Args:    check_repair: the check repairs, too. It makes anew what is made from the store anyway, and tells of it;
                 a damaged index that waited for somebody to look would answer wrongly until then.
    """
    periods = {
        "follow": follow_every_s,
        "snapshot": snapshot_every_s,
        "compact": compact_every_s,
        "check": check_every_s,
        "reinforce": reinforce_every_s,
        "forget": forget_every_s,
        "expire": expire_every_s,
        "conflicts": conflicts_every_s,
        "prune": prune_every_s,
        "summarise": summarise_every_s,
        "portrait": portrait_every_s,
        "consolidate": consolidate_every_s,
        "assess": assess_every_s,
    }
    params = {"check": {"repair": check_repair}}
    return [
        Schedule(name, timedelta(seconds=every_s), JOBS[name].queue, params.get(name, {}))
        for name, every_s in periods.items()
        if every_s is not None
    ]
