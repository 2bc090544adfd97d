"""Whether a question asks for what is so now, and whether a text tells news, or of what is not so now. Pure.

Word lists, English and Chinese. They read no statement (``domain.statements`` does): they are good enough to choose
between two memories that a search puts side by side, and nothing is taken away by them. A text takes about 10 us.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["Telling", "asks_for_now", "telling"]


class Telling(StrEnum):
    """What a text tells of the present."""

    NEWS = "news"
    """Something has changed: «now», «moved», «no longer»."""

    STATE = "state"
    """Something is so, as far as can be seen."""

    NOT_NOW = "not now"
    """Something was so, or may be, or is asked."""


@dataclass(frozen=True, slots=True)
class _Words:
    """What a text is looked through for: ``words`` by themselves, ``phrases`` of several, and Chinese ``han``."""

    words: frozenset[str]
    phrases: tuple[str, ...]
    han: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Text:
    """A text as it is looked through; ``spaced`` is its words in order, a blank on either side of each."""

    text: str
    words: frozenset[str]
    spaced: str
    is_plain: bool

    def has(self, wanted: _Words) -> bool:
        return (
            not wanted.words.isdisjoint(self.words)
            or any(phrase in self.spaced for phrase in wanted.phrases)
            or (not self.is_plain and wanted.han.search(self.text) is not None)
        )


def _wanted(words: str, phrases: str, han: str) -> _Words:
    return _Words(
        frozenset(words.split()), tuple(f" {phrase.strip()} " for phrase in phrases.split(",")), re.compile(han)
    )


_MAX_CHARS: Final = 1_000
_WORD: Final = re.compile(r"[A-Za-z0-9']+")
_A_NEW: Final = re.compile(r"\b(?:NEW|[Nn]ew(?! [A-Z]))\b")
"""«A new number», not «New York»."""
_YEARS_AGO: Final = re.compile(r" (?:until|in) (?:19|20)\d\d | when \w+ (?:was|were) ")

_NOW: Final = _wanted(
    "now nowadays current currently presently latest newest anymore",
    "at the moment, at present, these days, any more, any longer",
    "现在|目前|如今|眼下|当前|今年|最新",
)
_NOT_OF_NOW: Final = frozenset({"did", "was", "were", "had"})
_NEWS: Final = _wanted(
    "now nowadays already recently instead anymore change changed changing moved relocated renamed replaced switched "
    "shifted swapped traded updated extended turned became become retrained promoted transferred joined hired started "
    "left quit resigned raised",
    "these days, by now, no longer, any more, from now on, signed with, laid off, went up, gone off, went from",
    r"现在|如今|目前|最近|已经|不再|刚刚|刚(?=[搬换改升转入加到满过成离])|改(?=[成到为名叫行在])|换|搬|变(?=[成为])|挪到|涨|"
    r"升(?=[职为任到成])|降(?=[到为低])|新(?=[的手号老住工密电邮地])|跳槽|转行|入职|离职|辞职|加入|离开|了(?=[，。！,!]|$)",
)
_PAST: Final = _wanted(
    "once ago formerly previously born spent",
    "used to, back then, back in, back when, in those days, at the time, grew up, had been, as a kid, as a child, "
    "as a boy, as a girl, as a student, as a teenager",
    r"以前|之前|曾|过去|小时候|那时|当时|原来|当年|长大|过(?=[\u3400-\u9fff。，！,!]|$)|(?:19|20)\d\d年",
)
_POSSIBLE: Final = _wanted(
    "if wish wishes hope hopes hoping would could might maybe perhaps nearly almost wonder wonders consider considers "
    "considering",
    "want to, wants to, wanted to, plan to, plans to, planning to, thinking of, thinking about, dream of, dreams of, "
    "dreaming of, feel like, feels like, looks like",
    "如果|要是|就好了|想(?!念)|打算|希望|可能|也许|考虑|计划|差点|听说|以为|能不能|吗",
)


def asks_for_now(question: str) -> bool:
    """Whether a question names the present («now», «currently», «现在») and no past («did», «was»)."""
    text = _text(question)
    return text.has(_NOW) and _NOT_OF_NOW.isdisjoint(text.words)


def telling(text: str) -> Telling:
    """What a text tells; of a long one its first 1,000 characters decide. What may be is no news; what was, and has
    changed, is."""
    looked_at = _text(text)
    if looked_at.text.rstrip().endswith(("?", "？")) or looked_at.has(_POSSIBLE) or _may(looked_at):
        return Telling.NOT_NOW
    if looked_at.has(_NEWS) or ("new" in looked_at.words and _A_NEW.search(looked_at.text)):
        return Telling.NEWS
    if looked_at.has(_PAST) or _YEARS_AGO.search(looked_at.spaced):
        return Telling.NOT_NOW
    return Telling.STATE


def _may(text: _Text) -> bool:
    """Whether it says «may»: «May» is a month."""
    return "may" in text.words and "may" in _WORD.findall(text.text)


def _text(text: str) -> _Text:
    text = text[:_MAX_CHARS]
    words = _WORD.findall(text.lower())
    return _Text(text, frozenset(words), f" {' '.join(words)} ", text.isascii())
