"""Tasks: what an agent tried, step by step, and how it ended (V-4)."""

from fastapi import APIRouter
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Writer
from vimbank.api.requests import JsonRoute, Service
from vimbank.api.routes.memories import batch_answer
from vimbank.api.routes.responses import BODY
from vimbank.api.schemas.ingestion import TaskIn, TaskOut
from vimbank.domain.models import AddResult

__all__ = ["router"]

router = APIRouter(tags=["tasks"], route_class=JsonRoute)


@router.post("/v1/tasks", status_code=201, response_model=TaskOut, responses=BODY, summary="Add a task run")
def add_task(body: TaskIn, service: Service, caller: Writer) -> Response:
    """The run and each of its steps become memories. Without the run itself nothing is stored."""
    results = service.add_task(body.run(caller.tenant), actor=caller.actor)
    run = results[0]
    if not isinstance(run, AddResult):
        raise run
    return json_response({"id": run.id, **batch_answer(results)}, 201)
