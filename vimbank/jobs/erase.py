"""Erase a user, or a session or agent of one, where that may take long."""

from collections.abc import Mapping
from typing import Any

from vimbank.domain.models import Scope
from vimbank.domain.sanitize import clean_id
from vimbank.errors import InvalidInput
from vimbank.jobs.context import JobContext
from vimbank.jobs.params import only
from vimbank.portability.erase import erase as erase_scope

__all__ = ["erase", "validate"]

_NAMES = ("tenant", "user_id", "session_id", "agent_id", "by")


def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """``user_id``, and at most one of ``session_id`` and ``agent_id``; ``tenant``: left out: default."""
    only(params, *_NAMES)
    given = {name: clean_id(value, f"params.{name}") for name, value in params.items() if value is not None}
    if "user_id" not in given:
        raise InvalidInput.of("params.user_id", "is missing")
    if "session_id" in given and "agent_id" in given:
        raise InvalidInput.of("params.agent_id", "give a session or an agent, not both")
    return given


def erase(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The receipt. The record of the job loses its parameters in the same transaction as the user his memories.

    So a second run, after a crash behind it, has nobody left to erase and writes the database's file anew only.
    """
    eraser = context.around.eraser
    if eraser is None:
        raise InvalidInput.of("name", "this store cannot erase")
    if "user_id" not in params:
        eraser.scrub()
        return {"receipt": None}
    scope = Scope(
        params.get("tenant", "default"), params["user_id"], None, params.get("agent_id"), params.get("session_id")
    )
    context.report(0, 1, "erasing")
    return erase_scope(context.service, eraser, scope, actor=params.get("by", "job")).record()
