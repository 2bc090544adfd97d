"""Write the in-process indexes of this process to disk."""

from collections.abc import Mapping
from typing import Any

from vimbank.jobs.context import JobContext

__all__ = ["snapshot"]


def snapshot(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Save each loaded partition that changed, so that the next start reads it instead of building it."""
    del params
    context.service.flush()
    return {}
