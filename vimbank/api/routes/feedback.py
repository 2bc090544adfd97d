"""Feedback: what became of a memory that was returned (case 141)."""

from fastapi import APIRouter
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Writer
from vimbank.api.requests import JsonRoute, Service
from vimbank.api.routes.responses import BODY, ONE
from vimbank.api.schemas.search import FeedbackIn, FeedbackOut
from vimbank.domain.models import Signal

__all__ = ["router"]

router = APIRouter(tags=["feedback"], route_class=JsonRoute)


@router.post("/v1/feedback", response_model=FeedbackOut, responses=BODY | ONE, summary="Say what became of a memory")
def feedback(body: FeedbackIn, service: Service, caller: Writer) -> Response:
    """`used` counts more than having been returned; durable when this answers."""
    service.feedback(caller.tenant, body.id, Signal(body.signal))
    return json_response({"id": body.id, "signal": body.signal})
