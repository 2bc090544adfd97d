"""Archive what has faded, and what is over the budget of its partition."""

from collections.abc import Mapping
from typing import Any

from vimbank.domain.lifecycle import Reason
from vimbank.jobs.context import JobContext
from vimbank.jobs.forgetting import take

__all__ = ["forget"]


def forget(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Active -> archived: faded to the floor, past the minimum age, not pinned; or over the capacity (V-28, B16)."""
    return take(context, params, (Reason.FORGOTTEN, Reason.CAPACITY))
