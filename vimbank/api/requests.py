"""What routes take from a request: the service and the jobs, ids out of paths, bodies read strictly, forms."""

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from threading import Event
from typing import Annotated, Any, TypeAlias

import orjson
from fastapi import Depends, Path
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from vimbank.api.errors import invalid_input
from vimbank.api.schemas.ingestion import DocumentIn
from vimbank.domain.times import parse_time_text
from vimbank.errors import FieldError, InvalidInput
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService

__all__ = [
    "Closing",
    "Document",
    "JobIdPath",
    "JobsOf",
    "JsonRoute",
    "MemoryIdPath",
    "Service",
    "SessionIdPath",
    "Upload",
    "json_value",
]


class _StrictRequest(Request):
    """A request whose JSON is read by orjson: lone surrogates, NaN and nesting without end are not JSON (case 114)."""

    async def json(self) -> Any:
        if not hasattr(self, "_parsed"):
            self._parsed = orjson.loads(await self.body())
        return self._parsed


class JsonRoute(APIRoute):
    """A route that reads JSON strictly, and takes no query parameter twice."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_given_once(request)
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict


def _check_given_once(request: Request) -> None:
    """The last one would count in silence, and could be another user's name."""
    names = [name for name, _ in request.query_params.multi_items()]
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InvalidInput([FieldError(name, "is given more than once") for name in repeated])


async def _service_of(request: Request) -> MemoryService:
    service = request.app.state.service
    assert isinstance(service, MemoryService)
    return service


Service: TypeAlias = Annotated[MemoryService, Depends(_service_of)]


async def _jobs_of(request: Request) -> Jobs:
    jobs = request.app.state.jobs
    assert isinstance(jobs, Jobs)
    return jobs


JobsOf: TypeAlias = Annotated[Jobs, Depends(_jobs_of)]


async def _closing_of(request: Request) -> Event:
    closing = request.app.state.closing
    assert isinstance(closing, Event)
    return closing


Closing: TypeAlias = Annotated[Event, Depends(_closing_of)]

MemoryIdPath: TypeAlias = Annotated[str, Path(alias="id", description="The memory's id, percent-encoded.")]
JobIdPath: TypeAlias = Annotated[str, Path(alias="id", pattern="^[0-9a-zA-Z-]{1,64}$", description="The job's id.")]
SessionIdPath: TypeAlias = Annotated[str, Path(description="The session's id, percent-encoded.")]


def json_value(text: str, field: str) -> Any:
    """The JSON value of a parameter or form field. Raises InvalidInput naming ``field``."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise InvalidInput.of(field, f"is not valid JSON: {exc}") from exc


@dataclass(frozen=True, slots=True)
class Upload:
    """A document to add: its fields, and the file if it came as one (then ``fields.content`` is empty)."""

    fields: DocumentIn
    file: bytes | None = None
    filename: str | None = None
    media_type: str | None = None


async def _document_of(request: Request) -> Upload:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        async with request.form(max_files=1, max_fields=50) as form:
            return await _from_form(form)
    if media_type != "application/json":
        raise InvalidInput.of("body", "must be application/json or multipart/form-data")
    try:
        value = orjson.loads(await request.body())
    except json.JSONDecodeError as exc:
        raise InvalidInput.of("body", f"is not valid JSON: {exc}") from exc
    return Upload(_document(value))


Document: TypeAlias = Annotated[Upload, Depends(_document_of)]


def _document(value: Any) -> DocumentIn:
    try:
        return DocumentIn.model_validate(value)
    except ValidationError as exc:
        raise invalid_input(exc.errors(), prefixes=()) from exc


async def _from_form(form: FormData) -> Upload:
    """The fields of a form: ``file`` or ``content``, ``metadata`` as JSON, a time as in JSON, the rest as text."""
    fields: dict[str, Any] = {name: value for name, value in form.items() if name != "file"}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise InvalidInput.of(name, "must be text; a file goes into the field `file`")
    if "metadata" in fields:
        fields["metadata"] = json_value(fields["metadata"], "metadata")
    if "created_at" in fields:
        fields["created_at"] = parse_time_text(fields["created_at"], "created_at")
    file = form.get("file")
    if file is None:
        return Upload(_document(fields))
    if not isinstance(file, UploadFile):
        raise InvalidInput.of("file", "must be a file")
    if "content" in fields:
        raise InvalidInput.of("content", "send either content or file")
    if file.filename:
        fields.setdefault("title", file.filename)
    return Upload(_document({**fields, "content": ""}), await file.read(), file.filename, file.content_type)
