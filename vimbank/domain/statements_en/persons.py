"""Persons: where they live, whom they work for, what they are, have and like. Pure."""

import re
from collections.abc import Callable
from typing import Final

from vimbank.domain.statement_values import OTHERS, Raw, fold_value
from vimbank.domain.statements_en.attributes import typed_value
from vimbank.domain.statements_en.phrases import (
    ADVERBS,
    BE,
    BOUND,
    CAP,
    DAY,
    END,
    FROM,
    HAVE,
    HEADS,
    JOB,
    NO_MORE,
    NUMBER,
    ORGANISATION,
    PLACE,
    PROPER,
    TAIL,
    VAGUE,
    Rule,
    apply_rules,
    split_words,
)

__all__ = ["read_person"]

_AFTER: Final = re.compile(
    r"(?:,? (?:now|nowadays|these days|right now|at the moment|at present|currently|any ?more|any longer|already|again|"
    r"at last|for good|after all|by now|from now on|as of (?:now|today|yesterday|this week)|"
    r"(?:this|last) (?:week|month|year|spring|summer|autumn|fall|winter|morning|weekend|night)|"
    r"yesterday|today|recently|lately|"
    r"(?:a|two|three|a few|a couple of|some|several) (?:days?|weeks?|months?) ago|as well|too|though|full[- ]time|"
    r"with (?:my|his|her|our|the|their) [a-z]+(?: [a-z]+)?|with (?:two|three|four|five) \w+))+$",
    re.IGNORECASE,
)
_NOT_PLACES: Final = frozenset(
    split_words(
        "peace fear harmony town style luxury poverty hope dorms apartments sin pain a an the my his her their",
        "our this that home night day school work times it one two an as heart mind fact general total person",
        "private charge love in on up out off over us me him them forces together for and",
    )
)
_TRANSIENT: Final = frozenset(
    split_words(
        "question meeting minute hour idea problem thing option point exam appointment day week month year second",
        "time reason chance job call task request message more other people",
    )
)
_AS: Final = rf"(?: as an? (?P<job>(?:[\w-]+ ){{0,2}}?(?:{'|'.join(HEADS)})){END})?"
_LIKE: Final = (
    r"(?:likes?|loves?|enjoys?|adores?|(?:am|is) (?:very |really |so )?(?:into|fond of|crazy about|keen on|"
    r"passionate about|obsessed with|addicted to|hooked on)|"
    r"(?:am|is) an? (?:\w+ )?fan of)"
)
_DIET: Final = "vegan|vegetarian|pescatarian"
_WASJOB: Final = r"(?:an? |being an? )?[\w -]+?"
_SCHOOL: Final = (
    rf"(?P<v>{CAP}(?: {CAP}){{0,3}} (?:University|College|School|Academy|Institute)|(?:the )?University of {CAP})"
)
_MARITAL: Final = "married|single|divorced|engaged|widowed"


def read_person(rest: str, subject: str) -> list[Raw]:
    """What the predicate says, read to its end, else without what only says when and with whom."""
    short = _AFTER.sub("", rest)
    read = apply_rules(_RULES, short, subject)
    return apply_rules(_RULES, rest, subject) if not read and short != rest else read


def _simple(attribute: str, pattern: str, *, positive: bool = True, current: bool = True) -> Rule:
    """A predicate with one value ``v``, which is a proper name, or one small word where nothing is capitalised."""

    def read(match: "re.Match[str]", subject: str) -> list[Raw]:
        groups = match.groupdict()
        small = groups.get("small")
        if small and (small in _NOT_PLACES or match.end() != len(match.string.rstrip())):
            return []
        found = [Raw(subject, attribute, fold_value(match["v"].removesuffix("'s")), positive, current)]
        if groups.get("job"):
            found.append(Raw(subject, "occupation", fold_value(match["job"]), positive, current))
        if groups.get("old"):
            found.append(Raw(subject, OTHERS, fold_value(match["old"]), positive=False))
        return found

    return re.compile(pattern), read


def _free(attribute: str, pattern: str, *, positive: bool = True, current: bool = True) -> Rule:
    """A predicate whose value is the rest of the clause, cut before what only says when, why or how."""

    def read(match: "re.Match[str]", subject: str) -> list[Raw]:
        value = fold_value(TAIL.sub("", match["v"]))
        words = value.split()
        if not words or len(words) > 6 or words[0] in VAGUE:
            return []
        return [Raw(subject, attribute, value, positive, current)]

    return re.compile(pattern), read


def _ended(attribute: str, pattern: str) -> Rule:
    """A predicate that ends every value of the attribute."""

    def read(_match: "re.Match[str]", subject: str) -> list[Raw]:
        return [Raw(subject, attribute, None, positive=False)]

    return re.compile(pattern), read


