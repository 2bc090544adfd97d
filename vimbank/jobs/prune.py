"""Delete what has been in the archive, or superseded, for longer than its bank's grace. The only job that deletes."""

from collections.abc import Mapping
from typing import Any

from vimbank.domain.lifecycle import Reason
from vimbank.jobs.context import JobContext
from vimbank.jobs.forgetting import take

__all__ = ["prune"]


def prune(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Archived -> deleted, and superseded -> deleted where the bank says after how long; never a pinned one (case 100).

    No superseded memory goes before what it superseded itself.
    """
    return take(context, params, (Reason.GRACE, Reason.SUPERSEDED))
