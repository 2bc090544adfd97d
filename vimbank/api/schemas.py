"""Bodies and answers of the REST interface: their fields, bounds and examples.

Bodies refuse fields they do not know and values of another JSON type. What needs the settings or the store (a bank's
name, the longest text) is checked by the service, so that it holds for every entry point.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, SkipValidation, WithJsonSchema
from pydantic_core import PydanticCustomError

from vimbank.api.models import Answer, Body, Params, example
from vimbank.domain.models import FusionName, MemoryDraft, MemoryPatch, Source
from vimbank.domain.times import parse_time, parse_time_text
from vimbank.errors import InvalidInput
from vimbank.ingestion.dialog import Turn
from vimbank.ingestion.tasks import TaskRun, TaskStep
from vimbank.service import MAX_TOP_K

__all__ = [
    "AddOut",
    "BatchIn",
    "BatchOut",
    "DeletedOut",
    "DocumentIn",
    "FeedbackIn",
    "FeedbackOut",
    "ForecastOut",
    "ForecastParams",
    "GetParams",
    "HistoryOut",
    "LeavingOut",
    "ListParams",
    "LiveOut",
    "MemoryIn",
    "MemoryOut",
    "MoveParams",
    "PageOut",
    "PatchIn",
    "Problem",
    "ReadyOut",
    "RootOut",
    "ScopeParams",
    "SearchIn",
    "SearchOut",
    "StatsOut",
    "StatsParams",
    "TaskIn",
    "TaskOut",
    "TurnsIn",
]


def _instant(value: Any, parse: Callable[[Any, str], datetime] = parse_time) -> datetime:
    try:
        return parse(value, "time")
    except InvalidInput as exc:
        # Pydantic knows the field's name; only the message is wanted of ours.
        raise PydanticCustomError("time", "{reason}", {"reason": exc.errors[0].message}) from exc


_TIME_SCHEMA = {
    "anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}],
    "description": "ISO 8601, or epoch seconds or milliseconds; without a zone it is UTC.",
}
Time: TypeAlias = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema(_TIME_SCHEMA)]
TimeText: TypeAlias = Annotated[
    datetime, BeforeValidator(lambda value: _instant(value, parse_time_text)), WithJsonSchema(_TIME_SCHEMA)
]
"""A time in a query string, where a number is text."""
Metadata: TypeAlias = Annotated[dict[str, Any], Field(description="Any JSON object; filters reach its keys.")]
UserId: TypeAlias = Annotated[str, Field(description="Whose memory it is; `shared` is read by all users of a tenant.")]
State: TypeAlias = Literal["active", "archived", "superseded", "suppressed", "deleted"]

_MEMORY_EXAMPLE: dict[str, Any] = {
    "bank": "dialog",
    "text": "Anna is allergic to peanuts.",
    "user_id": "anna",
    "session_id": "2026-01-31",
    "metadata": {"topic": "health"},
    "event_at": "2026-01-31T09:30:00Z",
}
_STORED_EXAMPLE: dict[str, Any] = {
    "id": "0198c0de-7a11-7b3c-8f00-2f1d5a6b7c8d",
    "bank": "dialog",
    "kind": "note",
    "text": "Anna is allergic to peanuts.",
    "title": None,
    "speaker": None,
    "user_id": "anna",
    "agent_id": None,
    "session_id": "2026-01-31",
    "metadata": {"topic": "health"},
    "source": {"parent_id": None, "position": None, "start": None, "end": None, "event_id": None},
    "created_at": "2026-01-31T09:30:02.125000Z",
    "updated_at": "2026-01-31T09:30:02.125000Z",
    "event_at": "2026-01-31T09:30:00Z",
    "valid_from": None,
    "valid_to": None,
    "expires_at": None,
    "importance": None,
    "pinned": False,
    "strength": 1.0,
    "recall_count": 0,
    "last_recalled_at": None,
    "stability_days": None,
    "difficulty": None,
    "state": "active",
    "superseded_by": None,
    "sample": None,
    "sample_reasons": [],
    "information": 0.56,
    "ended": [],
    "token_count": 8,
    "revision": 17,
}
_ADDED_EXAMPLE = {"id": _STORED_EXAMPLE["id"], "revision": 17, "duplicate": False, "segments": 0, "superseded": []}
_PROBLEM_EXAMPLE = {
    "type": "urn:vimbank:problem:invalid-input",
    "title": "A value of the request is not acceptable",
    "status": 422,
    "detail": "top_k: Input should be greater than or equal to 1",
    "errors": [{"field": "top_k", "message": "Input should be greater than or equal to 1"}],
}


# --- bodies -----------------------------------------------------------------------------------------------------


class MemoryIn(Body):
    """One memory to store."""

    model_config = ConfigDict(json_schema_extra=example(_MEMORY_EXAMPLE))

    bank: str = Field(description="`knowledge`, `dialog`, `task`, or a bank declared in the settings.")
    text: str = Field(description="Kept verbatim; text longer than the encoder's window is cut into segments.")
    user_id: UserId
    agent_id: str | None = None
    session_id: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    kind: str = Field("note", description="What it is, in the caller's words: note, fact, summary, …")
    title: str | None = None
    speaker: str | None = None
    created_at: Time | None = Field(None, description="Unset: now.")
    event_at: Time | None = Field(None, description="When what it tells of happened.")
    valid_from: Time | None = None
    valid_to: Time | None = None
    expires_at: Time | None = Field(None, description="Not returned from this instant on.")
    importance: float | None = Field(None, ge=0, le=1, description="Unset: unknown, which is not the lowest.")
    pinned: bool = Field(False, description="Never forgotten by itself.")
    id: str | None = Field(None, description="The caller's own id; writing it again with the same content is harmless.")
    idempotency_key: str | None = None
    event_id: str | None = Field(None, description="The caller's name of the event, unique inside a tenant.")
    position: int | None = Field(None, ge=0, description="Place inside the session, from 0.")
    deduplicate: bool = Field(True, description="Fold an exact duplicate in the same bank of the same user.")

    def draft(self, tenant: str) -> MemoryDraft:
        """The draft that the service takes."""
        given = {name: getattr(self, name) for name in _DRAFT_FIELDS}
        source = Source(event_id=self.event_id, position=self.position)
        return MemoryDraft(tenant=tenant, source=source, **given)


_DRAFT_FIELDS = tuple(name for name in MemoryIn.model_fields if name not in {"event_id", "position"})


class BatchIn(Body):
    """Many memories; each is stored or refused by itself."""

    model_config = ConfigDict(
        json_schema_extra=example({"items": [_MEMORY_EXAMPLE, {**_MEMORY_EXAMPLE, "text": "Anna plays the cello."}]})
    )

    # Items are checked one by one, so that a bad one does not take the others down.
    items: Annotated[list[SkipValidation[MemoryIn]], Field(min_length=1)]

    @property
    def raw_items(self) -> Sequence[Any]:
        """The items as they came, unchecked."""
        return self.items


class PatchIn(Body):
    """What changes; a field that is not given stays. `null` clears a field, or removes a key of `metadata`."""

    model_config = ConfigDict(json_schema_extra=example({"text": "Anna is allergic to nuts.", "metadata": {"seen": 2}}))

    # The defaults are never read: `patch` looks at what was sent.
    text: str = ""
    title: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    event_at: Time | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None
    importance: float | None = Field(None, ge=0, le=1)
    pinned: bool = False
    expected_revision: int | None = Field(None, ge=0, description="Refuse with 409 if the memory has changed since.")

    def patch(self) -> MemoryPatch:
        """The patch that the service takes: the fields that were sent, `null` included."""
        sent = self.model_fields_set - {"expected_revision"}
        return MemoryPatch(**{name: getattr(self, name) for name in sent})


class SearchIn(Body):
    """A search of one user's memories, and of what the tenant shares."""

    model_config = ConfigDict(
        json_schema_extra=example({"query": "what can Anna not eat?", "user_id": "anna", "top_k": 5, "explain": True})
    )

    query: str
    user_id: str = Field(description="Whose memories, with what the tenant shares; `*`: all users, role admin.")
    banks: list[str] | None = Field(None, description="Unset: all.")
    top_k: int = Field(10, ge=1, le=MAX_TOP_K)
    filter: Any = Field(
        None,
        description='`{"field": value}` or `{"field": {"eq|ne|in|nin|gt|gte|lt|lte|contains|exists": value}}`, '
        "joined by `AND`, `OR`, `NOT`.",
        examples=[{"topic": "health"}],
    )
    session_id: str | None = None
    agent_id: str | None = None
    fusion: FusionName | None = Field(None, description="Unset: the bank's own.")
    threshold: float | None = Field(None, ge=0, le=1, description="Least final score.")
    as_of: Time | None = Field(None, description="Answer as things stood at this instant.")
    explain: bool = Field(False, description="Show how each score came about.")
    labels: bool = Field(False, description="Say of each result whether it is relevant, irrelevant or conflicting.")
    reinforce: bool = Field(True, description="Count what is returned as recalled.")
    include_shared: bool = Field(True, description="Search the tenant's shared memories too.")
    consistency: Literal["strong", "eventual"] = Field(
        "strong", description="`strong` finds everything acknowledged before, by any process."
    )


