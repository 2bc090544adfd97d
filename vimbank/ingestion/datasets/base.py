"""What the loaders share: their shape, the rows of a set's files, and rounds that remember their turns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson

from vimbank.domain.models import MemoryDraft
from vimbank.domain.times import parse_time
from vimbank.errors import InvalidInput
from vimbank.ingestion.dialog import Turn, drafts_of_turns
from vimbank.ingestion.jsonl import lines_of

__all__ = ["Loader", "Question", "Split", "memories_of_turns", "rows", "session_drafts"]

Split = Literal["tune", "report"]
"""Choose weights and thresholds on ``tune`` alone; ``report`` is for reporting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a set: whose memories answer it, and the ids of those that do (none: no evidence is known)."""

    id: str
    text: str
    user_id: str
    gold: frozenset[str]
    category: str
    split: Split
    answer: str | None = None


class Loader(Protocol):
    """One data set. ``path`` is its folder; a missing or odd file raises InvalidInput that names ``path``."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str:
        """One line: what it holds, and into which bank it goes."""
        ...

    def total(self, path: Path, *, extra_distractors: bool = False) -> int:
        """How many memories ``load`` gives."""
        ...

    def load(
        self, path: Path, *, tenant: str, user_id: str | None = None, extra_distractors: bool = False
    ) -> Iterator[MemoryDraft]:
        """The memories, streamed in the files' order, with ids that are the same at every load.

        ``user_id`` None gives each conversation a user of its own, and shared knowledge to ``shared``; a name puts
        all under that user. ``extra_distractors`` adds passages without questions, where the set has some.
        """
        ...

    def questions(self, path: Path, *, user_id: str | None = None) -> Iterator[Question]:
        """The questions, with the ids and users that ``load`` gives the memories under the same ``user_id``."""
        ...


def rows(path: Path, *texts: str, **others: type) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file, or of the same with ``.gz``, in order.

    Each must have the fields ``texts``, as strings, and ``others``, of the type given. Raises InvalidInput.
    """
    packed = path.with_name(f"{path.name}.gz")
    file = path if path.exists() or not packed.exists() else packed
    expected: dict[str, type] = {**dict.fromkeys(texts, str), **others}
    for number, line in enumerate(lines_of(file), 1):
        if line.strip():
            yield _row(line, expected, f"{file}, line {number}")


def _row(line: bytes, expected: Mapping[str, type], place: str) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise InvalidInput.of("path", f"{place} is not JSON: {exc}") from exc
    if not isinstance(row, dict):
        raise InvalidInput.of("path", f"{place} is not an object")
    for name, kind in expected.items():
        if not isinstance(row.get(name), kind):
            raise InvalidInput.of("path", f"{place}: {name} is missing or not of type {kind.__name__}")
    return row


def session_drafts(
    turns: Iterable[Mapping[str, Any]], *, tenant: str, user_id: str | None, session_field: str, time_field: str | None
) -> Iterator[MemoryDraft]:
    """Memories of turn rows (``conv_id``, ``turn_id``, ``role``, ``text``, ``speaker``?), session by session.

    A memory's id is the id of its (first) turn; ``metadata.turn_ids`` names all its turns.
    """
    for (conversation, session), group in groupby(turns, key=lambda row: (row["conv_id"], row[session_field])):
        said = [_turn(row, time_field) for row in group]
        drafts = drafts_of_turns(said, tenant=tenant, user_id=user_id or conversation, session_id=session)
        yield from (_named(draft) for draft in drafts)


def memories_of_turns(drafts: Iterable[MemoryDraft]) -> dict[str, str]:
    """Turn id -> id of the memory that holds the turn."""
    return {turn: draft.id for draft in drafts if draft.id for turn in draft.metadata["turn_ids"]}


def _turn(row: Mapping[str, Any], time_field: str | None) -> Turn:
    return Turn(
        role=row["role"],
        content=row["text"],
        speaker=row.get("speaker"),
        event_at=parse_time(row[time_field], "path") if time_field else None,
        event_id=row["turn_id"],
        metadata=row.get("metadata", {}),
    )


def _named(draft: MemoryDraft) -> MemoryDraft:
    """The draft under its turn's id. The event id goes: the id alone makes a second load harmless."""
    metadata = dict(draft.metadata)
    turn_ids: Sequence[str | None] = [draft.source.event_id, metadata.pop("response_event_id", None)]
    metadata["turn_ids"] = [turn for turn in turn_ids if turn is not None]
    return replace(draft, id=draft.source.event_id, metadata=metadata, source=replace(draft.source, event_id=None))
