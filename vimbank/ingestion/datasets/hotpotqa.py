"""HotpotQA passages and multi-hop questions (Yang et al. 2018), in the layout of BEIR."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vimbank.domain.models import SHARED_USER, MemoryDraft
from vimbank.errors import InvalidInput
from vimbank.ingestion.datasets.base import Loader, Question, rows
from vimbank.ingestion.jsonl import lines_of

__all__ = ["LOADER", "HotpotQA"]

BANK: Final = "knowledge"
REPORTED_SUBSET: Final = "agenttuning_hard"


@dataclass(frozen=True, slots=True)
class HotpotQA:
    """Passages with titles into the knowledge bank; every question needs two of them.

    Files: corpus.jsonl (_id, title, text), queries.jsonl (_id, text, metadata), qrels.tsv, extra_distractors.jsonl.
    """

    name: str = "hotpotqa"
    summary: str = "HotpotQA passages with titles, for all users (bank knowledge)."

    def total(self, path: Path, *, extra_distractors: bool = False) -> int:
        """See ``Loader``."""
        return sum(1 for file in _corpora(path, extra_distractors) for _ in rows(file))

    def load(
        self, path: Path, *, tenant: str, user_id: str | None = None, extra_distractors: bool = False
    ) -> Iterator[MemoryDraft]:
        """See ``Loader``; the id is ``hotpotqa:<_id>``."""
        for file in _corpora(path, extra_distractors):
            for row in rows(file, "_id", "title", "text"):
                yield MemoryDraft(
                    tenant=tenant,
                    user_id=user_id or SHARED_USER,
                    bank=BANK,
                    kind="passage",
                    id=_memory_id(row["_id"]),
                    title=row["title"],
                    text=row["text"],
                    deduplicate=False,
                )

    def questions(self, path: Path, *, user_id: str | None = None) -> Iterator[Question]:
        """See ``Loader``; the category is the question's type, bridge or comparison."""
        gold = _qrels(path / "qrels.tsv")
        for row in rows(path / "queries.jsonl", "_id", "text", metadata=dict):
            metadata = row["metadata"]
            yield Question(
                id=row["_id"],
                text=row["text"],
                user_id=user_id or SHARED_USER,
                gold=frozenset(gold[row["_id"]]),
                category=metadata.get("type", "unknown"),
                split="report" if REPORTED_SUBSET in metadata.get("subsets", ()) else "tune",
                answer=metadata.get("answer"),
            )


def _corpora(path: Path, extra_distractors: bool) -> list[Path]:
    names = ["corpus.jsonl", "extra_distractors.jsonl"] if extra_distractors else ["corpus.jsonl"]
    return [path / name for name in names]


def _memory_id(document_id: str) -> str:
    return f"hotpotqa:{document_id}"


def _qrels(path: Path) -> defaultdict[str, set[str]]:
    """Question id -> memory ids; the file has a header and the columns query-id, corpus-id, score."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(lines_of(path), 1):
        columns = line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
        if len(columns) != 3:
            raise InvalidInput.of("path", f"{path}, line {number} must have three columns")
        if number > 1 and columns[2] != "0":
            found[columns[0]].add(_memory_id(columns[1]))
    return found


LOADER: Final[Loader] = HotpotQA()
