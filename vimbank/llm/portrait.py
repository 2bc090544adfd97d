"""Which of a user's sentences tell of the user: what a portrait is made of where no model reads between the lines."""

import re
from collections.abc import Iterable
from typing import Final

from vimbank.domain.sentences import sentences
from vimbank.llm.writer import Passage

__all__ = ["telling_sentences", "telling_weight"]

_OF_ONESELF: Final = re.compile(r"\b(?:I|I'm|I've|I'd|I'll|[Mm]y|[Mm]e|[Mm]yself)\b|[我俺咱]")
_FEELING: Final = re.compile(
    r"\b(?:lik(?:e|ed|es)|lov(?:e|ed|es)|hat(?:e|ed|es)|enjoy\w*|prefer\w*|feel(?:ing|s)?|felt|afraid|scared|happy|sad"
    r"|angry|worr(?:y|ied)|anxious|lonely|excited|tired|stress\w*|proud|hope|dream|want|allergic|always|never|usually"
    r"|hobby|favou?rite)\b"
    r"|喜欢|喜爱|热爱|讨厌|恨|觉得|感到|感觉|开心|高兴|难过|伤心|生气|担心|害怕|焦虑|孤独|压力|希望|梦想|想要|总是|从不|习惯|爱好|性格",
    re.IGNORECASE,
)


def telling_sentences(passages: Iterable[Passage]) -> list[tuple[str, Passage]]:
    """The sentences in which users speak of themselves, in order, each with its passage; no questions.

    Source:  MemoryBank M-6 asks for traits and emotions of the dialog; ILSTMA I-27 for a model's sentiment analysis,
             for which this is the plain substitute.
    """
    return [
        (sentence, passage)
        for passage in passages
        for sentence in sentences(passage.own_words)
        if _OF_ONESELF.search(sentence) and not sentence.rstrip("\"'”’」』）)").endswith(("?", "？"))
    ]


def telling_weight(sentence: str) -> float:
    """3 where likes, feelings or habits are named, else 1."""
    return 3.0 if _FEELING.search(sentence) else 1.0
