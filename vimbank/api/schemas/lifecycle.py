"""A memory's life: its moves, and what goes when."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from vimbank.api.schemas.base import Answer, Params, example
from vimbank.service import MAX_TOP_K

__all__ = ["ForecastOut", "ForecastParams", "LeavingOut", "MoveParams"]


class MoveParams(Params):
    """On which condition a memory may move."""

    expected_revision: int | None = Field(None, description="Only if this is still its revision.")


class ForecastParams(Params):
    """Whose memories, and how far ahead."""

    user_id: str
    bank: str | None = None
    days: float = Field(30.0, ge=0, le=36_500, description="How far to look ahead, days.")
    limit: int = Field(100, ge=1, le=MAX_TOP_K, description="How many to name; all are counted.")


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
