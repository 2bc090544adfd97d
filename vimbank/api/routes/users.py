"""Users: erase one, everywhere."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as PathParam
from starlette.requests import Request
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Admin
from vimbank.api.requests import JsonRoute, Service
from vimbank.api.routes.responses import PLAIN
from vimbank.api.schemas.portability import EraseParams, ReceiptOut
from vimbank.domain.models import Scope
from vimbank.portability.erase import erase
from vimbank.portability.receipts import save_receipt
from vimbank.wiring.portability import open_eraser

__all__ = ["router"]

router = APIRouter(prefix="/v1/users", tags=["users"], route_class=JsonRoute)


@router.delete("/{id:path}", response_model=ReceiptOut, responses=PLAIN, summary="Erase a user")
def erase_user(
    user_id: Annotated[str, PathParam(alias="id", description="The user's id, percent-encoded.")],
    params: Annotated[EraseParams, Query()],
    request: Request,
    service: Service,
    caller: Admin,
) -> Response:
    """Every trace, everywhere, and a receipt, which the server keeps too. What takes long: the job `erase`."""
    scope = Scope(caller.tenant, user_id, None, params.agent_id, params.session_id)
    receipt = erase(service, open_eraser(service), scope, actor=caller.actor)
    folder = request.app.state.receipts
    assert isinstance(folder, Path)
    save_receipt(receipt, folder)
    return json_response(receipt.record())
