"""Summaries without a model: sentences of the text itself, chosen by LexRank over the encoder's vectors."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from vimbank.domain.lexrank import centrality, chosen
from vimbank.domain.sentences import fitted, sentences
from vimbank.domain.summaries import Method, kept_sentences
from vimbank.llm.portrait import telling_sentences, telling_weight
from vimbank.llm.writer import Passage, Spent, Task
from vimbank.ports import Encoder

__all__ = ["ExtractiveWriter"]

MOST_SENTENCES: Final[dict[Task, int]] = {
    "group_summary": 4,
    "day_summary": 8,
    "global_summary": 12,
    "day_portrait": 6,
    "global_portrait": 10,
}
MOST_COMPARED: Final = 300
"""Sentences that are encoded and compared for one summary; of more, so many at equal distances."""

_FIGURE: Final = re.compile(r"\d|[一二三四五六七八九十]+[年月日点号]")
_NAME: Final = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]+")
_ASKS: Final = re.compile(r"[?？][\"'”’」』）)]*$")
_DATED: Final = re.compile(r"\d{4}-\d{2}-\d{2}\b")


class ExtractiveWriter:
    """Chooses sentences and invents nothing; each stands on a line of its own, in order of time.

    What is said repeatedly is central (I-26); figures, dates and names weigh more, questions less (I-25). A condensed
    summary puts the day before each sentence. A portrait is made of sentences in which users speak of themselves.
    """

    method: Method = "extractive"
    model: str | None = None
    spent = Spent()

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def write(self, task: Task, passages: Sequence[Passage]) -> str | None:
        """See ``Writer.write``."""
        if task == "day_portrait":
            found = telling_sentences(passages)
            weights = [telling_weight(sentence) for sentence, _ in found]
        else:
            found = [(sentence, passage) for passage in passages for sentence in sentences(passage.text)]
            weights = [_weight(sentence) for sentence, _ in found]
        lines = [_line(sentence, passage, dated=task.startswith("global")) for sentence, passage in found]
        return self._best(lines, [sentence for sentence, _ in found], weights, most=MOST_SENTENCES[task])

    def merge(self, old: str, new: str) -> str:
        """See ``Writer.merge``: old sentences that no new one is similar to, then the new ones (I-29)."""
        before, after = sentences(old), sentences(new)
        vectors = self._encoder.encode_documents([*before, *after])
        kept = kept_sentences(vectors[: len(before)], vectors[len(before) :])
        together = [*(before[place] for place in kept), *after]
        merged = "\n".join(together)
        if len(self._encoder.tokenize(merged)) <= self._encoder.window:
            return merged
        return self._best(together, together, [_weight(each) for each in together], most=len(together)) or new

    def _best(self, lines: Sequence[str], texts: Sequence[str], weights: Sequence[float], *, most: int) -> str | None:
        if len(lines) > MOST_COMPARED:
            places = [place * len(lines) // MOST_COMPARED for place in range(MOST_COMPARED)]
            lines, texts = [lines[each] for each in places], [texts[each] for each in places]
            weights = [weights[each] for each in places]
        if not lines:
            return None
        vectors = self._encoder.encode_documents(texts)
        costs = [len(self._encoder.tokenize(line)) for line in lines]
        scores = centrality(vectors, bias=np.array(weights))
        places = chosen(scores, vectors, costs, budget=self._encoder.window, most=most)
        text = "\n".join(lines[place] for place in places)
        return fitted(text, self._encoder.tokenize, limit=self._encoder.window) or None


def _line(sentence: str, passage: Passage, *, dated: bool) -> str:
    if dated:
        return sentence if _DATED.match(sentence) else f"{passage.at.date().isoformat()}: {sentence}"
    return f"{passage.speaker}: {sentence}" if passage.speaker else sentence


def _weight(sentence: str) -> float:
    """1, +1 with a figure or date, +1 with a name inside; a question a third of that."""
    weight = 1.0 + bool(_FIGURE.search(sentence)) + bool(_NAME.search(sentence))
    return weight / 3 if _ASKS.search(sentence) else weight
