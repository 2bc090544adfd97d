"""What a memory states: who or what, which attribute, which value, whether it holds, and when. Rules, no model.

The rules prefer silence to a guess: a question, a wish, a condition, what somebody else said, and a clause of unknown
form state nothing. They know numbers, dates, «is», «lives in», «works at», «likes», «is called», «has N», «X's Y is Z»
and their Chinese counterparts, with their negations and pasts; they know nothing of the world.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from vimbank.domain.models import Memory, MemoryDraft
from vimbank.domain.statement_values import OTHERS, Raw
from vimbank.domain.statements_en.reader import read_english
from vimbank.domain.statements_zh import read_chinese
from vimbank.domain.temporal import Span, time_expressions

__all__ = ["MAX_KEYS", "OTHERS", "USER", "Reading", "Statement", "read_memory", "read_text", "sentences", "testimony"]

USER: Final = "@user"
"""Subject of what the user says of himself where no speaker is named."""

MAX_SENTENCES: Final = 40
"""Sentences of a text that are read; what follows them counts as unread."""

MAX_KEYS: Final = 32
"""Pairs of subject and attribute of a text that are read; a statement of any further one counts as unread."""

_RECENT: Final = timedelta(days=92)
_MAX_SENTENCE_CHARS: Final = 400
_ASSISTANTS: Final = frozenset({"assistant", "ai", "bot", "system", "tool", "助手"})
_USERS: Final = frozenset({"user", "human", "用户"})
_CJK: Final = re.compile(r"[\u3400-\u9fff]")
_SENTENCE: Final = re.compile(
    r"[^.!?。！？\n]*(?:(?:(?<=\bDr)|(?<=\bMr)|(?<=\bMrs)|(?<=\bMs)|(?<=\bSt)|(?<=\bProf)|(?<=\be\.g))\.|[.!?](?=\S)|[^.!?。！？\n])*"
    r"[.!?。！？]*\n?"
)
_FILLER: Final = re.compile(
    r"(?:(?:thanks?|thank you|hi|hello|hey|bye|good (?:morning|evening|night))\b|谢谢|你好|您好|再见|早上好).{0,24}$",
    re.IGNORECASE,
)
_CHANGE: Final = re.compile(
    r"\b(?:now|nowadays|these days|new(?! (?-i:[A-Z]))|chang(?:ed?|ing)|moved|relocated|renamed|"
    r"switched|turned|became|become|recently|"
    r"no longer|any ?more|from now on|replaced|instead|traded|swapped|updated|promoted|transferred|"
    r"joined|hired|started|"
    r"left|quit|retrained|went from)\b|"
    r"现在|如今|目前|最近|刚刚|刚(?=[搬换改升转入加到满过成离])|"
    r"改(?=[成到为名叫行在])|换|搬|变(?=[成为])|升(?=[职为任到成])|涨|"
    r"降(?=[到为低])|新(?=[的手号老住工密电邮地])|不再|跳槽|转行|入职|加入|离开|了$|了[，。！!]",
    re.IGNORECASE,
)
_FIRST_PERSON: Final = re.compile(r"\b(?:I|me|my|mine|we|us|our|ours)\b|我|咱|俺|本人", re.IGNORECASE)
_SINCE: Final = re.compile(r"\bsince\b|从|自|起|born", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing a sentence states.

    ``subject`` and ``attribute`` are folded names; ``value`` a folded value, or None where ``positive`` is False and no
    value holds. ``current`` is False for what was. ``when`` is the time that the sentence names, None where it names
    none. ``sentence`` counts from 0. ``change``: it is said as news («now», «moved», «no longer»), not just told.
    """

    subject: str
    attribute: str
    value: str | None
    positive: bool = True
    current: bool = True
    when: Span | None = None
    sentence: int = 0
    change: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text states, and how many of its clauses say something that the rules did not read."""

    statements: Sequence[Statement]
    unread: int


def read_memory(memory: Memory | MemoryDraft) -> Reading:
    """The statements of a memory: «I» is its speaker, else its user.

    Of a round (query and response, a line each) the first line is read, of an assistant's turn nothing: what an
    assistant says is no testimony. ``event_at``, else ``created_at``, is when it was said.
    """
    text = testimony(memory)
    if text is None:
        return Reading((), 1)
    said = memory.event_at or memory.created_at
    speaker = _folded_speaker(memory)
    rest = 1 if memory.text[len(text) :].strip() else 0
    reading = read_text(text, me=USER if not speaker or speaker in _USERS else speaker, said=said, title=memory.title)
    return Reading(reading.statements, reading.unread + rest)


def testimony(memory: Memory | MemoryDraft) -> str | None:
    """What of a memory its user, or another person, says: of a round the query; None of an assistant's turn."""
    if _ASSISTANTS & {_folded_speaker(memory), str(memory.metadata.get("role", "")).casefold()}:
        return None
    return memory.text.partition("\n")[0] if memory.kind == "round" else memory.text


