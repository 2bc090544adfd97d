"""Delete what has been in the archive for longer than the grace. The only job that deletes."""

from collections.abc import Mapping
from typing import Any

from vimbank.domain.lifecycle import Reason
from vimbank.jobs.context import JobContext
from vimbank.jobs.forgetting import take

__all__ = ["prune"]


def prune(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Archived -> deleted, never a pinned one (case 100)."""
    return take(context, params, (Reason.GRACE,))
