"""Cases of section C on every sparse backend, with equal answers: text in, rows out; and add then search (case 47)."""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.cases.doors import settings
from tests.elasticsearch_kit import bookshelf, change, lexical, servers
from tests.services import service_url
from vimbank.domain.models import MemoryDraft, Query
from vimbank.domain.text import analyze, analyze_query
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.indexes.sparse.rank_bm25 import RankBM25Index
from vimbank.ports import SparseIndex
from vimbank.wiring import open_service

Find = Callable[..., list[int]]
IN_PROCESS: Mapping[str, Callable[[], SparseIndex]] = {"postings": PostingsIndex, "rank-bm25": RankBM25Index}


def _in_process(kind: str) -> Find:
    def rows(query: str, *texts: str) -> list[int]:
        index: SparseIndex = IN_PROCESS[kind]()
        index.append([analyze(text) for text in texts])
        scores = index.score(analyze_query(query)).scores
        return sorted((row for row in range(len(texts)) if scores[row] > 0), key=lambda row: -scores[row])

    return rows


def _in_elasticsearch(server: str) -> Iterator[Find]:
    with bookshelf(server, banks=("dialog",)) as shelf:

        def rows(query: str, *texts: str) -> list[int]:
            # Row by row as in process: the number tells the row.
            shelf.put([change(number, text) for number, text in enumerate(texts, 1)])
            index = shelf.index()
            leg = shelf.sparse.search(index, lexical(query), allowed=None, limit=len(texts))
            scores = leg.score(leg.rows)
            best = sorted(range(len(scores)), key=lambda at: -scores[at])
            return [int(index.column("number")[leg.rows[at]]) - 1 for at in best]

        yield rows


@pytest.fixture(params=[*IN_PROCESS, *servers("similarity")])
def find(request: pytest.FixtureRequest) -> Iterator[Find]:
    """The rows with a score, best first."""
    if request.param in IN_PROCESS:
        yield _in_process(request.param)
    else:
        yield from _in_elasticsearch(request.param)


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("咖啡", ["我喜欢喝咖啡", "明天去北京开会"]),
        ("タワー", ["東京タワーに行った", "大阪で食べる"]),
        ("커피", ["커피를 좋아해", "내일 서울에 가요"]),
        ("กาแฟ", ["ฉันชอบกาแฟ", "พรุ่งนี้ไปเชียงใหม่"]),
    ],
)
def test_case_39_only_the_text_with_the_word(find: Find, query: str, texts: list[str]) -> None:
    assert find(query, *texts) == [0]


def test_case_39_a_pair_beats_single_characters(find: Find) -> None:
    assert find("東京 大阪", "京大に入る", "東京に行く", "大阪に住む")[-1] == 0


def test_case_40_both_sides_are_stemmed(find: Find) -> None:
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
def test_cases_42_43_punctuation_breaks_nothing(find: Find, query: str, text: str) -> None:
    assert find(query, "something else altogether", text) == [1]


def test_case_42_the_whole_identifier_ranks_first(find: Find) -> None:
    assert find("ZX-4471", "ZX-9000 and 4471 apart", "about ZX-4471 alone", "ZX-4472")[0] == 1


@pytest.mark.parametrize(
    ("query", "text"),
    [("cafe\u0301", "caf\u00e9"), ("caf\u00e9", "cafe\u0301"), ("ABC", "\uff21\uff22\uff23"), ("cafe", "café")],
)
def test_case_46_normal_forms_match(find: Find, query: str, text: str) -> None:
    assert find(query, "tea", f"the {text} here") == [1]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("query", [" ".join(f"word{i}" for i in range(5_000)), "lorem ipsum " * 25_000])
def test_case_57_long_queries_are_answered(find: Find, query: str) -> None:
    assert find(query + " last", "word7 lorem", "nothing") == [0]


def test_case_58_one_shared_word_is_enough(find: Find) -> None:
    query = "do you remember what kind of dog I have, my corgi, and its name"
    assert find(query, "I adopted a corgi named Biscuit", "the weather is fine") == [0]


def test_case_148_a_rare_word_outranks_common_ones(find: Find) -> None:
    common = [f"the team meets about project plan budget week report number {i}" for i in range(2_000)]
    common[1_234] = "a note of Zyxnor"
    assert 1_234 in find("project plan budget week report number team meets Zyxnor", *common)[:5]


@pytest.mark.parametrize("server", servers())
def test_case_47_what_was_just_added_is_found_100_times_of_100(server: str, tmp_path: Path) -> None:
    """Read-your-writes is the default, whatever the engine's refresh interval."""
    url, prefix = service_url(server), f"vbtest-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    patient = {"url": url, "prefix": prefix, "search_timeout_s": 10, "catch_up_timeout_s": 20}
    found, took_s = 0, 0.0
    try:
        with open_service(settings(tmp_path, index={"sparse": "elasticsearch"}, elasticsearch=patient)) as service:
            for number in range(100):
                draft = MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=f"fact{number} of the pier")
                added = service.add(draft)
                asked = Query(tenant="default", user_id="ana", text=f"fact{number}", fusion="sparse", reinforce=False)
                started = time.perf_counter()
                recall = service.search(asked)
                took_s += time.perf_counter() - started
                found += [each.memory.id for each in recall.results] == [added.id] and not recall.degraded
    finally:
        _remove(url, prefix)
    print(f"case 47, {server}: {found} of 100 found, a search right after an add takes {10 * took_s:.1f} ms")
    assert found == 100


def _remove(url: str, prefix: str) -> None:
    client = ElasticsearchClient.connect([url])
    for index in client.ask("GET", f"/{prefix}-*/_mapping"):
        client.ask("DELETE", f"/{index}")
    client.close()
