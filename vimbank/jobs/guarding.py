"""How much a run may take away that can be brought back one by one."""

from collections.abc import Mapping
from typing import Any, Final

from vimbank.domain.lifecycle import ShareGuard
from vimbank.jobs.context import JobContext

__all__ = ["reversible_guard"]

_FEW: Final = 10
"""So many may always go: of three memories two are above any share, and each can be brought back."""


def reversible_guard(context: JobContext, params: Mapping[str, Any], *, taken: int, total: int) -> ShareGuard:
    """Whether a run goes on that would take ``taken`` of ``total`` memories: a share that was asked for is kept to the
    letter; that of the settings lets a handful go.
    """
    if "max_share" in params:
        return ShareGuard(taken, total, params["max_share"])
    return ShareGuard(taken if taken > _FEW else 0, total, context.service.lifecycles.max_share)
