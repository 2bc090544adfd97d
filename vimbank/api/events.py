"""Server-sent events: a job's progress, as one answer that goes on until the job has ended.

No thread waits for a client: between two looks at the store a stream is a sleeping task of the event loop, which is
cancelled when the client leaves. Starlette's StreamingResponse is all it needs; the format is four line prefixes.
"""

import hashlib
from collections.abc import AsyncIterator
from threading import Event
from time import monotonic
from typing import Final, NamedTuple

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from vimbank.api.answers import json_bytes
from vimbank.domain.jobs import Job
from vimbank.domain.records import job_record, progress_record
from vimbank.errors import BackendError, NotFound
from vimbank.jobs.runner import Jobs

__all__ = ["EVENT_STREAM", "JobEvent", "event_of", "events_response", "job_events"]

EVENT_STREAM: Final = "text/event-stream"
POLL_S: Final = 0.25
"""Between two looks, seconds: a client is sent at most four events a second, however fast a job reports."""
KEEP_ALIVE_S: Final = 15.0
"""Silence after which a comment is sent, seconds: proxies cut connections that say nothing."""
RETRY_MS: Final = 2_000
"""How long a client waits before it connects again, milliseconds."""


class JobEvent(NamedTuple):
    """What a client is told of a job; ``id`` is made of the content, so an unchanged job has the same one anywhere."""

    id: str
    name: str
    data: bytes

    def encode(self) -> bytes:
        """The event as it is sent; JSON has no line breaks."""
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (self.id.encode(), self.name.encode(), self.data)


def event_of(job: Job) -> JobEvent:
    """``end`` with the whole job when it has ended, else ``progress``."""
    if job.state.ended:
        name, data = "end", json_bytes(job_record(job))
    else:
        progress = {
            "id": job.id,
            "state": job.state.value,
            "progress": progress_record(job.progress),
            "attempts": job.attempts,
            "cancel_requested": job.cancel_requested,
        }
        name, data = "progress", json_bytes(progress)
    return JobEvent(hashlib.blake2b(data, digest_size=6).hexdigest(), name, data)


async def job_events(
    jobs: Jobs,
    job_id: str,
    *,
    closing: Event,
    last_event_id: str | None = None,
    poll_s: float = POLL_S,
    keep_alive_s: float = KEEP_ALIVE_S,
) -> AsyncIterator[bytes]:
    """The job as it stands, unless ``last_event_id`` says that the client knows that, and each change after it.

    Ends when the job has ended, or without an ``end`` event when ``closing`` is set, the job is forgotten or the
    store is out of reach: the client comes back and is told then.
    """
    yield b"retry: %d\n\n" % RETRY_MS
    told, spoke = last_event_id, monotonic()
    while True:
        try:
            job = await run_in_threadpool(jobs.get, job_id)
        except (BackendError, NotFound):
            return
        event = event_of(job)
        if event.id != told:
            told, spoke = event.id, monotonic()
            yield event.encode()
        elif monotonic() - spoke >= keep_alive_s:
            spoke = monotonic()
            yield b": keep-alive\n\n"
        if job.state.ended or closing.is_set():
            return
        await anyio.sleep(poll_s)


def events_response(events: AsyncIterator[bytes]) -> StreamingResponse:
    """The events as an answer that neither caches nor proxies hold back."""
    # Given as a header: from ``media_type`` Starlette makes one with a charset, which the format does not have.
    headers = {"Content-Type": EVENT_STREAM, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, headers=headers)
