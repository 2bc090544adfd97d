"""Catch up the indexes outside this process with the store."""

from collections.abc import Mapping
from typing import Any

from vimbank.jobs.context import JobContext

__all__ = ["follow"]


def follow(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Apply to each remote index what it lacks; the cursor each reached. Without such an index: nothing to do."""
    del params
    cursors: dict[str, int] = {}
    for remote in context.around.remotes:
        context.check()
        cursors |= remote.catch_up()
    return {"cursors": cursors}
