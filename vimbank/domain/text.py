"""The one analyzer of the sparse leg: what a document and a query are made of as index terms (V-17, cases 39-46).

Both sides take the same path, so a word is found however it was written: Unicode NFKC, case folded, identifiers
kept whole and split, English stems, overlapping pairs of characters for scripts that do not space their words.
Only the choice of terms differs: a document keeps its stop words, a query drops them where it says more.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from threading import Lock
from typing import Any, Final

import snowballstemmer

__all__ = [
    "ANALYZER_VERSION",
    "MAX_QUERY_TERMS",
    "STOP_WORDS",
    "analyze",
    "analyze_query",
    "analyzer_identity",
    "latin_share",
]

MAX_QUERY_TERMS: Final = 1_024
"""Distinct terms of a query that count; what follows them is ignored (case 57)."""

ANALYZER_VERSION: Final = "1"
"""Grows whenever the same text may give other terms."""

_MAX_TERM_CHARS: Final = 255
_CACHED_CHARS: Final = 48
_SHARE_CHARS: Final = 2_000  # enough of a text to tell its script

# What English questions are built of, not about: articles, prepositions, pronouns, auxiliaries, question words.
# Left out on purpose, because they name things as well: may (the month), us (the country), mine.
_STOP_WORDS: Final = (
    "a an the this that these those there here and or but if then than so as also not no nor just very too only such "
    "at by for from in into of off on onto to with about up down out over under again "
    "i me my myself we our ours ourselves you your yours yourself he him his himself she her hers herself it its "
    "itself they them their theirs themselves "
    "be am is are was were been being do does did done doing have has had having "
    "can could shall should will would might must "
    "dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt hasnt havent hadnt "
    "what which who whom whose when where why how"
)
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""English words that a query does without. They are not stemmed: ``does`` is no ``doe``."""

# Han, kana, bopomofo: one run may mix them, as Japanese does.
_CJK: Final = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u3105-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_HANGUL: Final = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
# Thai, Lao, Tibetan, Myanmar, Khmer: an alphabet without spaces, where one letter says nothing.
_LETTERS_UNSPACED: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e",
    "\u0e81-\u0ece",
    "\u0f40-\u0fbc",
    "\u1000-\u103f\u1050-\u109f",
    "\u1780-\u17d3",
)
_UNSPACED: Final = _CJK + _HANGUL + "".join(_LETTERS_UNSPACED)
# Combining marks belong to their word, but \w leaves them out; the Indic blocks are taken whole but for the dandas.
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u096f\u0971-\u0dff\u1ab0-\u1aff"
    "\u1dc0-\u1dff"
)
_EMOJI: Final = "\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff"

# What may stand between two parts of one identifier: C:\path, a.b@c.de, foo_bar, ns::name, k=60, 1,000.
_JOINT: Final = r"(?:::|:[\\/]{1,2}|->|_+|[-./\\:=@+&'~#]|(?<=\d),(?=\d))"


def _chunk_pattern(word: str) -> str:
    return rf"[#$@]?{word}(?:{_JOINT}{word})*+(?:\+\+|\#)?+"


_ASCII_CHUNK: Final = re.compile(_chunk_pattern("[A-Za-z0-9]++"))
_ANY_CHUNK: Final = re.compile(
    "|".join(
        [
            f"[{_CJK}]+",
            f"[{_HANGUL}]+",
            *(f"[{letters}]+" for letters in _LETTERS_UNSPACED),
            f"[{_EMOJI}]",
            _chunk_pattern(rf"(?:[^\W_{_UNSPACED}]++|[{_MARKS}]++)++"),
        ]
    )
)
_PAIRS_AND_SINGLES: Final = re.compile(f"[{_CJK}{_HANGUL}]")
_PAIRS: Final = re.compile(f"[{''.join(_LETTERS_UNSPACED)}]")
_PART: Final = re.compile(rf"(?:[^\W_]++|[{_MARKS}]++)++")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CAMEL_CASE: Final = re.compile(r"[a-z]+[A-Z]|.*[a-z][A-Z]+[a-z]+[A-Z]")  # getUser, GetUserName; but not McDonald
_CONTRACTION: Final = re.compile(r"'(?:s|m|re|ve|ll|d)(?![^\W_])", re.IGNORECASE)
_INITIALS: Final = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_LATIN_WORD: Final = re.compile(r"[a-z\u00df-\u024f]{3,}")
_INVISIBLE: Final = {0x2019: "'", 0x02BC: "'", 0x200B: " "} | dict.fromkeys(
    [0x00AD, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10)], None
)


