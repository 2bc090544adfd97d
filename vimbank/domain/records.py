"""The values of the domain as records: dicts with the names of the REST API, for every entry point.

Times stay times, as the API's writer of JSON takes them as they are; ``plain`` turns them into text for one that does
not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from vimbank.domain.endings import ended_record
from vimbank.domain.jobs import Job, Progress
from vimbank.domain.models import AddResult, Explanation, HistoryEntry, Memory, Page, Recall, ScoredMemory
from vimbank.domain.times import format_time

__all__ = [
    "added_record",
    "history_record",
    "job_record",
    "memory_record",
    "page_record",
    "plain",
    "progress_record",
    "recall_record",
]


def plain(value: Any) -> Any:
    """``value`` as JSON's types: dataclasses by field, times as ISO 8601 in UTC, enumerations by value."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def memory_record(value: Memory) -> dict[str, Any]:
    """One memory, without what its caller knows (the tenant) and what is the store's own (hash, number)."""
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
        "stability_days": value.stability_days,
        "difficulty": value.difficulty,
        "state": value.state.value,
        "superseded_by": value.superseded_by,
        "sample": None if value.sample is None else value.sample.value,
        "sample_reasons": list(value.sample_reasons),
        "information": value.information,
        "ended": [ended_record(each) for each in value.ended],
        "token_count": value.token_count,
        "revision": value.revision,
    }


def added_record(value: AddResult) -> dict[str, Any]:
    """What became of an add."""
    return {
        "id": value.id,
        "revision": value.revision,
        "duplicate": value.duplicate,
        "segments": value.segments,
        "superseded": list(value.superseded),
    }


def page_record(page: Page) -> dict[str, Any]:
    """One page of a listing."""
    return {
        "items": [memory_record(item) for item in page.items],
        "total": page.total,
        "next_cursor": page.next_cursor,
    }


def recall_record(value: Recall) -> dict[str, Any]:
    """The answer to a search."""
    return {
        "results": [_hit(result) for result in value.results],
        "degraded": list(value.degraded),
        "revision": value.revision,
        "took_ms": round(value.took_ms, 3),
    }


def history_record(memory_id: str, entries: Sequence[HistoryEntry]) -> dict[str, Any]:
    """A memory's past, oldest first."""
    return {"id": memory_id, "items": [_change(entry) for entry in entries]}


def job_record(value: Job) -> dict[str, Any]:
    """One job, without what concerns its workers alone (owner, lease)."""
    return {
        "id": value.id,
        "name": value.name,
        "state": value.state.value,
        "queue": value.queue,
        "params": dict(value.params),
        "key": value.key,
        "progress": progress_record(value.progress),
        "attempts": value.attempts,
        "cancel_requested": value.cancel_requested,
        "created_at": value.created_at,
        "started_at": value.started_at,
        "finished_at": value.finished_at,
        "result": None if value.result is None else dict(value.result),
        "error": value.error,
    }


def progress_record(value: Progress) -> dict[str, Any]:
    """How far a job is."""
    return {"done": value.done, "total": value.total, "message": value.message}


def _hit(result: ScoredMemory) -> dict[str, Any]:
    answer = memory_record(result.memory)
    answer["score"] = float(result.score)
    if result.label is not None:
        answer["label"] = result.label.value
    if result.window:
        answer["window"] = [memory_record(turn) for turn in result.window]
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
