"""Loaders of published sets: on tiny files of the same layout, and on the real ones where they are."""

import gzip
import json
import os
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from vimbank.errors import InvalidInput
from vimbank.eval.retrieval import evaluate, to_markdown
from vimbank.ingestion.datasets import LOADERS


def write(path: Path, *rows: Mapping[str, Any], packed: bool = False) -> None:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    if packed:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)


@pytest.fixture
def hotpotqa(tmp_path: Path) -> Path:
    write(tmp_path / "corpus.jsonl", *({"_id": f"p{n}", "title": f"T{n}", "text": f"text {n}"} for n in range(3)))
    write(tmp_path / "extra_distractors.jsonl", {"_id": "x0", "title": "X", "text": "extra"}, packed=True)
    question = {"_id": "q1", "text": "which?", "metadata": {"type": "bridge", "subsets": ["agenttuning_hard"]}}
    other = {"_id": "q2", "text": "who?", "metadata": {"type": "comparison", "subsets": ["s"], "answer": "yes"}}
    write(tmp_path / "queries.jsonl", question, other)
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp0\t1\nq1\tp2\t1\nq2\tp1\t1\nq2\tp0\t0\n")
    return tmp_path


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    conversations = [f"c{n}" for n in range(6)]
    turns: list[dict[str, Any]] = [
        {"conv_id": of, "session_id": f"{of}/S{session}", "turn_id": f"{of}/D{session}:{n}", "text": f"hello {n}"}
        | {"speaker": "Ann" if n else "Bo", "timestamp": "2023-05-08T13:56", "image_caption": "a cat" if n else None}
        for of in conversations
        for session in (1, 2)
        for n in (0, 1)
    ]
    questions = [
        {"qid": f"{c}-q", "conv_id": c, "question": "?", "evidence": [f"{c}/D1:1", f"{c}/D9:9"], "category": "temporal"}
        for c in conversations
    ]
    write(tmp_path / "turns.jsonl", *turns)
    write(tmp_path / "questions.jsonl", *questions)
    return tmp_path


def rounds(path: Path, conversation: str) -> Path:
    turns = [
        {"conv_id": conversation, "session_id": f"{conversation}/d1", "date": "2023-04-27", "speaker": "Emily"}
        | {"turn_id": f"{conversation}/{n}{side}", "role": role, "text": f"{words} {n}"}
        for n in (1, 2)
        for side, role, words in (("u", "user", "I painted a boat"), ("a", "assistant", "what a fine picture"))
    ]
    questions: list[dict[str, Any]] = [
        {"qid": f"{conversation}-q1", "conv_id": conversation, "question": "what did I paint, 2?", "category": "recall"}
        | {"evidence": [f"{conversation}/2a"], "answer": "a boat"},
        {"qid": f"{conversation}-q2", "conv_id": conversation, "question": "?", "category": "none", "evidence": []}
        | {"evidence_auto": [{"turn_id": f"{conversation}/1u", "score": 0.64}]},
    ]
    write(path / "turns.jsonl", *turns, packed=True)
    write(path / "questions.jsonl", *questions)
    return path


def test_hotpotqa_passages_have_titles_and_go_to_the_shared_user(hotpotqa: Path) -> None:
    loader = LOADERS["hotpotqa"]
    found = list(loader.load(hotpotqa, tenant="t"))
    assert [(each.id, each.title, each.text, each.user_id, each.bank) for each in found] == [
        (f"hotpotqa:p{n}", f"T{n}", f"text {n}", "shared", "knowledge") for n in range(3)
    ]
    more = [each.id for each in loader.load(hotpotqa, tenant="t", user_id="ana", extra_distractors=True)]
    assert more[-1] == "hotpotqa:x0"
    assert (loader.total(hotpotqa), loader.total(hotpotqa, extra_distractors=True)) == (3, len(more))


def test_hotpotqa_questions_name_their_gold_passages_and_split(hotpotqa: Path) -> None:
    first, second = LOADERS["hotpotqa"].questions(hotpotqa)
    assert (first.gold, first.split, first.category) == (frozenset({"hotpotqa:p0", "hotpotqa:p2"}), "report", "bridge")
    assert (second.gold, second.split, second.answer) == (frozenset({"hotpotqa:p1"}), "tune", "yes")


def test_locomo_gives_each_conversation_a_user_and_each_turn_a_memory(locomo: Path) -> None:
    loader = LOADERS["locomo"]
    found = list(loader.load(locomo, tenant="t"))
    assert loader.total(locomo) == len(found) == 24
    assert Counter(each.user_id for each in found) == {f"locomo-c{n}": 4 for n in range(6)}
    first, second, third = found[:3]
    assert (first.id, first.kind, first.speaker, first.text) == ("c0/D1:0", "turn", "Bo", "hello 0")
    assert (second.text, second.event_at) == ("hello 1\n[photo: a cat]", datetime(2023, 5, 8, 13, 56, tzinfo=UTC))
    assert [each.source.position for each in (first, second, third)] == [0, 1, 0]  # counted by session
    assert [each.session_id for each in (first, second, third)] == ["c0/S1", "c0/S1", "c0/S2"]


def test_locomo_tunes_on_the_first_five_conversations(locomo: Path) -> None:
    questions = list(LOADERS["locomo"].questions(locomo))
    assert [each.split for each in questions] == ["tune"] * 5 + ["report"]
    assert questions[5].gold == {"c5/D1:1"}  # evidence that is not in the data is left out
    assert questions[5].user_id == "locomo-c5"


