"""Sets of dialogues between a user and an assistant, one folder a language: MemoryBank and SCM."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vimbank.domain.models import MemoryDraft
from vimbank.errors import InvalidInput
from vimbank.ingestion.datasets.base import Question, memories_of_turns, rows, session_drafts

__all__ = ["RoundsLoader"]

DOUBTFUL: Final = 0.65
"""Automatic evidence below this score is not counted as gold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsLoader:
    """Rounds into the dialog bank, one user a conversation; all questions are for reporting.

    ``path`` is the folder of one language, or the one that holds a folder for each of ``languages``. Files:
    turns.jsonl (conv_id, turn_id, role, text, ``session_field``, ``time_field``), questions.jsonl (qid, conv_id,
    question, evidence, category).
    """

    name: str
    summary: str
    languages: tuple[str, ...]
    session_field: str
    time_field: str | None

    def total(self, path: Path, *, extra_distractors: bool = False) -> int:
        """See ``Loader``."""
        return sum(1 for _ in self.load(path, tenant="-", extra_distractors=extra_distractors))

    def load(
        self, path: Path, *, tenant: str, user_id: str | None = None, extra_distractors: bool = False
    ) -> Iterator[MemoryDraft]:
        """See ``Loader``. A round's id is its query's turn id."""
        if extra_distractors:
            raise InvalidInput.of("extra_distractors", "only HotpotQA has further passages")
        times = [self.time_field] if self.time_field else []
        for folder in self._folders(path):
            yield from session_drafts(
                rows(folder / "turns.jsonl", "conv_id", "turn_id", "role", "text", self.session_field, *times),
                tenant=tenant,
                user_id=user_id,
                session_field=self.session_field,
                time_field=self.time_field,
            )

    def questions(self, path: Path, *, user_id: str | None = None) -> Iterator[Question]:
        """See ``Loader``; a turn named as evidence stands for the round that holds it."""
        memories = memories_of_turns(self.load(path, tenant="-"))
        for folder in self._folders(path):
            for row in rows(folder / "questions.jsonl", "qid", "conv_id", "question", "category", evidence=list):
                yield Question(
                    id=row["qid"],
                    text=row["question"],
                    user_id=user_id or row["conv_id"],
                    gold=frozenset(memories[turn] for turn in _evidence(row) if turn in memories),
                    category=row["category"],
                    split="report",
                    answer=row.get("answer"),
                )

    def _folders(self, path: Path) -> list[Path]:
        return [path / name for name in self.languages if (path / name).is_dir()] or [path]


def _evidence(row: Mapping[str, Any]) -> list[str]:
    """The turns named by the set's authors; where they name none, those found automatically and not doubtful."""
    automatic = [each["turn_id"] for each in row.get("evidence_auto", ()) if each.get("score", 0) >= DOUBTFUL]
    return row["evidence"] or automatic
