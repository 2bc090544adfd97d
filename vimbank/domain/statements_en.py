"""Statements in English clauses: a subject at the beginning of the clause, then one of the predicates below. Pure.

Everything is anchored: a clause that begins in another way («if I lived ...», «the day I ...») is not read at all.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from vimbank.domain.statement_values import NUMBER_WORDS, OTHERS, Raw, fold_value

__all__ = ["read_english"]


def _words(*lines: str) -> tuple[str, ...]:
    return tuple(" ".join(lines).split())


_ADVERBS: Final = (
    r"(?:(?:now|currently|also|still|just|recently|finally|already|actually|really|absolutely|mostly|officially|then|"
    r"presently|both|only|truly|simply|definitely|always|even|since|again|lately|eventually|basically|literally|all) )*"
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
    r"\s+(?:because|since|for|with|near|now|nowadays|currently|again|anymore|any|too|today|yesterday|last|this|"
    r"these|so|"
    r"but|which|where|who|when|while|until|till|by|as|at|a (?:week|month|year|day|lot)|per|very|more|most|best|instead|"
    r"even|though|in (?:the|\d|total|my|general)|of all|every|whenever|during|after|before|if|than)\b.*$"
)
_NUMBER: Final = rf"(?:\d{{1,3}}(?:,\d{{3}})*|{'|'.join(word for word in NUMBER_WORDS if word.isascii())})"
_HEADS: Final = _words(
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
_JOB: Final = rf"(?P<v>(?:[\w-]+ ){{0,2}}?(?:{'|'.join(_HEADS)})){_END}"
_KIN: Final = (
    "(?:mother|father|sister|brother|son|daughter)-in-law|wife|husband|mother|father|mum|mom|dad|parents|partner|"
    "girlfriend|boyfriend|fiance|fiancee|boss|manager|supervisor|landlord|landlady|sister|brother|son|daughter|"
    "grandmother|grandfather|grandma|grandpa|grandparents|aunt|uncle|cousin|niece|nephew|roommate|flatmate|"
    "housemate|therapist|dentist|doctor"
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
    rf"{_WORDS}|{_OFFICES}|{_PEOPLE}|home|diet|car)"
)
_NOUN_WORDS: Final = frozenset(
    re.findall(
        r"[a-z]+",
        f"{_NUMERIC} {_DIGITS} {_SECRETS} {_PEOPLE} {_WORDS} {_OFFICES} deadline birthday address mail name "
        f"nickname surname "
        "job occupation profession employer diet car raise rise",
    )
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
    r"(?:changed|switched|updated|moved|shifted|rescheduled|postponed|pushed|extended|delayed|brought|raised|"
    r"increased|slipped|bumped|"
    r"lowered|reduced|dropped|rose|risen|gone|went|fell|grew|jumped)"
    rf"(?: (?:back|forward|up|down|over|out|again))?{_FROM} (?:to|into) "
)
_IS: Final = rf"{_ADVERBS}(?:is|are|has always been|remains|became|has become) {_ADVERBS}"
_WAS: Final = r"(?:was|were|used to be|had been) "

_PREFIX: Final = re.compile(
    r"(?:actually|well|oh|ok|okay|so|yes|yeah|no|hey|hi|hello|also|and|but|now|currently|today|nowadays|lately|"
    r"recently|"
    r"finally|sadly|luckily|update|fyi|btw|by the way|big news|good news|bad news|news|great news|just so you know|"
    r"for the record|note|reminder|correction|turns out|it turns out that|as you know|these days|at the moment|"
    r"as of (?:today|now)|from now on|starting (?:today|now|this (?:week|month))|after \w+(?: \w+){1,5}?(?= I )|"
    r"right now|this (?:week|month|year|morning)|last (?:week|month|year)|yesterday|"
    r"then|since (?:then|(?:last )?\w+(?: \d{4})?)|i mean|remember|please note|please remember|good to know)"
    r"(?:[,:!]| that| -)? ",
    re.IGNORECASE,
)
_UNSURE: Final = re.compile(
    r"\b(?:[Mm]aybe|[Pp]erhaps|[Pp]robably|[Aa]pparently|[Ss]upposedly|[Aa]llegedly|likely|unlikely|possibly|might|may|"
    r"would|wouldn't|could|should|shall|must|will(?! be \S.* from now on)|won't|wants?|wanted|wish(?:es)?|"
    r"hop(?:e|es|ed|ing)|plan(?:s|ned)?|planning (?:to|on)|going to|thinks?|thought|thinking|believes?|guess|"
    r"feels?|felt|dreams?|imagine|sa(?:id|ys?|ying)|told|tells|heard|hears|asks?|asked|wonders?|consider(?:s|ing)?|"
    r"pretend(?:s|ing)?|almost|nearly|suppose(?:d|s)?|seems?|claims?|looking for|about to|let's|doubt|lie[ds]?|"
    r"prefer to|rather(?! than)|expects?|expected|intends?|tempted|reckons?|mentioned|suggest(?:s|ed)?|insist(?:s|ed)?|"
    r"rumou?rs?|someday|some day|tomorrow|next (?:week|month|year|spring|summer|autumn|fall|winter|semester))\b|"
    r"\b(?:I|he|she|they|we|you)'(?:d|ll)\b"
)
_TAG: Final = re.compile(
    r",? (?:can you believe (?:it|that|this)|how (?:cool|great|crazy|exciting|lucky) is that|guess what|who "
    r"knew)\?+\s*$",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    r"(?:,? (?:now|nowadays|these days|right now|at the moment|at present|currently|any ?more|any longer|already|again|"
    r"at last|for good|after all|by now|from now on|as of (?:now|today|yesterday|this week)|(?:this|last) (?:week|"
    r"month|"
    r"year|spring|summer|autumn|fall|winter|morning|weekend|night)|yesterday|today|recently|lately|"
    r"(?:a|two|three|a few|a couple of|some|several) (?:days?|weeks?|months?) ago|as well|too|though|full[- ]time|"
    r"with (?:my|his|her|our|the|their) [a-z]+(?: [a-z]+)?|with (?:two|three|four|five) \w+))+$",
    re.IGNORECASE,
)
_IF: Final = re.compile(r"\b(?:if|whether|unless|as if|in case|suppose|what if|once)\b|[\"“”«»]", re.IGNORECASE)
_CLAUSES: Final = re.compile(
    r"(?:\s*[;—–]\s*|,\s+|\s+-\s+|\s+)(?:and|but|so|because|though|although|while)\s+(?=(?:I|he|she|it|we|they|my|"
    r"his|her|"
    r"now|then|finally|recently|just|currently|lives?|works?|moved|joined|loves?|likes?|hates?|has|have|is|am|was|left|"
    r"started|got|became|become|quit|enjoys?|prefers?|turned|settled|drives?|bought|not|no longer|switched|changed|"
    r"relocated|sold|studies|uses?|goes)\b)|\s*[;—–]\s*|,\s+|\s+-\s+|:\s+(?=(?:I|[Ww]e|[Hh]e|[Ss]he|[Mm]y|[Tt]he)\b)"
)
_SUBJECT: Final = re.compile(
    rf"(?P<me>I|i|[Ww]e)\b |(?P<user>(?:The|the) user|User)\b |"
    rf"(?P<own>[MmOo](?:y|ur)|(?P<owner>{_NAME})['’]s?) (?P<relation>{_RELATION})"
    rf"(?! (?:name|phone|number|email|e-mail|address))(?: (?P<called>{_CAP}))? |"
    rf"(?P<pronoun>[Hh]e|[Ss]he|[Ww]ho)\b |(?P<name>{_NAME}),? (?:who )?"
)
_COPULA_NEXT: Final = (
    r"(?=:|\?| (?:is|are|has|have|had|was|were|used|became|remains|now|just|recently|finally|currently|still|already|"
    r"also|always|changed|switched|updated|moved|rose|increased|went|dropped|fell|got)\b)"
)
_OWNED: Final = re.compile(
    rf"(?:(?P<owner>(?:[Tt]he u|[Uu])ser['’]s|[Mm]y {_RELATION}['’]s|{_NAME}['’]s (?:{_RELATION})['’]s|{_NAME}['’]s?)|"
    rf"(?P<my>[Mm]y|[Oo]ur)|(?P<pronoun>[Hh]is|[Hh]er)) {_QUALIFIER}{_NOUN}{_COPULA_NEXT} ?"
)
_OFFICE: Final = re.compile(rf"[Tt]he {_QUALIFIER}{_NOUN} of (?P<owner>(?:the )?{_NAME}) ")
_THING: Final = re.compile(
    r"(?:[Tt]he|[Oo]ur) (?P<thing>[\w'-]+(?: (?!(?:is|has|was|that|of|where|who)\b)[\w'-]+){0,4}?) (?=(?:is|are|has|"
    r"was|were|used|"
    r"takes|took|starts|started|begins|began|happens|happened|got|meets|met|changed|moved|shifted|will|went|now|just|"
    r"slipped|runs|opens|leaves|departs)\b)"
)
_NOT_NAMES: Final = frozenset(
    _words(
        "the a an this that these those it its there here what which who why how when where my your his her their",
        "our you he she they we i not no yes maybe nobody everybody someone everyone something nothing one people",
        "january february march april may june july august september october november december monday tuesday",
        "wednesday thursday friday saturday sunday thanks hello hi today yesterday tomorrow in on at since until",
        "after before as if and but so because please thank sorry wow sounds looks congratulations congrats",
    )
)
_NOT_PLACES: Final = frozenset(
    _words(
        "peace fear harmony town style luxury poverty hope dorms apartments sin pain a an the my his her their",
        "our this that home night day school work times it one two an as heart mind fact general total person",
        "private charge love in on up out off over us me him them forces together for and",
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
    if _TRIGGERS.isdisjoint(_WORD.findall(sentence.lower())) and not _DIGIT.search(sentence):
        return [], 1, None  # whoever the next sentence calls «she» is in none that was read
    text = _expand(sentence)
    text = _TAG.sub("", text)
    if text.rstrip().endswith("?") or _IF.search(text):
        return [], 1, last
    found: list[Raw] = []
    unread = 0
    subject: str | None = None
    topic: _Topic | None = None
    before = ""
    for number, clause in enumerate(_CLAUSES.split(text.rstrip(" .!"))):
        if _UNSURE.search(clause):
            return found, unread + 1, last
        clause, named = _without_prefix(clause), last
        if number == 0:
            clause = _with_subject(clause)
        read = _follow_up(clause, topic, found) or _looking_back(clause, before, me=me)
        before = clause
        if not read:
            topic = _topic(clause, me=me, last=last)
            read, subject, named = _read_clause(clause, me=me, last=last, carried=subject)
        last = named or last
        found.extend(read)
        unread += not read and _says_something(clause)
    return found, unread, last


class _Topic(NamedTuple):
    """What a clause speaks of without saying its value: «I have a new number», «my boss is no longer Tom»."""

    owner: str
    noun: str


_BARE: Final = re.compile(
    r"(?P<adverbs>(?:(?:just|finally|recently|officially|now|also|no longer|not) )*)"
    r"(?P<verb>(?P<ing>living|working|studying|driving|based)|moved|relocated|turned|got|joined|started|quit|switched|"
    r"changed|became|transferred|left|sold|gave up|went)\b (?!me\b|you\b|him\b|her\b|us\b|out\b|off\b|back\b)",
    re.IGNORECASE,
)
_STILL_NOT: Final = re.compile(
    r"(?:but )?(?:not|no longer)(?: (?:any ?more|any longer|now|these days|nowadays|at the moment|since))*$",
    re.IGNORECASE,
)


def _with_subject(clause: str) -> str:
    """«Moved to Oslo», «no longer working there»: who leaves himself out means himself."""
    match = _BARE.match(clause)
    if match is None:
        return clause
    return f"I {'am ' if match['ing'] else ''}{clause[0].lower()}{clause[1:]}"


def _follow_up(clause: str, topic: _Topic | None, found: list[Raw]) -> list[Raw]:
    """What a clause says that is understood from the one before: «..., now it is X», «..., but not any more»."""
    if found and not found[-1].current and found[-1].value is not None and _STILL_NOT.match(clause):
        return [found[-1]._replace(positive=False, current=True)]
    match = _NOW_IT_IS.match(clause) if topic else None
    if topic is None or match is None:
        return []
    text = _TAIL.sub("", match["v"])
    typed = _typed(topic.noun, text)
    whole = match["it"] or (typed and (typed[1] == fold_value(text) or typed[1].isdigit()))
    return [Raw(topic.owner, *typed)] if typed and whole else []


def _looking_back(clause: str, before: str, *, me: str) -> list[Raw]:
    """«Please use 555-0100, that is my new number»."""
    match = _THAT_IS_MY.match(clause)
    value = (_MAIL.search(before) or _PHONE.search(before)) if match else None
    typed = _typed(match["noun"], value[0]) if match and value else None
    return [Raw(me, *typed)] if typed else []


_NOW_IT_IS: Final = re.compile(
    r"(?:(?:and|but|so) )?(?:now )?(?P<it>(?:it|that|this|he|she|which|the new one) (?:is|has become|became) (?:now "
    r")?)?"
    r"(?!not\b|no\b|was\b|used\b)(?P<v>\S.*)$",
    re.IGNORECASE,
)


def _topic(clause: str, *, me: str, last: str | None) -> _Topic | None:
    for pattern in (_OLD_ONE, _NEW_ONE, _NOTED):
        if match := pattern.match(clause):
            groups = match.groupdict()
            owner = me if groups.get("me") or groups.get("my") else last if groups.get("pronoun") else None
            if owner is None and (name := groups.get("owner") or groups.get("name")):
                owner = None if name.split()[0].casefold() in _NOT_NAMES else _fold(name)
            return None if owner is None else _Topic(owner, match["noun"])
    return None


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
        (r"\b([Ww]e)'re\b", r"\1 are"),
        (r"\b([Ww]e|[Tt]hey)'ve\b", r"\1 have"),
        (r"\b([Ii]t|[Tt]hat)'s\b", r"\1 is"),
        (r"\b([Hh]e|[Ss]he)'s (?=(?:been|moved|got|gone|left|started|joined|become|turned|switched)\b)", r"\1 has "),
        # What somebody stopped doing he no longer does.
        (r"\b(?:have |has )?(?:stopped|quit|given up|gave up) (?:being |(?=\w+ing\b))", "no longer "),
        (r"\b(?:am|is|are) (?:done|finished|through) (?:with )?(?:being |(?=\w+ing\b))", "no longer "),
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
    if match := _FRESH.match(clause):
        typed = _typed(match["noun"], match["v"])
        return ([Raw(me, *typed)] if typed else []), me, None
    if match := _DEAD.match(clause):
        owner = me if match["my"] else _fold(match["owner"])
        typed = _typed(match["noun"], match["v"])
        return ([Raw(owner, *typed, positive=False)] if typed else []), owner, None
    if match := _SHIFTED.match(clause):
        owner = me if match["me"] else _fold(match["name"])
        typed = _typed(match["noun"], match["v"])
        return ([Raw(owner, *typed)] if typed else []), owner, None
    if match := _HOME.match(clause):
        return [Raw(me, "residence", fold_value(match["v"]))], me, None
    if match := _HOUSE.match(clause):
        owner = me if match["my"] else _fold(match["owner"])
        return [Raw(owner, "residence", fold_value(match["v"]))], owner, None
    if match := _REACH.match(clause):
        owner = me if match["me"] else last
        typed = _typed("phone", match["v"]) or _typed("email", match["v"])
        return ([Raw(owner, *typed)] if typed and owner else []), owner, None
    if match := _PAYS.match(clause):
        owner = me if match["me"] else _fold(match["name"])
        return [Raw(owner, match["noun"], fold_value(match["v"]).strip("$€£¥ ").replace(",", ""))], owner, None
    if match := _RENAMED.match(clause):
        owner = me if match["me"] else _fold(match["name"])
        whose = me if match["my"] else owner
        return [Raw(f"{whose}'s {_fold(match['relation'])}", "name", fold_value(match["v"]))], owner, None
    if match := _IS_MY.match(clause):
        owner = me if match["my"] else _fold(match["owner"])
        typed = _typed(match["noun"], match["v"])
        if typed and match["v"].split()[0].casefold() not in _NOT_NAMES:
            return [Raw(owner, *typed, current=not match["was"])], owner, None
    if match := _CHANGING.match(clause):
        owner = me if match["me"] else _fold(match["name"])
        typed = _typed(match["noun"], match["v"])
        return ([] if typed is None else [Raw(owner, *typed)]), owner, None
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
        if match["name"] and _PLURAL.match(clause, match.end()):
            return [], None, None  # «Sounds like fun», «Events like these»: no person
        person = subject if subject != me else None
        return _of_person(clause[match.end() :], match, subject), subject, person
    if carried is not None:
        return _of_person(clause, None, carried), carried, None
    return [], None, None


_PLURAL: Final = re.compile(
    rf"{_ADVERBS}(?:like|love|enjoy|live|work|have|drive|study|prefer|own|hate|adore|go|use|are|am)\b"
)


def _of_person(rest: str, head: "re.Match[str] | None", subject: str) -> list[Raw]:
    """What the predicate says, read to its end, else without what only says when and with whom."""
    short = _AFTER.sub("", rest)
    read = _apply(_PERSON_RULES, short, head, subject)
    return _apply(_PERSON_RULES, rest, head, subject) if not read and short != rest else read


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


_WORD: Final = re.compile(r"[a-z]+")
_DIGIT: Final = re.compile(r"\d")
_TRIGGERS: Final = frozenset(
    (
        *_words(
            "live lives living lived reside resides based moved relocated settled moving settling home place work "
            "works",
            "working worked employed joined started began job jobs position role post hired companies employers left",
            "quit resigned retired parted notice fired laid sacked let dismissed lost sold gave given ditched rid "
            "goodbye",
            "scrapped living promoted made switched changed trained retrained became become qualified turned turning",
            "birthday called named goes go by prefers prefer traded swapped gone went off like likes love loves enjoy",
            "enjoys liking loving enjoying adore adores liked loved enjoyed into fond crazy keen fan passionate "
            "obsessed",
            "addicted hooked hate hates dislike dislikes stand detest detests bear interest fallen sick tired bored "
            "over",
            "allergic allergy outgrew outgrown drive drives driving study studies studying studied enrolled student",
            "transferred dropped graduated born married single divorced engaged widowed vegan vegetarian pescatarian",
            "renamed call calls replaced favourite favorite reach text email mail contact pay pays paying using use "
            "uses",
            "longer anymore jan feb mar apr may jun june july aug sep sept oct nov dec january february march april "
            "august",
            "september october november december monday mondays tuesday tuesdays wednesday wednesdays thursday "
            "thursdays",
            "friday fridays saturday saturdays sunday sundays noon midnight user used",
        ),
        *(word for words in (_HEADS, _NOUN_WORDS) for word in words),
        *(word for word in NUMBER_WORDS if word.isascii()),
    )
)

_Rule: TypeAlias = tuple["re.Pattern[str]", Callable[["re.Match[str]", "re.Match[str] | None", str], list[Raw]]]


def _apply(rules: list[_Rule], rest: str, head: "re.Match[str] | None", subject: str) -> list[Raw]:
    for pattern, read in rules:
        if (match := pattern.match(rest)) and (found := read(match, head, subject)):
            return found
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
        if groups.get("old"):
            found.append(Raw(subject, OTHERS, fold_value(match["old"]), positive=False))
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
    value = fold_value(match["old"])
    return [Raw(subject, OTHERS, value, positive=False)] if value.split()[0] not in _VAGUE else []


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


_BE: Final = r"(?:am|is|are)"
_HAVE: Final = r"(?:(?:have|has) )?"
_NO_MORE: Final = (
    rf"(?:(?:am |is |are )?{_ADVERBS}no longer |"
    rf"(?:do|does|am|is|are|have|has) {_ADVERBS}(?:not|never) (?:{_ADVERBS}(?:even |really )?))"
)
_BOUND: Final = (
    r"(?=$|[,.!;](?!\d)| (?:now|today|already|again|years?|and|by now|at last|this|these|yesterday|anymore)\b)"
)
_AS: Final = rf"(?: as an? (?P<job>(?:[\w-]+ ){{0,2}}?(?:{'|'.join(_HEADS)})){_END})?"
_LIKE: Final = (
    r"(?:likes?|loves?|enjoys?|adores?|(?:am|is) (?:very |really |so )?(?:into|fond of|crazy about|keen on|"
    r"passionate about|obsessed with|addicted to|hooked on)|"
    r"(?:am|is) an? (?:\w+ )?fan of)"
)

_DIET: Final = "vegan|vegetarian|pescatarian"
_WASJOB: Final = r"(?:an? |being an? )?[\w -]+?"
_SCHOOL: Final = (
    rf"(?P<v>{_CAP}(?: {_CAP}){{0,3}} (?:University|College|School|Academy|Institute)|(?:the )?University of {_CAP})"
)
_MARITAL: Final = "married|single|divorced|engaged|widowed"


def _job_somewhere(match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
    attribute = "residence" if match["how"].endswith("in") else "employer"
    where = fold_value(match["where"].removesuffix("'s"))
    return [Raw(subject, "occupation", fold_value(match["v"])), Raw(subject, attribute, where)]


def _changed_employer(match: "re.Match[str]", _head: "re.Match[str] | None", subject: str) -> list[Raw]:
    return [
        Raw(subject, "employer", fold_value(match["prior"]), positive=False),
        Raw(subject, "employer", fold_value(match["v"])),
    ]


_PERSON_RULES: Final[list[_Rule]] = [
    # where somebody lives
    _simple(
        "residence",
        rf"{_ADVERBS}(?:lives?|resides?|{_BE} {_ADVERBS}(?:living|based)|(?:have|has) {_ADVERBS}been (?:living|based)) "
        rf"{_ADVERBS}(?:over |out |up |down |back )?(?:in|at) {_PLACE}",
    ),
    _simple("residence", rf"(?:have|has) {_ADVERBS}lived in {_PLACE} (?:since|for|all)\b"),
    _simple(
        "residence",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:moved|relocated|settled|ended up (?:moving|living|settling))"
        rf"(?: back| over| down| away| on| out| up| here)?{_FROM} (?:to|in|into) {_PLACE}",
    ),
    _simple("residence", rf"{_NO_MORE}(?:lives?|living|based|resides?) (?:in|at) {_PLACE}", positive=False),
    _simple("residence", rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:made|call|calls) {_PLACE} (?:(?:my|his|her|our) )?home"),
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
        rf"{_ADVERBS}(?:over |out |down )?(?:at|for|with|by) {_ORGANISATION}{_AS}",
    ),
    _simple(
        "employer",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:joined|(?:started|began)(?: working| work| an? (?:new )?job| my new job)? "
        rf"(?:at|for|with)|(?:got|landed|have|has|found|took|accepted|started|taken) "
        rf"an? (?:new )?(?:\w+ )?(?:job|position|role|post) (?:at|with)|(?:got|was|been) hired (?:by|at)|"
        rf"(?:switched|changed) (?:jobs|companies|employers){_FROM} to) {_ORGANISATION}{_AS}",
    ),
    (
        re.compile(
            rf"{_HAVE}{_ADVERBS}(?:left|quit) (?P<prior>[\w&' .]+?) (?:to work (?:for|at)|and joined) {_ORGANISATION}"
        ),
        _changed_employer,
    ),
    _simple("employer", rf"{_NO_MORE}(?:works?|working|employed) (?:at|for|with|by) {_ORGANISATION}", positive=False),
    _simple(
        "employer",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:(?:quit|left|lost)(?: (?:my|his|her|the) (?:job|position) (?:at|with)| at)?|"
        rf"(?:resigned|retired) from|parted ways with|handed in (?:my|his|her|the) notice at|"
        rf"(?:was|got|been) (?:fired|laid off|let go|sacked|dismissed) (?:from|by)) "
        rf"{_ORGANISATION}(?=$|[,.;!]| (?:and|last|this|after|for|to|in)\b)",
        positive=False,
    ),
    _ended("employer", rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:quit|lost|left) (?:my|his|her|the) job(?=$|[,.;!])"),
    _simple("employer", rf"(?:worked|used to work|was working) (?:at|for|with) {_ORGANISATION}", current=False),
    (
        re.compile(
            rf"{_NO_MORE}(?:in|at|with|using|driving|drives?|uses?) (?:(?:the|my|his|her|an?) )?(?P<old>[^,;]+)$"
        ),
        _replaced,
    ),
    (
        re.compile(rf"{_ADVERBS}{_HAVE}{_ADVERBS}left (?P<old>{_PROPER}) (?:for good|for {_PROPER}|behind)$"),
        _replaced,
    ),
    (
        re.compile(
            rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:sold|gave up|given up|ditched|got rid of|said goodbye to|scrapped) "
            r"(?:(?:the|my|his|her|our) )?(?P<old>[\w' @.&+-]+?)(?: (?:and|to|for)\b.*)?$"
        ),
        _replaced,
    ),
    (
        re.compile(rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:got|received|been given) an? (?:pay )?(?:raise|rise) to (?P<v>.+)"),
        lambda match, _head, subject: [Raw(subject, *typed)] if (typed := _typed("salary", match["v"])) else [],
    ),
    (
        re.compile(rf"{_ADVERBS}(?:uses?|{_BE} using) {_ADVERBS}(?P<v>\S+@\S+|\+?\d[\d ()-]+)(?: as .*)?$"),
        lambda match, _head, subject: [
            Raw(subject, *typed) for noun in ("email", "phone") if (typed := _typed(noun, match["v"]))
        ],
    ),
    # what somebody is
    _free("occupation", rf"{_ADVERBS}(?:works?|{_BE} {_ADVERBS}working) {_ADVERBS}as an? {_JOB}"),
    (
        re.compile(
            rf"{_ADVERBS}{_BE} {_ADVERBS}an? {_JOB} (?P<how>(?:based|living) in|(?:working )?(?:for|at)) "
            rf"(?P<where>{_PROPER})"
        ),
        _job_somewhere,
    ),
    _free("occupation", rf"{_ADVERBS}{_BE} {_ADVERBS}an? {_JOB}"),
    _free("occupation", rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:became|become|qualified as|works as|turned into) an? {_JOB}"),
    _free(
        "occupation",
        rf"{_ADVERBS}(?:makes?|earns?) (?:an?|my|his|her|the) living (?:by working )?as an? {_JOB}",
    ),
    _free(
        "occupation",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:(?:got|was|been) (?:promoted|made)(?: from [\w -]+?)?(?: to| into)?|"
        rf"(?:went|gone) from {_WASJOB} to|(?:switched|changed)(?: careers?| jobs?)?(?: from {_WASJOB})? to|"
        rf"(?:re)?trained (?:and qualified )?as|started as|moved from {_WASJOB} to) (?:an? )?(?:being an? )?{_JOB}",
    ),
    _free("occupation", rf"{_NO_MORE}(?:an? |(?:works?|working|employed) as an? ){_JOB}", positive=False),
    _free("occupation", rf"{_ADVERBS}{_HAVE}{_ADVERBS}quit (?:my job |the job )?as an? {_JOB}", positive=False),
    _free("occupation", rf"(?:was|used to be|worked as|used to work as) an? {_JOB}", current=False),
    _simple("age", rf"{_ADVERBS}{_BE} {_ADVERBS}(?P<v>{_NUMBER})(?: years? old| years of age)?{_BOUND}"),
    _simple(
        "age",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:turned|celebrated turning|reached) (?P<v>{_NUMBER})(?: years? old)?{_BOUND}",
    ),
    _simple("age", rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:had|celebrated) my (?P<v>{_NUMBER})(?:st|nd|rd|th) birthday"),
    _simple("name", rf"{_ADVERBS}{_BE} {_ADVERBS}(?:called|named) (?P<v>{_CAP}(?: {_CAP})?)"),
    _simple("name", rf"{_ADVERBS}goe?s? by (?P<v>{_CAP}(?: {_CAP})?)"),
    _simple("name", rf"(?:was|used to be) (?:called|named) (?P<v>{_CAP}(?: {_CAP})?)", current=False),
    _simple(
        "marital status",
        rf"{_ADVERBS}(?:{_BE}|got|(?:has|have) (?:got|been)) {_ADVERBS}(?P<v>{_MARITAL}){_BOUND}",
    ),
    _simple("marital status", rf"{_NO_MORE}(?P<v>{_MARITAL}){_BOUND}", positive=False),
    _simple(
        "diet",
        rf"{_ADVERBS}(?:{_BE}|{_HAVE}{_ADVERBS}(?:became|become|been|went|gone|turned)) {_ADVERBS}(?:an? )?"
        rf"(?P<v>{_DIET}){_BOUND}",
    ),
    _simple("diet", rf"{_NO_MORE}(?:an? )?(?P<v>{_DIET}){_BOUND}", positive=False),
    (
        re.compile(
            rf"{_ADVERBS}(?:(?:have|has)(?: got)?|owns?|are (?:up|down) to) {_ADVERBS}(?P<v>{_NUMBER}) "
            rf"(?P<noun>[a-z]+(?: [a-z]+)??){_BOUND}"
        ),
        _counted(current=True),
    ),
    (
        re.compile(rf"(?:had|used to have) (?P<v>{_NUMBER}) (?P<noun>[a-z]+)\b"),
        _counted(current=False),
    ),
    (re.compile(rf"{_ADVERBS}prefers? (?P<v>[\w ]+?) (?:to|over|rather than) (?P<other>[\w ]+)"), _preferred),
    (
        re.compile(
            rf"{_HAVE}{_ADVERBS}(?:(?:switched|traded|swapped|changed)(?: in)?(?: from)?|(?:gone|went) from) "
            r"(?:(?:an?|the|my|his|her) )?(?P<old>[\w '&-]+?) (?:to|for) \w"
        ),
        _replaced,
    ),
    # what somebody likes: many at a time
    _free("likes", rf"{_ADVERBS}{_LIKE} (?P<v>.+)"),
    _free("likes", rf"{_ADVERBS}(?:hates?|dislikes?|cannot stand|detests?|cannot bear) (?P<v>.+)", positive=False),
    _free(
        "likes",
        rf"{_NO_MORE}(?:lik(?:es?|ing)|lov(?:es?|ing)|enjoy(?:s|ing)?|into|fond of|keen on|crazy about|"
        r"an? (?:\w+ )?fan of) (?P<v>.+)",
        positive=False,
    ),
    _free(
        "likes",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:(?:gone|went) off|lost (?:all )?(?:my |his |her )?interest in|"
        rf"fallen out of love with|grown (?:tired|sick) of|{_BE} (?:sick of|tired of|bored of)) (?P<v>.+)",
        positive=False,
    ),
    _free("likes", r"(?:used to (?:like|love|enjoy|adore)|liked|loved|enjoyed) (?P<v>.+)", current=False),
    _free("allergy", rf"{_ADVERBS}{_BE} {_ADVERBS}allergic to (?P<v>.+)"),
    _free("allergy", rf"{_NO_MORE}allergic to (?P<v>.+)", positive=False),
    _free("allergy", rf"{_ADVERBS}(?:have|has) an? (?:\w+ )?allergy to (?P<v>.+)"),
    _free(
        "allergy",
        rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:outgrew|outgrown|got over) (?:my|his|her) allergy to (?P<v>.+)",
        positive=False,
    ),
    _free("allergy", r"(?:was|used to be|had been) allergic to (?P<v>.+)", current=False),
    _free("vehicle", rf"{_ADVERBS}(?:drives?|{_BE} {_ADVERBS}driving) an? (?P<v>.+)"),
    _simple(
        "school",
        rf"{_ADVERBS}(?:stud(?:y|ies)|{_BE} {_ADVERBS}(?:studying|enrolled|an? (?:\w+ )?student)|{_HAVE}{_ADVERBS}"
        rf"(?:enrolled|started studying)) at {_ORGANISATION}",
    ),
    _simple("school", rf"{_ADVERBS}(?:goes|go|{_HAVE}(?:transferred|changed|switched){_FROM}) to {_SCHOOL}"),
    _simple(
        "school", rf"{_NO_MORE}(?:stud(?:y|ies|ying)|enrolled|an? (?:\w+ )?student) at {_ORGANISATION}", positive=False
    ),
    _simple("school", rf"{_ADVERBS}{_HAVE}{_ADVERBS}(?:dropped out of|graduated from|left) {_SCHOOL}", positive=False),
    _simple("school", rf"(?:studied|was studying|used to study) at {_ORGANISATION}", current=False),
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
    ("car", "vehicle"),
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
    elif attribute == "vehicle":
        match = re.match(rf"(?:an? |the )?({_PROPER})$", _TAIL.sub("", text))
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
    (re.compile(rf"{_IS}(?:no longer|not) (?P<old>.+?),? but (?:now )?(?P<v>.+)"), _held()),
    (re.compile(rf"{_IS}(?:no longer|not) (?P<v>.+)"), _held(positive=False)),
    (re.compile(rf"{_IS}(?!not\b|no\b)(?P<v>.+)"), _held()),
    (re.compile(r": ?(?P<v>.+)"), _held()),
    (re.compile(rf"{_WAS}(?P<v>.+)"), _held(past=True)),
]
_CHANGING: Final = re.compile(
    rf"(?:(?P<me>I)|(?P<name>{_NAME})) {_HAVE}{_ADVERBS}(?:changed|updated|switched|set) "
    rf"(?:my|his|her|their|the|our) {_NOUN}{_FROM} to (?P<v>.+)"
)
_FRESH: Final = re.compile(rf"(?:.* )?(?:my )?[Nn]ew {_NOUN}(?: is|:)? (?P<v>[+\d(]\S.*|\S+@\S+)$")
_DEAD: Final = re.compile(
    rf"(?:(?P<my>[Mm]y)|(?P<owner>{_NAME})['’]s) (?:old )?{_NOUN} (?P<v>[+\d(][\d ()-]+|\S+@\S+) "
    r"(?:no longer works|does not work|is dead|is disconnected|is not in use|is gone)"
)
_SHIFTED: Final = re.compile(
    rf"(?:(?P<me>I|[Ww]e)|(?P<name>{_NAME})) {_HAVE}{_ADVERBS}(?:gone|went|switched|moved|changed) from "
    rf"(?P<old>.{{1,40}}?) to "
    rf"(?P<v>.{{1,40}}?) as (?:my|his|her|our|their) {_NOUN}"
)
_HOME: Final = re.compile(rf"[Hh]ome is {_ADVERBS}(?:in )?(?P<v>{_PROPER})(?: (?:for me|now))?$")
_HOUSE: Final = re.compile(
    rf"(?:(?P<my>[Mm]y|[Oo]ur)|(?P<owner>{_NAME})['’]s) (?:new )?(?:place|flat|apartment|house|home) is {_ADVERBS}in "
    rf"(?P<v>{_PROPER}){_BOUND}"
)
_REACH: Final = re.compile(
    r"(?:[Yy]ou can |[Pp]lease )?(?:[Nn]ow )?(?:[Rr]each|[Cc]all|[Tt]ext|[Ww]rite|[Ee]-?mail|[Cc]ontact|[Pp]hone) "
    r"(?:(?P<me>me|us)|him|her)(?: now)? (?:at|on|under|to) (?P<v>[\d+(]\S*.*|\S+@\S+.*)$"
)
_PAYS: Final = re.compile(
    rf"(?:(?P<me>I|[Ww]e)|(?P<name>{_NAME})) {_ADVERBS}(?:pays?|{_BE} paying) {_ADVERBS}(?P<v>[$€£¥]?\s?\d[\d,.]*) "
    rf"?(?:\w+ )??"
    r"(?:(?:a|per|each|every) month )?(?:in|for|as|of) (?:my |the |his |her )?(?P<noun>rent|mortgage)\b"
)
_RENAMED: Final = re.compile(
    rf"(?:(?P<me>I|[Ww]e)|(?P<name>{_NAME})) {_HAVE}{_ADVERBS}(?:renamed|call|calls|named) (?:(?P<my>my|our)|the|"
    rf"his|her|their) "
    rf"(?P<relation>{_RELATION})(?: from {_CAP})?(?: to| as)? (?P<v>{_CAP}){_BOUND}"
)
_IS_MY: Final = re.compile(
    rf"(?P<v>[+\w][\w' @.()+-]{{1,40}}?) (?:is|(?P<was>was|used to be)|(?:has )?replaced [\w. -]+ as|(?:took|has "
    rf"taken) over"
    rf"(?: from [\w. -]+)? as|became) {_ADVERBS}(?:(?P<my>my|our)|(?P<owner>{_NAME})['’]s) "
    rf"(?:{_QUALIFIER}){_NOUN}{_BOUND}"
)
_NEW: Final = r"(?:brand[ -])?new"
_OLD_ONE: Final = re.compile(
    rf"(?:(?P<my>[Mm]y|[Oo]ur)|(?P<pronoun>[Hh]is|[Hh]er)|(?P<owner>{_NAME})['’]s?) {_QUALIFIER}{_NOUN} "
    r"(?:(?:is|are) (?:not|no longer)|was|used to be) "
)
_THAT_IS_MY: Final = re.compile(rf"(?:[Tt]hat|[Ii]t|[Tt]his) is {_ADVERBS}my (?:{_NEW} )?{_NOUN}{_BOUND}")
_NEW_ONE: Final = re.compile(
    rf"(?:(?P<me>I|[Ww]e)|(?P<pronoun>[Hh]e|[Ss]he)|(?P<name>{_NAME})) {_HAVE}{_ADVERBS}"
    rf"(?:(?:have |has |got |have got |has got )an? {_NEW} |(?:changed|switched) (?:my |his |her |the |our |their "
    rf")?){_NOUN}$"
)
_NOTED: Final = re.compile(
    rf"(?:[Pp]lease )?(?:[Ss]ave|[Nn]ote|[Uu]pdate|[Uu]se|[Ww]rite down|[Rr]emember|[Hh]ere is) (?P<my>my) "
    rf"(?:{_NEW} )?{_NOUN}$"
)
_FAVOURITE: Final = re.compile(
    rf"(?P<v>[\w' -]{{2,40}}?) is {_ADVERBS}my {_ADVERBS}(?P<noun>favou?rite [\w-]+){_BOUND}"
)


# --- of things: when they take place, what they cost --------------------------------------------------------------


def _dated(subject: str, match: "re.Match[str]", *, current: bool = True, positive: bool = True) -> list[Raw]:
    if match["day"]:
        return [Raw(subject, "day", _ordinal(match["day"]), positive, current)]
    return [Raw(subject, "hour", fold_value(match["hour"]).replace(" ", ""), positive, current)]


def _moved(match: "re.Match[str]") -> Iterator[Raw]:
    yield from _dated(f"the {_fold(match['thing'] or match['thing2'] or match['thing3'])}", match)


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
            rf"{_ADVERBS}(?:is|are|takes place|happens|starts|begins|meets|runs|opens|leaves|departs) "
            rf"{_ADVERBS}(?:due |held |scheduled for )?(?:(?:on|at|every|each|by) )?{_WHEN}"
        ),
        lambda match, _head, subject: _dated(subject, match),
    ),
    (
        re.compile(
            rf"(?:{_WAS}|used to |(?:started|began|took place|happened|met) )(?:originally )?(?:be |start |begin |"
            rf"happen |meet )?"
            rf"(?:due |held )?(?:(?:on|at|every|each|by) )?{_WHEN}"
        ),
        lambda match, _head, subject: _dated(subject, match, current=False),
    ),
    (
        re.compile(rf"(?:is|are) {_ADVERBS}(?:no longer|not) (?:held |due )?(?:(?:on|at|every|each|by) )?{_WHEN}"),
        lambda match, _head, subject: _dated(subject, match, positive=False),
    ),
    (
        re.compile(rf"will {_ADVERBS}be (?:(?:on|at|every|each) )?{_WHEN} from now on"),
        lambda match, _head, subject: _dated(subject, match),
    ),
    (re.compile(rf"{_CHANGED}(?P<v>.+)"), _named_thing),
    (re.compile(rf"{_IS}(?P<v>.+)"), _named_thing),
]
_MOVING: Final = re.compile(
    rf"(?:(?:They|We|I|they|we|He|She) {_HAVE}{_ADVERBS}(?:moved|shifted|rescheduled|postponed|pushed|changed) "
    rf"(?:the|our) "
    rf"(?P<thing>[\w' -]{{1,60}}?)(?: back| forward)?{_FROM} to|(?:We|we) (?:now )?have (?:the|our) (?P<thing2>[\w' "
    rf"-]{{1,60}}?) (?:on|at)|"
    rf"New (?P<thing3>[\w' -]{{1,60}}?):) (?:the )?{_WHEN}"
)
