"""The analyzer: what a text is made of as index terms."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from vimbank.domain.text import MAX_QUERY_TERMS, STOP_WORDS, analyze, analyze_query, analyzer_identity, latin_share


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("ZX-4471", ["zx-4471", "zx", "4471"]),
        ("PR #682", ["pr", "#682", "682"]),
        ("foo_bar", ["foo_bar", "foo", "bar"]),
        (r"C:\path\x", [r"c:\path\x", "c", "path", "x"]),
        ("k=60", ["k=60", "k", "60"]),
        ("$prev", ["$prev", "prev"]),
        ("e-mail", ["e-mail", "e", "mail"]),
        ("version 3.11", ["version", "3.11", "3", "11"]),
        ("ann@mail.org", ["ann@mail.org", "ann", "mail", "org"]),
        ("C++ C#", ["c++", "c", "c#", "c"]),
        ("std::sort", ["std::sort", "std", "sort"]),
        ("1,000 km", ["1000", "1", "000", "km"]),
        ("U.S. J.R.R.", ["us", "jrr"]),
        ("getUserName GetUserName", ["getusername", "get", "user", "name"] * 2),
        ("McDonald YouTube", ["mcdonald", "youtub"]),
        ("A sentence.Another, one", ["a", "sentence.another", "sentenc", "anoth", "one"]),
    ],
)
def test_identifiers_are_kept_whole_and_split(text: str, terms: list[str]) -> None:
    assert analyze(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("user's users’ user", ["user", "user", "user"]),
        ("I'm we've they'll", ["i", "we", "they"]),
        ("don't DON’T", ["dont", "dont"]),
        ("O'Brien", ["obrien", "o", "brien"]),
        ("running runs run", ["run", "run", "run"]),
        ("does Doe", ["does", "doe"]),  # a stop word is not stemmed
        ("x1ing", ["x1ing"]),  # neither is a word with digits
        ("бегущие", ["бегущие"]),  # nor one of another alphabet
    ],
)
def test_words_are_stemmed(text: str, terms: list[str]) -> None:
    assert analyze(text) == terms


def test_case_40_query_and_document_are_stemmed_alike() -> None:
    assert analyze_query("marathon run") == ["marathon", "run"]
    assert {"marathon", "run"} <= set(analyze("she was running marathons"))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("咖啡", ["咖", "啡", "咖啡"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー", "東京", "京タ", "タワ", "ワー"]),
        ("커피를", ["커", "피", "를", "커피", "피를"]),
        ("กาแฟ", ["กา", "าแ", "แฟ"]),  # pairs alone: a letter of an alphabet says nothing
        ("ก", ["ก"]),
        ("iPhone手机", ["iphone", "i", "phone", "手", "机", "手机"]),
        ("ｶﾀｶﾅ", ["カ", "タ", "カ", "ナ", "カタ", "タカ", "カナ"]),
    ],
)
def test_unspaced_scripts_give_pairs_and_single_characters(text: str, terms: list[str]) -> None:
    assert analyze(text) == terms


def test_case_39_pairs_do_not_cross_a_space() -> None:
    assert "京大" not in analyze("東京 大阪")
    assert "京大" not in analyze_query("東京 大阪")


def test_case_46_composed_decomposed_and_full_width_are_one() -> None:
    assert analyze("caf\u00e9") == analyze("cafe\u0301") == ["café", "cafe"]
    assert analyze("\uff21\uff22\uff23") == analyze("ABC") == ["abc"]
    assert "cafe" in analyze_query("cafe")  # and without the accent


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),  # vowel signs belong to their word
        ("İstanbul", ["i̇stanbul", "istanbul"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("so\u00adft wor\u200cd a\u200bb", ["soft", "word", "a", "b"]),
        ("x🎉🎂", ["x", "🎉", "🎂"]),
        ("مُحَمَّد محمد", ["مُحَمَّد", "محمد", "محمد"]),
    ],
)
def test_other_scripts(text: str, terms: list[str]) -> None:
    assert analyze(text) == terms


@pytest.mark.parametrize("text", ["", "   ", "*", "( [ { / ~ ^ \\", "...", "\u200b", "\x00", "'", '"'])
def test_no_words_no_terms(text: str) -> None:
    assert analyze(text) == []
    assert analyze_query(text) == []


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("#682", ["#682", "682"]),
        ("k=60", ["k=60", "k", "60"]),
        ("what?", ["what"]),
        ("a AND (b", ["b"]),
        ('"open', ["open"]),
        ("foo:bar", ["foo:bar", "foo", "bar"]),
        ("-x", ["x"]),
        ("NEAR(", ["near"]),
        ("AND OR NOT ( [ { / ~ ^ \\", ["and", "or", "not"]),
    ],
)
def test_cases_42_43_punctuation_is_no_syntax(query: str, terms: list[str]) -> None:
    assert analyze_query(query) == terms


def test_stop_words_leave_queries_alone() -> None:
    assert analyze_query("what did the corgi do in May") == ["corgi", "may"]
    assert analyze_query("to be or not to be") == ["to", "be", "or", "not"]
    assert analyze("to be or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert {"may", "us", "mine"}.isdisjoint(STOP_WORDS)


def test_query_terms_are_distinct_in_order() -> None:
    assert analyze_query("tea coffee tea coffees milk") == ["tea", "coffe", "milk"]


def test_case_57_the_first_terms_of_a_long_query_count() -> None:
    words = [f"word{i}" for i in range(5_000)]
    assert analyze_query(" ".join(words)) == words[:MAX_QUERY_TERMS]
    assert analyze_query("a-b c-d", max_terms=4) == ["a-b", "b", "c-d", "c"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["x ", "a-", "a.", "1,", "a", "_", "a::", "'", "x'", "aB", "é\u0301", "你", "("])
def test_case_57_300_kb_are_read_in_linear_time(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    assert len(analyze_query(text)) <= MAX_QUERY_TERMS
    assert max(map(len, analyze(text)), default=0) <= 255


def test_an_endless_word_is_taken_in_pieces() -> None:
    assert [len(term) for term in analyze("a" * 600)] == [255, 255, 90]


def test_lone_surrogates_do_no_harm() -> None:
    assert "tea" in analyze("tea \ud83d \udc00")


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns so often that they meet inside the stemmer."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_share_the_stemmer() -> None:
    words = [f"{a}{b}{stem}ing" for a in "abcdefgh" for b in "aeiou" for stem in ("walk", "zoom", "relat")]
    alone = [analyze(word.upper()) for word in words]
    with ThreadPoolExecutor(8) as pool:  # lower case is another key of the analyzer's cache: all are stemmed anew
        assert list(pool.map(analyze, words)) == alone


def test_identity_names_rules_and_stemmer() -> None:
    assert analyzer_identity().startswith("vimbank-1/snowball-")


@pytest.mark.parametrize(
    ("text", "share"),
    [("What is her cat called?", 1.0), ("naïve café", 1.0), ("我喜欢喝咖啡", 0.0), ("買 ZX", 2 / 3), ("42 - 7 =", 1.0),
     ("", 1.0), ("\uff21\uff22\uff23", 1.0), ("кот cat", 0.5)],
)  # fmt: skip
def test_latin_share(text: str, share: float) -> None:
    assert latin_share(text) == pytest.approx(share)
