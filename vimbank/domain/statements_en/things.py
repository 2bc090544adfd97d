"""Things: when they take place, what they cost. Pure."""

import re
from typing import Final

from vimbank.domain.statement_values import Raw, fold_value
from vimbank.domain.statements_en.attributes import fold_date, typed_value
from vimbank.domain.statements_en.phrases import (
    ADVERBS,
    CHANGED,
    DIGITS,
    FROM,
    HAVE,
    IS,
    NUMERIC,
    SECRETS,
    WAS,
    WHEN,
    Rule,
    apply_rules,
    fold_name,
)

__all__ = ["read_moved", "read_thing"]

_THING: Final = re.compile(
    r"(?:[Tt]he|[Oo]ur) (?P<thing>[\w'-]+(?: (?!(?:is|has|was|that|of|where|who)\b)[\w'-]+){0,4}?) (?=(?:is|are|has|"
    r"was|were|used|takes|took|starts|started|begins|began|happens|happened|got|meets|met|changed|moved|shifted|will|"
    r"went|now|just|slipped|runs|opens|leaves|departs)\b)"
)
_MOVING: Final = re.compile(
    rf"(?:(?:They|We|I|they|we|He|She) {HAVE}{ADVERBS}(?:moved|shifted|rescheduled|postponed|pushed|changed) "
    rf"(?:the|our) "
    rf"(?P<thing>[\w' -]{{1,60}}?)(?: back| forward)?{FROM} to|(?:We|we) (?:now )?have (?:the|our) (?P<thing2>[\w' "
    rf"-]{{1,60}}?) (?:on|at)|"
    rf"New (?P<thing3>[\w' -]{{1,60}}?):) (?:the )?{WHEN}"
)


def read_moved(clause: str) -> list[Raw] | None:
    """When a thing takes place that somebody moved: «we moved the meeting to 3 pm»; None of other clauses."""
    if match := _MOVING.match(clause):
        return _dated(f"the {fold_name(match['thing'] or match['thing2'] or match['thing3'])}", match)
    return None


def read_thing(clause: str) -> list[Raw]:
    """What a clause says of a thing: «the team meeting is on Monday», «the office door code is ...»."""
    match = _THING.match(clause)
    return apply_rules(_RULES, clause[match.end() :], f"the {fold_name(match['thing'])}") if match else []


def _dated(subject: str, match: "re.Match[str]", *, current: bool = True, positive: bool = True) -> list[Raw]:
    if match["day"]:
        return [Raw(subject, "day", fold_date(match["day"]), positive, current)]
    return [Raw(subject, "hour", fold_value(match["hour"]).replace(" ", ""), positive, current)]


def _named_thing(match: "re.Match[str]", subject: str) -> list[Raw]:
    last = subject.split()[-1]
    if len(subject.split()) < 3 or last not in f"{NUMERIC}|{DIGITS}|{SECRETS}".split("|"):
        return []
    typed = typed_value(last, match["v"])
    return [] if typed is None else [Raw(subject, *typed)]


_RULES: Final[list[Rule]] = [
    (re.compile(rf"{CHANGED}(?:the )?{WHEN}"), lambda match, subject: _dated(subject, match)),
    (
        re.compile(
            rf"{ADVERBS}(?:is|are|takes place|happens|starts|begins|meets|runs|opens|leaves|departs) "
            rf"{ADVERBS}(?:due |held |scheduled for )?(?:(?:on|at|every|each|by) )?{WHEN}"
        ),
        lambda match, subject: _dated(subject, match),
    ),
    (
        re.compile(
            rf"(?:{WAS}|used to |(?:started|began|took place|happened|met) )(?:originally )?(?:be |start |begin |"
            rf"happen |meet )?"
            rf"(?:due |held )?(?:(?:on|at|every|each|by) )?{WHEN}"
        ),
        lambda match, subject: _dated(subject, match, current=False),
    ),
    (
        re.compile(rf"(?:is|are) {ADVERBS}(?:no longer|not) (?:held |due )?(?:(?:on|at|every|each|by) )?{WHEN}"),
        lambda match, subject: _dated(subject, match, positive=False),
    ),
    (
        re.compile(rf"will {ADVERBS}be (?:(?:on|at|every|each) )?{WHEN} from now on"),
        lambda match, subject: _dated(subject, match),
    ),
    (re.compile(rf"{CHANGED}(?P<v>.+)"), _named_thing),
    (re.compile(rf"{IS}(?P<v>.+)"), _named_thing),
]