class DocumentIn(Body):
    """A document to cut into segments; as JSON with `content`, or as a multipart form with `file`."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "user_id": "shared",
                "title": "House rules",
                "content": "# House rules\n\nQuiet hours start at ten in the evening.",
                "media_type": "text/markdown",
                "metadata": {"year": 2026},
            }
        )
    )

    user_id: UserId
    title: str
    content: str
    media_type: str | None = Field(None, description="Of `content`: text/plain, text/markdown or text/html.")
    bank: str = "knowledge"
    id: str | None = None
    idempotency_key: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    created_at: Time | None = None


class TurnIn(Body):
    """What one side said once."""

    role: str = Field(description="`user` and `assistant` make a round; others stand alone.")
    content: str
    speaker: str | None = None
    event_at: Time | None = None
    event_id: str | None = None
    metadata: Metadata = Field(default_factory=dict)

    def turn(self) -> Turn:
        """The turn that the service takes."""
        return Turn(**{name: getattr(self, name) for name in TurnIn.model_fields})


class TurnsIn(Body):
    """Consecutive turns of a session."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "user_id": "anna",
                "turns": [
                    {"role": "user", "content": "Can I eat satay?", "event_at": "2026-01-31T09:30:00Z"},
                    {"role": "assistant", "content": "Better not, its sauce has peanuts."},
                ],
            }
        )
    )

    user_id: UserId
    turns: Annotated[list[TurnIn], Field(min_length=1)]
    agent_id: str | None = None
    bank: str = "dialog"