def analyze(text: str) -> list[str]:
    """The terms of a document, in order, with repeats.

    ``ZX-4471`` gives ``zx-4471 zx 4471``; ``#682`` gives ``#682 682``; ``user's`` gives ``user``; ``running``
    gives ``run``; ``café`` gives ``café cafe``; ``東京都`` gives ``東 京 都 東京 京都``. [] for a text without words.
    """
    terms: list[str] = []
    for chunk in _chunks(text):
        # Long chunks seldom come twice, and would make the cache as large as the texts.
        terms.extend(_cached_terms(chunk) if len(chunk) <= _CACHED_CHARS else _terms(chunk))
    return terms


def analyze_query(text: str, *, max_terms: int = MAX_QUERY_TERMS) -> list[str]:
    """The distinct terms of a query in the order of their first use, at most ``max_terms`` (case 57).

    Stop words are left out unless the query has nothing else ("to be or not to be"). Any text is accepted: there
    is no query syntax to get wrong (cases 42, 43). The first ``max_terms`` terms count, the others are ignored.
    """
    terms: dict[str, None] = {}
    stops: dict[str, None] = {}
    for chunk in _chunks(text):
        for term in _cached_terms(chunk) if len(chunk) <= _CACHED_CHARS else _terms(chunk):
            if term in STOP_WORDS:
                stops[term] = None
            else:
                terms[term] = None
        if len(terms) >= max_terms:
            break
    return list(terms or stops)[:max_terms]


def analyzer_identity() -> str:
    """Names what makes two sets of terms comparable; an index built under another identity has to be rebuilt."""
    return f"vimbank-{ANALYZER_VERSION}/snowball-{version('snowballstemmer')}"


def _chunks(text: str) -> list[str]:
    """Words, identifiers and runs of unspaced script, in order."""
    if not text.isascii():
        text = text.translate(_INVISIBLE)
    if text.isascii():
        return _ASCII_CHUNK.findall(text)
    return _ANY_CHUNK.findall(unicodedata.normalize("NFKC", text))


def _terms(chunk: str) -> tuple[str, ...]:
    if not chunk.isascii():
        if _PAIRS_AND_SINGLES.match(chunk):
            return (*chunk, *_pairs(chunk))
        if _PAIRS.match(chunk):
            return _pairs(chunk) or (chunk,)
    return tuple(_word_terms(chunk))


_cached_terms = lru_cache(maxsize=65_536)(_terms)


def _pairs(run: str) -> tuple[str, ...]:
    return tuple(run[i : i + 2] for i in range(len(run) - 1))


def _word_terms(chunk: str) -> Iterator[str]:
    """A word's stem, or an identifier whole and then its parts."""
    if "'" in chunk:
        chunk = _CONTRACTION.sub("", chunk).replace("n't", "nt").replace("N'T", "NT")
    if _INITIALS.fullmatch(chunk):
        yield from _forms(chunk.replace(".", ""))
        return
    parts = [piece for part in _PART.findall(chunk) for piece in _camel_parts(part)]
    if len(parts) == 1 and parts[0] == chunk:
        yield from _forms(chunk)
        return
    if len(chunk) <= _MAX_TERM_CHARS:
        yield _fold(chunk.replace("'", "").replace(",", ""))
    for part in parts:
        yield from _forms(part)


def _camel_parts(part: str) -> list[str]:
    return _CAMEL.split(part) if _CAMEL_CASE.match(part) else [part]


def _forms(word: str) -> Iterator[str]:
    """The stem of a word, and the same without accents where it has any; in pieces where it is endless."""
    word = _fold(word)
    if len(word) > _MAX_TERM_CHARS:
        yield from (word[i : i + _MAX_TERM_CHARS] for i in range(0, len(word), _MAX_TERM_CHARS))
        return
    yield _stem(word)
    if not word.isascii():
        plain = _without_accents(word)
        if plain and plain != word:
            yield _stem(plain)


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    # Folding can undo the normal form, as Unicode's own NFKC_Casefold allows for.
    return unicodedata.normalize("NFKC", word.casefold())


def _without_accents(word: str) -> str:
    # Classes below 10 are no accents: viramas and nuktas, without which an Indic word is another word.
    kept = (c for c in unicodedata.normalize("NFD", word) if unicodedata.combining(c) < 10)
    return unicodedata.normalize("NFC", "".join(kept))


_stemmer: Final[Any] = snowballstemmer.stemmer("english")
_stemmer_lock: Final = Lock()  # the stemmer works in its own attributes


def _stem(word: str) -> str:
    if word in STOP_WORDS or not _LATIN_WORD.fullmatch(word):
        return word
    with _stemmer_lock:
        return str(_stemmer.stemWord(word))


def latin_share(text: str) -> float:
    """The share of the letters that are Latin ones, with or without accents, in [0, 1]; 1 where there is no letter."""
    letters = [char for char in unicodedata.normalize("NFKC", text[:_SHARE_CHARS]) if char.isalpha()]
    if not letters:
        return 1.0
    return sum(char <= "\u024f" or "\u1e00" <= char <= "\u1eff" for char in letters) / len(letters)
