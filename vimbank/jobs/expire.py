"""Archive what has reached the end of life that its owner gave it."""

from collections.abc import Mapping
from typing import Any

from vimbank.domain.lifecycle import Reason
from vimbank.jobs.context import JobContext
from vimbank.jobs.forgetting import take

__all__ = ["expire"]


def expire(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Active -> archived at ``expires_at``, an instant (case 105); searches leave it out from then on anyhow."""
    return take(context, params, (Reason.EXPIRED,))
