"""One clause: whom or what it is about, and its predicate. Pure."""

import re
from typing import Final

from vimbank.domain.statement_values import Raw
from vimbank.domain.statements_en.forms import read_form
from vimbank.domain.statements_en.owned import read_owned
from vimbank.domain.statements_en.persons import read_person
from vimbank.domain.statements_en.phrases import ADVERBS, CAP, NAME, NOT_NAMES, RELATION, fold_name
from vimbank.domain.statements_en.things import read_moved, read_thing

__all__ = ["read_clause"]

_SUBJECT: Final = re.compile(
    rf"(?P<me>I|i|[Ww]e)\b |(?P<user>(?:The|the) user|User)\b |"
    rf"(?P<own>[MmOo](?:y|ur)|(?P<owner>{NAME})['’]s?) (?P<relation>{RELATION})"
    rf"(?! (?:name|phone|number|email|e-mail|address))(?: (?P<called>{CAP}))? |"
    rf"(?P<pronoun>[Hh]e|[Ss]he|[Ww]ho)\b |(?P<name>{NAME}),? (?:who )?"
)
_PLURAL: Final = re.compile(
    rf"{ADVERBS}(?:like|love|enjoy|live|work|have|drive|study|prefer|own|hate|adore|go|use|are|am)\b"
)


def read_clause(
    clause: str, *, me: str, last: str | None, carried: str | None
) -> tuple[list[Raw], str | None, str | None]:
    """Statements, the subject that a next clause without one has, and the person named."""
    if (owned := read_owned(clause, me=me, last=last)) is not None:
        return *owned, None
    if (moved := read_moved(clause)) is not None:
        return moved, None, None
    if (formed := read_form(clause, me=me, last=last)) is not None:
        return *formed, None
    if thing := read_thing(clause):
        return thing, None, None
    if match := _SUBJECT.match(clause + " "):
        subject = _subject(match, me=me, last=last, carried=carried)
        if subject is None:
            return [], None, None
        if match["name"] and _PLURAL.match(clause, match.end()):
            return [], None, None  # «Sounds like fun», «Events like these»: no person
        person = subject if subject != me else None
        return read_person(clause[match.end() :], subject), subject, person
    if carried is not None:
        return read_person(clause, carried), carried, None
    return [], None, None


def _subject(match: "re.Match[str]", *, me: str, last: str | None, carried: str | None) -> str | None:
    if match["me"]:
        return me
    if match["user"]:
        return "@user"
    if match["relation"]:
        if match["called"]:
            return fold_name(match["called"])
        return f"{me if match['owner'] is None else fold_name(match['owner'])}'s {fold_name(match['relation'])}"
    if match["pronoun"]:
        return carried if match["pronoun"].lower() == "who" else last
    name: str = match["name"]
    return None if any(word.casefold() in NOT_NAMES for word in name.split()) else fold_name(name)
