"""Validity at write: is this experience worth remembering (V-5 to V-8)? Rules with reasons, no model. Pure.

A dialog round is a positive sample where its two sides make an exchange and, from the second round on, where it is
linked to the rounds before it or its user tells something of themselves; a pseudo multi-round is a negative one: its
history says nothing to its query. A knowledge item is a positive sample where it is text that tells something. A
negative sample is stored all the same and can be filtered: rules err, and what was not stored cannot be judged again.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from vimbank.domain.models import Sample
from vimbank.domain.text import STOP_WORDS, analyze, analyze_query

__all__ = [
    "HISTORY_ROUNDS",
    "Assessment",
    "Content",
    "Sample",
    "Why",
    "assess_knowledge",
    "assess_round",
    "assess_turn",
    "content_terms",
    "parts_of_round",
]

Content: TypeAlias = Callable[[str], frozenset[str]]
"""``content_terms``, or the same with a memory: texts of a history come again and again."""

HISTORY_ROUNDS: Final = 7
"""Rounds before a round that it may be linked to (I-12)."""

_MAX_CHARS: Final = 4_000
_CONTENT_CHARS: Final = 2_000  # that far a text says what it is about
_LAST_CHARS: Final = 300  # in which a round may end with a question
_SHORT_REPLY: Final = 240  # characters; a longer one that begins with an apology goes on to say something
_FEWEST_TERMS: Final = 2
_MIN_LETTERS: Final = 0.4  # of the characters that are not blank
_MAX_REPEATED: Final = 0.6
_LINK_SIMILARITY: Final = 0.5


class Why(StrEnum):
    """Reasons of an assessment."""

    FIRST_ROUND = "first_round"
    SHARES_WORDS = "shares_words"
    REFERS_BACK = "refers_back"
    ANSWERS = "answers"
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


# An apology alone is no refusal: it must say that something cannot be done, or is not known.
_UNABLE: Final = (
    r"(?:can't|cannot|can not|unable|not able|couldn't|don't|do not|didn't|won't|not (?:aware|sure|allowed)|no \w+ to|"
    r"无法|不能|没有|没法|不明白|不知道|不清楚|不了解|没能|无权)"
)
_REFUSAL: Final = re.compile(
    rf"^\W*(?:(?:(?:i am|i'm) )?(?:(?:very|so) )?"
    rf"(?:sorry|afraid|as an? (?:\w+ ){{0,2}}?(?:ai|model))\b[^.!?]{{0,80}}?{_UNABLE}|"
    rf"(?:我?(?:非常|很)?(?:抱歉|对不起|不好意思)|作为(?:一个|一名)?(?:ai|人工智能))[^。！？]{{0,30}}?{_UNABLE}|"
    r"(?:(?:i am|i'm) )?(?:(?:very|so) )?(?:sorry|抱歉|对不起)\W*$|"
    r"i (?:cannot|can't|can not|do not|don't) (?:help|assist|answer|know)|"
    r"an error (?:has )?occurred|(?:internal server )?error\b|timed? ?out|null\W*$|none\W*$|n/a$|undefined$|"
    r"我不知道|我无法|出错了|请求超时)",
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
    r"more|yes|no|yeah|okay|ok|sure)\b|"
    r"\b(?:it|its|that|this|these|those|they|them|he|she|him|her|then|the (?:first|second|third|last|other|same|"
    r"latter|former)(?: one)?|again|instead|as (?:you|i) said|you (?:said|mentioned)|above|previous|earlier|"
    r"also|besides|another|in (?:more )?detail|rewrite|rephrase|shorten)\b|"
    r"那|它|他|她|这|上面|以上|上述|刚才|之前|再|还|继续|接着|为什么|第[一二三]个|然后|另外|此外|除了|也|改[为成写]|写成|换成|"
    r"呢\W*$|^(?:是的?|对|不|当然|没错)",
    re.IGNORECASE,
)
# «RMSE», «Linked lists», «价格怎么样»: what is asked of it was said before.
_ELLIPSIS: Final = re.compile(r"^\W*[A-Za-z][\w-]{2,}(?:\s+[\w-]+)?[\s.!]*$|^\S{1,4}(?:怎么样|如何|多少|多少钱)\W*$")
_ASKS: Final = re.compile(
    r"[?？]\W*$|\b(?:please (?:send|provide|share|tell|paste)|let me know|go ahead|feel free)\b[^.?!\n]*\W*$|"
    r"(?:请(?:您|你)?(?:将|把|提供|发|告诉|指出|说)|发给我|告诉我)[^\n]*$",
    re.IGNORECASE,
)
_OF_ONESELF: Final = re.compile(
    r"\b(?:i(?! (?:want|need|would like|ask) you)(?:'(?:m|ve|d|ll))?|my|mine|we|our)\b|"
    r"(?<![给帮诉教让为向对跟请问])我(?!可以|能|想问|想知道|要你|需要你)|最近|总感觉",
    re.IGNORECASE,
)
_ASKING: Final = re.compile(
    r"^(?:what|which|who|whose|where|when|why|how|is|are|was|were|do|does|did|can|could|should|would|will|has|have|"
    r"please)\b|[?？]\W*$|^请|[吗呢吧么]\W*$",
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
_CLAUSE: Final = re.compile(r"[^.,;!?。，；！？\n]+[.,;!?。，；！？\n]?")


def assess_round(
    query: str,
    response: str,
    history: Sequence[str] = (),
    *,
    similarity: float | None = None,
    content: Content | None = None,
) -> Assessment:
    """Whether a round of a dialog is a positive sample.

    Negative: no answer (empty, a refusal, an error), small talk on both sides, or a history to which the query is not
    linked: no word in common but those every text has, no similarity, no answer to what was asked last, and nothing in
    the query that refers back. Where the user tells something of themselves, neither a refusal nor a missing link
    makes it negative: that is worth remembering whatever came before.

    Args:    history: the rounds before it in its session, oldest first; the last seven count. Empty: a first round,
                 which needs no link.
             similarity: cosine of the round with the nearest of these, where known; from 0.5 it is a link.
             content: None: ``content_terms``.
    Source:  VIMBank V-5 to V-8.
    """
    if not response.strip():
        return Assessment(Sample.NEGATIVE, (Why.NO_ANSWER,))
    if _SMALL_TALK.match(query) and _SMALL_TALK.match(response):
        return Assessment(Sample.NEGATIVE, (Why.SMALL_TALK,))
    telling = _tells_of_oneself(query)
    if not telling and _is_refusal(response):
        return Assessment(Sample.NEGATIVE, (Why.NO_ANSWER,))
    link = _link(query, history, similarity, content or content_terms)
    if link is None and telling:
        return Assessment(Sample.POSITIVE, (Why.TELLS_SOMETHING,))
    return _judged(link)


def assess_turn(
    text: str,
    history: Sequence[str] = (),
    *,
    replies: bool = False,
    similarity: float | None = None,
    content: Content | None = None,
) -> Assessment:
    """Whether what one side said, without a response, is a positive sample.

    Negative: small talk, a refusal or an error in reply, or what neither is linked to its history nor tells something
    by itself, as a lone question does.

    Args:    replies: an assistant or tool said it.  The rest as in ``assess_round``.
    Source:  VIMBank V-3, V-5 to V-8: a round of which one side is known.
    """
    if replies and _is_refusal(text):
        return Assessment(Sample.NEGATIVE, (Why.NO_ANSWER,))
    if _SMALL_TALK.match(text):
        return Assessment(Sample.NEGATIVE, (Why.SMALL_TALK,))
    link = _link(text, history, similarity, content or content_terms)
    if link is None:
        itself = assess_knowledge(text)
        if itself.sample is Sample.POSITIVE or _tells_of_oneself(text):
            return Assessment(Sample.POSITIVE, (Why.TELLS_SOMETHING,))
        return Assessment(Sample.NEGATIVE, (Why.UNRELATED_HISTORY, *itself.reasons))
    return _judged(link)


def parts_of_round(text: str) -> tuple[str, str]:
    """(query, response) of the text of a round whose parts are not known any more: the query is its first line.

    Source:  ``ingestion.dialog``: text = query, newline, response.
    """
    query, _, response = text.partition("\n")
    return query, response


def assess_knowledge(text: str) -> Assessment:
    """Whether a knowledge item is a positive sample.

    Negative: fewer than two words, or none that says what it is about; mostly not letters or digits (markup, broken
    encoding); a page's furniture and nothing else; the same sentence over and over; questions alone.

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