def _replaced(match: "re.Match[str]", subject: str) -> list[Raw]:
    value = fold_value(match["old"])
    return [Raw(subject, OTHERS, value, positive=False)] if value.split()[0] not in VAGUE else []


def _counted(*, current: bool) -> Callable[["re.Match[str]", str], list[Raw]]:
    def read(match: "re.Match[str]", subject: str) -> list[Raw]:
        noun = fold_value(match["noun"])
        noun = {"kids": "child", "children": "child", "kid": "child"}.get(noun, noun.removesuffix("s"))
        if any(word.removesuffix("s") in _TRANSIENT for word in noun.split()):
            return []
        return [Raw(subject, f"count of {noun}", fold_value(match["v"]), current=current)]

    return read


def _preferred(match: "re.Match[str]", subject: str) -> list[Raw]:
    value, other = fold_value(match["v"]), fold_value(TAIL.sub("", match["other"]))
    return [Raw(subject, "preference among " + " / ".join(sorted((value, other))), value)]


def _job_somewhere(match: "re.Match[str]", subject: str) -> list[Raw]:
    attribute = "residence" if match["how"].endswith("in") else "employer"
    where = fold_value(match["where"].removesuffix("'s"))
    return [Raw(subject, "occupation", fold_value(match["v"])), Raw(subject, attribute, where)]


def _changed_employer(match: "re.Match[str]", subject: str) -> list[Raw]:
    return [
        Raw(subject, "employer", fold_value(match["prior"]), positive=False),
        Raw(subject, "employer", fold_value(match["v"])),
    ]


