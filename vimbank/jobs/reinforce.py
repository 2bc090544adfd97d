"""Fold the access log into the memories."""

from collections.abc import Mapping
from typing import Any

from vimbank.jobs.context import JobContext

__all__ = ["reinforce"]


def reinforce(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Count, strength and time of the last recall of whatever was recalled (V-31, M-16); each recall counts once."""
    del params
    return {"folded": context.service.fold_recalls()}
