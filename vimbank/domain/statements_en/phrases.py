"""What the readers of English clauses share: words, names, times and verbs as patterns; how rules are tried. Pure."""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from vimbank.domain.statement_values import NUMBER_WORDS, Raw, fold_value

__all__ = [
    "ADVERBS",
    "BE",
    "BOUND",
    "CAP",
    "CHANGED",
    "DAY",
    "DIGITS",
    "END",
    "FROM",
    "HAVE",
    "HEADS",
    "IS",
    "JOB",
    "NAME",
    "NEW",
    "NOT_NAMES",
    "NOUN",
    "NOUN_WORDS",
    "NO_MORE",
    "NUMBER",
    "NUMERIC",
    "OFFICES",
    "ORGANISATION",
    "PEOPLE",
    "PLACE",
    "PROPER",
    "QUALIFIER",
    "RELATION",
    "Rule",
    "SECRETS",
    "TAIL",
    "VAGUE",
    "WAS",
    "WHEN",
    "apply_rules",
    "fold_name",
    "split_words",
]

Rule: TypeAlias = tuple["re.Pattern[str]", Callable[["re.Match[str]", str], list[Raw]]]
"""A pattern of a predicate, and what its match states of a subject (nothing where its words are no value)."""


def split_words(*lines: str) -> tuple[str, ...]:
    """The words of some lines."""
    return tuple(" ".join(lines).split())


ADVERBS: Final = (
    r"(?:(?:now|currently|also|still|just|recently|finally|already|actually|really|absolutely|mostly|officially|then|"
    r"presently|both|only|truly|simply|definitely|always|even|since|again|lately|eventually|basically|literally|all) )*"
)
CAP: Final = r"[^\W\d_a-z][\w&'’-]*"
PROPER: Final = rf"(?:[Tt]he )?{CAP}(?: (?:(?:of|de|la|le|da|do|upon|and the|del|van|von) )?{CAP}){{0,3}}"
PLACE: Final = rf"(?P<v>{PROPER}|(?P<small>[a-z]+))"
ORGANISATION: Final = (
    rf"(?P<v>{PROPER}|the (?:\w+ )?(?:office|library|university|hospital|bank|school|museum|council|station|"
    r"post office|airport|factory|theatre|police|church|zoo)|(?P<small>[a-z]+))"
)
NAME: Final = rf"(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?{CAP}(?: {CAP}){{0,2}}"
FROM: Final = r"(?: from (?P<old>[\w$€£'&@.+-]+(?: [\w$€£'&@.+-]+){0,4}?))?"
END: Final = r"(?=$|[^\w'’@.-]|\.$)"
BOUND: Final = (
    r"(?=$|[,.!;](?!\d)| (?:now|today|already|again|years?|and|by now|at last|this|these|yesterday|anymore)\b)"
)
TAIL: Final = re.compile(
    r"\s+(?:because|since|for|with|near|now|nowadays|currently|again|anymore|any|too|today|yesterday|last|this|these|"
    r"so|but|which|where|who|when|while|until|till|by|as|at|a (?:week|month|year|day|lot)|per|very|more|most|best|"
    r"instead|even|though|in (?:the|\d|total|my|general)|of all|every|whenever|during|after|before|if|than)\b.*$"
)
NUMBER: Final = rf"(?:\d{{1,3}}(?:,\d{{3}})*|{'|'.join(word for word in NUMBER_WORDS if word.isascii())})"
HEADS: Final = split_words(
    "accountant actor actress agent analyst apprentice architect artist assistant attorney author baker banker",
    "barber barista broker carer caregiver decorator dietitian entrepreneur executive hygienist instructor mason",
    "pastor priest roofer server specialist strategist streamer tiler youtuber",
    "bartender biologist bookkeeper builder butcher buyer captain cardiologist carpenter cashier chef chemist",
    "cleaner clerk coach composer consultant contractor cook counsellor counselor courier curator dancer",
    "dentist designer detective developer director doctor driver economist editor electrician engineer farmer",
    "firefighter fisherman florist freelancer gardener geologist guard guide hairdresser historian janitor",
    "jeweller journalist judge lawyer lecturer librarian lifeguard locksmith manager mathematician mechanic",
    "midwife model musician nanny neurologist novelist nurse nutritionist officer operator optician painter",
    "paramedic pediatrician pharmacist photographer physician physicist physiotherapist pilot planner plumber",
    "poet porter principal producer professor programmer psychiatrist psychologist publisher receptionist",
    "recruiter reporter researcher sailor salesman scientist secretary seller shopkeeper singer social-worker",
    "soldier solicitor statistician steward student supervisor surgeon surveyor tailor teacher technician",
    "tester therapist trader trainer translator tutor vet veterinarian waiter waitress welder writer",
    "zoologist",
)
JOB: Final = rf"(?P<v>(?:[\w-]+ ){{0,2}}?(?:{'|'.join(HEADS)})){END}"
_KIN: Final = (
    "(?:mother|father|sister|brother|son|daughter)-in-law|wife|husband|mother|father|mum|mom|dad|parents|partner|"
    "girlfriend|boyfriend|fiance|fiancee|boss|manager|supervisor|landlord|landlady|sister|brother|son|daughter|"
    "grandmother|grandfather|grandma|grandpa|grandparents|aunt|uncle|cousin|niece|nephew|roommate|flatmate|"
    "housemate|therapist|dentist|doctor"
)
_PET: Final = (
    "dog|cat|puppy|kitten|parrot|hamster|rabbit|horse|tortoise|goldfish|boat|car|company|startup|blog|band|team"
)
RELATION: Final = rf"(?:(?:older|younger|elder|big|little|eldest|youngest|twin) )?(?:{_KIN}|{_PET})"