_RULES: Final[list[Rule]] = [
    # where somebody lives
    _simple(
        "residence",
        rf"{ADVERBS}(?:lives?|resides?|{BE} {ADVERBS}(?:living|based)|(?:have|has) {ADVERBS}been (?:living|based)) "
        rf"{ADVERBS}(?:over |out |up |down |back )?(?:in|at) {PLACE}",
    ),
    _simple("residence", rf"(?:have|has) {ADVERBS}lived in {PLACE} (?:since|for|all)\b"),
    _simple(
        "residence",
        rf"{ADVERBS}{HAVE}{ADVERBS}(?:moved|relocated|settled|ended up (?:moving|living|settling))"
        rf"(?: back| over| down| away| on| out| up| here)?{FROM} (?:to|in|into) {PLACE}",
    ),
    _simple("residence", rf"{NO_MORE}(?:lives?|living|based|resides?) (?:in|at) {PLACE}", positive=False),
    _simple("residence", rf"{ADVERBS}{HAVE}{ADVERBS}(?:made|call|calls) {PLACE} (?:(?:my|his|her|our) )?home"),
    _simple(
        "residence",
        rf"{ADVERBS}{HAVE}{ADVERBS}moved (?:out of|away from|out from) {PLACE}",
        positive=False,
    ),
    _simple("residence", rf"(?:lived|used to live|was living) in {PLACE}", current=False),
    # whom somebody works for
    _simple(
        "employer",
        rf"{ADVERBS}(?:works?|{BE} {ADVERBS}(?:working|employed)|(?:have|has) {ADVERBS}been working) "
        rf"{ADVERBS}(?:over |out |down )?(?:at|for|with|by) {ORGANISATION}{_AS}",
    ),
    _simple(
        "employer",
        rf"{ADVERBS}{HAVE}{ADVERBS}(?:joined|(?:started|began)(?: working| work| an? (?:new )?job| my new job)? "
        rf"(?:at|for|with)|(?:got|landed|have|has|found|took|accepted|started|taken) "
        rf"an? (?:new )?(?:\w+ )?(?:job|position|role|post) (?:at|with)|(?:got|was|been) hired (?:by|at)|"
        rf"(?:switched|changed) (?:jobs|companies|employers){FROM} to) {ORGANISATION}{_AS}",
    ),
    (
        re.compile(
            rf"{HAVE}{ADVERBS}(?:left|quit) (?P<prior>[\w&' .]+?) (?:to work (?:for|at)|and joined) {ORGANISATION}"
        ),
        _changed_employer,
    ),
    _simple("employer", rf"{NO_MORE}(?:works?|working|employed) (?:at|for|with|by) {ORGANISATION}", positive=False),
    _simple(
        "employer",
        rf"{ADVERBS}{HAVE}{ADVERBS}(?:(?:quit|left|lost)(?: (?:my|his|her|the) (?:job|position) (?:at|with)| at)?|"
        rf"(?:resigned|retired) from|parted ways with|handed in (?:my|his|her|the) notice at|"
        rf"(?:was|got|been) (?:fired|laid off|let go|sacked|dismissed) (?:from|by)) "
        rf"{ORGANISATION}(?=$|[,.;!]| (?:and|last|this|after|for|to|in)\b)",
        positive=False,
    ),
    _ended("employer", rf"{ADVERBS}{HAVE}{ADVERBS}(?:quit|lost|left) (?:my|his|her|the) job(?=$|[,.;!])"),
    _simple("employer", rf"(?:worked|used to work|was working) (?:at|for|with) {ORGANISATION}", current=False),
    (
        re.compile(
            rf"{NO_MORE}(?:in|at|with|using|driving|drives?|uses?) (?:(?:the|my|his|her|an?) )?(?P<old>[^,;]+)$"
        ),
        _replaced,
    ),
    (
        re.compile(rf"{ADVERBS}{HAVE}{ADVERBS}left (?P<old>{PROPER}) (?:for good|for {PROPER}|behind)$"),
        _replaced,
    ),
    (
        re.compile(
            rf"{ADVERBS}{HAVE}{ADVERBS}(?:sold|gave up|given up|ditched|got rid of|said goodbye to|scrapped) "
            r"(?:(?:the|my|his|her|our) )?(?P<old>[\w' @.&+-]+?)(?: (?:and|to|for)\b.*)?$"
        ),
        _replaced,
    ),
    (
        re.compile(rf"{ADVERBS}{HAVE}{ADVERBS}(?:got|received|been given) an? (?:pay )?(?:raise|rise) to (?P<v>.+)"),
        lambda match, subject: [Raw(subject, *typed)] if (typed := typed_value("salary", match["v"])) else [],
    ),
    (
        re.compile(rf"{ADVERBS}(?:uses?|{BE} using) {ADVERBS}(?P<v>\S+@\S+|\+?\d[\d ()-]+)(?: as .*)?$"),
        lambda match, subject: [
            Raw(subject, *typed) for noun in ("email", "phone") if (typed := typed_value(noun, match["v"]))
        ],
    ),
    # what somebody is
    _free("occupation", rf"{ADVERBS}(?:works?|{BE} {ADVERBS}working) {ADVERBS}as an? {JOB}"),
    (
        re.compile(
            rf"{ADVERBS}{BE} {ADVERBS}an? {JOB} (?P<how>(?:based|living) in|(?:working )?(?:for|at)) "
            rf"(?P<where>{PROPER})"
        ),
        _job_somewhere,
    ),
    _free("occupation", rf"{ADVERBS}{BE} {ADVERBS}an? {JOB}"),
    _free("occupation", rf"{ADVERBS}{HAVE}{ADVERBS}(?:became|become|qualified as|works as|turned into) an? {JOB}"),
    _free(
        "occupation",
        rf"{ADVERBS}(?:makes?|earns?) (?:an?|my|his|her|the) living (?:by working )?as an? {JOB}",
    ),
    _free(
        "occupation",
        rf"{ADVERBS}{HAVE}{ADVERBS}(?:(?:got|was|been) (?:promoted|made)(?: from [\w -]+?)?(?: to| into)?|"
        rf"(?:went|gone) from {_WASJOB} to|(?:switched|changed)(?: careers?| jobs?)?(?: from {_WASJOB})? to|"
        rf"(?:re)?trained (?:and qualified )?as|started as|moved from {_WASJOB} to) (?:an? )?(?:being an? )?{JOB}",
    ),
    _free("occupation", rf"{NO_MORE}(?:an? |(?:works?|working|employed) as an? ){JOB}", positive=False),
    _free("occupation", rf"{ADVERBS}{HAVE}{ADVERBS}quit (?:my job |the job )?as an? {JOB}", positive=False),
    _free("occupation", rf"(?:was|used to be|worked as|used to work as) an? {JOB}", current=False),
    _simple("age", rf"{ADVERBS}{BE} {ADVERBS}(?P<v>{NUMBER})(?: years? old| years of age)?{BOUND}"),
    _simple(
        "age",
        rf"{ADVERBS}{HAVE}{ADVERBS}(?:turned|celebrated turning|reached) (?P<v>{NUMBER})(?: years? old)?{BOUND}",
    ),
    _simple("age", rf"{ADVERBS}{HAVE}{ADVERBS}(?:had|celebrated) my (?P<v>{NUMBER})(?:st|nd|rd|th) birthday"),
    _simple("name", rf"{ADVERBS}{BE} {ADVERBS}(?:called|named) (?P<v>{CAP}(?: {CAP})?)"),
    _simple("name", rf"{ADVERBS}goe?s? by (?P<v>{CAP}(?: {CAP})?)"),
    _simple("name", rf"(?:was|used to be) (?:called|named) (?P<v>{CAP}(?: {CAP})?)", current=False),
    _simple(
        "marital status",
        rf"{ADVERBS}(?:{BE}|got|(?:has|have) (?:got|been)) {ADVERBS}(?P<v>{_MARITAL}){BOUND}",
    ),
    _simple("marital status", rf"{NO_MORE}(?P<v>{_MARITAL}){BOUND}", positive=False),
    _simple(
        "diet",
        rf"{ADVERBS}(?:{BE}|{HAVE}{ADVERBS}(?:became|become|been|went|gone|turned)) {ADVERBS}(?:an? )?"
        rf"(?P<v>{_DIET}){BOUND}",
    ),
    _simple("diet", rf"{NO_MORE}(?:an? )?(?P<v>{_DIET}){BOUND}", positive=False),
    (
        re.compile(
            rf"{ADVERBS}(?:(?:have|has)(?: got)?|owns?|are (?:up|down) to) {ADVERBS}(?P<v>{NUMBER}) "
            rf"(?P<noun>[a-z]+(?: [a-z]+)??){BOUND}"
        ),
        _counted(current=True),
    ),
    (
        re.compile(rf"(?:had|used to have) (?P<v>{NUMBER}) (?P<noun>[a-z]+)\b"),
        _counted(current=False),
    ),
    (re.compile(rf"{ADVERBS}prefers? (?P<v>[\w ]+?) (?:to|over|rather than) (?P<other>[\w ]+)"), _preferred),
    (
        re.compile(
            rf"{HAVE}{ADVERBS}(?:(?:switched|traded|swapped|changed)(?: in)?(?: from)?|(?:gone|went) from) "
            r"(?:(?:an?|the|my|his|her) )?(?P<old>[\w '&-]+?) (?:to|for) \w"
        ),
        _replaced,
    ),
    # what somebody likes: many at a time
    _free("likes", rf"{ADVERBS}{_LIKE} (?P<v>.+)"),
    _free("likes", rf"{ADVERBS}(?:hates?|dislikes?|cannot stand|detests?|cannot bear) (?P<v>.+)", positive=False),
    _free(
        "likes",
        rf"{NO_MORE}(?:lik(?:es?|ing)|lov(?:es?|ing)|enjoy(?:s|ing)?|into|fond of|keen on|crazy about|"
        r"an? (?:\w+ )?fan of) (?P<v>.+)",
        positive=False,
    ),
    _free(
        "likes",
        rf"{ADVERBS}{HAVE}{ADVERBS}(?:(?:gone|went) off|lost (?:all )?(?:my |his |her )?interest in|"
        rf"fallen out of love with|grown (?:tired|sick) of|{BE} (?:sick of|tired of|bored of)) (?P<v>.+)",
        positive=False,
    ),
    _free("likes", r"(?:used to (?:like|love|enjoy|adore)|liked|loved|enjoyed) (?P<v>.+)", current=False),
    _free("allergy", rf"{ADVERBS}{BE} {ADVERBS}allergic to (?P<v>.+)"),
    _free("allergy", rf"{NO_MORE}allergic to (?P<v>.+)", positive=False),
    _free("allergy", rf"{ADVERBS}(?:have|has) an? (?:\w+ )?allergy to (?P<v>.+)"),
    _free(
        "allergy",
        rf"{ADVERBS}{HAVE}{ADVERBS}(?:outgrew|outgrown|got over) (?:my|his|her) allergy to (?P<v>.+)",
        positive=False,
    ),
    _free("allergy", r"(?:was|used to be|had been) allergic to (?P<v>.+)", current=False),
    _free("vehicle", rf"{ADVERBS}(?:drives?|{BE} {ADVERBS}driving) an? (?P<v>.+)"),
    _simple(
        "school",
        rf"{ADVERBS}(?:stud(?:y|ies)|{BE} {ADVERBS}(?:studying|enrolled|an? (?:\w+ )?student)|{HAVE}{ADVERBS}"
        rf"(?:enrolled|started studying)) at {ORGANISATION}",
    ),
    _simple("school", rf"{ADVERBS}(?:goes|go|{HAVE}(?:transferred|changed|switched){FROM}) to {_SCHOOL}"),
    _simple(
        "school", rf"{NO_MORE}(?:stud(?:y|ies|ying)|enrolled|an? (?:\w+ )?student) at {ORGANISATION}", positive=False
    ),
    _simple("school", rf"{ADVERBS}{HAVE}{ADVERBS}(?:dropped out of|graduated from|left) {_SCHOOL}", positive=False),
    _simple("school", rf"(?:studied|was studying|used to study) at {ORGANISATION}", current=False),
    _simple("birthday", rf"was born on (?P<v>(?i:{DAY}))"),
]
