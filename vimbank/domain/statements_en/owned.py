"""What somebody has: «my rent is ...», «Anna's new number is ...», «the capital of X is ...». Pure."""

import re
from typing import Final

from vimbank.domain.statement_values import Raw
from vimbank.domain.statements_en.attributes import typed_value
from vimbank.domain.statements_en.phrases import CHANGED, IS, NAME, NOT_NAMES, NOUN, QUALIFIER, RELATION, WAS, fold_name

__all__ = ["read_owned"]

_COPULA_NEXT: Final = (
    r"(?=:|\?| (?:is|are|has|have|had|was|were|used|became|remains|now|just|recently|finally|currently|still|already|"
    r"also|always|changed|switched|updated|moved|rose|increased|went|dropped|fell|got)\b)"
)
_OWNED: Final = re.compile(
    rf"(?:(?P<owner>(?:[Tt]he u|[Uu])ser['’]s|[Mm]y {RELATION}['’]s|{NAME}['’]s (?:{RELATION})['’]s|{NAME}['’]s?)|"
    rf"(?P<my>[Mm]y|[Oo]ur)|(?P<pronoun>[Hh]is|[Hh]er)) {QUALIFIER}{NOUN}{_COPULA_NEXT} ?"
)
_OFFICE: Final = re.compile(rf"[Tt]he {QUALIFIER}{NOUN} of (?P<owner>(?:the )?{NAME}) ")
# whether the value holds, and whether the sentence speaks of the present
_NOW: Final = (True, True)
_NOT: Final = (False, True)
_ONCE: Final = (True, False)
_PREDICATES: Final = (
    (re.compile(rf"{CHANGED}(?P<v>.+)"), _NOW),
    (re.compile(rf"{IS}(?:no longer|not) (?P<old>.+?),? but (?:now )?(?P<v>.+)"), _NOW),
    (re.compile(rf"{IS}(?:no longer|not) (?P<v>.+)"), _NOT),
    (re.compile(rf"{IS}(?!not\b|no\b)(?P<v>.+)"), _NOW),
    (re.compile(r": ?(?P<v>.+)"), _NOW),
    (re.compile(rf"{WAS}(?P<v>.+)"), _ONCE),
)
_ONE_OF_MANY: Final = frozenset({"first", "last", "next", "second", "other", "future"})
_FORMER: Final = frozenset({"old", "former", "previous", "ex"})


def read_owned(clause: str, *, me: str, last: str | None) -> tuple[list[Raw], str | None] | None:
    """Statements of what somebody has, and who it is (None where unclear); None of a clause that says no such thing."""
    for pattern in (_OWNED, _OFFICE):
        if head := pattern.match(clause):
            owner = _owner(head, me=me, last=last)
            if owner is None:
                return [], None
            if read := _held(head, clause[head.end() :], owner):
                return read, owner
    return None


def _held(head: "re.Match[str]", rest: str, owner: str) -> list[Raw]:
    qualifier = head["q"] or ""
    if qualifier in _ONE_OF_MANY:
        return []
    for pattern, (positive, current) in _PREDICATES:
        if (match := pattern.match(rest)) and (typed := typed_value(head["noun"], match["v"])):
            return [Raw(owner, *typed, positive, current and qualifier not in _FORMER)]
    return []


def _owner(match: "re.Match[str]", *, me: str, last: str | None) -> str | None:
    groups = match.groupdict()
    if groups.get("my"):
        return me
    if groups.get("pronoun"):
        return last
    owner: str = match["owner"]
    if owner.lower() in {"the user's", "user's"}:
        return "@user"
    if owner.lower().startswith("my "):
        return f"{me}'s {fold_name(owner[3:])}"
    if owner.split()[0].casefold().removesuffix("'s") in NOT_NAMES - {"the"}:
        return None
    return fold_name(owner)
