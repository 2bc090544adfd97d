"""What surrounds every request: its id, its line in the log, and the size of its body.

Plain ASGI: each layer costs microseconds, where Starlette's BaseHTTPMiddleware starts a task a request.
"""

import logging
from time import perf_counter
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vimbank.api.errors import http_problem, problem_response, unexpected
from vimbank.observability.context import REQUEST_ID, new_request_id, usable_request_id
from vimbank.observability.logs import FIELDS_KEY

__all__ = ["BodyLimit", "Requests"]

logger = logging.getLogger("vimbank.api")
access = logging.getLogger("vimbank.api.access")


STREAMED: Final = frozenset({"/v1/import"})
"""Bodies of any size, which their routes take piece by piece and limit themselves."""


class Requests:
    """Outermost: gives the request its id, logs one line when it is done, and answers what nobody caught.

    ``X-Request-ID`` of the caller is kept where it is safe to log, else a new one is made; it goes back in the
    answer. The line names method, path, status and time; the query string is left out, as it may quote a filter.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        request_id = _request_id(scope)
        token = REQUEST_ID.set(request_id)
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except Exception:
            logger.exception("unexpected error")
            if status == 0:
                await unexpected()(scope, receive, answer)
        finally:
            _log_line(scope, status, (perf_counter() - started) * 1_000)
            REQUEST_ID.reset(token)


class BodyLimit:
    """Refuses bodies over ``max_bytes`` with 413: by what they announce, or by what they turn out to be."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._detail = f"at most {max_bytes} bytes are accepted"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in STREAMED:
            await self._app(scope, receive, send)
            return
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if announced.isdigit() and int(announced) > self._max_bytes:
            await problem_response(http_problem(413, self._detail))(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_bytes:
                raise HTTPException(413, self._detail)
            return message

        await self._app(scope, counted, send)


def _raw_path(scope: Scope) -> str:
    """The path as it was sent: still percent-encoded, so without line breaks or other tricks."""
    raw: Any = scope.get("raw_path") or scope["path"].encode()
    return str(raw.decode("ascii", "replace"))


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return usable_request_id(value.decode("latin-1")) or new_request_id()
    return new_request_id()


def _log_line(scope: Scope, status: int, took_ms: float) -> None:
    if not access.isEnabledFor(logging.INFO):
        return
    method, path = scope["method"], _raw_path(scope)
    fields = {"method": method, "path": path, "status": status, "took_ms": round(took_ms, 3)}
    access.info("%s %s %d %.1f ms", method, path, status, took_ms, extra={FIELDS_KEY: fields})