class StepIn(Body):
    """One step of an agent; at least one of thought, action, tool and observation."""

    thought: str | None = None
    action: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    observation: str | None = None

    def step(self) -> TaskStep:
        """The step that the service takes."""
        return TaskStep(**{name: getattr(self, name) for name in StepIn.model_fields})


class TaskIn(Body):
    """One attempt of an agent at a task."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "user_id": "anna",
                "instruction": "put a clean mug on the desk",
                "plan": "find a mug, wash it, put it down",
                "steps": [
                    {"thought": "mugs are in the kitchen", "action": "go to cabinet 1", "observation": "a dirty mug"},
                    {"tool": "wash", "arguments": {"object": "mug 1"}, "observation": "it is clean"},
                ],
                "outcome": "success",
            }
        )
    )

    user_id: UserId
    instruction: str
    steps: list[StepIn] = Field(default_factory=list)
    outcome: Literal["success", "failure", "unknown"] = "unknown"
    plan: str | None = None
    id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    event_at: Time | None = None
    bank: str = "task"

    def run(self, tenant: str) -> TaskRun:
        """The run that the service takes."""
        given = {name: getattr(self, name) for name in TaskIn.model_fields if name != "steps"}
        return TaskRun(tenant=tenant, steps=[step.step() for step in self.steps], **given)


class FeedbackIn(Body):
    """What became of a memory that a search returned."""

    model_config = ConfigDict(json_schema_extra=example({"id": _STORED_EXAMPLE["id"], "signal": "used"}))

    id: str
    signal: Literal["used", "ignored", "wrong"]


# --- query parameters -------------------------------------------------------------------------------------------


class ListParams(Params):
    """Which memories to list; oldest first."""

    user_id: str | None = Field(None, description="Unset: all users of the tenant, role admin.")
    bank: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    kind: str | None = None
    parent_id: str | None = Field(None, description="The parts of this document or task run.")
    state: Literal["active", "archived", "superseded", "suppressed", "any"] = Field(
        "active", description="`any`: every state; deleted memories are never listed."
    )
    filter: str | None = Field(None, description="A filter as JSON.", examples=['{"topic": "health"}'])
    as_of: TimeText | None = Field(None, description="List the memories as they stood at this instant.")
    cursor: str | None = Field(None, description="`next_cursor` of the page before.")
    limit: int = Field(100, ge=1, le=MAX_TOP_K)


class ScopeParams(Params):
    """Which memories to delete; the user is always named."""

    user_id: str
    bank: str | None = None
    session_id: str | None = None
    agent_id: str | None = None


class GetParams(Params):
    """Of which time a memory is read."""

    as_of: TimeText | None = Field(None, description="As it stood at this instant, also if it was deleted since.")


class MoveParams(Params):
    """On which condition a memory may move."""

    expected_revision: int | None = Field(None, description="Only if this is still its revision.")


class ForecastParams(Params):
    """Whose memories, and how far ahead."""

    user_id: str
    bank: str | None = None
    days: float = Field(30.0, ge=0, le=36_500, description="How far to look ahead, days.")
    limit: int = Field(100, ge=1, le=MAX_TOP_K, description="How many to name; all are counted.")


class StatsParams(Params):
    """Whose figures."""

    user_id: str | None = Field(None, description="Unset: the whole tenant, for which the role admin is needed.")


# --- answers ----------------------------------------------------------------------------------------------------


class FieldProblem(Answer):
    """One bad field."""

    field: str
    message: str


class Problem(Answer):
    """What went wrong, as RFC 9457 problem details."""

    model_config = ConfigDict(json_schema_extra=example(_PROBLEM_EXAMPLE))

    type: str = Field(description="Stable name of the kind of problem.")
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[FieldProblem] | None = None


class AddOut(Answer):
    """What became of an add."""

    model_config = ConfigDict(json_schema_extra=example(_ADDED_EXAMPLE))

    id: str
    revision: int
    duplicate: bool = Field(description="It was there already; `id` is that memory's.")
    segments: int = Field(description="How many segments a long text was cut into, else 0.")
    superseded: list[str] = Field(description="Ids of the memories that are no longer true because of it.")


class ItemError(Answer):
    """An item that was not stored, and why."""

    error: Problem


class BatchOut(Answer):
    """One result an item, in order."""

    model_config = ConfigDict(
        json_schema_extra=example({"results": [_ADDED_EXAMPLE, {"error": _PROBLEM_EXAMPLE}], "failed": 1})
    )

    results: list[AddOut | ItemError]
    failed: int


class TaskOut(BatchOut):
    """The run's result, then its steps', in order; `id` is the run's."""

    model_config = ConfigDict(
        json_schema_extra=example({"id": _ADDED_EXAMPLE["id"], "results": [_ADDED_EXAMPLE], "failed": 0})
    )

    id: str


