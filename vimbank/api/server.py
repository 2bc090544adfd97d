"""Serving over HTTP: listens, tells when it is ready, and ends in order."""

import contextlib
import gc
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from vimbank.api.app import create_app
from vimbank.errors import ConfigError
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService
from vimbank.settings import Settings

__all__ = ["serve"]

logger = logging.getLogger("vimbank.api")

_GRACE_S = 10
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    service: MemoryService, settings: Settings, jobs: Jobs, *, ready: Callable[[str], None] | None = None
) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is under way (10 s at most).

    The service and its jobs stay the caller's to close.

    Args:    ready: called once with the server's address, ``http://host:port``, when requests are accepted;
             port 0 of the settings has become a real one there.
    Raises:  ConfigError: refused settings (see ``create_app``), or the address cannot be listened on.
    """
    app = create_app(service, settings, jobs)
    _warm_up(service)
    with _listen(settings.api.host, settings.api.port) as listener:
        # Our own access log has the request's id, and standard error is set up already.
        config = uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            log_level="warning",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
        _Server(config, _address(listener), app.state.closing, ready).run(sockets=[listener])


def _warm_up(service: MemoryService) -> None:
    """Load the model before the first request has to wait for it; what is not ready is said, and may come later."""
    for name, state in service.ready().components.items():
        if state != "ok":
            logger.warning("%s: %s", name, state)
    # What stands now stays: the collector need not look at modules and models again in the middle of a request.
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """uvicorn, saying when it listens and when it closes, and returning after a signal, which it would raise again."""

    def __init__(
        self, config: uvicorn.Config, address: str, closing: threading.Event, ready: Callable[[str], None] | None
    ) -> None:
        super().__init__(config)
        self._address = address
        self._closing = closing
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        logger.info("listening on %s", self._address)
        if self._ready is not None:
            self._ready(self._address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A stream of events would go on as long as its job, and is not worth the whole grace.
        self._closing.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn raises the signal once more when it is done, which would kill the process before the service closes.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=2_048)
    except OSError as exc:
        raise ConfigError(f"cannot listen on {host}:{port}: {exc.strerror or exc}") from exc


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
