"""The values of the domain as plain JSON, with the names and forms of the REST API."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from vimbank.domain.models import AddResult, HistoryEntry, Memory, Page, Recall, ScoredMemory
from vimbank.domain.times import format_time
from vimbank.errors import VimbankError

__all__ = ["history_record", "memory_record", "outcome_record", "page_record", "plain", "recall_record"]

_INTERNAL = ("tenant", "content_hash", "number")  # the caller named the tenant; the others are the store's own


def plain(value: Any) -> Any:
    """``value`` as JSON's types: dataclasses by field, times as ISO 8601 in UTC, enumerations by value."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def memory_record(memory: Memory) -> dict[str, Any]:
    """One memory, every public field."""
    return {name: value for name, value in plain(memory).items() if name not in _INTERNAL}


def page_record(page: Page) -> dict[str, Any]:
    """One page of a listing."""
    return {
        "items": [memory_record(memory) for memory in page.items],
        "total": page.total,
        "next_cursor": page.next_cursor,
    }


def recall_record(recall: Recall) -> dict[str, Any]:
    """The answer to a search."""
    return {
        "results": [_scored_record(scored) for scored in recall.results],
        "degraded": list(recall.degraded),
        "revision": recall.revision,
        "took_ms": round(recall.took_ms, 3),
    }


def history_record(id: str, entries: Sequence[HistoryEntry]) -> dict[str, Any]:
    """A memory's past, oldest first."""
    items = [{name: value for name, value in plain(entry).items() if name != "memory_id"} for entry in entries]
    return {"id": id, "items": items}


def outcome_record(outcome: AddResult | VimbankError) -> dict[str, Any]:
    """One item of a batch: what was stored, or why it was not."""
    if isinstance(outcome, VimbankError):
        return {"error": {"type": type(outcome).__name__, "message": str(outcome)}}
    record: dict[str, Any] = plain(outcome)
    return record


def _scored_record(scored: ScoredMemory) -> dict[str, Any]:
    record = {**memory_record(scored.memory), "score": scored.score}
    if scored.window:
        record["window"] = [memory_record(memory) for memory in scored.window]
    if scored.explanation is not None:
        record["explain"] = plain(scored.explanation)
    return record
