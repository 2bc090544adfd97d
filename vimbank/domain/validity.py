"""Validity at write: is this experience worth remembering (V-5 to V-8)? Rules with reasons, no model. Pure.

A dialog round is a positive sample where its two sides make an exchange and, from the second round on, where it is
linked to the rounds before it; a pseudo multi-round is a negative one: its history says nothing to its query. A
knowledge item is a positive sample where it is text that tells something. A negative sample is stored all the same and
can be filtered: rules err, and what was not stored cannot be judged again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vimbank.domain.models import Sample
from vimbank.domain.text import STOP_WORDS, analyze_query

__all__ = ["HISTORY_ROUNDS", "Assessment", "Sample", "Why", "assess_knowledge", "assess_round"]

HISTORY_ROUNDS: Final = 7
"""Rounds before a round that it may be linked to (I-12)."""

_MAX_CHARS: Final = 4_000
_MIN_LETTERS: Final = 0.4  # of the characters that are not blank
_MAX_REPEATED: Final = 0.6
_LINK_SIMILARITY: Final = 0.5


class Why(StrEnum):
    """Reasons of an assessment."""

    FIRST_ROUND = "first_round"
    SHARES_WORDS = "shares_words"
    REFERS_BACK = "refers_back"
    SIMILAR = "similar"
    UNRELATED_HISTORY = "unrelated_history"
    NO_ANSWER = "no_answer"
    SMALL_TALK = "small_talk"
    TELLS_SOMETHING = "tells_something"
    TOO_SHORT = "too_short"
    NOT_TEXT = "not_text"
    BOILERPLATE = "boilerplate"
    REPEATS_ITSELF = "repeats_itself"
    ONLY_QUESTIONS = "only_questions"


@dataclass(frozen=True, slots=True)
class Assessment:
    """A sample with the reasons for it, at least one, the decisive one first."""

    sample: Sample
    reasons: tuple[Why, ...]


_REFUSAL: Final = re.compile(
    r"^\W*(?:(?:i am|i'm) (?:sorry|afraid)|sorry|as an ai|"
    r"i (?:cannot|can't|can not|do not|don't) (?:help|assist|answer|know)|"
    r"an error (?:has )?occurred|(?:internal server )?error\b|timed? ?out|null$|none$|n/a$|undefined$|"
    r"抱歉|对不起|我不知道|我无法|作为(?:一个)?(?:ai|人工智能)|出错了|请求超时)",
    re.IGNORECASE,
)
_SMALL_TALK: Final = re.compile(
    r"^\W*(?:hi|hello|hey|thanks?(?: you)?(?: so much| a lot)?|ok(?:ay)?|bye|good(?:bye| morning| night| evening)|"
    r"great|cool|yes|no|sure|lol|haha+|you(?:'re| are) welcome|how are you|how can i help you|"
    r"你好|您好|谢谢(?:你|您)?|再见|早上好|晚安|好的|嗯+|哈+|不客气)"
    r"(?:\W+(?:there|again|all|everyone|too|today|呀|啊|了))*\W*$",
    re.IGNORECASE,
)
_REFERS_BACK: Final = re.compile(
    r"^(?:and|but|so|then|also|or|why|really|what about|how about|which one|what else|anything else|go on|continue|"
    r"more)\b|"
    r"\b(?:it|its|that|this|these|those|they|them|he|she|him|her|there|then|the (?:first|second|third|last|other|same|"
    r"latter|former)(?: one)?|again|instead|as (?:you|i) said|you (?:said|mentioned)|above|previous|earlier|before)\b|"
    r"那|它|他|她|这|上面|刚才|之前|再|继续|还有|为什么|第[一二三]个|然后|另外|呢[?？]?$",
    re.IGNORECASE,
)
_BOILERPLATE: Final = re.compile(
    r"(?:accept (?:all )?cookies|cookie policy|enable javascript|404 not found|403 forbidden|access denied|"
    r"page not found|lorem ipsum|all rights reserved|subscribe to our newsletter|click here to|sign in to continue|"
    r"are you a robot|terms of service|traceback \(most recent call last\)|页面不存在|版权所有|请登录|"
    r"点击这里|访问被拒绝)",
    re.IGNORECASE,
)
_MAX_BOILERPLATE_CHARS: Final = 400  # a longer text that holds such a line holds more than that
_SENTENCE_END: Final = re.compile(r"[.!?。！？\n]+")


def assess_round(
    query: str, response: str, history: Sequence[str] = (), *, similarity: float | None = None
) -> Assessment:
    """Whether a round of a dialog is a positive sample.

    Negative: no answer (empty, a refusal, an error), small talk on both sides, or a history to which the query is not
    linked: no word in common but those every text has, no similarity, and nothing in the query that refers back.

    Args:    history: the rounds before it in its session, oldest first; the last seven count. Empty: a first round,
                 which needs no link.
             similarity: cosine of the query with the nearest of these rounds, where known; from 0.5 it is a link.
    Source:  VIMBank V-5 to V-8.
    """
    if not response.strip() or _REFUSAL.match(response):
        return Assessment(Sample.NEGATIVE, (Why.NO_ANSWER,))
    if _SMALL_TALK.match(query) and _SMALL_TALK.match(response):
        return Assessment(Sample.NEGATIVE, (Why.SMALL_TALK,))
    recent = [text for text in history[-HISTORY_ROUNDS:] if text.strip()]
    if not recent:
        return Assessment(Sample.POSITIVE, (Why.FIRST_ROUND,))
    links = _links(query, recent, similarity)
    if not links:
        return Assessment(Sample.NEGATIVE, (Why.UNRELATED_HISTORY,))
    return Assessment(Sample.POSITIVE, links)


def assess_knowledge(text: str) -> Assessment:
    """Whether a knowledge item is a positive sample.

    Negative: fewer than three terms, mostly not letters or digits (markup, broken encoding), a page's furniture and
    nothing else, the same sentence over and over, or questions alone.

    Source:  VIMBank V-2, V-5, V-6.
    """
    text = text[:_MAX_CHARS].strip()
    checks = (
        (_not_text, Why.NOT_TEXT),
        (_too_short, Why.TOO_SHORT),
        (_is_boilerplate, Why.BOILERPLATE),
        (_repeats_itself, Why.REPEATS_ITSELF),
        (_only_questions, Why.ONLY_QUESTIONS),
    )
    reasons = tuple(why for check, why in checks if check(text))
    if reasons:
        return Assessment(Sample.NEGATIVE, reasons)
    return Assessment(Sample.POSITIVE, (Why.TELLS_SOMETHING,))


def _links(query: str, history: Sequence[str], similarity: float | None) -> tuple[Why, ...]:
    words = _content(query)
    found = []
    if any(words & _content(text) for text in history):
        found.append(Why.SHARES_WORDS)
    if _REFERS_BACK.search(query.strip()):
        found.append(Why.REFERS_BACK)
    if similarity is not None and similarity >= _LINK_SIMILARITY:
        found.append(Why.SIMILAR)
    return tuple(found)


def _content(text: str) -> frozenset[str]:
    """Terms that say what a text is about; of Chinese the pairs of characters, as one character says too little."""
    terms = analyze_query(text[:_MAX_CHARS])
    return frozenset(term for term in terms if term not in STOP_WORDS and term not in _EVERYWHERE and len(term) > 1)


_EVERYWHERE: Final = frozenset(
    {
        "please",
        "pleas",
        "thank",
        "thanks",
        "hello",
        "know",
        "tell",
        "want",
        "like",
        "would",
        "help",
        "get",
        "what",
        "can",
    }
    | {
        "什么",
        "怎么",
        "我们",
        "一个",
        "可以",
        "请问",
        "知道",
        "谢谢",
        "你好",
        "没有",
        "现在",
        "觉得",
        "告诉",
        "诉我",
        "喜欢",
    }
)


def _not_text(text: str) -> bool:
    visible = [char for char in text if not char.isspace()]
    letters = sum(char.isalnum() for char in visible)
    return not visible or letters / len(visible) < _MIN_LETTERS or text.count("\ufffd") > len(visible) / 20


def _too_short(text: str) -> bool:
    return len(set(analyze_query(text))) < 3


def _is_boilerplate(text: str) -> bool:
    return len(text) <= _MAX_BOILERPLATE_CHARS and bool(_BOILERPLATE.search(text))


def _sentences(text: str) -> list[str]:
    return [part.strip().casefold() for part in _SENTENCE_END.split(text) if part.strip()]


def _repeats_itself(text: str) -> bool:
    parts = _sentences(text)
    return len(parts) >= 4 and 1 - len(set(parts)) / len(parts) >= _MAX_REPEATED


def _only_questions(text: str) -> bool:
    ends = _SENTENCE_END.findall(text)
    return bool(ends) and _SENTENCE_END.split(text)[-1].strip() == "" and all("?" in end or "？" in end for end in ends)
