"""Sessions: the turns of a dialog."""

from fastapi import APIRouter
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Writer
from vimbank.api.requests import JsonRoute, Service, SessionIdPath
from vimbank.api.routes.memories import batch_answer
from vimbank.api.routes.responses import BODY
from vimbank.api.schemas.ingestion import TurnsIn
from vimbank.api.schemas.memories import BatchOut

__all__ = ["router"]

router = APIRouter(tags=["sessions"], route_class=JsonRoute)


@router.post(
    "/v1/sessions/{session_id:path}/turns", response_model=BatchOut, responses=BODY, summary="Add turns to a session"
)
def add_turns(session_id: SessionIdPath, body: TurnsIn, service: Service, caller: Writer) -> Response:
    """A query and its response become one memory, any other turn one of its own; one result a memory, in order."""
    results = service.add_turns(
        tenant=caller.tenant,
        user_id=body.user_id,
        session_id=session_id,
        turns=[turn.turn() for turn in body.turns],
        agent_id=body.agent_id,
        bank=body.bank,
        actor=caller.actor,
    )
    return json_response(batch_answer(results))
