"""Figures of a tenant or one of its users."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Reader, Role
from vimbank.api.requests import JsonRoute, Service
from vimbank.api.routes.responses import PLAIN
from vimbank.api.schemas.server import StatsOut, StatsParams

__all__ = ["router"]

router = APIRouter(tags=["stats"], route_class=JsonRoute)


@router.get("/v1/stats", response_model=StatsOut, responses=PLAIN, summary="Figures")
def stats(params: Annotated[StatsParams, Query()], service: Service, caller: Reader) -> Response:
    """How many memories there are, in which bank and state; exact, whatever their number (case 138)."""
    if params.user_id is None:
        caller.require(Role.ADMIN)
    return json_response(asdict(service.stats(caller.tenant, params.user_id)))
