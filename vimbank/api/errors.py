"""Every failure as problem details (RFC 9457, ``application/problem+json``), from one table.

``type`` is stable and may be programmed against; ``errors`` names each bad field. A 404 says nothing of the id
that was asked for, so an id of another tenant and one that never was get the same bytes (case 61).
"""

import http
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vimbank.errors import (
    BackendError,
    BackendRejected,
    BackendUnavailable,
    ConfigError,
    Conflict,
    FieldError,
    IndexCorrupt,
    InvalidInput,
    ModelError,
    NotFound,
    VimbankError,
)
from vimbank.observability.context import REQUEST_ID

__all__ = [
    "PROBLEM_MEDIA_TYPE",
    "ForbiddenError",
    "install",
    "invalid_input",
    "http_problem",
    "problem",
    "problem_of",
    "problem_response",
    "unexpected",
]

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"

logger = logging.getLogger("vimbank.api")


class ForbiddenError(VimbankError):
    """The key is known, but its role does not allow this."""


@dataclass(frozen=True, slots=True)
class _Kind:
    status: int
    name: str
    title: str


# The first class that fits counts: subclasses stand before their bases.
_TABLE: Final[Sequence[tuple[type[VimbankError], _Kind]]] = (
    (InvalidInput, _Kind(422, "invalid-input", "A value of the request is not acceptable")),
    (NotFound, _Kind(404, "not-found", "There is no such thing")),
    (Conflict, _Kind(409, "conflict", "The change contradicts what is stored")),
    (ForbiddenError, _Kind(403, "forbidden", "The key does not allow this")),
    (BackendUnavailable, _Kind(503, "backend-unavailable", "An engine is out of reach; try again")),
    (IndexCorrupt, _Kind(503, "index-corrupt", "An index is damaged and has to be rebuilt")),
    (BackendRejected, _Kind(502, "backend-rejected", "An engine refused the call")),
    (BackendError, _Kind(502, "backend-error", "An engine failed")),
    (ModelError, _Kind(502, "model-error", "A model gave nothing usable")),
    (ConfigError, _Kind(503, "config-error", "The server's settings contradict the store")),
    (VimbankError, _Kind(500, "internal-error", "The server failed")),
)
_HTTP_KINDS: Final[Mapping[int, _Kind]] = {
    kind.status: kind
    for kind in (
        _Kind(400, "bad-request", "The request is malformed"),
        _Kind(401, "unauthorized", "A valid API key is needed"),
        _Kind(404, "not-found", "There is no such thing"),
        _Kind(405, "method-not-allowed", "The method is not allowed here"),
        _Kind(413, "too-large", "The request body is too large"),
    )
}
_MESSAGES: Final[Mapping[str, str]] = {
    "extra_forbidden": "is not a known field",
    "missing": "is required",
    "model_attributes_type": "must be a JSON object, sent as application/json",
    "model_type": "must be a JSON object",
}
_PREFIXES: Final = ("body", "query", "path", "header", "form")
_NOT_FOUND_DETAIL: Final = "no such thing, or it is not yours"


def problem(
    status: int, name: str, title: str, detail: str, *, errors: Sequence[FieldError] = (), instance: str | None = None
) -> dict[str, Any]:
    """Problem details as a dict; ``errors`` and ``instance`` only where there are any."""
    answer: dict[str, Any] = {
        "type": f"urn:vimbank:problem:{name}",
        "title": title,
        "status": status,
        "detail": _sendable(detail),
    }
    if instance is not None:
        answer["instance"] = instance
    if errors:
        answer["errors"] = [{"field": _sendable(e.field), "message": _sendable(e.message)} for e in errors]
    return answer


def problem_of(error: VimbankError) -> dict[str, Any]:
    """The problem details of one of our own errors."""
    kind = next(kind for cls, kind in _TABLE if isinstance(error, cls))
    detail = _NOT_FOUND_DETAIL if isinstance(error, NotFound) else str(error) or kind.title
    fields = error.errors if isinstance(error, InvalidInput) else ()
    return problem(kind.status, kind.name, kind.title, detail, errors=fields)


def problem_response(answer: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Problem details as a response with their own status."""
    body = orjson.dumps(answer)
    return Response(body, answer["status"], headers=dict(headers or {}), media_type=PROBLEM_MEDIA_TYPE)


def unexpected() -> Response:
    """The 500 of an exception that nobody foresaw: the request id leads to the logged traceback."""
    request_id = REQUEST_ID.get()
    instance = f"urn:vimbank:request:{request_id}" if request_id else None
    detail = "an unexpected error; the server's log has the details under this request id"
    return problem_response(problem(500, "internal-error", "The server failed", detail, instance=instance))


def http_problem(status: int, detail: str) -> dict[str, Any]:
    """Problem details of a plain HTTP status."""
    phrase = http.HTTPStatus(status).phrase
    kind = _HTTP_KINDS.get(status, _Kind(status, phrase.lower().replace(" ", "-"), phrase))
    return problem(status, kind.name, kind.title, detail)


def invalid_input(errors: Sequence[Any], prefixes: Sequence[str] = _PREFIXES) -> InvalidInput:
    """Pydantic's and FastAPI's findings as an InvalidInput with dotted field names.

    Args:    errors: dicts with ``loc``, ``type`` and ``msg``.  prefixes: first parts of a ``loc`` that only say
             where the field came from, and are dropped.
    """
    return InvalidInput([_field_error(error, prefixes) for error in errors])


def install(app: FastAPI) -> None:
    """Register the translations with the application."""
    app.add_exception_handler(VimbankError, _on_vimbank_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)


async def _on_vimbank_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, VimbankError)
    answer = problem_of(error)
    if answer["status"] >= 500:
        logger.error("%s: %s", type(error).__name__, answer["title"], exc_info=error)
    headers = {"Retry-After": "1"} if isinstance(error, BackendUnavailable) else None
    return problem_response(answer, headers)


async def _on_validation_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(problem_of(invalid_input(error.errors())))


async def _on_http_exception(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(http_problem(error.status_code, str(error.detail)), error.headers)


def _field_error(error: Mapping[str, Any], prefixes: Sequence[str]) -> FieldError:
    kind = error["type"]
    if kind == "json_invalid":
        return FieldError("body", f"is not valid JSON: {error.get('ctx', {}).get('error', error['msg'])}")
    loc = tuple(error["loc"])
    if len(loc) > 1 and loc[0] in prefixes:
        loc = loc[1:]
    return FieldError(".".join(str(part) for part in loc) or "body", _MESSAGES.get(kind, error["msg"]))


def _sendable(text: str) -> str:
    """Text that may quote the caller's broken characters, as valid Unicode (case 114)."""
    return text.encode("utf-8", "replace").decode("utf-8")
