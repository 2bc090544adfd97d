"""Unit tests of where the report of an evaluation goes."""

import json
from pathlib import Path

import pytest

from vimbank.eval.report import publish


def test_both_forms_are_written_and_one_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results" / "today"
    publish({"set": "locomo", "name": "成都"}, "# locomo\n", stem="retrieval-locomo", out=out, as_json=False)
    assert capsys.readouterr().out == "# locomo\n"
    assert json.loads((out / "retrieval-locomo.json").read_text("utf-8")) == {"set": "locomo", "name": "成都"}
    assert (out / "retrieval-locomo.md").read_text("utf-8") == "# locomo\n"


def test_without_a_folder_it_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    publish({"set": "locomo"}, "# locomo\n", stem="retrieval-locomo", out=None, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"set": "locomo"}
