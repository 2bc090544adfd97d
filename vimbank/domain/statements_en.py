"""Statements in English clauses: a subject at the beginning of the clause, then one of the predicates below. Pure.

Everything is anchored: a clause that begins in another way («if I lived ...», «the day I ...») is not read at all.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from vimbank.domain.statement_values import NUMBER_WORDS, Raw, fold_value

__all__ = ["read_english"]


def _words(*lines: str) -> tuple[str, ...]:
    return tuple(" ".join(lines).split())


_ADVERBS: Final = (
    r"(?:(?:now|currently|also|still|just|recently|finally|already|actually|really|absolutely|mostly|officially|then|"
    r"presently|both|only|truly|simply|definitely|always|even|since|again) )*"
)
_CAP: Final = r"[^\W\d_a-z][\w&'’-]*"
_PROPER: Final = rf"(?:[Tt]he )?{_CAP}(?: (?:(?:of|de|la|le|da|do|upon|and the|del|van|von) )?{_CAP}){{0,3}}"
_PLACE: Final = rf"(?P<v>{_PROPER}|(?P<small>[a-z]+))"
_ORGANISATION: Final = (
    rf"(?P<v>{_PROPER}|the (?:\w+ )?(?:office|library|university|hospital|bank|school|museum|council|station|"
    r"post office|airport|factory|theatre|police|church|zoo)|(?P<small>[a-z]+))"
)
_FROM: Final = r"(?: from (?P<old>[\w$€£'&@.+-]+(?: [\w$€£'&@.+-]+){0,4}?))?"
_END: Final = r"(?=$|[^\w'’@.-]|\.$)"
_TAIL: Final = re.compile(
    r"\s+(?:because|since|for|with|near|now|nowadays|currently|again|anymore|any|too|today|yesterday|last|this|these|so|"
    r"but|which|where|who|when|while|until|till|by|as|at|a (?:week|month|year|day|lot)|per|very|more|most|best|instead|"
    r"even|though|in (?:the|\d|total|my|general)|of all|every|whenever|during|after|before|if|than)\b.*$"
)
_NUMBER: Final = rf"(?:\d{{1,3}}(?:,\d{{3}})*|{'|'.join(word for word in NUMBER_WORDS if word.isascii())})"
_HEADS: Final = _words(
    "accountant actor actress analyst architect artist assistant attorney author baker banker barber barista",
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
_JOB: Final = rf"(?P<v>(?:[\w-]+ ){{0,2}}?(?:{'|'.join(_HEADS)})){_END}"
_KIN: Final = (
    "wife|husband|mother|father|mum|mom|dad|partner|girlfriend|boyfriend|fiance|fiancee|boss|manager|landlord|"
    "landlady|sister|brother|son|daughter|grandmother|grandfather|grandma|grandpa|roommate|flatmate|therapist|"
    "dentist|doctor"
)
_PET: Final = (
    "dog|cat|puppy|kitten|parrot|hamster|rabbit|horse|tortoise|goldfish|boat|car|company|startup|blog|band|team"
)
_RELATION: Final = rf"(?:(?:older|younger|elder|big|little|eldest|youngest|twin) )?(?:{_KIN}|{_PET})"
_NAME: Final = rf"(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?{_CAP}(?: {_CAP}){{0,2}}"

# One value at a time, by what their last word is.
_NUMERIC: Final = "rent|price|salary|age|weight|height|size|budget|income|wage|fee|subscription|mortgage|population"
_DIGITS: Final = "phone|telephone|mobile|cell|number|extension|pin|zip code|postcode|licence plate|license plate|plate"
_SECRETS: Final = "password|passcode|passphrase|code|username|login|handle|user name"
_PEOPLE: Final = (
    "wife|husband|boss|manager|landlord|landlady|dentist|doctor|therapist|boyfriend|girlfriend|partner|fiance"
)
_WORDS: Final = (
    "hometown|nationality|blood type|major|native language|mother tongue|star sign|religion|time zone|timezone"
)
_OFFICES: Final = "mayor|capital|president|ceo|chairman|chair|principal|headquarters|currency|prime minister|king|queen"
_NOUN: Final = (
    r"(?P<noun>favou?rite [\w-]+(?: (?!(?:is|are|was|were|has|used|now|just|changed|remains)\b)[\w-]+)?|"
    rf"(?:[\w-]+ ){{0,2}}?(?:{_NUMERIC}|{_DIGITS}|{_SECRETS}|deadline|birthday)|"
    r"(?:e-?mail|home|postal|street|mailing)? ?address|e-?mail|name|nickname|surname|job|occupation|profession|"
    r"employer|"
    rf"{_WORDS}|{_OFFICES}|{_PEOPLE}|home|diet)"
)
_QUALIFIER: Final = (
    r"(?:(?P<q>brand new|new|current|present|latest|old|former|previous|ex|first|last|next|second|other|future) )?"
)
_MONTH: Final = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
_DAY: Final = (
    rf"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?|"
    rf"{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{4}}-\d{{2}}-\d{{2}})"
)
_HOUR: Final = r"(?:\d{1,2}(?::\d{2})?\s?(?:am|pm|a\.m\.|p\.m\.|o'clock)|\d{1,2}:\d{2}|noon|midnight)"
_WHEN: Final = rf"(?i:(?P<day>{_DAY})|(?P<hour>{_HOUR}))(?!\w)"
_CHANGED: Final = (
    r"(?:(?:has|have|had|was|were|is|been|being|got|just|now|finally|recently) )*"
    r"(?:changed|switched|updated|moved|shifted|rescheduled|postponed|pushed|extended|delayed|brought|raised|increased|"
    r"lowered|reduced|dropped|rose|risen|gone|went|fell|grew|jumped)"
    rf"(?: (?:back|forward|up|down|over|out|again))?{_FROM} (?:to|into) "
)
_IS: Final = rf"{_ADVERBS}(?:is|are|has always been|remains|became|has become) {_ADVERBS}"
_WAS: Final = r"(?:was|were|used to be|had been) "

_PREFIX: Final = re.compile(
    r"(?:actually|well|oh|ok|okay|so|yes|yeah|no|hey|hi|hello|also|and|but|now|currently|today|nowadays|lately|recently|"
    r"finally|sadly|luckily|update|fyi|btw|by the way|big news|good news|bad news|news|great news|just so you know|"
    r"for the record|note|reminder|correction|turns out|it turns out that|as you know|these days|at the moment|"
    r"as of (?:today|now)|from now on|right now|this (?:week|month|year|morning)|last (?:week|month|year)|yesterday|"
    r"then|since (?:then|(?:last )?\w+(?: \d{4})?)|i mean|remember|please note|please remember|good to know)"
    r"(?:[,:!]| that| -)? ",
    re.IGNORECASE,
)
_UNSURE: Final = re.compile(
    r"\b(?:[Mm]aybe|[Pp]erhaps|[Pp]robably|[Aa]pparently|might|may|would|wouldn't|could|should|shall|must|will|won't|"
    r"wants?|wanted|wish(?:es)?|hop(?:e|es|ed|ing)|plan(?:s|ning|ned)?|going to|thinks?|thought|thinking|believes?|"
    r"guess|feels?|felt|dreams?|imagine|sa(?:id|ys?|ying)|told|tells|heard|hears|asks?|asked|wonders?|consider(?:s|ing)?|"
    r"pretend(?:s|ing)?|almost|nearly|suppose(?:d|s)?|seems?|claims?|looking for|about to|let's|doubt|lie[ds]?)\b|"
    r"\b(?:I|he|she|they|we|you)'(?:d|ll)\b"
)
_IF: Final = re.compile(r"\b(?:if|whether|unless|as if|in case|suppose|what if|once)\b|[\"“”«»]", re.IGNORECASE)
_CLAUSES: Final = re.compile(
    r"(?:\s*[;—–]\s*|,\s+|\s+-\s+|\s+)(?:and|but|so|because|though|although|while)\s+(?=(?:I|he|she|it|we|they|my|his|her|"
    r"now|then|finally|recently|just|currently|lives?|works?|moved|joined|loves?|likes?|hates?|has|have|is|am|was|left|"
    r"started|got|became|quit|enjoys?|prefers?|turned)\b)|\s*[;—–]\s*|,\s+|\s+-\s+"
)
_SUBJECT: Final = re.compile(
    rf"(?P<me>I|i)\b |(?P<user>(?:The|the) user|User)\b |"
    rf"(?P<own>[Mm]y|(?P<owner>{_NAME})['’]s?) (?P<relation>{_RELATION})(?! (?:name|phone|number|email|e-mail|address))"
    rf"(?: (?P<called>{_CAP}))? |"
    rf"(?P<pronoun>[Hh]e|[Ss]he|[Ww]ho)\b |(?P<name>{_NAME}),? (?:who )?"
)
_COPULA_NEXT: Final = (
    r"(?=:|\?| (?:is|are|has|have|had|was|were|used|became|remains|now|just|recently|finally|currently|still|already|"
    r"also|always|changed|switched|updated|moved|rose|increased|went|dropped|fell|got)\b)"
)
_OWNED: Final = re.compile(
    rf"(?:(?P<owner>(?:[Tt]he u|[Uu])ser['’]s|[Mm]y {_RELATION}['’]s|{_NAME}['’]s (?:{_RELATION})['’]s|{_NAME}['’]s?)|"
    rf"(?P<my>[Mm]y)|(?P<pronoun>[Hh]is|[Hh]er)) {_QUALIFIER}{_NOUN}{_COPULA_NEXT} ?"
)
_OFFICE: Final = re.compile(rf"[Tt]he {_QUALIFIER}{_NOUN} of (?P<owner>(?:the )?{_NAME}) ")
_THING: Final = re.compile(
    r"(?:[Tt]he|[Oo]ur) (?P<thing>[\w'-]+(?: (?!is\b|has\b|was\b)[\w'-]+){0,4}?) (?=is|has|was|used|takes|starts|"
    r"happens|got|meets|changed|moved|shifted|will|went|now|just)"
)
_NOT_NAMES: Final = frozenset(
    _words(
        "the a an this that these those it its there here what which who why how when where my your his her their",
        "our you he she they we i not no yes maybe nobody everybody someone everyone something nothing one people",
        "january february march april may june july august september october november december monday tuesday",
        "wednesday thursday friday saturday sunday thanks hello hi today yesterday tomorrow in on at since until",
        "after before as if and but so because",
    )
)
_NOT_PLACES: Final = frozenset(
    _words(
        "peace fear harmony town style luxury poverty hope dorms apartments sin pain a an the my his her their",
        "our this that home night day school work times it one two an as heart mind fact general total person",
        "private charge love",
    )
)
_VAGUE: Final = frozenset(
    _words(
        "it that this them him her me you us what how when where to being not no so the a an everything everyone",
        "anything nothing something one his their my your still unknown none gone",
    )
)
_TRANSIENT: Final = frozenset(
    _words(
        "question meeting minute hour idea problem thing option point exam appointment day week month year second",
        "time reason chance job call task request message more other people",
    )
)


def read_english(sentence: str, *, me: str, last: str | None) -> tuple[list[Raw], int, str | None]:
    """The statements of one sentence.

    Args:    me: who says «I».  last: whom «he» and «she» mean, None where unclear.
    Returns: the statements; how many clauses said something that was not read; the person named last.
    """
    text = _expand(sentence)
    if text.rstrip().endswith("?") or _IF.search(text):
        return [], 1, last
    found: list[Raw] = []
    unread = 0
    subject: str | None = None
    for clause in _CLAUSES.split(text.rstrip(" .!")):
        if _UNSURE.search(clause):
            return found, unread + 1, last
        clause, named = _without_prefix(clause), last
        read, subject, named = _read_clause(clause, me=me, last=last, carried=subject)
        last = named or last
        found.extend(read)
        unread += not read and _says_something(clause)
    return found, unread, last


def _expand(text: str) -> str:
    text = text.replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        text = pattern.sub(full, text)
    return text


_CONTRACTIONS: Final = [
    (re.compile(short), full)
    for short, full in (
        (r"\b[Ii]'m\b", "I am"),
        (r"\b[Ii]'ve\b", "I have"),
        (r"\b([Cc])an't\b", r"\1annot"),
        (r"\b(\w+)n't\b", r"\1 not"),
        (r"\b([Hh]e|[Ss]he)'s (?=(?:now|no|not|an?|living|working|based|still|\d)\b)", r"\1 is "),
    )
]


def _without_prefix(clause: str) -> str:
    clause = clause.strip()
    while match := _PREFIX.match(clause):
        clause = clause[match.end() :]
    return clause


def _says_something(clause: str) -> bool:
    """Whether a clause that was not read may hold a fact: not so a single word, or one more name («Oslo, Norway»)."""
    words = clause.split()
    return len(words) > 2


def _read_clause(
    clause: str, *, me: str, last: str | None, carried: str | None
) -> tuple[list[Raw], str | None, str | None]:
    """Statements, the subject that a next clause without one has, and the person named."""
    for pattern, rules in ((_OWNED, _OWNED_RULES), (_OFFICE, _OWNED_RULES)):
        if match := pattern.match(clause):
            owner = _owner(match, me=me, last=last)
            if owner is None:
                return [], None, None
            read = _apply(rules, clause[match.end() :], match, owner)
            if read:
                return read, owner, None
    if match := _MOVING.match(clause):
        return list(_moved(match)), None, None
    if match := _CHANGING.match(clause):
        owner = me if match["me"] else _fold(match["name"])
        value = _typed(match["noun"], match["v"])
        return ([] if value is None else [Raw(owner, *value)]), owner, None
    if match := _FAVOURITE.match(clause):
        return [Raw(me, _attribute(match["noun"]), fold_value(match["v"]))], None, None
    if match := _THING.match(clause):
        read = _apply(_THING_RULES, clause[match.end() :], match, f"the {_fold(match['thing'])}")
        if read:
            return read, None, None
    if match := _SUBJECT.match(clause + " "):
        subject = _subject(match, me=me, last=last, carried=carried)
        if subject is None:
            return [], None, None
        person = subject if subject != me else None
        return _apply(_PERSON_RULES, clause[match.end() :], match, subject), subject, person
    if carried is not None:
        return _apply(_PERSON_RULES, clause, None, carried), carried, None
    return [], None, None


def _fold(text: str) -> str:
    return fold_value(text.removesuffix("'s").removesuffix("'"))


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
        return f"{me}'s {_fold(owner[3:])}"
    if owner.split()[0].casefold().removesuffix("'s") in _NOT_NAMES - {"the"}:
        return None
    return _fold(owner)


def _subject(match: "re.Match[str]", *, me: str, last: str | None, carried: str | None) -> str | None:
    if match["me"]:
        return me
    if match["user"]:
        return "@user"
    if match["relation"]:
        if match["called"]:
            return _fold(match["called"])
        return f"{me if match['owner'] is None else _fold(match['owner'])}'s {_fold(match['relation'])}"
    if match["pronoun"]:
        return carried if match["pronoun"].lower() == "who" else last
    name: str = match["name"]
    return None if any(word.casefold() in _NOT_NAMES for word in name.split()) else _fold(name)


_Rule: TypeAlias = tuple["re.Pattern[str]", Callable[["re.Match[str]", "re.Match[str] | None", str], list[Raw]]]


def _apply(rules: list[_Rule], rest: str, head: "re.Match[str] | None", subject: str) -> list[Raw]:
    for pattern, read in rules:
        if match := pattern.match(rest):
            return read(match, head, subject)
    return []


# --- of persons ---------------------------------------------------------------------------------------------------


def _simple(attribute: str, pattern: str, *, positive: bool = True, current: bool = True) -> _Rule:
    """A predicate with one value ``v``, which is a proper name, or one small word where nothing is capitalised."""

    def read(match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
        groups = match.groupdict()
        small = groups.get("small")
        if small and (small in _NOT_PLACES or match.end() != len(match.string.rstrip())):
            return []
        found = [Raw(subject, attribute, fold_value(match["v"].removesuffix("'s")), positive, current)]
        if groups.get("job"):
            found.append(Raw(subject, "occupation", fold_value(match["job"]), positive, current))
        return found

    return re.compile(pattern), read


def _free(attribute: str, pattern: str, *, positive: bool = True, current: bool = True) -> _Rule:
    """A predicate whose value is the rest of the clause, cut before what only says when, why or how."""

    def read(match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
        value = fold_value(_TAIL.sub("", match["v"]))
        words = value.split()
        if not words or len(words) > 6 or words[0] in _VAGUE:
            return []
        return [Raw(subject, attribute, value, positive, current)]

    return re.compile(pattern), read


def _ended(attribute: str, pattern: str) -> _Rule:
    """A predicate that ends every value of the attribute."""

    def read(_match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
        return [Raw(subject, attribute, None, positive=False)]

    return re.compile(pattern), read


def _replaced(match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
    return [Raw(subject, "*", fold_value(match["old"]), positive=False)]


def _counted(*, current: bool) -> Callable[["re.Match[str]", "re.Match[str] | None", str], list[Raw]]:
    def read(match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
        noun = fold_value(match["noun"])
        noun = {"kids": "child", "children": "child", "kid": "child"}.get(noun, noun.removesuffix("s"))
        if any(word.removesuffix("s") in _TRANSIENT for word in noun.split()):
            return []
        return [Raw(subject, f"count of {noun}", fold_value(match["v"]), current=current)]

    return read


def _preferred(match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
    value, other = fold_value(match["v"]), fold_value(_TAIL.sub("", match["other"]))
    return [Raw(subject, "preference among " + " / ".join(sorted((value, other))), value)]


_BE: Final = r"(?:am|is)"
_HAVE: Final = r"(?:(?:have|has) )?"
_NO_MORE: Final = (
    rf"(?:{_ADVERBS}no longer |(?:do|does|am|is|have|has) {_ADVERBS}(?:not|never) (?:{_ADVERBS}(?:even |really )?))"
)
_BOUND: Final = (
    r"(?=$|[,.!;](?!\d)| (?:now|today|already|again|years?|and|by now|at last|this|these|yesterday|anymore)\b)"
)
_AS: Final = rf"(?: as an? (?P<job>(?:[\w-]+ ){{0,2}}?(?:{'|'.join(_HEADS)})){_END})?"
_LIKE: Final = (
    r"(?:likes?|loves?|enjoys?|adores?|(?:am|is) (?:very |really |so )?(?:into|fond of|crazy about|keen on)|"
    r"(?:am|is) an? (?:\w+ )?fan of)"
)

_PERSON_RULES: Final[list[_Rule]] = [
    # where somebody lives
    _simple(
        "residence",
        rf"{_ADVERBS}(?:lives?|resides?|{_BE} {_ADVERBS}(?:living|based)|(?:have|has) {_ADVERBS}been (?:living|based)) "
        rf"{_ADVERBS}(?:in|at) {_PLACE}",
    ),
    _simple("residence", rf"(?:have|has) {_ADVERBS}lived in {_PLACE} (?:since|for|all)\b"),
    _simple(
        "residence",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:moved|relocated|settled)(?: back| over| down)?{_FROM} (?:to|in|into) {_PLACE}",
    ),
    _simple("residence", rf"{_NO_MORE}(?:lives?|living|based|resides?) in {_PLACE}", positive=False),
    _simple(
        "residence",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}moved (?:out of|away from|out from) {_PLACE}",
        positive=False,
    ),
    _simple("residence", rf"(?:lived|used to live|was living) in {_PLACE}", current=False),
    # whom somebody works for
    _simple(
        "employer",
        rf"{_ADVERBS}(?:works?|{_BE} {_ADVERBS}(?:working|employed)|(?:have|has) {_ADVERBS}been working) "
        rf"{_ADVERBS}(?:at|for|with|by) {_ORGANISATION}{_AS}",
    ),
    _simple(
        "employer",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:joined|(?:started|began)(?: working| work| an? (?:new )?job| my new job)? "
        rf"(?:at|for|with)|(?:got|landed|have|has|found|took) an? (?:new )?job (?:at|with)|got hired by|was hired by|"
        rf"accepted a job at) {_ORGANISATION}{_AS}",
    ),
    _simple("employer", rf"{_NO_MORE}(?:works?|working|employed) (?:at|for|with|by) {_ORGANISATION}", positive=False),
    _simple(
        "employer",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:quit(?: my job at| the job at| at)?|resigned from|retired from|left my job at|"
        rf"left|was (?:fired|laid off|let go|sacked) (?:from|by)|got (?:fired|laid off|sacked) (?:from|by)) "
        rf"{_ORGANISATION}(?=$|[,.;!]| (?:and|last|this|after|for|to|in)\b)",
        positive=False,
    ),
    _ended("employer", rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:quit|lost|left) (?:my|his|her|the) job(?=$|[,.;!])"),
    _simple("employer", rf"(?:worked|used to work|was working) (?:at|for|with) {_ORGANISATION}", current=False),
    # what somebody is
    _free("occupation", rf"{_ADVERBS}(?:works?|{_BE} {_ADVERBS}working) {_ADVERBS}as an? {_JOB}"),
    _free("occupation", rf"{_ADVERBS}{_BE} {_ADVERBS}an? {_JOB}"),
    _free("occupation", rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:became|become|retrained as|qualified as) an? {_JOB}"),
    _free("occupation", rf"{_ADVERBS}{_BE} (?:no longer|not) an? {_JOB}", positive=False),
    _free("occupation", rf"{_NO_MORE}(?:works?|working) as an? {_JOB}", positive=False),
    _free("occupation", rf"(?:was|used to be|worked as|used to work as) an? {_JOB}", current=False),
    _simple("age", rf"{_ADVERBS}{_BE} {_ADVERBS}(?P<v>{_NUMBER})(?: years? old| years of age)?{_BOUND}"),
    _simple("age", rf"{_ADVERBS}{_HAVE}{_ADVERBS}turned (?P<v>{_NUMBER})(?: years? old)?{_BOUND}"),
    _simple("name", rf"{_ADVERBS}{_BE} {_ADVERBS}(?:called|named) (?P<v>{_CAP}(?: {_CAP})?)"),
    _simple("name", rf"{_ADVERBS}goe?s? by (?P<v>{_CAP}(?: {_CAP})?)"),
    _simple("name", rf"(?:was|used to be) (?:called|named) (?P<v>{_CAP}(?: {_CAP})?)", current=False),
    _simple(
        "marital status",
        rf"{_ADVERBS}(?:{_BE}|got|has got) {_ADVERBS}(?P<v>married|single|divorced|engaged|widowed){_BOUND}",
    ),
    _simple(
        "diet",
        rf"{_ADVERBS}(?:{_BE}|became|went|turned) {_ADVERBS}(?:an? )?(?P<v>vegan|vegetarian|pescatarian){_BOUND}",
    ),
    (
        re.compile(rf"{_ADVERBS}(?:have|has)(?: got)? {_ADVERBS}(?P<v>{_NUMBER}) (?P<noun>[a-z]+(?: [a-z]+)?){_BOUND}"),
        _counted(current=True),
    ),
    (
        re.compile(rf"(?:had|used to have) (?P<v>{_NUMBER}) (?P<noun>[a-z]+)\b"),
        _counted(current=False),
    ),
    (re.compile(rf"{_ADVERBS}prefers? (?P<v>[\w ]+?) (?:to|over|rather than) (?P<other>[\w ]+)"), _preferred),
    (re.compile(rf"{_HAVE}{_ADVERBS}(?:switched|traded|swapped)(?: from)? (?P<old>[\w ]+?) (?:to|for) \w"), _replaced),
    # what somebody likes: many at a time
    _free("likes", rf"{_ADVERBS}{_LIKE} (?P<v>.+)"),
    _free("likes", rf"{_ADVERBS}(?:hates?|dislikes?|cannot stand|detests?|cannot bear) (?P<v>.+)", positive=False),
    _free("likes", rf"{_NO_MORE}(?:likes?|loves?|enjoys?|into|fond of) (?P<v>.+)", positive=False),
    _free("likes", r"(?:used to (?:like|love|enjoy|adore)|liked|loved|enjoyed) (?P<v>.+)", current=False),
    _free("allergy", rf"{_ADVERBS}{_BE} {_ADVERBS}allergic to (?P<v>.+)"),
    _free("allergy", rf"{_BE} (?:not|no longer) allergic to (?P<v>.+)", positive=False),
    _free("vehicle", rf"{_ADVERBS}drives? an? (?P<v>.+)"),
    _simple("school", rf"{_ADVERBS}(?:stud(?:y|ies)|{_BE} {_ADVERBS}studying) at {_ORGANISATION}"),
    _simple("birthday", rf"was born on (?P<v>(?i:{_DAY}))"),
]


# --- of what somebody has -----------------------------------------------------------------------------------------


def _attribute(noun: str) -> str:
    """One name for each attribute, however it is called."""
    folded = fold_value(noun).replace("e-mail", "email")
    if folded.startswith("favourite"):
        return folded
    for last, name in _SYNONYMS:
        if folded == last or folded.endswith(" " + last):
            kind = folded[: -len(last)].strip()  # «work» of «work phone number»
            return name if not kind or kind in _PLAIN_KINDS else f"{kind} {name}"
    return folded


_PLAIN_KINDS: Final = frozenset({"personal", "private", "own", "main"})
_SYNONYMS: Final = (
    ("phone number", "phone"),
    ("mobile number", "phone"),
    ("cell number", "phone"),
    ("cell phone", "phone"),
    ("mobile phone", "phone"),
    ("telephone number", "phone"),
    ("telephone", "phone"),
    ("mobile", "phone"),
    ("cell", "phone"),
    ("number", "phone"),
    ("email address", "email"),
    ("email", "email"),
    ("home address", "address"),
    ("profession", "occupation"),
    ("job", "occupation"),
    ("home", "residence"),
    ("monthly rent", "rent"),
)
_AMOUNT: Final = re.compile(rf"(?:[$€£¥]\s?)?(\d[\d,.]*\d|\d)(?:\s?([$€£¥]|\w+))?|({_NUMBER})\b")
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE: Final = re.compile(r"\+?\d[\d\s()./-]{2,}\d")
_CODE: Final = re.compile(r"(?=\S*[\dA-Z\W_])(\S+)")


def _typed(noun: str, text: str) -> tuple[str, str] | None:
    """(attribute, value), where the text has the form that a value of the noun has, else None."""
    attribute = _attribute(noun)
    last = attribute.split()[-1]
    text = text.strip()
    value: str | None = None
    if attribute == "phone" or last in _DIGITS.split("|"):
        value = "".join(filter(str.isdigit, match[0])) if (match := _PHONE.match(text)) else None
    elif attribute == "email":
        value = match[0].casefold() if (match := _MAIL.match(text)) else None
    elif last in _NUMERIC.split("|"):
        value = fold_value(match[1] or match[3]).replace(",", "") if (match := _AMOUNT.match(text)) else None
    elif last in {"code", "password", "passcode", "username", "login", "handle"}:
        value = match[1].rstrip(".!,") if (match := _CODE.match(text)) else None
    elif attribute in {
        "name",
        "nickname",
        "surname",
        "employer",
        "residence",
        *_PEOPLE.split("|"),
        *_OFFICES.split("|"),
    }:
        match = re.match(r"(?:in |at )?" + f"({_PROPER})", text)
        value = fold_value(match[1]) if match else None
    elif attribute == "occupation":
        words = fold_value(_TAIL.sub("", text)).split()
        value = " ".join(words) if words and len(words) <= 3 and words[-1] in _HEADS else None
    elif last in {"deadline", "birthday"}:
        match = re.match(rf"(?:on |by )?(?i:({_DAY}))", text)
        value = _ordinal(match[1]) if match else None
    else:
        words = fold_value(_TAIL.sub("", text)).split()
        value = " ".join(words) if words and len(words) <= 5 and words[0] not in _VAGUE else None
    return None if not value else (attribute, value)


def _ordinal(text: str) -> str:
    return re.sub(r"(?<=\d)(?:st|nd|rd|th)|\bof\b ?", "", fold_value(text))


def _held(
    *, past: bool = False, positive: bool = True
) -> Callable[["re.Match[str]", "re.Match[str] | None", str], list[Raw]]:
    def read(match: "re.Match[str]", head: "re.Match[str] | None", subject: str) -> list[Raw]:
        assert head is not None
        qualifier = head["q"] or ""
        if qualifier in {"first", "last", "next", "second", "other", "future"}:
            return []
        typed = _typed(head["noun"], match["v"])
        current = not past and qualifier not in {"old", "former", "previous", "ex"}
        return [] if typed is None else [Raw(subject, *typed, positive, current)]

    return read


_OWNED_RULES: Final[list[_Rule]] = [
    (re.compile(rf"{_CHANGED}(?P<v>.+)"), _held()),
    (re.compile(rf"{_IS}(?:no longer|not) (?P<v>.+)"), _held(positive=False)),
    (re.compile(rf"{_IS}(?!not\b|no\b)(?P<v>.+)"), _held()),
    (re.compile(r": ?(?P<v>.+)"), _held()),
    (re.compile(rf"{_WAS}(?P<v>.+)"), _held(past=True)),
]
_CHANGING: Final = re.compile(
    rf"(?:(?P<me>I)|(?P<name>{_NAME})) {_HAVE}{_ADVERBS}(?:changed|updated|switched) (?:my|his|her|their) {_NOUN}"
    rf"{_FROM} to (?P<v>.+)"
)
_FAVOURITE: Final = re.compile(
    rf"(?P<v>[\w' -]{{2,40}}?) is {_ADVERBS}my {_ADVERBS}(?P<noun>favou?rite [\w-]+){_BOUND}"
)


# --- of things: when they take place, what they cost --------------------------------------------------------------


def _dated(subject: str, match: "re.Match[str]", *, current: bool = True) -> list[Raw]:
    if match["day"]:
        return [Raw(subject, "day", _ordinal(match["day"]), current=current)]
    return [Raw(subject, "hour", fold_value(match["hour"]).replace(" ", ""), current=current)]


def _moved(match: "re.Match[str]") -> Iterator[Raw]:
    yield from _dated(f"the {_fold(match['thing'])}", match)


def _named_thing(match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
    last = subject.split()[-1]
    if len(subject.split()) < 3 or last not in f"{_NUMERIC}|{_DIGITS}|{_SECRETS}".split("|"):
        return []
    typed = _typed(last, match["v"])
    return [] if typed is None else [Raw(subject, *typed)]


_THING_RULES: Final[list[_Rule]] = [
    (re.compile(rf"{_CHANGED}(?:the )?{_WHEN}"), lambda match, _head, subject: _dated(subject, match)),
    (
        re.compile(
            rf"{_ADVERBS}(?:is|takes place|happens|starts|meets) {_ADVERBS}(?:due )?"
            rf"(?:(?:on|at|every|each|by|always on) )?{_WHEN}"
        ),
        lambda match, _head, subject: _dated(subject, match),
    ),
    (
        re.compile(rf"{_WAS}(?:due )?(?:(?:on|at|every|each|by) )?{_WHEN}"),
        lambda match, _head, subject: _dated(subject, match, current=False),
    ),
    (re.compile(rf"{_CHANGED}(?P<v>.+)"), _named_thing),
    (re.compile(rf"{_IS}(?P<v>.+)"), _named_thing),
]
_MOVING: Final = re.compile(
    rf"(?:They|We|I|they|we) {_HAVE}{_ADVERBS}(?:moved|shifted|rescheduled|postponed|pushed|changed) (?:the|our) "
    rf"(?P<thing>[\w' -]+?)(?: back| forward)?{_FROM} to (?:the )?{_WHEN}"
)
