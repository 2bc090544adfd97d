"""Clauses in another order than subject and predicate: «home is Oslo», «call me at ...», «X is my new Y». Pure."""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from vimbank.domain.statement_values import Raw, fold_value
from vimbank.domain.statements_en.attributes import attribute_name, typed_value
from vimbank.domain.statements_en.phrases import (
    ADVERBS,
    BE,
    BOUND,
    CAP,
    FROM,
    HAVE,
    NAME,
    NOT_NAMES,
    NOUN,
    PROPER,
    QUALIFIER,
    RELATION,
    fold_name,
)

__all__ = ["read_form"]

_Read: TypeAlias = tuple[list[Raw], str | None]
"""Statements, and whom they are about."""

_FRESH: Final = re.compile(rf"(?:.* )?(?:my )?[Nn]ew {NOUN}(?: is|:)? (?P<v>[+\d(]\S.*|\S+@\S+)$")
_DEAD: Final = re.compile(
    rf"(?:(?P<my>[Mm]y)|(?P<owner>{NAME})['’]s) (?:old )?{NOUN} (?P<v>[+\d(][\d ()-]+|\S+@\S+) "
    r"(?:no longer works|does not work|is dead|is disconnected|is not in use|is gone)"
)
_SHIFTED: Final = re.compile(
    rf"(?:(?P<me>I|[Ww]e)|(?P<name>{NAME})) {HAVE}{ADVERBS}(?:gone|went|switched|moved|changed) from "
    rf"(?P<old>.{{1,40}}?) to "
    rf"(?P<v>.{{1,40}}?) as (?:my|his|her|our|their) {NOUN}"
)
_HOME: Final = re.compile(rf"[Hh]ome is {ADVERBS}(?:in )?(?P<v>{PROPER})(?: (?:for me|now))?$")
_HOUSE: Final = re.compile(
    rf"(?:(?P<my>[Mm]y|[Oo]ur)|(?P<owner>{NAME})['’]s) (?:new )?(?:place|flat|apartment|house|home) is {ADVERBS}in "
    rf"(?P<v>{PROPER}){BOUND}"
)
_REACH: Final = re.compile(
    r"(?:[Yy]ou can |[Pp]lease )?(?:[Nn]ow )?(?:[Rr]each|[Cc]all|[Tt]ext|[Ww]rite|[Ee]-?mail|[Cc]ontact|[Pp]hone) "
    r"(?:(?P<me>me|us)|him|her)(?: now)? (?:at|on|under|to) (?P<v>[\d+(]\S*.*|\S+@\S+.*)$"
)
_PAYS: Final = re.compile(
    rf"(?:(?P<me>I|[Ww]e)|(?P<name>{NAME})) {ADVERBS}(?:pays?|{BE} paying) {ADVERBS}(?P<v>[$€£¥]?\s?\d[\d,.]*) "
    rf"?(?:\w+ )??"
    r"(?:(?:a|per|each|every) month )?(?:in|for|as|of) (?:my |the |his |her )?(?P<noun>rent|mortgage)\b"
)
_RENAMED: Final = re.compile(
    rf"(?:(?P<me>I|[Ww]e)|(?P<name>{NAME})) {HAVE}{ADVERBS}(?:renamed|call|calls|named) (?:(?P<my>my|our)|the|"
    rf"his|her|their) "
    rf"(?P<relation>{RELATION})(?: from {CAP})?(?: to| as)? (?P<v>{CAP}){BOUND}"
)
_IS_MY: Final = re.compile(
    rf"(?P<v>[+\w][\w' @.()+-]{{1,40}}?) (?:is|(?P<was>was|used to be)|(?:has )?replaced [\w. -]+ as|(?:took|has "
    rf"taken) over"
    rf"(?: from [\w. -]+)? as|became) {ADVERBS}(?:(?P<my>my|our)|(?P<owner>{NAME})['’]s) "
    rf"(?:{QUALIFIER}){NOUN}{BOUND}"
)
_CHANGING: Final = re.compile(
    rf"(?:(?P<me>I)|(?P<name>{NAME})) {HAVE}{ADVERBS}(?:changed|updated|switched|set) "
    rf"(?:my|his|her|their|the|our) {NOUN}{FROM} to (?P<v>.+)"
)
_FAVOURITE: Final = re.compile(rf"(?P<v>[\w' -]{{2,40}}?) is {ADVERBS}my {ADVERBS}(?P<noun>favou?rite [\w-]+){BOUND}")


def read_form(clause: str, *, me: str, last: str | None) -> tuple[list[Raw], str | None] | None:
    """Statements of a clause that has one of these forms, and whom it is about; None of a clause that has none."""
    for pattern, read in _FORMS:
        if (match := pattern.match(clause)) and (found := read(match, me, last)) is not None:
            return found
    return None


def _owner(match: "re.Match[str]", me: str) -> str:
    groups = match.groupdict()
    name = groups.get("owner") or groups.get("name")
    return me if name is None else fold_name(name)


def _valued(match: "re.Match[str]", me: str, _last: str | None) -> _Read:
    owner, typed = _owner(match, me), typed_value(match["noun"], match["v"])
    return ([Raw(owner, *typed)] if typed else []), owner


def _dead(match: "re.Match[str]", me: str, last: str | None) -> _Read:
    found, owner = _valued(match, me, last)
    return [each._replace(positive=False) for each in found], owner


def _residence(match: "re.Match[str]", me: str, _last: str | None) -> _Read:
    owner = _owner(match, me)
    return [Raw(owner, "residence", fold_value(match["v"]))], owner


def _reach(match: "re.Match[str]", me: str, last: str | None) -> _Read:
    owner = me if match["me"] else last
    typed = typed_value("phone", match["v"]) or typed_value("email", match["v"])
    return ([Raw(owner, *typed)] if typed and owner else []), owner


def _pays(match: "re.Match[str]", me: str, _last: str | None) -> _Read:
    owner = _owner(match, me)
    return [Raw(owner, match["noun"], fold_value(match["v"]).strip("$€£¥ ").replace(",", ""))], owner


def _renamed(match: "re.Match[str]", me: str, _last: str | None) -> _Read:
    owner = _owner(match, me)
    whose = me if match["my"] else owner
    return [Raw(f"{whose}'s {fold_name(match['relation'])}", "name", fold_value(match["v"]))], owner


def _is_my(match: "re.Match[str]", me: str, _last: str | None) -> _Read | None:
    owner, typed = _owner(match, me), typed_value(match["noun"], match["v"])
    if typed is None or match["v"].split()[0].casefold() in NOT_NAMES:
        return None
    return [Raw(owner, *typed, current=not match["was"])], owner


def _favourite(match: "re.Match[str]", me: str, _last: str | None) -> _Read:
    return [Raw(me, attribute_name(match["noun"]), fold_value(match["v"]))], None


_FORMS: Final[tuple[tuple["re.Pattern[str]", Callable[["re.Match[str]", str, str | None], _Read | None]], ...]] = (
    (_FRESH, _valued),
    (_DEAD, _dead),
    (_SHIFTED, _valued),
    (_HOME, _residence),
    (_HOUSE, _residence),
    (_REACH, _reach),
    (_PAYS, _pays),
    (_RENAMED, _renamed),
    (_IS_MY, _is_my),
    (_CHANGING, _valued),
    (_FAVOURITE, _favourite),
)
