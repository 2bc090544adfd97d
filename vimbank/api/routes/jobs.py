"""Jobs: what can be started, starting, listing, progress, result, cancelling. All of it needs the role operator.

A job works on the whole server and its report may name any tenant, which an administrator of one must not see.
"""

from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Operator
from vimbank.api.events import EVENT_STREAM, event_of, events_response, job_events
from vimbank.api.requests import Closing, JobIdPath, JobsOf, JsonRoute
from vimbank.api.routes.responses import BODY, ONE, PLAIN, Responses, problems
from vimbank.api.schemas.jobs import (
    EVENTS_EXAMPLE,
    JobIn,
    JobKindsOut,
    JobOut,
    JobParams,
    JobResultOut,
    JobsOut,
)
from vimbank.domain.jobs import Job, JobState
from vimbank.domain.records import job_record
from vimbank.errors import Conflict
from vimbank.jobs.kinds import kind_records

__all__ = ["router"]

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=JsonRoute)

_START: Final[Responses] = BODY | {200: {"model": JobOut, "description": "The job that has this key already."}}
_EVENTS: Final[Responses] = {
    200: {
        "description": "`progress` events, and `end` with the whole job when it has ended.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}, "example": EVENTS_EXAMPLE}},
    },
    204: {"description": "The job has ended, and `Last-Event-ID` says that the client knows: it need not come again."},
}


@router.post("", status_code=202, response_model=JobOut, responses=_START, summary="Start a job")
def start(body: JobIn, jobs: JobsOf, caller: Operator) -> Response:
    """Queued when this answers; `Location` leads to it. With `key` a request may be repeated, also after a 503."""
    del caller
    job, created = jobs.ask(body.name, body.params, key=body.key)
    answer = _job(job, 202 if created else 200)
    answer.headers["Location"] = f"/v1/jobs/{job.id}"
    return answer


@router.get("", response_model=JobsOut, responses=PLAIN, summary="List jobs")
def list_jobs(params: Annotated[JobParams, Query()], jobs: JobsOf, caller: Operator) -> Response:
    """Newest first; ended ones are forgotten after a while (VIMBANK_JOBS__KEEP_DAYS)."""
    del caller
    state = None if params.state is None else JobState(params.state)
    found = jobs.list(name=params.name, state=state, limit=params.limit)
    return json_response({"items": [job_record(job) for job in found]})


# Before the routes of `{id}`, which would take «names» for one.
@router.get("/names", response_model=JobKindsOut, responses=PLAIN, summary="What can be started")
def names(jobs: JobsOf, caller: Operator) -> Response:
    """Each kind of job with its parameters, and how often it runs by itself."""
    del caller
    return json_response({"items": kind_records(jobs)})


@router.get("/{id}", response_model=JobOut, responses=ONE, summary="Read a job")
def get(job_id: JobIdPath, jobs: JobsOf, caller: Operator) -> Response:
    """Its state and progress, and its result or error when it has ended."""
    del caller
    return _job(jobs.get(job_id))


@router.get("/{id}/result", response_model=JobResultOut, responses=ONE | problems(409), summary="A job's result")
def result(job_id: JobIdPath, jobs: JobsOf, caller: Operator) -> Response:
    """The report of a job that succeeded; 409 of one that has not, with its state and what stopped it."""
    del caller
    job = jobs.get(job_id)
    if job.state is not JobState.SUCCEEDED:
        raise Conflict(f"there is no result: the job is {job.state.value}{f': {job.error}' if job.error else ''}")
    return json_response({"id": job.id, "name": job.name, "result": dict(job.result or {})})


@router.post("/{id}/cancel", response_model=JobOut, responses=ONE, summary="Cancel a job")
def cancel(job_id: JobIdPath, jobs: JobsOf, caller: Operator) -> Response:
    """One that waits ends at once, a running one after its present step; one that has ended stays as it is."""
    del caller
    return _job(jobs.cancel(job_id))


@router.get("/{id}/events", response_class=Response, responses=ONE | _EVENTS, summary="Follow a job")
def events(
    job_id: JobIdPath,
    jobs: JobsOf,
    closing: Closing,
    caller: Operator,
    last_event_id: Annotated[str | None, Header(description="Id of the last event seen, to go on after it.")] = None,
) -> Response:
    """Server-sent events: the job as it stands, then each change, four a second at most, until it has ended."""
    del caller
    job = jobs.get(job_id)
    if job.state.ended and event_of(job).id == last_event_id:
        return Response(status_code=204)
    return events_response(job_events(jobs, job_id, closing=closing, last_event_id=last_event_id))


def _job(job: Job, status: int = 200) -> Response:
    return json_response(job_record(job), status)
