"""Memories: add one or many, list, read, change, delete, and their history."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import ValidationError
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Admin, Caller, Reader, Role, Writer
from vimbank.api.errors import invalid_input, problem_of
from vimbank.api.requests import JsonRoute, MemoryIdPath, Service, json_value
from vimbank.api.routes.responses import BODY, ONE, PLAIN
from vimbank.api.schemas.memories import (
    AddOut,
    BatchIn,
    BatchOut,
    DeletedOut,
    GetParams,
    HistoryOut,
    ListParams,
    MemoryIn,
    MemoryOut,
    PageOut,
    PatchIn,
    ScopeParams,
)
from vimbank.domain import filters
from vimbank.domain.models import AddResult, ListQuery, MemoryDraft, MemoryState, Scope
from vimbank.domain.records import added_record, history_record, memory_record, page_record
from vimbank.errors import InvalidInput, VimbankError

__all__ = ["router"]

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)


@router.post("", status_code=201, response_model=AddOut, responses=BODY, summary="Add a memory")
def add(body: MemoryIn, service: Service, caller: Writer) -> Response:
    """Stored durably when this answers, and found by the next search. A repeat is told by `duplicate`."""
    result = service.add(body.draft(caller.tenant), actor=caller.actor)
    return json_response(added_record(result), 201)


@router.post("/batch", response_model=BatchOut, responses=BODY, summary="Add many memories")
def add_batch(body: BatchIn, service: Service, caller: Writer) -> Response:
    """One result an item, in order; an item that fails leaves the others alone, and the batch can be sent again."""
    drafts = [_draft(item, caller) for item in body.raw_items]
    good = [draft for draft in drafts if isinstance(draft, MemoryDraft)]
    stored = iter(service.add_many(good, actor=caller.actor) if good else ())
    results = [next(stored) if isinstance(draft, MemoryDraft) else draft for draft in drafts]
    return json_response(batch_answer(results))


@router.get("", response_model=PageOut, responses=PLAIN, summary="List memories")
def list_memories(params: Annotated[ListParams, Query()], service: Service, caller: Reader) -> Response:
    """Oldest first. `total` counts all that match; follow `next_cursor` for the rest. All users: role admin."""
    if params.user_id is None:
        caller.require(Role.ADMIN)
    query = ListQuery(
        tenant=caller.tenant,
        user_id=params.user_id,
        bank=params.bank,
        agent_id=params.agent_id,
        session_id=params.session_id,
        kind=params.kind,
        parent_id=params.parent_id,
        state=None if params.state == "any" else MemoryState(params.state),
        filter=None if params.filter is None else filters.parse(json_value(params.filter, "filter")),
        as_of=params.as_of,
        cursor=params.cursor,
        limit=params.limit,
    )
    return json_response(page_record(service.list(query)))


@router.delete("", response_model=DeletedOut, responses=PLAIN, summary="Delete all memories of a user")
def delete_all(params: Annotated[ScopeParams, Query()], service: Service, caller: Admin) -> Response:
    """Of the user that is named, in the bank, session or agent that is named."""
    scope = Scope(caller.tenant, params.user_id, params.bank, params.agent_id, params.session_id)
    return json_response({"deleted": service.delete_all(scope, actor=caller.actor)})


# Before the routes of `{id:path}`, which would take «history» for a part of the id; no id ends in it.
@router.get("/{id:path}/history", response_model=HistoryOut, responses=ONE, summary="A memory's past")
def history(memory_id: MemoryIdPath, service: Service, caller: Reader) -> Response:
    """Every change, oldest first, also of a memory that was deleted."""
    return json_response(history_record(memory_id, service.history(caller.tenant, memory_id)))


@router.get("/{id:path}", response_model=MemoryOut, responses=ONE, summary="Read a memory")
def get(memory_id: MemoryIdPath, params: Annotated[GetParams, Query()], service: Service, caller: Reader) -> Response:
    """The memory as it stands, or as it stood; of a long text the whole document."""
    return json_response(memory_record(service.get(caller.tenant, memory_id, as_of=params.as_of)))


@router.patch("/{id:path}", response_model=MemoryOut, responses=BODY | ONE, summary="Change a memory")
def update(memory_id: MemoryIdPath, body: PatchIn, service: Service, caller: Writer) -> Response:
    """Fields that are not sent stay as they are; new text is indexed anew at once."""
    changed = service.update(
        caller.tenant, memory_id, body.patch(), expected_revision=body.expected_revision, actor=caller.actor
    )
    return json_response(memory_record(changed))


@router.delete("/{id:path}", response_model=DeletedOut, responses=ONE, summary="Delete a memory")
def delete(memory_id: MemoryIdPath, service: Service, caller: Writer) -> Response:
    """Gone from every search at once; its history stays until the user is erased."""
    service.delete(caller.tenant, memory_id, actor=caller.actor)
    return json_response({"deleted": 1})


def batch_answer(results: list[AddResult | VimbankError]) -> dict[str, Any]:
    """``BatchOut`` of one result an item."""
    shown = [
        added_record(result) if isinstance(result, AddResult) else {"error": problem_of(result)} for result in results
    ]
    return {"results": shown, "failed": sum(not isinstance(result, AddResult) for result in results)}


def _draft(item: Any, caller: Caller) -> MemoryDraft | InvalidInput:
    try:
        return MemoryIn.model_validate(item).draft(caller.tenant)
    except ValidationError as exc:
        return invalid_input(exc.errors(), prefixes=())