def content_terms(text: str) -> frozenset[str]:
    """Terms that say what a text is about; of Chinese the pairs of characters, as one character says too little."""
    terms = analyze_query(text[:_CONTENT_CHARS])
    return frozenset(term for term in terms if term not in STOP_WORDS and term not in _EVERYWHERE and len(term) > 1)


def _judged(link: Why | None) -> Assessment:
    if link is None:
        return Assessment(Sample.NEGATIVE, (Why.UNRELATED_HISTORY,))
    return Assessment(Sample.POSITIVE, (link,))


def _link(query: str, history: Sequence[str], similarity: float | None, content: Content) -> Why | None:
    """The first link found, what costs little first; None: there is none."""
    recent = [text for text in history[-HISTORY_ROUNDS:] if text.strip()]
    if not recent:
        return Why.FIRST_ROUND
    if _REFERS_BACK.search(query.strip()) or _ELLIPSIS.match(query):
        return Why.REFERS_BACK
    if similarity is not None and similarity >= _LINK_SIMILARITY:
        return Why.SIMILAR
    if _ASKS.search(recent[-1][-_LAST_CHARS:]) and not _ASKING.search(query.strip()):
        return Why.ANSWERS
    words = content(query)
    if any(not words.isdisjoint(content(text)) for text in reversed(recent)):
        return Why.SHARES_WORDS
    return None


def _is_refusal(response: str) -> bool:
    return len(response) <= _SHORT_REPLY and bool(_REFUSAL.match(response))


def _tells_of_oneself(text: str) -> bool:
    """Whether a part of a sentence of it, and no question, is about whoever says it."""
    parts = _CLAUSE.findall(text[:_CONTENT_CHARS])
    return any(_OF_ONESELF.search(part) and not _ASKING.search(part.strip()) for part in parts)


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
    return len(set(analyze(text))) < _FEWEST_TERMS or not content_terms(text)


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
