"""Fold the access log into the memories."""

from collections.abc import Mapping
from typing import Any

from vimbank.jobs.context import JobContext

__all__ = ["reinforce"]


def reinforce(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take recalls and feedback into their memories, each once: count, strength, last recall (V-31, M-16; D10)."""
    del params

    def between(folded: int) -> None:
        context.report(folded)
        context.check()

    return {"folded": context.service.fold_recalls(progress=between)}
