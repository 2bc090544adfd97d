"""Cases of section C at the level of analyzer and index: text in, rows out."""

from collections.abc import Callable

import pytest

from vimbank.domain.text import analyze, analyze_query
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.indexes.sparse.rank_bm25 import RankBM25Index
from vimbank.ports import SparseIndex


@pytest.fixture(params=[PostingsIndex, RankBM25Index])
def find(request: pytest.FixtureRequest) -> Callable[..., list[int]]:
    def rows(query: str, *texts: str) -> list[int]:
        """The rows with a score, best first."""
        index: SparseIndex = request.param()
        index.append([analyze(text) for text in texts])
        scores = index.score(analyze_query(query)).scores
        return sorted((row for row in range(len(texts)) if scores[row] > 0), key=lambda row: -scores[row])

    return rows


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("咖啡", ["我喜欢喝咖啡", "明天去北京开会"]),
        ("タワー", ["東京タワーに行った", "大阪で食べる"]),
        ("커피", ["커피를 좋아해", "내일 서울에 가요"]),
        ("กาแฟ", ["ฉันชอบกาแฟ", "พรุ่งนี้ไปเชียงใหม่"]),
    ],
)
def test_case_39_only_the_text_with_the_word(find: Callable[..., list[int]], query: str, texts: list[str]) -> None:
    assert find(query, *texts) == [0]


def test_case_39_a_pair_beats_single_characters(find: Callable[..., list[int]]) -> None:
    assert find("東京 大阪", "京大に入る", "東京に行く", "大阪に住む")[-1] == 0


def test_case_40_both_sides_are_stemmed(find: Callable[..., list[int]]) -> None:
    assert find("marathon run", "she was running marathons", "he slept") == [0]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("#682", "PR #682 was merged"),
        ("682", "PR #682 was merged"),
        ("k=60", "RRF with k=60"),
        ("$prev", "use $prev here"),
        (r"C:\path\x", r"it lies in C:\path\x"),
        ("foo:bar", "the key foo:bar"),
        ("zx-4471", "ticket ZX-4471 is open"),
        ("4471", "ticket ZX-4471 is open"),
        ('"open', "the door is open"),
        ("NEAR(", "near the sea"),
        ("AND OR NOT ( [ { / ~ ^ \\", "this or that"),
    ],
)
def test_cases_42_43_punctuation_breaks_nothing(find: Callable[..., list[int]], query: str, text: str) -> None:
    assert find(query, "something else altogether", text) == [1]


def test_case_42_the_whole_identifier_ranks_first(find: Callable[..., list[int]]) -> None:
    assert find("ZX-4471", "ZX-9000 and 4471 apart", "about ZX-4471 alone", "ZX-4472")[0] == 1


@pytest.mark.parametrize(
    ("query", "text"),
    [("cafe\u0301", "caf\u00e9"), ("caf\u00e9", "cafe\u0301"), ("ABC", "\uff21\uff22\uff23"), ("cafe", "café")],
)
def test_case_46_normal_forms_match(find: Callable[..., list[int]], query: str, text: str) -> None:
    assert find(query, "tea", f"the {text} here") == [1]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("query", [" ".join(f"word{i}" for i in range(5_000)), "lorem ipsum " * 25_000])
def test_case_57_long_queries_are_answered(find: Callable[..., list[int]], query: str) -> None:
    assert find(query + " last", "word7 lorem", "nothing") == [0]


def test_case_58_one_shared_word_is_enough(find: Callable[..., list[int]]) -> None:
    query = "do you remember what kind of dog I have, my corgi, and its name"
    assert find(query, "I adopted a corgi named Biscuit", "the weather is fine") == [0]


def test_case_148_a_rare_word_outranks_common_ones(find: Callable[..., list[int]]) -> None:
    common = [f"the team meets about project plan budget week report number {i}" for i in range(2_000)]
    common[1_234] = "a note of Zyxnor"
    assert 1_234 in find("project plan budget week report number team meets Zyxnor", *common)[:5]
