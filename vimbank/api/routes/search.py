"""Search: the read path over HTTP."""

from fastapi import APIRouter
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Reader, Role
from vimbank.api.requests import JsonRoute, Service
from vimbank.api.routes.responses import PLAIN, problems
from vimbank.api.schemas.search import SearchIn, SearchOut
from vimbank.domain import filters
from vimbank.domain.models import Query
from vimbank.domain.records import recall_record
from vimbank.service import ALL_USERS

__all__ = ["router"]

router = APIRouter(tags=["search"], route_class=JsonRoute)


@router.post("/v1/search", response_model=SearchOut, responses=PLAIN | problems(400, 413), summary="Search memories")
def search(body: SearchIn, service: Service, caller: Reader) -> Response:
    """Dense and sparse, fused; best first, scores in [0, 1]. Punctuation in the query is words, not syntax.

    The header `Server-Timing` tells in milliseconds how long the query's encoding took, and the whole search.
    """
    if body.user_id == ALL_USERS:
        caller.require(Role.ADMIN)
    query = Query(
        tenant=caller.tenant,
        user_id=body.user_id,
        text=body.query,
        banks=body.banks,
        top_k=body.top_k,
        filter=None if body.filter is None else filters.parse(body.filter),
        session_id=body.session_id,
        agent_id=body.agent_id,
        fusion=body.fusion,
        threshold=body.threshold,
        as_of=body.as_of,
        explain=body.explain,
        labels=body.labels,
        reinforce=body.reinforce,
        include_shared=body.include_shared,
        consistency=body.consistency,
    )
    recall = service.search(query)
    answer = json_response(recall_record(recall))
    answer.headers["Server-Timing"] = f"encode;dur={recall.encode_ms:.3f}, total;dur={recall.took_ms:.3f}"
    return answer
