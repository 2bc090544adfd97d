"""Export and import, both streamed: neither is ever whole in memory."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import anyio
from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from vimbank.api.answers import json_response
from vimbank.api.auth import Admin, Reader, Role
from vimbank.api.requests import JsonRoute, Service
from vimbank.api.routes.responses import BODY, PLAIN, Responses
from vimbank.api.schemas.portability import EXPORT_EXAMPLE, ExportParams, ImportOut, ImportParams
from vimbank.domain.records import plain
from vimbank.portability.export import export
from vimbank.portability.import_ import Importer
from vimbank.wiring.portability import open_archive

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["portability"], route_class=JsonRoute)

_LINES: Final = "application/x-ndjson"
_EXPORT: Final[Responses] = {
    200: {
        "description": "JSON Lines: a header, a line a memory, and an end with a digest of the lines.",
        "content": {_LINES: {"schema": {"type": "string"}, "example": EXPORT_EXAMPLE}},
    }
}
_IMPORT_BODY: Final[dict[str, Any]] = {
    "required": True,
    "content": {_LINES: {"schema": {"type": "string"}, "example": EXPORT_EXAMPLE}},
}


@router.get("/export", response_class=Response, responses=PLAIN | _EXPORT, summary="Export memories")
def export_memories(params: Annotated[ExportParams, Query()], service: Service, caller: Reader) -> Response:
    """All of a user, losslessly, with history and vectors; without `user_id` of all users, for the role admin."""
    if params.user_id is None:
        caller.require(Role.ADMIN)
    pieces = export(service, open_archive(service), tenant=caller.tenant, user_id=params.user_id)
    headers = {"Content-Type": _LINES, "Content-Disposition": 'attachment; filename="vimbank.jsonl"'}
    return StreamingResponse(_started(pieces), headers=headers)


@router.post(
    "/import",
    response_model=ImportOut,
    responses=BODY,
    summary="Import memories",
    openapi_extra={"requestBody": _IMPORT_BODY},
)
async def import_memories(
    params: Annotated[ImportParams, Query()], request: Request, service: Service, caller: Admin
) -> Response:
    """An export, JSON Lines, or a dump of mem0, agent-memory-server or MemoryBank; the body is read as it comes.

    What is bad is named by its line, and the rest goes in. What is there already is left alone, so an import that
    was cut short can be sent again. `dry_run` tells what would happen. Formats that are one JSON document have to
    fit `VIMBANK_API__MAX_BODY_MB`.
    """
    importer = Importer(
        service,
        open_archive(service),
        tenant=caller.tenant,
        actor=caller.actor,
        user_id=params.user_id,
        bank=params.bank,
        format=params.format,
        dry_run=params.dry_run,
        max_document_bytes=request.app.state.max_document_bytes,
    )
    try:
        async for piece in request.stream():
            await run_in_threadpool(importer.feed, piece)
    except ClientDisconnect:  # what came is kept; the rest comes with the next try
        with anyio.CancelScope(shield=True):
            await run_in_threadpool(importer.finish)
        raise
    return json_response(plain(await run_in_threadpool(importer.finish)))


def _started(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same, with the first piece made already: an error before it still becomes an answer of its own."""
    first = next(pieces)

    def rest() -> Iterator[bytes]:
        yield first
        yield from pieces

    return rest()