class EndedOut(Answer):
    """One statement of a memory that a later memory ended."""

    subject: str
    attribute: str
    value: str | None
    new_id: str
    from_instant: datetime
    reason: Literal["changed", "ended", "resumed"]


class SourceOut(Answer):
    """Where a memory comes from."""

    parent_id: str | None
    position: int | None
    start: int | None
    end: int | None
    event_id: str | None


class MemoryOut(Answer):
    """A stored memory; times are UTC."""

    model_config = ConfigDict(json_schema_extra=example(_STORED_EXAMPLE))

    id: str
    bank: str
    kind: str
    text: str
    title: str | None
    speaker: str | None
    user_id: str
    agent_id: str | None
    session_id: str | None
    metadata: dict[str, Any]
    source: SourceOut
    created_at: datetime
    updated_at: datetime
    event_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    importance: float | None
    pinned: bool
    strength: float
    recall_count: int
    last_recalled_at: datetime | None
    stability_days: float | None = Field(description="FSRS's stability, days; null: never reviewed by it.")
    difficulty: float | None = Field(description="FSRS's difficulty, 1 to 10; null: never reviewed by it.")
    state: State
    superseded_by: str | None
    sample: Literal["positive", "negative"] | None = Field(
        description="Whether it was worth remembering; null: nobody has judged it."
    )
    sample_reasons: list[str]
    information: float | None = Field(description="How much it tells, from 0 towards 1; null: nobody has looked.")
    ended: list[EndedOut] = Field(description="What of it holds no longer, while the rest does.")
    token_count: int
    revision: int


class PageOut(Answer):
    """One page; `total` counts all that match, `next_cursor` is null on the last page."""

    model_config = ConfigDict(json_schema_extra=example({"items": [_STORED_EXAMPLE], "total": 1, "next_cursor": None}))

    items: list[MemoryOut]
    total: int
    next_cursor: str | None


class ExplainOut(Answer):
    """relevance = sum of `parts`; score = relevance * product of `factors`."""

    fusion: str
    parts: dict[str, float]
    factors: dict[str, float]
    inputs: dict[str, float]
    relevance: float
    score: float


