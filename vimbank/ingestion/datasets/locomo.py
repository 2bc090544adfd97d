"""LoCoMo: very long conversations of two people over months (Maharana et al. 2024)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vimbank.domain.models import MemoryDraft
from vimbank.errors import InvalidInput
from vimbank.ingestion.datasets.base import Loader, Question, memories_of_turns, rows, session_drafts

__all__ = ["LOADER", "Locomo"]

TUNED_CONVERSATIONS: Final = 5
ROLE: Final = "participant"  # both are people, so no two turns make a round


@dataclass(frozen=True, slots=True)
class Locomo:
    """Turns into the dialog bank, one user a conversation: ``locomo-<conv_id>``.

    Files: turns.jsonl (conv_id, session_id, turn_id, speaker, text, timestamp, image_caption?), questions.jsonl (qid,
    conv_id, question, evidence, category).
    """

    name: str = "locomo"
    summary: str = "LoCoMo conversations, one user each, one memory a turn (bank dialog)."

    def total(self, path: Path, *, extra_distractors: bool = False) -> int:
        """See ``Loader``."""
        _refuse(extra_distractors)
        return sum(1 for _ in rows(path / "turns.jsonl"))

    def load(
        self, path: Path, *, tenant: str, user_id: str | None = None, extra_distractors: bool = False
    ) -> Iterator[MemoryDraft]:
        """See ``Loader``. The id is the turn's; a photo's caption follows the text as ``[photo: …]``."""
        _refuse(extra_distractors)
        turns = rows(path / "turns.jsonl", "conv_id", "session_id", "turn_id", "speaker", "text", "timestamp")
        yield from session_drafts(
            (_row(turn) for turn in turns),
            tenant=tenant,
            user_id=user_id,
            session_field="session_id",
            time_field="timestamp",
        )

    def questions(self, path: Path, *, user_id: str | None = None) -> Iterator[Question]:
        """See ``Loader``; the questions of the first five conversations are for tuning."""
        memories = memories_of_turns(self.load(path, tenant="-"))
        order: dict[str, int] = {}
        for row in rows(path / "questions.jsonl", "qid", "conv_id", "question", "category", evidence=list):
            place = order.setdefault(row["conv_id"], len(order))
            yield Question(
                id=row["qid"],
                text=row["question"],
                user_id=user_id or _user_id(row["conv_id"]),
                gold=frozenset(memories[turn] for turn in row["evidence"] if turn in memories),
                category=row["category"],
                split="tune" if place < TUNED_CONVERSATIONS else "report",
                answer=row.get("answer"),
            )


def _user_id(conversation: str) -> str:
    return f"locomo-{conversation}"


def _row(turn: Mapping[str, Any]) -> dict[str, Any]:
    caption = turn.get("image_caption")
    text = f"{turn['text']}\n[photo: {caption}]" if caption else turn["text"]
    return {**turn, "conv_id": _user_id(turn["conv_id"]), "role": ROLE, "text": text}


def _refuse(extra_distractors: bool) -> None:
    if extra_distractors:
        raise InvalidInput.of("extra_distractors", "only HotpotQA has further passages")


LOADER: Final[Loader] = Locomo()
