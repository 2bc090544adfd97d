"""A memory's life: archive, restore, suppress, unsuppress, and what goes when."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Caller, Reader, Writer
from vimbank.api.requests import JsonRoute, MemoryIdPath, Service
from vimbank.api.routes.responses import ONE, PLAIN, problems
from vimbank.api.schemas.lifecycle import ForecastOut, ForecastParams, MoveParams
from vimbank.api.schemas.memories import MemoryOut
from vimbank.domain.models import Memory
from vimbank.domain.records import memory_record
from vimbank.lifecycle.planning import forecast_record

__all__ = ["router"]

router = APIRouter(tags=["lifecycle"], route_class=JsonRoute)

_MOVE = ONE | problems(409)


@router.post("/v1/memories/{id:path}/archive", response_model=MemoryOut, responses=_MOVE, summary="Archive a memory")
def archive(
    memory_id: MemoryIdPath, params: Annotated[MoveParams, Query()], service: Service, caller: Writer
) -> Response:
    """Out of every search at once, with its segments or steps; deleted when its bank's grace is over."""
    return _moved(service.archive, memory_id, params, caller)


@router.post("/v1/memories/{id:path}/restore", response_model=MemoryOut, responses=_MOVE, summary="Restore a memory")
def restore(
    memory_id: MemoryIdPath, params: Annotated[MoveParams, Query()], service: Service, caller: Writer
) -> Response:
    """Back from the archive, or after it was superseded; it ages anew."""
    return _moved(service.restore, memory_id, params, caller)


@router.post("/v1/memories/{id:path}/suppress", response_model=MemoryOut, responses=_MOVE, summary="Suppress a memory")
def suppress(
    memory_id: MemoryIdPath, params: Annotated[MoveParams, Query()], service: Service, caller: Writer
) -> Response:
    """Out of every search at once, and kept until it is shown again."""
    return _moved(service.suppress, memory_id, params, caller)


@router.post("/v1/memories/{id:path}/unsuppress", response_model=MemoryOut, responses=_MOVE, summary="Show it again")
def unsuppress(
    memory_id: MemoryIdPath, params: Annotated[MoveParams, Query()], service: Service, caller: Writer
) -> Response:
    """Undo `suppress`; the memory ages anew."""
    return _moved(service.unsuppress, memory_id, params, caller)


@router.get("/v1/forecast", response_model=ForecastOut, responses=PLAIN, summary="What goes when, and why")
def forecast(params: Annotated[ForecastParams, Query()], service: Service, caller: Reader) -> Response:
    """Of one user's memories within so many days, by the rule of the jobs themselves. Changes nothing."""
    found = service.forecast(caller.tenant, params.user_id, bank=params.bank, days=params.days, limit=params.limit)
    return json_response(forecast_record(found))


def _moved(move: Callable[..., Memory], memory_id: str, params: MoveParams, caller: Caller) -> Response:
    memory = move(caller.tenant, memory_id, expected_revision=params.expected_revision, actor=caller.actor)
    return json_response(memory_record(memory))
