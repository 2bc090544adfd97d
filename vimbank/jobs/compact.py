"""Remove what has served: tombstones that every follower has passed, and jobs that ended long ago."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from vimbank.jobs.context import JobContext
from vimbank.jobs.params import only, positive

__all__ = ["compact", "validate"]

_MOST_DAYS: Final = 36_500


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``keep_days``: how long deletions and ended jobs are remembered; left out: as the settings say."""
    only(params, "keep_days")
    days = params.get("keep_days")
    return {} if days is None else {"keep_days": positive(days, "params.keep_days", most=_MOST_DAYS)}


def compact(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Batch by batch. A remote index that cannot be asked holds everything back: its cursor is not known.

    An in-process index of another process that stands further back rebuilds its partition by itself.
    """
    before = context.around.clock() - timedelta(days=params.get("keep_days", context.around.keep_days))
    up_to = _passed(context)
    removed = 0
    while count := context.service.compact(deleted_before=before, up_to=up_to):
        removed += count
        context.report(removed, None, "tombstones")
        context.check()
    return {"tombstones": removed, "jobs": context.around.store.forget(finished_before=before)}


def _passed(context: JobContext) -> int | None:
    """The revision that every remote index has passed; None where there is none."""
    cursors = [cursor for remote in context.around.remotes for cursor in remote.catch_up().values()]
    return min(cursors, default=None)
