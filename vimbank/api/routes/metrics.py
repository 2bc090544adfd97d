"""Metrics for Prometheus: of the whole server, so for its operator alone."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from vimbank.api.auth import Operator
from vimbank.api.routes.responses import PLAIN, Responses
from vimbank.observability.metrics import CONTENT_TYPE

__all__ = ["router"]

router = APIRouter(tags=["health"])

_EXAMPLE: Final = """# HELP vimbank_check_remaining Those of them that it left, by component.
# TYPE vimbank_check_remaining gauge
vimbank_check_remaining{component="index"} 0.0
"""
_TEXT: Final[Responses] = PLAIN | {
    200: {
        "description": "The text format of Prometheus.",
        "content": {CONTENT_TYPE: {"schema": {"type": "string"}, "example": _EXAMPLE}},
    }
}


@router.get("/metrics", response_class=Response, responses=_TEXT, summary="Metrics, for Prometheus")
def metrics(request: Request, caller: Operator) -> Response:
    """What the last checks of everything and of this server's indexes found and left, what was repaired, and when.

    Names no tenant.
    """
    del caller
    return Response(request.app.state.metrics.exposition(), media_type=CONTENT_TYPE)
