"""The application: routes, middleware and error translation around one MemoryService and its jobs."""

from threading import Event

from fastapi import FastAPI

import vimbank
from vimbank.api import errors
from vimbank.api.auth import Authentication, Keyring
from vimbank.api.middleware import BodyLimit, Requests
from vimbank.api.routes import (
    documents,
    feedback,
    health,
    jobs,
    lifecycle,
    memories,
    metrics,
    portability,
    search,
    sessions,
    stats,
    summaries,
    tasks,
    users,
)
from vimbank.domain.jobs import JobState
from vimbank.jobs.runner import Jobs
from vimbank.observability.metrics import CheckCollector, IndexCheckCollector, Metrics
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring.portability import receipts_folder

__all__ = ["create_app"]

_DESCRIPTION = """Typed, durable memory for LLM agents, searched by meaning and by words at once.

Send a key as `Authorization: Bearer KEY` or `X-API-Key: KEY`; it decides the tenant and
the role: read, write, admin of the tenant, operator of the server.
Errors are problem details (RFC 9457); unknown fields are refused. Times are ISO 8601 or epoch; answers are UTC.
"""

# Routers are tried in this order, at a cost each: what is called most stands first.
_ROUTES = (
    search,
    memories,
    documents,
    sessions,
    tasks,
    feedback,
    lifecycle,
    summaries,
    stats,
    jobs,
    users,
    portability,
    health,
    metrics,
)


def create_app(service: MemoryService, settings: Settings, runner: Jobs) -> FastAPI:
    """The REST interface over a service and its jobs, which stay the caller's to close.

    ``app.state.closing`` is an Event for whoever serves the application: set, it ends the streams of events.

    Raises:  ConfigError: no keys, unless anonymous access is allowed and the host is loopback (case 67).
    """
    keyring = Keyring.of(settings.api)
    max_bytes = int(settings.api.max_body_mb * 1_000_000)
    app = FastAPI(
        title="VIMBank",
        version=vimbank.__version__,
        description=_DESCRIPTION,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    app.state.jobs = runner
    app.state.metrics = Metrics(
        CheckCollector(lambda: runner.list(name="check", state=JobState.SUCCEEDED, limit=100)),
        IndexCheckCollector(lambda: service.index_checks, process=runner.process),
    )
    app.state.closing = Event()
    app.state.max_document_bytes = max_bytes
    app.state.receipts = receipts_folder(settings)
    errors.install(app)
    for module in _ROUTES:
        app.include_router(module.router)
    # The last one added is the outermost.
    app.add_middleware(BodyLimit, max_bytes=max_bytes)
    app.add_middleware(Authentication, keyring=keyring)
    app.add_middleware(Requests)
    return app
