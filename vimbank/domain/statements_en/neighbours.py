"""Clauses that are understood from the one before: «my boss is not Tom, it is Ann», «..., but not any more». Pure."""

import re
from typing import Final, NamedTuple

from vimbank.domain.statement_values import Raw, fold_value
from vimbank.domain.statements_en.attributes import MAIL, PHONE, typed_value
from vimbank.domain.statements_en.phrases import (
    ADVERBS,
    BOUND,
    HAVE,
    NAME,
    NEW,
    NOT_NAMES,
    NOUN,
    QUALIFIER,
    TAIL,
    fold_name,
)

__all__ = ["Topic", "read_follow_up", "read_looking_back", "topic_of"]

_STILL_NOT: Final = re.compile(
    r"(?:but )?(?:not|no longer)(?: (?:any ?more|any longer|now|these days|nowadays|at the moment|since))*$",
    re.IGNORECASE,
)
_NOW_IT_IS: Final = re.compile(
    r"(?:(?:and|but|so) )?(?:now )?(?P<it>(?:it|that|this|he|she|which|the new one) (?:is|has become|became) (?:now "
    r")?)?"
    r"(?!not\b|no\b|was\b|used\b)(?P<v>\S.*)$",
    re.IGNORECASE,
)
_THAT_IS_MY: Final = re.compile(rf"(?:[Tt]hat|[Ii]t|[Tt]his) is {ADVERBS}my (?:{NEW} )?{NOUN}{BOUND}")
_OLD_ONE: Final = re.compile(
    rf"(?:(?P<my>[Mm]y|[Oo]ur)|(?P<pronoun>[Hh]is|[Hh]er)|(?P<owner>{NAME})['’]s?) {QUALIFIER}{NOUN} "
    r"(?:(?:is|are) (?:not|no longer)|was|used to be) "
)
_NEW_ONE: Final = re.compile(
    rf"(?:(?P<me>I|[Ww]e)|(?P<pronoun>[Hh]e|[Ss]he)|(?P<name>{NAME})) {HAVE}{ADVERBS}"
    rf"(?:(?:have |has |got |have got |has got )an? {NEW} |(?:changed|switched) (?:my |his |her |the |our |their "
    rf")?){NOUN}$"
)
_NOTED: Final = re.compile(
    rf"(?:[Pp]lease )?(?:[Ss]ave|[Nn]ote|[Uu]pdate|[Uu]se|[Ww]rite down|[Rr]emember|[Hh]ere is) (?P<my>my) "
    rf"(?:{NEW} )?{NOUN}$"
)


class Topic(NamedTuple):
    """What a clause speaks of without saying its value: «I have a new number», «my boss is no longer Tom»."""

    owner: str
    noun: str


def topic_of(clause: str, *, me: str, last: str | None) -> Topic | None:
    """What the clause after this one may tell the value of; None where this one speaks of nothing of the kind."""
    for pattern in (_OLD_ONE, _NEW_ONE, _NOTED):
        if match := pattern.match(clause):
            groups = match.groupdict()
            owner = me if groups.get("me") or groups.get("my") else last if groups.get("pronoun") else None
            if owner is None and (name := groups.get("owner") or groups.get("name")):
                owner = None if name.split()[0].casefold() in NOT_NAMES else fold_name(name)
            return None if owner is None else Topic(owner, match["noun"])
    return None


def read_follow_up(clause: str, topic: Topic | None, found: list[Raw]) -> list[Raw]:
    """What a clause says that is understood from the one before: «..., now it is X», «..., but not any more»."""
    if found and not found[-1].current and found[-1].value is not None and _STILL_NOT.match(clause):
        return [found[-1]._replace(positive=False, current=True)]
    match = _NOW_IT_IS.match(clause) if topic else None
    if topic is None or match is None:
        return []
    text = TAIL.sub("", match["v"])
    typed = typed_value(topic.noun, text)
    whole = match["it"] or (typed and (typed[1] == fold_value(text) or typed[1].isdigit()))
    return [Raw(topic.owner, *typed)] if typed and whole else []


def read_looking_back(clause: str, before: str, *, me: str) -> list[Raw]:
    """What a clause says of a value named before: «please use 555-0100, that is my new number»."""
    match = _THAT_IS_MY.match(clause)
    value = (MAIL.search(before) or PHONE.search(before)) if match else None
    typed = typed_value(match["noun"], value[0]) if match and value else None
    return [Raw(me, *typed)] if typed else []
