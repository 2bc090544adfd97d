"""How much a memory tells: a rule on its text, no model. Pure.

Most of what is said in a conversation carries it along and tells nothing («Wow, that sounds great!»). What tells
little is worth little to a search and can be forgotten first; unlike recalls, which have to come, this is known when
a memory is written. docs/adr/0014 has what it brings.
"""

import re
from collections.abc import Iterator
from typing import Final

from vimbank.domain.sentences import sentences
from vimbank.domain.text import STOP_WORDS, analyze

__all__ = ["HALF_INFORMED", "UNKNOWN_INFORMATION", "information"]

HALF_INFORMED: Final = 14.0
"""The weight of terms at which a text has information 0.5: the median turn of the LoCoMo conversations for tuning."""

UNKNOWN_INFORMATION: Final = 0.5
"""What a memory counts as that nobody has looked at: what is unknown is not the least."""

_OWN: Final = 3.0
"""A sentence about the speaker tells what is asked for later."""
_OTHER_S: Final = 0.5
"""One about the listener tells him what he knows."""
_ASKED: Final = 0.3
"""Times the weight of its kind: a question tells what its speaker is after, and leaves the rest open."""
_CONCRETE: Final = 2.0
"""Times the weight of a word: a number, or a name inside a sentence, is what a question asks for."""
_PAIR: Final = 0.5
"""An overlapping pair of characters is half a word: Chinese words have two characters, and each gives a pair."""
_MAX_CHARS: Final = 4_000
"""That far a text is read; by then it tells as much as can be told."""

_OF_SPEAKER: Final = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|we|we're|we've|our|ours|us)\b|[我咱]", re.IGNORECASE
)
_OF_LISTENER: Final = re.compile(r"\b(?:you|you're|you've|you'd|you'll|your|yours)\b|[你您]", re.IGNORECASE)
_QUESTION: Final = re.compile(r"[?？]\W*$|[吗呢]\W*$")
_NAME: Final = re.compile(r"(?<=[\w,;:'\"] )[A-Z][a-z]+")
_DIGIT: Final = re.compile(r"\d")
_UNSPACED: Final = re.compile(r"[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]")

_ENGLISH_FILLERS: Final = (
    "hi hello hey hiya bye goodbye thanks thank please welcome sorry yes yeah yep no nope ok okay right sure well "
    "oh wow haha lol hmm totally definitely absolutely exactly really truly super great good nice cool awesome "
    "amazing wonderful fantastic incredible lovely beautiful best fun glad happy excited exciting proud love loved "
    "hope wish luck congrats congratulations agree sound sounds seem look looks like feel feeling think know see "
    "hear get got getting go going keep let make makes making way thing things stuff lot lots bit much many more "
    "most always today now still even ever"
)
_CHINESE_FILLERS: Final = (
    "你好 您好 谢谢 感谢 再见 好的 是的 没有 可以 不错 真的 非常 很好 太好 太棒 真棒 棒了 好了 高兴 开心 喜欢 "
    "希望 祝你 加油 哈哈 抱歉 不好 好意 意思 当然 没问 问题 确实 觉得 知道 一个 一些 这个 那个 这样 那样 这些 "
    "那些 什么 怎么 因为 所以 但是 就是 还是 也是 不是 都是 我们 你们 他们 我的 你的 自己 现在 已经 一下 一起 "
    "听起 起来 来说 有点"
)
_FILLERS: Final = {term for word in _ENGLISH_FILLERS.split() for term in analyze(word)} | {*_CHINESE_FILLERS.split()}
"""What is said in every conversation: terms, not words."""

_SILENT: Final = STOP_WORDS | _FILLERS


def information(text: str) -> float:
    """How much a text tells, from 0 (nothing) towards 1: w / (w + 14), w the weight of its distinct terms.

    A term weighs most in a sentence about the speaker (3), least in one about the listener (0.5), else 1; in a question
    0.3 times that; a number or a name twice that. Stop words and what is said in every conversation weigh nothing.
    The text counts, not who speaks: the same text always tells the same.

    Returns: float64 in [0, 1); 0.5 for the median turn of a conversation.
    Source:  docs/adr/0014; V-5 to V-8 (is it worth remembering), M-17 (what is unimportant is forgotten first).
    """
    weights: dict[str, float] = {}
    for sentence in sentences(text[:_MAX_CHARS].replace("\u2019", "'")):
        weight = _weight(sentence)
        for term, share in _terms(sentence):
            weights[term] = max(weights.get(term, 0.0), weight * share)
    told = sum(weights.values())
    return told / (told + HALF_INFORMED)


def _weight(sentence: str) -> float:
    kind = _OWN if _OF_SPEAKER.search(sentence) else _OTHER_S if _OF_LISTENER.search(sentence) else 1.0
    return kind * (_ASKED if _QUESTION.search(sentence) else 1.0)


def _terms(sentence: str) -> Iterator[tuple[str, float]]:
    """The terms that count, each with how many words' weight it has."""
    names = {term for name in _NAME.findall(sentence) for term in analyze(name)}
    is_spaced = sentence.isascii()
    for term in analyze(sentence):
        if term in _SILENT:
            continue
        if not is_spaced and _UNSPACED.match(term):
            if len(term) > 1:
                yield term, _PAIR
        elif term in names or not (term.isalpha() or _DIGIT.search(term) is None):
            yield term, _CONCRETE
        else:
            yield term, 1.0
