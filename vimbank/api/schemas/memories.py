"""Memories: what is added, changed, listed and deleted, and how it is shown."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SkipValidation

from vimbank.api.schemas.base import Answer, Body, Params, example
from vimbank.api.schemas.fields import Metadata, State, Time, TimeText, UserId
from vimbank.api.schemas.problems import PROBLEM_EXAMPLE, Problem
from vimbank.domain.models import MemoryDraft, MemoryPatch, Source
from vimbank.service import MAX_TOP_K

__all__ = [
    "ADDED_EXAMPLE",
    "AddOut",
    "BatchIn",
    "BatchOut",
    "DeletedOut",
    "GetParams",
    "HistoryOut",
    "ListParams",
    "MemoryIn",
    "MemoryOut",
    "PageOut",
    "PatchIn",
    "STORED_EXAMPLE",
    "ScopeParams",
]

MEMORY_EXAMPLE: dict[str, Any] = {
    "bank": "dialog",
    "text": "Anna is allergic to peanuts.",
    "user_id": "anna",
    "session_id": "2026-01-31",
    "metadata": {"topic": "health"},
    "event_at": "2026-01-31T09:30:00Z",
}
STORED_EXAMPLE: dict[str, Any] = {
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
ADDED_EXAMPLE = {"id": STORED_EXAMPLE["id"], "revision": 17, "duplicate": False, "segments": 0, "superseded": []}


class MemoryIn(Body):
    """One memory to store."""

    model_config = ConfigDict(json_schema_extra=example(MEMORY_EXAMPLE))

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
        json_schema_extra=example({"items": [MEMORY_EXAMPLE, {**MEMORY_EXAMPLE, "text": "Anna plays the cello."}]})
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


class AddOut(Answer):
    """What became of an add."""

    model_config = ConfigDict(json_schema_extra=example(ADDED_EXAMPLE))

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
        json_schema_extra=example({"results": [ADDED_EXAMPLE, {"error": PROBLEM_EXAMPLE}], "failed": 1})
    )

    results: list[AddOut | ItemError]
    failed: int


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

    model_config = ConfigDict(json_schema_extra=example(STORED_EXAMPLE))

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

    model_config = ConfigDict(json_schema_extra=example({"items": [STORED_EXAMPLE], "total": 1, "next_cursor": None}))

    items: list[MemoryOut]
    total: int
    next_cursor: str | None


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
                "id": STORED_EXAMPLE["id"],
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
