"""Answers as bytes: values of the domain to JSON in one step.

The response models of ``schemas.py`` describe these answers in the OpenAPI document; a test holds the two
together. Serialising twice would cost more than the search of a small partition.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from starlette.responses import Response

from vimbank.domain.models import AddResult, Explanation, HistoryEntry, Memory, Page, Recall, ScoredMemory

__all__ = ["added", "history", "json_response", "listing", "memory", "recall"]

# Aware times become ISO 8601 with Z, microseconds only where there are any: what `format_time` writes.
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY


def json_response(value: Any, status: int = 200) -> Response:
    """``value`` (dicts, lists, numbers, strings, aware times) as ``application/json``."""
    return Response(orjson.dumps(value, option=_OPTIONS), status, media_type="application/json")


def memory(value: Memory) -> dict[str, Any]:
    """``schemas.MemoryOut`` of a memory; the tenant is the key's and is not told."""
    source = value.source
    return {
        "id": value.id,
        "bank": value.bank,
        "kind": value.kind,
        "text": value.text,
        "title": value.title,
        "speaker": value.speaker,
        "user_id": value.user_id,
        "agent_id": value.agent_id,
        "session_id": value.session_id,
        "metadata": dict(value.metadata),
        "source": {
            "parent_id": source.parent_id,
            "position": source.position,
            "start": source.start,
            "end": source.end,
            "event_id": source.event_id,
        },
        "created_at": value.created_at,
        "updated_at": value.updated_at,
        "event_at": value.event_at,
        "valid_from": value.valid_from,
        "valid_to": value.valid_to,
        "expires_at": value.expires_at,
        "importance": value.importance,
        "pinned": value.pinned,
        "strength": value.strength,
        "recall_count": value.recall_count,
        "last_recalled_at": value.last_recalled_at,
        "state": value.state.value,
        "superseded_by": value.superseded_by,
        "token_count": value.token_count,
        "revision": value.revision,
    }


def added(value: AddResult) -> dict[str, Any]:
    """``schemas.AddOut`` of an add."""
    return {
        "id": value.id,
        "revision": value.revision,
        "duplicate": value.duplicate,
        "segments": value.segments,
    }


def listing(page: Page) -> dict[str, Any]:
    """``schemas.PageOut`` of a page."""
    return {
        "items": [memory(item) for item in page.items],
        "total": page.total,
        "next_cursor": page.next_cursor,
    }


def recall(value: Recall) -> dict[str, Any]:
    """``schemas.SearchOut`` of a search."""
    return {
        "results": [_hit(result) for result in value.results],
        "degraded": list(value.degraded),
        "revision": value.revision,
        "took_ms": round(value.took_ms, 3),
    }


def history(memory_id: str, entries: Sequence[HistoryEntry]) -> dict[str, Any]:
    """``schemas.HistoryOut`` of a memory's past, oldest first."""
    return {"id": memory_id, "items": [_change(entry) for entry in entries]}


def _hit(result: ScoredMemory) -> dict[str, Any]:
    answer = memory(result.memory)
    answer["score"] = float(result.score)
    if result.window:
        answer["window"] = [memory(turn) for turn in result.window]
    if result.explanation is not None:
        answer["explain"] = _explanation(result.explanation)
    return answer


def _explanation(value: Explanation) -> dict[str, Any]:
    return {
        "fusion": value.fusion,
        "parts": _figures(value.parts),
        "factors": _figures(value.factors),
        "inputs": _figures(value.inputs),
        "relevance": float(value.relevance),
        "score": float(value.score),
    }


def _figures(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _change(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "revision": entry.revision,
        "at": entry.at,
        "event": entry.event.value,
        "actor": entry.actor,
        "old_text": entry.old_text,
        "new_text": entry.new_text,
        "changes": {name: list(values) for name, values in entry.changes.items()},
    }