# One value at a time, by what their last word is.
NUMERIC: Final = "rent|price|salary|age|weight|height|size|budget|income|wage|fee|subscription|mortgage|population"
DIGITS: Final = "phone|telephone|mobile|cell|number|extension|pin|zip code|postcode|licence plate|license plate|plate"
SECRETS: Final = "password|passcode|passphrase|code|username|login|handle|user name"
PEOPLE: Final = (
    "wife|husband|boss|manager|landlord|landlady|dentist|doctor|therapist|boyfriend|girlfriend|partner|fiance"
)
_WORDS: Final = (
    "hometown|nationality|blood type|major|native language|mother tongue|star sign|religion|time zone|timezone"
)
OFFICES: Final = "mayor|capital|president|ceo|chairman|chair|principal|headquarters|currency|prime minister|king|queen"
NOUN: Final = (
    r"(?P<noun>favou?rite [\w-]+(?: (?!(?:is|are|was|were|has|used|now|just|changed|remains)\b)[\w-]+)?|"
    rf"(?:[\w-]+ ){{0,2}}?(?:{NUMERIC}|{DIGITS}|{SECRETS}|deadline|birthday)|"
    r"(?:e-?mail|home|postal|street|mailing)? ?address|"
    rf"e-?mail|name|nickname|surname|job|occupation|profession|employer|{_WORDS}|{OFFICES}|{PEOPLE}|home|diet|car)"
)
NOUN_WORDS: Final = frozenset(
    re.findall(
        r"[a-z]+",
        f"{NUMERIC} {DIGITS} {SECRETS} {PEOPLE} {_WORDS} {OFFICES} deadline birthday address mail name "
        "nickname surname job occupation profession employer diet car raise rise",
    )
)
QUALIFIER: Final = (
    r"(?:(?P<q>brand new|new|current|present|latest|old|former|previous|ex|first|last|next|second|other|future) )?"
)

_MONTH: Final = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
DAY: Final = (
    rf"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?|"
    rf"{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{4}}-\d{{2}}-\d{{2}})"
)
_HOUR: Final = r"(?:\d{1,2}(?::\d{2})?\s?(?:am|pm|a\.m\.|p\.m\.|o'clock)|\d{1,2}:\d{2}|noon|midnight)"
WHEN: Final = rf"(?i:(?P<day>{DAY})|(?P<hour>{_HOUR}))(?!\w)"

CHANGED: Final = (
    r"(?:(?:has|have|had|was|were|is|been|being|got|just|now|finally|recently) )*"
    r"(?:changed|switched|updated|moved|shifted|rescheduled|postponed|pushed|extended|delayed|brought|raised|increased|"
    r"slipped|bumped|lowered|reduced|dropped|rose|risen|gone|went|fell|grew|jumped)"
    rf"(?: (?:back|forward|up|down|over|out|again))?{FROM} (?:to|into) "
)
IS: Final = rf"{ADVERBS}(?:is|are|has always been|remains|became|has become) {ADVERBS}"
WAS: Final = r"(?:was|were|used to be|had been) "
BE: Final = r"(?:am|is|are)"
HAVE: Final = r"(?:(?:have|has) )?"
NO_MORE: Final = (
    rf"(?:(?:am |is |are )?{ADVERBS}no longer |"
    rf"(?:do|does|am|is|are|have|has) {ADVERBS}(?:not|never) (?:{ADVERBS}(?:even |really )?))"
)
NEW: Final = r"(?:brand[ -])?new"

NOT_NAMES: Final = frozenset(
    split_words(
        "the a an this that these those it its there here what which who why how when where my your his her their",
        "our you he she they we i not no yes maybe nobody everybody someone everyone something nothing one people",
        "january february march april may june july august september october november december monday tuesday",
        "wednesday thursday friday saturday sunday thanks hello hi today yesterday tomorrow in on at since until",
        "after before as if and but so because please thank sorry wow sounds looks congratulations congrats",
    )
)
VAGUE: Final = frozenset(
    split_words(
        "it that this them him her me you us what how when where to being not no so the a an everything everyone",
        "anything nothing something one his their my your still unknown none gone",
    )
)


def fold_name(text: str) -> str:
    """A name as it is compared, its possessive ending gone."""
    return fold_value(text.removesuffix("'s").removesuffix("'"))


def apply_rules(rules: list[Rule], rest: str, subject: str) -> list[Raw]:
    """What the first rule states that fits ``rest`` and states anything."""
    for pattern, read in rules:
        if (match := pattern.match(rest)) and (found := read(match, subject)):
            return found
    return []
