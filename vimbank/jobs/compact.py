"""Remove what has served: folded lines of the access log, tombstones that all followers passed, jobs ended long ago."""

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from vimbank.jobs.context import JobContext
from vimbank.jobs.params import only, positive

__all__ = ["compact", "validate"]

_MOST_DAYS: Final = 36_500


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``keep_days``: how long all of it is kept; left out: each as the settings say."""
    only(params, "keep_days")
    days = params.get("keep_days")
    return {} if days is None else {"keep_days": positive(days, "params.keep_days", most=_MOST_DAYS)}


def compact(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Batch by batch. A remote index that cannot be asked holds all tombstones back: its cursor is not known.

    An in-process index of another process that stands further back rebuilds its partition by itself.
    """
    around, now = context.around, context.around.clock()
    # First, as it needs no other engine.
    lines = now - timedelta(days=params.get("keep_days", around.recalls_keep_days))
    recalls = _told(context, context.service.trim_recalls(before=lines), "lines of the access log")
    before = now - timedelta(days=params.get("keep_days", around.keep_days))
    up_to = _passed(context)
    batches = iter(lambda: context.service.compact(deleted_before=before, up_to=up_to), 0)
    tombstones = _told(context, batches, "tombstones")
    return {"tombstones": tombstones, "jobs": around.store.forget(finished_before=before), "recalls": recalls}


def _told(context: JobContext, batches: Iterator[int], what: str) -> int:
    """How many went in all batches.

    After each it rests as long as that took: a writer of another process asks SQLite for the lock again and again, and
    would not come between batches that follow at once.
    """
    removed, started = 0, time.monotonic()
    for count in batches:
        removed += count
        context.report(removed, None, what)
        context.check()
        time.sleep(time.monotonic() - started)
        started = time.monotonic()
    return removed


def _passed(context: JobContext) -> int | None:
    """The revision that every remote index has passed; None where there is none."""
    cursors = [cursor for remote in context.around.remotes for cursor in remote.catch_up().values()]
    return min(cursors, default=None)
