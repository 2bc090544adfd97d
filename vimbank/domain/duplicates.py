"""Near-duplicates: which memories say the same in nearly the same words, and which one of them stays (D14). Pure.

A cosine alone folds too much: «I like tea» and «I don't like tea», «Ana is 34» and «Ana is 35», lie closer together
than paraphrases do. So texts must also agree in what changes a meaning with few letters: numbers, dates, units,
negations, names, who speaks, opposites, tense. Nothing is deleted: a fold names what was folded into what
(cases 86, 92).
"""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vimbank.domain.models import Event, HistoryEntry, Memory, MemoryState, Vector, Vectors
from vimbank.domain.statement_values import NUMBER_WORDS
from vimbank.domain.statements import read_text
from vimbank.domain.text import STOP_WORDS
from vimbank.errors import InvalidInput

__all__ = [
    "FLAGGED_FROM",
    "THRESHOLD",
    "Flag",
    "Fold",
    "Marks",
    "flags",
    "fold_key",
    "foldable",
    "folds",
    "marks_of",
    "same_marks",
    "was_brought_back",
]

THRESHOLD: Final = 0.97
"""Cosine from which two texts may be near-duplicates (D14)."""

FLAGGED_FROM: Final = 0.85
"""Cosine from which two texts with the same marks are told of, though not folded (case 92): «I like tea» and «tea is
something I like» have 0.87 by MiniLM. Of the turns of five LoCoMo conversations and of MemoryBank's rounds only two of
one meaning have the same marks and as much as 0.8."""

_SAME_PLACE: Final = ("partition", "agent_id", "kind", "speaker", "title")
_SAME_MARKS: Final = ("numbers", "units", "negations", "persons", "opposites", "tenses", "content", "question")
_UNKNOWN_IMPORTANCE: Final = 0.5  # unknown is not lowest (case 135)
_ROWS: Final = 1_024  # rows of the cosine matrix held at a time

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|[$€£¥%°]")
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_CJK: Final = re.compile(r"[\u3400-\u9fff]")
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|hardly|barely|nobody|nothing|nowhere|anymore|longer|except|unless|"
    r"stopped|quit|un(?:able|likely|happy|safe|true))\b|n['’]t\b|[不没無无非未别勿莫]",
    re.IGNORECASE,
)
_CJK_NUMBER: Final = re.compile(r"[一二两三四五六七八九十百千万亿零〇]+")
_TENSE: Final = re.compile(
    r"\b(?:was|were|did|had|used|will|would|might|may|could|if|maybe|wants?|plans?)\b|[过曾将想要]|以前|打算",
    re.IGNORECASE,
)
_RELATIVE: Final = re.compile(
    r"\b(?:today|yesterday|tomorrow|tonight|now|currently|(?:this|last|next) \w+|ago|just)\b|"
    r"今天|昨天|明天|现在|刚|上周|下周|上个?月",
    re.IGNORECASE,
)
_UNIT_WORDS: Final = (
    "$ € £ ¥ % ° kg g mg lb lbs oz km m cm mm mi mile miles ft inch inches l ml h "
    "hr hrs hour hours min mins minute minutes s sec second seconds day days week weeks month months year years "
    "am pm c f gb mb kb tb euro euros dollar dollars pound pounds yuan "
    "元 块 公里 千米 米 厘米 斤 公斤 克 升 岁 点 分 秒 天 周 月 年 号 日 个 只 次 度"
)
_UNITS: Final = frozenset(_UNIT_WORDS.split())
_PERSONS: Final[Mapping[str, str]] = {
    word: person
    for person, words in {
        "i": ("i", "me", "my", "mine", "myself", "i'm", "i've", "i'd", "我"),
        "we": ("we", "us", "our", "ours", "们"),
        "you": ("you", "your", "yours", "你", "您"),
        "he": ("he", "him", "his", "他"),
        "she": ("she", "her", "hers", "她"),
        "they": ("they", "them", "their", "theirs"),
    }.items()
    for word in words
}
# «in» and «on» are left out: too common, and they differ between paraphrases.
_OPPOSITE_WORDS: Final = (
    "like hate likes hates love hate loves hates before after left right open closed opens closes start stop "
    "starts stops buy sell bought sold up down more less most least first last old new early "
    "late earlier later increase decrease increased decreased rise fall always never all some accept reject "
    "accepted rejected win lose won lost hot cold big small north south east west allowed forbidden enable "
    "disable enabled disabled mother father sister brother son daughter wife husband from to best worst good "
    "bad high low true false"
)
_OPPOSITES: Final = frozenset(_OPPOSITE_WORDS.split())
_CJK_OPPOSITES: Final = re.compile(r"[左右上下前后大小多少高低买卖开关早晚东西南北男女父母儿爱恨新旧]|喜欢|讨厌|输|赢")
# What a Chinese sentence may add or lack without saying anything else.
_CJK_FILLERS: Final = re.compile(
    r"[的了呢啊吧呀哦嗯很也都就还又再真挺蛮非常特别十分实在其实地得着是这那个]|\W|[a-zA-Z\d]"
)


