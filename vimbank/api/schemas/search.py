"""Searches, what they find, and what became of it."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from vimbank.api.schemas.base import Answer, Body, example
from vimbank.api.schemas.fields import Time
from vimbank.api.schemas.memories import STORED_EXAMPLE, MemoryOut
from vimbank.domain.models import FusionName
from vimbank.service import MAX_TOP_K

__all__ = ["FeedbackIn", "FeedbackOut", "SearchIn", "SearchOut"]


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

    model_config = ConfigDict(json_schema_extra=example({**STORED_EXAMPLE, "score": 0.83}))

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
            {"results": [{**STORED_EXAMPLE, "score": 0.83}], "degraded": [], "revision": 17, "took_ms": 0.8}
        )
    )

    results: list[HitOut]
    degraded: list[str]
    revision: int
    took_ms: float


class FeedbackIn(Body):
    """What became of a memory that a search returned."""

    model_config = ConfigDict(json_schema_extra=example({"id": STORED_EXAMPLE["id"], "signal": "used"}))

    id: str
    signal: Literal["used", "ignored", "wrong"]


class FeedbackOut(Answer):
    """The feedback that was noted."""

    model_config = ConfigDict(json_schema_extra=example({"id": STORED_EXAMPLE["id"], "signal": "used"}))

    id: str
    signal: Literal["used", "ignored", "wrong"]
