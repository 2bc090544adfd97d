"""Summaries and portraits of a user: what the jobs of these names have written."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from vimbank.api.answers import json_response
from vimbank.api.auth import Reader
from vimbank.api.requests import JsonRoute, Service
from vimbank.api.routes.responses import PLAIN
from vimbank.api.schemas.base import Params
from vimbank.api.schemas.memories import PageOut
from vimbank.domain.models import Page
from vimbank.domain.records import page_record
from vimbank.service import MAX_TOP_K

__all__ = ["router"]

router = APIRouter(tags=["summaries"], route_class=JsonRoute)


class PortraitParams(Params):
    """Whose portraits to list; oldest first."""

    user_id: str
    bank: str | None = Field(None, description="Unset: all banks.")
    level: Literal["day", "month", "global"] | None = Field(None, description="Unset: all levels.")
    cursor: str | None = Field(None, description="`next_cursor` of the page before.")
    limit: int = Field(100, ge=1, le=MAX_TOP_K)


class SummaryParams(Params):
    """Whose summaries to list; oldest first."""

    user_id: str
    bank: str | None = Field(None, description="Unset: all banks; with `question`: dialog.")
    level: Literal["group", "day", "month", "global"] | None = Field(None, description="Unset: all levels.")
    question: str | None = Field(
        None, description="Only the summary of a group of turns that is nearest to this by cosine, if it is not stale."
    )
    cursor: str | None = Field(None, description="`next_cursor` of the page before.")
    limit: int = Field(100, ge=1, le=MAX_TOP_K)


@router.get("/v1/summaries", response_model=PageOut, responses=PLAIN, summary="A user's summaries")
def summaries(params: Annotated[SummaryParams, Query()], service: Service, caller: Reader) -> Response:
    """`metadata` names level, period, sources, method (extractive or llm) and model, and says whether it is `stale`."""
    if params.question is not None:
        bank = "dialog" if params.bank is None else params.bank
        best = service.best_summary(caller.tenant, params.user_id, params.question, bank=bank)
        found = [] if best is None else [best]
        return json_response(page_record(Page(found, len(found), None)))
    page = service.derived(
        caller.tenant, params.user_id, "summary",
        bank=params.bank, level=params.level, cursor=params.cursor, limit=params.limit,
    )  # fmt: skip
    return json_response(page_record(page))


@router.get("/v1/portraits", response_model=PageOut, responses=PLAIN, summary="A user's portraits")
def portraits(params: Annotated[PortraitParams, Query()], service: Service, caller: Reader) -> Response:
    """Traits and moods, as they showed each day and as a whole; `metadata` as of summaries."""
    page = service.derived(
        caller.tenant, params.user_id, "portrait",
        bank=params.bank, level=params.level, cursor=params.cursor, limit=params.limit,
    )  # fmt: skip
    return json_response(page_record(page))
