"""One English sentence: what is not testimony left out, the rest cut into clauses. Pure."""

import re
from typing import Final

from vimbank.domain.statement_values import NUMBER_WORDS, Raw
from vimbank.domain.statements_en.clauses import read_clause
from vimbank.domain.statements_en.neighbours import Topic, read_follow_up, read_looking_back, topic_of
from vimbank.domain.statements_en.phrases import HEADS, NOUN_WORDS, split_words

__all__ = ["read_english"]

_WORD: Final = re.compile(r"[a-z]+")
_DIGIT: Final = re.compile(r"\d")
_TRIGGERS: Final = frozenset(
    (
        *split_words(
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
        *(word for words in (HEADS, NOUN_WORDS) for word in words),
        *(word for word in NUMBER_WORDS if word.isascii()),
    )
)

_TAG: Final = re.compile(
    r",? (?:can you believe (?:it|that|this)|how (?:cool|great|crazy|exciting|lucky) is that|guess what|who "
    r"knew)\?+\s*$",
    re.IGNORECASE,
)
_IF: Final = re.compile(r"\b(?:if|whether|unless|as if|in case|suppose|what if|once)\b|[\"“”«»]", re.IGNORECASE)
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
_CLAUSES: Final = re.compile(
    r"(?:\s*[;—–]\s*|,\s+|\s+-\s+|\s+)(?:and|but|so|because|though|although|while)\s+(?=(?:I|he|she|it|we|they|my|"
    r"his|her|now|then|finally|recently|just|currently|lives?|works?|moved|joined|loves?|likes?|hates?|has|have|is|am|was|"
    r"left|started|got|became|become|quit|enjoys?|prefers?|turned|settled|drives?|bought|not|no longer|switched|"
    r"changed|relocated|sold|studies|uses?|goes)\b)|\s*[;—–]\s*|,\s+|\s+-\s+|:\s+(?=(?:I|[Ww]e|[Hh]e|[Ss]he|[Mm]y|[Tt]he)\b)"
)
_PREFIX: Final = re.compile(
    r"(?:actually|well|oh|ok|okay|so|yes|yeah|no|hey|hi|hello|also|and|but|now|currently|today|nowadays|lately|"
    r"recently|finally|sadly|luckily|update|fyi|btw|by the way|big news|good news|bad news|news|great news|"
    r"just so you know|for the record|note|reminder|correction|turns out|it turns out that|as you know|these days|"
    r"at the moment|as of (?:today|now)|from now on|"
    r"starting (?:today|now|this (?:week|month))|after \w+(?: \w+){1,5}?(?= I )|"
    r"right now|this (?:week|month|year|morning)|last (?:week|month|year)|yesterday|"
    r"then|since (?:then|(?:last )?\w+(?: \d{4})?)|i mean|remember|please note|please remember|good to know)"
    r"(?:[,:!]| that| -)? ",
    re.IGNORECASE,
)
_BARE: Final = re.compile(
    r"(?P<adverbs>(?:(?:just|finally|recently|officially|now|also|no longer|not) )*)"
    r"(?P<verb>(?P<ing>living|working|studying|driving|based)|moved|relocated|turned|got|joined|started|quit|switched|"
    r"changed|became|transferred|left|sold|gave up|went)\b (?!me\b|you\b|him\b|her\b|us\b|out\b|off\b|back\b)",
    re.IGNORECASE,
)
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
    topic: Topic | None = None
    before = ""
    for number, clause in enumerate(_CLAUSES.split(text.rstrip(" .!"))):
        if _UNSURE.search(clause):
            return found, unread + 1, last
        clause, named = _without_prefix(clause), last
        if number == 0:
            clause = _with_subject(clause)
        read = read_follow_up(clause, topic, found) or read_looking_back(clause, before, me=me)
        before = clause
        if not read:
            topic = topic_of(clause, me=me, last=last)
            read, subject, named = read_clause(clause, me=me, last=last, carried=subject)
        last = named or last
        found.extend(read)
        unread += not read and _says_something(clause)
    return found, unread, last


def _expand(text: str) -> str:
    text = text.replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        text = pattern.sub(full, text)
    return text


def _without_prefix(clause: str) -> str:
    clause = clause.strip()
    while match := _PREFIX.match(clause):
        clause = clause[match.end() :]
    return clause


def _with_subject(clause: str) -> str:
    """«Moved to Oslo», «no longer working there»: who leaves himself out means himself."""
    match = _BARE.match(clause)
    if match is None:
        return clause
    return f"I {'am ' if match['ing'] else ''}{clause[0].lower()}{clause[1:]}"


def _says_something(clause: str) -> bool:
    """Whether a clause that was not read may hold a fact: not so a single word, or one more name («Oslo, Norway»)."""
    words = clause.split()
    return len(words) > 2
