"""Embed every memory again, with the encoder of the settings or another one, and make it the store's."""

from collections.abc import Mapping
from typing import Any

from vimbank.errors import InvalidInput
from vimbank.jobs.context import JobContext
from vimbank.jobs.params import only

__all__ = ["reindex", "validate"]


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``encoder``: a kind as in the settings; left out: the one that is set."""
    only(params, "encoder")
    kind = params.get("encoder")
    if kind is not None and (not isinstance(kind, str) or not kind.strip()):
        raise InvalidInput.of("params.encoder", "must name a kind of encoder")
    return {} if kind is None else {"encoder": kind}


def reindex(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Batch by batch beside the present embeddings, then all at once; a run that was stopped is taken up there."""

    def progress(done: int) -> None:
        context.report(done, None, "memories")
        context.check()

    report = context.service.reindex(context.around.encoder(params.get("encoder")), progress=progress)
    return {
        "memories": report.memories,
        "former": None if report.former is None else str(report.former),
        "current": str(report.current),
    }
