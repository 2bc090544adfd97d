"""Sends the ids of jobs to Celery workers through Redis: the scaled-out form's JobQueue.

``workers/`` receives them. What both sides must agree on stands here: the queues, the names of tasks, and JSON.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, get_args

from celery import Celery
from kombu.entity import Exchange, Queue
from kombu.exceptions import InconsistencyError, OperationalError
from redis.exceptions import (
    BusyLoadingError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from vimbank.domain.jobs import Job, QueueName
from vimbank.errors import BackendRejected, BackendUnavailable

__all__ = ["AGREED", "CeleryQueue", "scheduled_name", "task_name", "transport_options"]

_BACKEND: Final = "redis"

AGREED: Final[Mapping[str, Any]] = {
    "task_queues": [
        Queue(name, Exchange("vimbank", "direct"), routing_key=name)  # type: ignore[no-untyped-call]
        for name in get_args(QueueName)
    ],
    "task_default_queue": "lifecycle",
    "task_create_missing_queues": False,
    "task_serializer": "json",
    "result_serializer": "json",
    "accept_content": ["json"],
    "event_serializer": "json",
    "task_ignore_result": True,  # results are in the job store
    "enable_utc": True,
    "timezone": "UTC",
}
"""Celery's settings that the sender and the workers share."""

_SENDING: Final[Mapping[str, Any]] = {
    # Whoever asks for a job must not wait: the store has it already, and it is sent again when Redis is back.
    "broker_connection_retry": False,
    "task_publish_retry": False,
    "task_always_eager": False,
}


def task_name(job_name: str) -> str:
    """The task that runs a recorded job of this name; its one argument is the job's id."""
    return f"vimbank.jobs.{job_name}"


def scheduled_name(job_name: str) -> str:
    """The task that runs when a job of this name is due; it takes no arguments."""
    return f"vimbank.scheduled.{job_name}"


def transport_options(timeout_s: float) -> dict[str, Any]:
    """Kombu's options for a connection that gives up on Redis after ``timeout_s`` seconds of silence, > 0."""
    return {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s, "socket_keepalive": True}


class CeleryQueue:
    """``JobQueue`` on Celery. Thread-safe; not to be shared with a forked process.

    Args:    redis_url: redis:// or rediss:// URL. timeout_s: patience with Redis, seconds, > 0.
    """

    def __init__(self, redis_url: str, *, timeout_s: float) -> None:
        # Not the current app: a program that embeds VIMBank may have a Celery of its own.
        self._app: Any = Celery("vimbank.sender", broker=redis_url, set_as_current=False, fixups=[])
        self._app.conf.update(
            AGREED,
            **_SENDING,
            broker_connection_timeout=timeout_s,
            broker_transport_options={**transport_options(timeout_s), "max_retries": 0},
        )

    def send(self, job: Job) -> None:
        """Raises BackendUnavailable within about twice the timeout, BackendRejected: Redis does not take the message.

        The id of the job is the task's as well, so that Celery's own tools show it.
        """
        with _translated():
            self._app.send_task(
                task_name(job.name), args=[job.id], task_id=job.id, queue=job.queue, retry=False, ignore_result=True
            )

    def close(self) -> None:
        """Let go of the connections."""
        self._app.close()


@contextmanager
def _translated() -> Iterator[None]:
    """Turns what Celery, kombu and redis raise into BackendUnavailable (try again) or BackendRejected (do not)."""
    try:
        yield
    except (OperationalError, InconsistencyError, OSError) as exc:
        raise BackendUnavailable(_BACKEND, str(exc)) from exc
    except (BusyLoadingError, OutOfMemoryError, ReadOnlyError) as exc:
        raise BackendUnavailable(_BACKEND, str(exc)) from exc
    except ResponseError as exc:
        raise BackendRejected(_BACKEND, str(exc)) from exc
    except RedisError as exc:
        raise BackendUnavailable(_BACKEND, str(exc)) from exc