class HitOut(MemoryOut):
    """A memory that a search found."""

    model_config = ConfigDict(json_schema_extra=example({**_STORED_EXAMPLE, "score": 0.83}))

    score: float = Field(ge=0, le=1)
    window: list[MemoryOut] | None = Field(
        None, description="It and its neighbours in order, where the bank asks and there are any."
    )
    label: Literal["relevant", "irrelevant", "conflicting"] | None = Field(None, description="Where it was asked for.")
    explain: ExplainOut | None = None


class SearchOut(Answer):
    """Best first; `degraded` names what could not be asked, and is empty when all is well."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {"results": [{**_STORED_EXAMPLE, "score": 0.83}], "degraded": [], "revision": 17, "took_ms": 0.8}
        )
    )

    results: list[HitOut]
    degraded: list[str]
    revision: int
    took_ms: float


class ChangeOut(Answer):
    """One change; a text is null where there was none."""

    revision: int
    at: datetime
    event: Literal["add", "update", "delete", "state"]
    actor: str
    old_text: str | None
    new_text: str | None
    changes: dict[str, list[Any]] = Field(description="Field -> value before, value after.")


class HistoryOut(Answer):
    """All changes of a memory, oldest first."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "id": _STORED_EXAMPLE["id"],
                "items": [
                    {
                        "revision": 17,
                        "at": "2026-01-31T09:30:02.125000Z",
                        "event": "add",
                        "actor": "api:write",
                        "old_text": None,
                        "new_text": "Anna is allergic to peanuts.",
                        "changes": {},
                    }
                ],
            }
        )
    )

    id: str
    items: list[ChangeOut]


class DeletedOut(Answer):
    """How many memories are gone."""

    model_config = ConfigDict(json_schema_extra=example({"deleted": 1}))

    deleted: int


class FeedbackOut(Answer):
    """The feedback that was noted."""

    model_config = ConfigDict(json_schema_extra=example({"id": _STORED_EXAMPLE["id"], "signal": "used"}))

    id: str
    signal: Literal["used", "ignored", "wrong"]


class StatsOut(Answer):
    """Figures of a tenant or of one user."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=example(
            {
                "memories": 3,
                "by_bank": {"dialog": 2, "knowledge": 1},
                "by_state": {"active": 3},
                "by_kind": {"note": 3},
                "users": 2,
                "revision": 17,
                "encoder": "all-MiniLM-L6-v2@onnx (384 dimensions)",
                "index": {"partitions": 2, "bytes": 8192},
                "disk_bytes": 40960,
            }
        ),
    )

    memories: int
    by_bank: dict[str, int]
    by_state: dict[str, int]
    by_kind: dict[str, int]
    users: int
    revision: int
    encoder: Any
    index: Any
    disk_bytes: int


class LeavingOut(Answer):
    """One memory that goes, with its segments or steps."""

    id: str
    bank: str
    at: datetime
    reason: Literal["expired", "forgotten", "capacity", "grace", "superseded"]
    to: Literal["archived", "deleted"]
    retention: float = Field(description="What is left of it now, in [0, 1].")


class ForecastOut(Answer):
    """What goes until then, if nothing happens to it: the first to go first."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "until": "2026-03-31T09:30:00Z",
                "total": 1,
                "memories": 12,
                "reasons": {"forgotten": 1},
                "items": [
                    {
                        "id": "0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f",
                        "bank": "dialog",
                        "at": "2026-03-08T12:00:00Z",
                        "reason": "forgotten",
                        "to": "archived",
                        "retention": 0.12,
                    }
                ],
            }
        )
    )

    until: datetime
    total: int = Field(description="How many go; `items` may be fewer.")
    memories: int = Field(description="How many there are, active and archived.")
    reasons: dict[str, int]
    items: list[LeavingOut]


class LiveOut(Answer):
    """The process answers."""

    model_config = ConfigDict(json_schema_extra=example({"status": "live"}))

    status: Literal["live"]


class ReadyOut(Answer):
    """Whether requests can be served, and the state of each part."""

    model_config = ConfigDict(json_schema_extra=example({"status": "ready", "components": {"store": "ok"}}))

    status: Literal["ready", "not ready"]
    components: dict[str, str]


class RootOut(Answer):
    """Where to go from here."""

    model_config = ConfigDict(
        json_schema_extra=example({"name": "vimbank", "version": "0.1.0", "docs": "/docs", "openapi": "/openapi.json"})
    )

    name: str
    version: str
    docs: str
    openapi: str
