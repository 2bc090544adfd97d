"""Fact updates through a whole server: what counts as right, and that a run sees it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vimbank.errors import InvalidInput
from vimbank.eval.fact_update_recall import Outcome, evaluate, main, read_cases, summary, to_markdown
from vimbank.eval.fact_updates import Case, Told, case_record, distractors, generate

HASHING = {"encoder": {"kind": "hashing", "dimension": 64}}
DAY_0 = datetime(2025, 1, 1, tzinfo=UTC)


def case(kind: str, *texts: str, stale: int = 0, number: int = 0, late: bool = False) -> Case:
    """The first ``stale`` of the texts are; said ten days apart; where ``late``, the first arrives last."""
    memories = [
        Told(
            id=f"tuning-{number:04d}-{place}",
            user_id=f"user-{number}",
            text=text,
            at=DAY_0 + timedelta(days=10 * place),
            created_at=DAY_0 + timedelta(days=99 if late and place == 0 else 10 * place),
        )
        for place, text in enumerate(texts)
    ]
    ids = [told.id for told in memories]
    return Case(
        id=f"tuning-{number:04d}",
        split="tuning",
        language="en",
        kind=kind,
        topic="residence",
        question="Where does the user live now?",
        memories=sorted(memories, key=lambda told: told.created_at),
        stale=ids[:stale],
        current=ids[stale:],
    )


CASES = [
    case("update", "I live in Rome.", "I moved to Oslo.", stale=1, number=1),
    case("out_of_order", "I live in Rome.", "I moved to Oslo.", stale=1, number=2, late=True),
    case("past", "I live in Rome.", "I used to live in Oslo.", number=3),
    case("restatement", "I live in Rome.", "I live in Rome.", number=4),
]


@pytest.mark.parametrize("bank", ["dialog", "knowledge"])
def test_with_superseding_the_current_one_is_above_and_the_old_one_stood_before(bank: str) -> None:
    run = evaluate(CASES, bank=bank, conflicts=True, count=3, settings=HASHING)
    row = run["groups"]["tuning"]
    assert run["memories"] == 4 * (3 + 2)
    assert (row["cases"], row["stale_cases"], row["above"], row["superseded"]) == (4, 2, 1.0, 1.0)
    assert (row["false_supersession"], row["falsely_ended"]) == (0.0, 0.0)
    assert (row["before_cases"], row["before"]) == (1, 1.0)  # of the late arrival there is no time before


def test_by_the_ranking_alone_nothing_is_superseded() -> None:
    run = evaluate(CASES, bank="knowledge", conflicts=False, count=3, settings=HASHING)
    row = run["groups"]["tuning"]
    assert (row["superseded"], row["ended"], row["false_supersession"]) == (0.0, 0.0, 0.0)


def test_a_false_supersession_is_seen() -> None:
    """The labels turned round: what the rules rightly supersede counts as a slip, and the stale one is found."""
    wrong = replace(CASES[0], stale=CASES[0].current, current=CASES[0].stale)
    row = evaluate([wrong], bank="dialog", conflicts=True, count=0, settings=HASHING)["groups"]["tuning"]
    assert (row["above"], row["below"], row["false_supersession"], row["wrong"]) == (
        0.0,
        ["tuning-0001"],
        1.0,
        ["tuning-0001"],
    )


def test_shares_by_hand() -> None:
    """Two stale cases, one above: 1/2. Three stale memories, two ended, one of these superseded: 1/3, 2/3. Of four kept
    one is superseded: 1/4."""
    first = Outcome(
        case=CASES[0], above=True, stale=1, superseded=1, ended=1, kept=1, falsely=0, falsely_ended=0, before=False
    )
    second = replace(first, case=CASES[1], above=False, stale=2, superseded=0, ended=1, kept=1, before=None)
    third = replace(
        first,
        case=CASES[2],
        above=None,
        stale=0,
        superseded=0,
        ended=0,
        kept=2,
        falsely=1,
        falsely_ended=1,
        before=None,
    )
    groups = summary([first, second, third])
    assert list(groups) == ["tuning", "tuning/en", "tuning/update", "tuning/out_of_order", "tuning/past"]
    row = groups["tuning"]
    assert (row["above"], row["superseded"], row["ended"]) == (0.5, 0.3333, 0.6667)
    assert (row["false_supersession"], row["falsely_ended"]) == (0.25, 0.25)
    assert (row["before_cases"], row["before"], row["below"], row["wrong"]) == (
        1,
        0.0,
        ["tuning-0002"],
        ["tuning-0003"],
    )
    assert groups["tuning/past"]["above"] is None


def test_distractors_are_of_other_topics_and_the_same_each_time() -> None:
    for one in generate(40):
        texts = distractors(one, 8)
        assert texts == distractors(one, 8)
        assert len(set(texts)) == 8
        assert not set(texts) & {told.text for told in one.memories}


def test_the_command_reports_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text("".join(json.dumps(case_record(one)) + "\n" for one in CASES[:1]))
    options = [str(file), "--split", "tuning", "--bank", "dialog", "--distractors", "1"]
    assert main([*options, "--out", str(tmp_path / "out"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [run["conflicts"] for run in report["runs"]] == [True, False]
    assert json.loads((tmp_path / "out" / "fact-updates.json").read_text()) == report
    page = (tmp_path / "out" / "fact-updates.md").read_text()
    assert page == to_markdown(report)
    assert "## dialog, superseding at write" in page
    assert "## dialog, ranking alone" in page


def test_bad_input_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(InvalidInput, match=r"bad\.jsonl"):
        read_cases(tmp_path / "bad.jsonl", "all")
    (tmp_path / "tuning.jsonl").write_text(json.dumps(case_record(CASES[0])) + "\n")
    assert main([str(tmp_path / "tuning.jsonl"), "--split", "report"]) == 2
    assert "no case of report" in capsys.readouterr().err