_FILLER_WORDS: Final = (
    "really very quite so much lots truly actually definitely absolutely simply something thing things someone rather "
    "pretty indeed basically certainly generally honestly also even still well oh yes hey please thanks which who whom"
)
_FILLERS: Final = frozenset(_FILLER_WORDS.split())


@dataclass(frozen=True, slots=True)
class Marks:
    """What two texts must share to be folded.

    ``numbers``, ``negations``, ``persons``, ``opposites``, ``tenses``: in order where order changes the meaning, else
    sorted. ``names``: words written as names, folded, in order; ``words``: all words, to find a name in another case;
    ``terms``: those that say what it is about, so that one thing is not taken for another.
    ``units``: sorted. ``content``: Chinese characters in order, but for fillers: names have no border there, so all
    of them must agree. ``stated``: (attribute, value, holds, is current) of what the rules read.
    """

    numbers: tuple[str, ...]
    units: tuple[str, ...]
    negations: int
    names: tuple[str, ...]
    words: frozenset[str]
    terms: frozenset[str]
    persons: tuple[str, ...]
    opposites: tuple[str, ...]
    tenses: tuple[str, ...]
    content: str
    stated: frozenset[tuple[str, str | None, bool, bool]]
    question: bool
    relative: bool


@dataclass(frozen=True, slots=True)
class Fold:
    """``folded`` say the same as ``keep_id`` and step back behind it.

    ``cosines`` are theirs with the kept one. ``sources`` are all ids whose author the kept one now speaks for, itself
    first. Undone by bringing back each of ``folded``; the kept one is not changed.
    """

    keep_id: str
    folded: tuple[str, ...]
    cosines: tuple[float, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """Two memories that may say the same and are not folded: not near enough, or one of them is spared."""

    near_id: str
    id: str
    cosine: float


def marks_of(text: str) -> Marks:
    """What changes the meaning of a text with few letters."""
    stated = frozenset((each.attribute, each.value, each.positive, each.current) for each in read_text(text).statements)
    return _marks(text, stated)


def _marks(text: str, stated: frozenset[tuple[str, str | None, bool, bool]]) -> Marks:
    text = unicodedata.normalize("NFKC", text).strip()
    raw = _WORD.findall(_CJK.sub(" ", text))
    words = [word.casefold().replace("’", "'") for word in raw]
    numbers = [number.replace(",", "") for number in _NUMBER.findall(text)]
    numbers += [str(NUMBER_WORDS[word]) for word in words if word in NUMBER_WORDS and word != "one"]
    numbers += _CJK_NUMBER.findall(text)
    singles = [*words, *(_CJK.findall(text))]
    return Marks(
        numbers=tuple(numbers),
        units=tuple(sorted(word for word in singles if word in _UNITS)),
        negations=len(_NEGATION.findall(text)),
        names=tuple(
            word.removesuffix("'s")
            for word, original in zip(words, raw, strict=True)
            if original[0].isupper() and word not in _PERSONS
        ),
        words=frozenset(word.removesuffix("'s") for word in words),
        terms=frozenset(_term(word) for word in words) - STOP_WORDS - _FILLERS - NUMBER_WORDS.keys() - _UNITS,
        persons=tuple(sorted({_PERSONS[word] for word in singles if word in _PERSONS})),
        opposites=tuple(
            [word for word in words if word in _OPPOSITES] + (_CJK_OPPOSITES.findall(text) if _CJK.search(text) else [])
        ),
        tenses=tuple(sorted({match.casefold() for match in _TENSE.findall(text)})),
        content="".join(_CJK.findall(_CJK_FILLERS.sub("", text))),
        stated=stated,
        question=text.endswith(("?", "？")),
        relative=bool(_RELATIVE.search(text)),
    )


def same_marks(one: Marks, other: Marks) -> bool:
    """Whether nothing that changes a meaning differs. Symmetric.

    A name of one text must be a word of the other, in whatever case: «Tea is what I like» begins with no name. The
    order of the names counts: «Ana pays Bo» is not «Bo pays Ana».
    """
    return (
        all(getattr(one, name) == getattr(other, name) for name in _SAME_MARKS)
        and one.terms == other.terms
        and other.words.issuperset(one.names)
        and one.words.issuperset(other.names)
        and _in_both(one.names, other.names) == _in_both(other.names, one.names)
        and (not one.stated or not other.stated or one.stated == other.stated)
    )


def _term(word: str) -> str:
    """The word without what an apostrophe adds: «I'm», «Ana's»."""
    return word.partition("'")[0]


def _in_both(names: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in others]


def foldable(keep: Memory, folded: Memory) -> bool:
    """Whether one memory may step back behind another, texts aside.

    Both active and of one partition, agent, kind, speaker and title, not parts of a document or task, the folded one
    not pinned, and with no metadata that the kept one lacks: a filter finds what it found before.
    """
    same_place = all(getattr(keep, name) == getattr(folded, name) for name in _SAME_PLACE)
    return (
        same_place
        and keep.id != folded.id
        and keep.state is folded.state is MemoryState.ACTIVE
        and keep.source.parent_id is None
        and folded.source.parent_id is None
        and not folded.pinned
        and folded.metadata.items() <= keep.metadata.items()
        and (keep.valid_from, keep.valid_to, keep.expires_at) == (folded.valid_from, folded.valid_to, folded.expires_at)
    )


def fold_key(memory: Memory) -> int:
    """64 bits that two memories share wherever one of them may be folded into the other; chance aside, few others do.

    All that ``foldable`` and ``same_marks`` ask to be equal, so that near-duplicates are looked for among equals alone
    and not among all pairs. The same in every process.
    """
    marks = _marks(memory.text, frozenset())
    place = [getattr(memory, name) for name in _SAME_PLACE]
    instants = [memory.valid_from, memory.valid_to, memory.expires_at]
    equal = [*(getattr(marks, name) for name in _SAME_MARKS), sorted(marks.terms)]
    digest = hashlib.blake2b(repr((place, instants, equal)).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big", signed=True)


def was_brought_back(history: Sequence[HistoryEntry]) -> bool:
    """Whether somebody brought a superseded memory back and it says the same since: it is not to be folded again.

    Args:    history: all of its entries, oldest first.
    """
    brought = False
    for entry in history:
        if entry.event is Event.STATE:
            brought |= tuple(entry.changes.get("state", ())) == (MemoryState.SUPERSEDED, MemoryState.ACTIVE)
        elif entry.old_text != entry.new_text:
            brought = False
    return brought


def folds(
    memories: Sequence[Memory],
    vectors: Vectors,
    *,
    threshold: float = THRESHOLD,
    sources: Mapping[str, Sequence[str]] | None = None,
    spared: Collection[str] = (),
) -> list[Fold]:
    """What to fold among memories: best kept one first, each memory in one fold at most.

    Every folded memory is a near-duplicate of the kept one itself, not of a neighbour's neighbour: a chain of small
    differences does not fold its two ends. The order of ``memories`` does not matter.

    Args:    vectors: float32, (n, d), unit rows in the order of ``memories``; a row of zeros is like nothing.
             threshold: cosine, in (0, 1].  sources: memory id -> ids folded into it before.
             spared: ids that are not folded, but may be what others are folded into.
    Raises:  InvalidInput: a threshold outside (0, 1], or rows that do not match the memories.
    """
    _check(memories, vectors, threshold)
    known = sources or {}
    ranked = sorted(range(len(memories)), key=lambda row: _priority(memories[row], known), reverse=True)
    ordered = [memories[row] for row in ranked]
    rows = np.asarray(vectors, dtype=np.float32)[ranked]
    marks = _Marked([each.text for each in ordered])
    taken: set[int] = set()
    found: list[Fold] = []
    for start in range(0, len(ordered), _ROWS):
        near = rows[start : start + _ROWS] @ rows.T
        for keep in range(start, min(start + _ROWS, len(ordered))):
            if keep in taken:
                continue
            cosines = near[keep - start]
            candidates = [int(row) for row in np.flatnonzero(cosines >= threshold) if row > keep and row not in taken]
            chosen = [
                row
                for row in candidates
                if ordered[row].id not in spared
                and foldable(ordered[keep], ordered[row])
                and same_marks(marks[keep], marks[row])
                and _same_day(ordered[keep], ordered[row], marks[keep])
            ]
            if chosen:
                taken.update(chosen)
                found.append(_fold(ordered[keep], [ordered[row] for row in chosen], cosines[chosen], known))
    return found


def flags(memories: Sequence[Memory], vectors: Vectors, *, floor: float = FLAGGED_FROM) -> list[Flag]:
    """Memories that are near another one of the same marks, each with its nearest: nearest pairs first, ties by id.

    Args:    as ``folds``; what was folded is left out by the caller.  floor: cosine, in (0, 1].
    """
    _check(memories, vectors, floor)
    order = sorted(range(len(memories)), key=lambda row: memories[row].id)
    ordered = [memories[row] for row in order]
    rows = np.asarray(vectors, dtype=np.float32)[order]
    marks = _Marked([each.text for each in ordered])
    found: list[Flag] = []
    for start in range(0, len(ordered), _ROWS):
        near: Vectors = rows[start : start + _ROWS] @ rows.T
        for row in range(start, min(start + _ROWS, len(ordered))):
            cosines = near[row - start, :row]
            for other in _descending(cosines, floor):
                pair = ordered[other], ordered[row]
                if (foldable(*pair) or foldable(*pair[::-1])) and same_marks(marks[other], marks[row]):
                    found.append(Flag(pair[0].id, pair[1].id, float(cosines[other])))
                    break
    return sorted(found, key=lambda each: (-each.cosine, each.near_id, each.id))


class _Marked:
    """The marks of texts by place, each read when it is first asked for: most texts are near no other one."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._marks: dict[int, Marks] = {}

    def __getitem__(self, place: int) -> Marks:
        if place not in self._marks:
            self._marks[place] = marks_of(self._texts[place])
        return self._marks[place]


def _descending(cosines: Vector, floor: float) -> list[int]:
    """Rows of the cosines from ``floor`` on, the largest first."""
    within = np.flatnonzero(cosines >= floor)
    return [int(row) for row in within[np.argsort(-cosines[within], kind="stable")]]


def _check(memories: Sequence[Memory], vectors: Vectors, threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise InvalidInput.of("threshold", "must be in (0, 1]")
    if len(vectors) != len(memories):
        raise InvalidInput.of("vectors", "must have one row a memory")


def _priority(memory: Memory, sources: Mapping[str, Sequence[str]]) -> tuple[bool, float, int, float, str]:
    """What stays: pinned, then more important, then with more sources, then said later; the id breaks ties."""
    importance = _UNKNOWN_IMPORTANCE if memory.importance is None else memory.importance
    said = memory.event_at or memory.created_at
    return memory.pinned, importance, len(sources.get(memory.id, ())), said.timestamp(), memory.id


def _same_day(one: Memory, other: Memory, marks: Marks) -> bool:
    """«I ran today», said on two days, tells of two runs."""
    if not marks.relative:
        return True
    return (one.event_at or one.created_at).date() == (other.event_at or other.created_at).date()


def _fold(
    keep: Memory, folded: Sequence[Memory], cosines: Sequence[float], sources: Mapping[str, Sequence[str]]
) -> Fold:
    ids = dict.fromkeys([keep.id, *sources.get(keep.id, ())])
    for memory in folded:
        ids.update(dict.fromkeys([memory.id, *sources.get(memory.id, ())]))
    return Fold(keep.id, tuple(memory.id for memory in folded), tuple(float(each) for each in cosines), tuple(ids))
