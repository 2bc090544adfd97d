"""Health and the front door: open without a key, as they tell nothing of any memory.

Who only watches, such as a load balancer, may ask by HEAD.
"""

from fastapi import APIRouter
from starlette.responses import Response

import vimbank
from vimbank.api.answers import json_response
from vimbank.api.requests import Service
from vimbank.api.routes.responses import problems
from vimbank.api.schemas.server import LiveOut, ReadyOut, RootOut

__all__ = ["router"]

router = APIRouter(tags=["health"], responses=problems(500))


@router.get("/", response_model=RootOut, summary="Where to go from here")
async def root() -> Response:
    """Name, version and the way to the documentation."""
    return json_response(
        {"name": "vimbank", "version": vimbank.__version__, "docs": "/docs", "openapi": "/openapi.json"}
    )


@router.head("/health/live", include_in_schema=False)
@router.get("/health/live", response_model=LiveOut, summary="Is the process alive")
async def live() -> Response:
    """200 as long as the process answers at all; asks no engine."""
    return json_response({"status": "live"})


@router.head("/health/ready", include_in_schema=False)
@router.get(
    "/health/ready",
    response_model=ReadyOut,
    responses={503: {"model": ReadyOut, "description": "Some part cannot serve; `components` says which."}},
    summary="Can requests be served",
)
def ready(service: Service) -> Response:
    """200 when every part can serve, else 503; `components` names each."""
    readiness = service.ready()
    answer = {"status": "ready" if readiness.ok else "not ready", "components": dict(readiness.components)}
    return json_response(answer, 200 if readiness.ok else 503)
