"""docs/lifecycle.md types what works, in its order, in an empty folder."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.project.tree import ROOT
from vimbank.cli.main import cli

PAGE = (ROOT / "docs" / "lifecycle.md").read_text()
TYPED = [line[2:] for line in PAGE.splitlines() if line.startswith("$ vimbank ")]


def test_every_command_of_the_page_works_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = {}
    for line in TYPED:
        words = shlex.split(line)[1:]
        if words[:2] == ["check", "--receipt"]:  # its name is another each time
            words[2] = str(next((tmp_path / "data" / "receipts").iterdir()))
        result = CliRunner().invoke(cli, words, env={"VIMBANK_ENCODER__KIND": "hashing"})
        assert result.exit_code == 0, f"{line}: {result.output}"
        told[line] = result.output
    assert told["vimbank feedback code used"] == "code used\n"
    assert "1111. -> The door code is 2222." in told["vimbank history code"]
    assert "peanuts" not in told["vimbank forecast --user ana --days 120"]
    assert told["vimbank summaries --user ana"].count("stale") == 2  # as the line was typed last
    assert "already there 6" in told["vimbank import ana.jsonl"]
    assert told[TYPED[-1]] == "clean: nothing is left of it\n"


def test_the_page_names_the_lifecycle_commands_all() -> None:
    names = {"add", "search", "feedback", "update", "history", "forecast", "jobs", "archive", "restore", "suppress"}
    names |= {"unsuppress", "consolidate", "summaries", "export", "import", "erase", "check", "curve", "delete"}
    assert {name for name in names if f"vimbank {name}" not in PAGE} == set()
