"""Documents: whole texts and files, cut into segments."""

from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Writer
from vimbank.api.requests import Document, JsonRoute, Service
from vimbank.api.routes.responses import BODY
from vimbank.api.schemas.ingestion import DocumentIn
from vimbank.api.schemas.memories import AddOut
from vimbank.domain.records import added_record

__all__ = ["router"]

router = APIRouter(tags=["documents"], route_class=JsonRoute)

# FastAPI describes a body as JSON or as a form, not as either.
_FORM_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["user_id", "file"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "Text, Markdown, HTML, PDF or DOCX."},
        "user_id": {"type": "string"},
        "title": {"type": "string", "description": "Unset: the file's name."},
        "bank": {"type": "string", "default": "knowledge"},
        "id": {"type": "string"},
        "idempotency_key": {"type": "string"},
        "metadata": {"type": "string", "description": "A JSON object."},
        "created_at": {"type": "string", "description": "ISO 8601, or epoch seconds or milliseconds."},
    },
}
_REQUEST_BODY: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "application/json": {"schema": DocumentIn.model_json_schema(ref_template="#/components/schemas/{model}")},
        "multipart/form-data": {
            "schema": _FORM_SCHEMA,
            "example": {"user_id": "shared", "title": "House rules", "file": "(the file's bytes)"},
        },
    },
}


@router.post(
    "/v1/documents",
    status_code=201,
    response_model=AddOut,
    responses=BODY,
    summary="Add a document",
    openapi_extra={"requestBody": _REQUEST_BODY},
)
def add_document(caller: Writer, document: Document, service: Service) -> Response:
    """JSON with `content`, or a form with `file`. `id` is the document's; its segments are what a search returns."""
    fields = document.fields
    result = service.add_document(
        tenant=caller.tenant,
        user_id=fields.user_id,
        title=fields.title,
        text=fields.content if document.file is None else None,
        content=document.file,
        media_type=fields.media_type or document.media_type,
        filename=document.filename,
        metadata=fields.metadata,
        bank=fields.bank,
        id=fields.id,
        idempotency_key=fields.idempotency_key,
        created_at=fields.created_at,
        actor=caller.actor,
    )
    return json_response(added_record(result), 201)
