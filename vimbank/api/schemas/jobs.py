"""Bodies and answers of the job routes."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from vimbank.api.schemas.base import Answer, Body, Params, example
from vimbank.domain.jobs import QueueName

__all__ = ["JobIn", "JobKindOut", "JobKindsOut", "JobOut", "JobParams", "JobResultOut", "JobsOut", "ProgressOut"]

_ID = "0f4b1c5e8d1e4b6f9a54c2c1a8f0d3b7"
_RESULT = {"ok": True, "partitions": 3, "memories": 1200, "problems": [], "differing": 0, "differences": []}
_RUNNING: dict[str, Any] = {
    "id": _ID,
    "name": "check",
    "state": "running",
    "queue": "index",
    "params": {"tenant": "acme"},
    "key": "nightly-2026-01-31",
    "progress": {"done": 1, "total": 3, "message": "partitions"},
    "attempts": 1,
    "cancel_requested": False,
    "created_at": "2026-01-31T02:00:00Z",
    "started_at": "2026-01-31T02:00:00.250000Z",
    "finished_at": None,
    "result": None,
    "error": None,
}
EVENTS_EXAMPLE = (
    "retry: 2000\n\n"
    "id: 5c1de2a09b7f\nevent: progress\n"
    f'data: {{"id":"{_ID}","state":"running","progress":{{"done":1,"total":3,"message":"partitions"}}}}\n\n'
    ": keep-alive\n\n"
    "id: 9a0b33de71c4\nevent: end\n"
    f'data: {{"id":"{_ID}","name":"check","state":"succeeded","result":{{"ok":true}}}}\n\n'
)
"""Of ``GET /v1/jobs/{id}/events``; the job of the last event is shortened."""

StateName = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class JobIn(Body):
    """A job to start."""

    model_config = ConfigDict(
        json_schema_extra=example({"name": "check", "params": {"tenant": "acme"}, "key": "nightly-2026-01-31"})
    )

    name: str = Field(description="One of those that `GET /v1/jobs/names` lists.")
    params: dict[str, Any] = Field(default_factory=dict, description="What the job takes; see the same list.")
    key: str | None = Field(
        None, description="Asking again with this key gives the same job, so that a repeated request starts one."
    )


class JobParams(Params):
    """Which jobs to list; newest first."""

    name: str | None = None
    state: StateName | None = None
    limit: int = Field(100, ge=1, le=1_000)


class ProgressOut(Answer):
    """How far a job is: `done` of `total` units; `total` null where it is not known beforehand."""

    done: int
    total: int | None
    message: str


class JobOut(Answer):
    """A job; `result` is the report of one that succeeded, `error` what stopped one that failed."""

    model_config = ConfigDict(json_schema_extra=example(_RUNNING))

    id: str
    name: str
    state: StateName
    queue: QueueName
    params: dict[str, Any]
    key: str | None
    progress: ProgressOut
    attempts: int = Field(description="How many workers took it up: more than 1 after one of them died.")
    cancel_requested: bool = Field(description="It stops at its next step.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: dict[str, Any] | None
    error: str | None


class JobsOut(Answer):
    """Jobs, newest first."""

    model_config = ConfigDict(json_schema_extra=example({"items": [_RUNNING]}))

    items: list[JobOut]


class JobResultOut(Answer):
    """The report of a job that succeeded."""

    model_config = ConfigDict(json_schema_extra=example({"id": _ID, "name": "check", "result": _RESULT}))

    id: str
    name: str
    result: dict[str, Any]


class JobKindOut(Answer):
    """What can be started; each parameter with its meaning."""

    name: str
    queue: QueueName
    description: str
    params: dict[str, str]
    every_s: float | None = Field(description="It runs by itself once in so many seconds; null: on demand alone.")


class JobKindsOut(Answer):
    """Everything that can be started."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "items": [
                    {
                        "name": "check",
                        "queue": "index",
                        "description": "Compare every index with the store.",
                        "params": {"tenant": "only this tenant's memories"},
                        "every_s": 86400.0,
                    }
                ]
            }
        )
    )

    items: list[JobKindOut]