def _folded_speaker(memory: Memory | MemoryDraft) -> str:
    return (memory.speaker or "").strip().casefold()


def read_text(text: str, *, me: str = USER, said: datetime | None = None, title: str | None = None) -> Reading:
    """The statements of a text, sentence by sentence.

    Args:    me: subject of what is said in the first person.  said: aware UTC; what «last month» counts from; None: no
                 time is read.  title: of the text; «the rent» of one text is not that of another.
    Returns: statements in order, none twice. A clause that is not understood states nothing and counts as unread.
    """
    found: dict[Statement, None] = {}
    keys: set[tuple[str, str]] = set()
    unread = 0
    last: str | None = None
    parts = sentences(text)
    for number, sentence in enumerate(parts[:MAX_SENTENCES]):
        if len(sentence) > _MAX_SENTENCE_CHARS:
            unread += 1
            continue
        read = read_chinese if _CJK.search(sentence) else read_english
        raws, skipped, last = read(sentence, me=me, last=last)
        unread += 0 if _FILLER.match(sentence) else skipped
        for raw in raws:
            if title and raw.subject == me and not _FIRST_PERSON.search(sentence):
                unread += 1  # «Based in Lyon, the company …»: a titled text leaves out what it is about, not its user
                continue
            statement = _statement(raw, sentence, number, said=said, title=title)
            key = (statement.subject, statement.attribute)
            if key not in keys and len(keys) == MAX_KEYS:
                unread += 1
                continue
            keys.add(key)
            found[statement] = None
    return Reading(tuple(found), unread + max(0, len(parts) - MAX_SENTENCES))


def sentences(text: str) -> list[str]:
    """The sentences of a text, with their end marks, blank ones left out. «Dr.» and «3.5» end none."""
    return [part for match in _SENTENCE.finditer(text) if (part := match[0].strip())]


def _statement(raw: Raw, sentence: str, number: int, *, said: datetime | None, title: str | None) -> Statement:
    subject = raw.subject
    if title and subject.startswith("the "):
        subject = f"{title.casefold()}: {subject}"
    when = _time(sentence, said) if said is not None else None
    current = raw.current and not (
        when is not None and said is not None and when.last < (said - _RECENT).date() and _dates(raw, sentence)
    )
    change = bool(_CHANGE.search(sentence))
    return Statement(subject, raw.attribute, raw.value, raw.positive, current, when, number, change)


def _dates(raw: Raw, sentence: str) -> bool:
    """Whether a time in the sentence says when it was so: not where it is the value, nor where it is so since then."""
    return raw.attribute not in {"day", "deadline", "birthday", "生日"} and not _SINCE.search(sentence)


def _time(sentence: str, said: datetime) -> Span | None:
    return next((each for each in time_expressions(sentence, now=said) if isinstance(each, Span)), None)