def test_memorybank_rounds_stand_for_both_of_their_turns(tmp_path: Path) -> None:
    loader = LOADERS["memorybank"]
    rounds(tmp_path / "en", "mb-en-01")
    rounds(tmp_path / "cn", "mb-cn-01")
    found = list(loader.load(tmp_path, tenant="t"))
    assert [each.id for each in found] == ["mb-en-01/1u", "mb-en-01/2u", "mb-cn-01/1u", "mb-cn-01/2u"]
    assert found[0].text == "I painted a boat 1\nwhat a fine picture 1"
    assert found[0].metadata["turn_ids"] == ["mb-en-01/1u", "mb-en-01/1a"]
    assert found[0].source.event_id is None
    assert (found[0].kind, found[0].speaker, found[0].event_at) == ("round", "Emily", datetime(2023, 4, 27, tzinfo=UTC))
    assert loader.total(tmp_path / "cn") == 2
    first, second = loader.questions(tmp_path / "en")
    assert (first.gold, first.split, first.user_id) == (frozenset({"mb-en-01/2u"}), "report", "mb-en-01")
    assert second.gold == frozenset()  # the automatic evidence is doubtful


def test_scm_dialogues_are_sessions_without_dates(tmp_path: Path) -> None:
    found = list(LOADERS["scm"].load(rounds(tmp_path, "d1"), tenant="t"))
    assert {(each.session_id, each.user_id, each.event_at) for each in found} == {("d1", "d1", None)}


@pytest.mark.parametrize("name", LOADERS)
def test_missing_and_odd_files_are_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"path: .*jsonl cannot be read"):
        list(LOADERS[name].load(tmp_path, tenant="t"))
    file = tmp_path / ("corpus.jsonl" if name == "hotpotqa" else "turns.jsonl")
    for line, word in (("{", "is not JSON"), ("[]", "not an object"), ('{"_id": 1, "conv_id": 1}', "missing or not")):
        file.write_text(f"\n{line}\n")
        with pytest.raises(InvalidInput, match=f"path: .*line 2.*{word}"):
            list(LOADERS[name].load(tmp_path, tenant="t"))


@pytest.mark.parametrize("name", ["locomo", "memorybank", "scm"])
def test_an_option_of_another_set_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="extra_distractors"):
        list(LOADERS[name].load(tmp_path, tenant="t", extra_distractors=True))


def test_the_evaluation_runs_through_the_product_and_resumes(tmp_path: Path) -> None:
    path = rounds(tmp_path / "set" / "en", "mb-en-01")
    settings = {"encoder": {"kind": "hashing"}}
    report = evaluate("memorybank", path, tmp_path / "data", settings=settings)
    assert (report["memories"], report["questions"], report["with_evidence"]) == (2, 2, 1)
    assert report["load"]["added"] == 2
    assert sorted(report["files"]) == ["questions.jsonl", "turns.jsonl.gz"]
    # Two rounds differ in the number alone, which the question names: the second is first on the sparse leg.
    assert report["scores"]["sparse"]["report"]["recall"]["MRR@10"] == 1.0
    assert {of["all"]["all"]["recall@2"] for of in report["scores"].values()} == {1.0}
    assert "| all | 1 | sparse | 100.0 |" in to_markdown(report)
    # Case 38: each leg alone stands beside every fusion, so that a loss can be seen.
    assert set(report["scores"]) >= {"dense", "sparse", "rrf", "convex", "default"}
    assert all(f"| {name} |" in to_markdown(report) for name in ("dense", "sparse", "rrf", "convex"))
    again = evaluate("memorybank", path, tmp_path / "data", settings=settings)
    assert (again["load"]["added"], again["load"]["already_there"]) == (0, 2)
    assert again["scores"] == report["scores"]


def test_summaries_and_portraits_are_written_first_where_that_is_asked(tmp_path: Path) -> None:
    path = rounds(tmp_path / "set" / "en", "mb-en-01")
    settings = {"encoder": {"kind": "hashing"}}
    report = evaluate("memorybank", path, tmp_path / "data", settings=settings, fusions=["default"], summaries=True)
    # of the day, and of all days
    assert {name: each["written"] for name, each in report["derived"].items()} == {"summarise": 2, "portrait": 2}
    assert (report["by_kind"]["summary"], report["by_kind"]["portrait"]) == (2, 2)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "folder", "memories", "users", "questions", "with_evidence"),
    [
        ("hotpotqa", "hotpotqa", 8_787, 1, 900, 900),
        ("locomo", "locomo", 5_882, 10, 1_986, 1_982),
        ("memorybank", "memorybank/en", 566, 15, 100, 99),
        ("memorybank", "memorybank/cn", 566, 15, 100, 100),
        ("scm", "scm", 922, 18, 105, 66),
    ],
)
def test_the_real_sets_load_whole(
    name: str, folder: str, memories: int, users: int, questions: int, with_evidence: int
) -> None:
    if "VIMBANK_TEST_DATA" not in os.environ:
        pytest.skip("VIMBANK_TEST_DATA does not name the folder of the evaluation data")
    path = Path(os.environ["VIMBANK_TEST_DATA"]) / folder
    drafts = list(LOADERS[name].load(path, tenant="t"))
    assert LOADERS[name].total(path) == len(drafts) == len({each.id for each in drafts}) == memories
    assert len({each.user_id for each in drafts}) == users
    asked = list(LOADERS[name].questions(path))
    assert (len(asked), sum(bool(each.gold) for each in asked)) == (questions, with_evidence)
    assert {gold for each in asked for gold in each.gold} <= {each.id for each in drafts}
