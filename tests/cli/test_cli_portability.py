"""export, import."""

import gzip
import json
from pathlib import Path

from tests.cli.conftest import Vimbank


def test_an_export_goes_into_another_folder(vimbank: Vimbank, tmp_path: Path) -> None:
    vimbank("add", "the marigold key is under the mat", "--user", "ana")
    file = tmp_path / "ana.jsonl.gz"
    assert vimbank("export", "--user", "ana", "--out", str(file)).code == 0
    header = json.loads(gzip.decompress(file.read_bytes()).splitlines()[0])
    assert (header["vimbank"], header["counts"]) == (1, {"memories": 1, "history": 1})
    other = str(tmp_path / "other")
    preview = vimbank("import", str(file), "--dry-run", "--json", "--data", other)
    assert (preview.json["added"], preview.json["dry_run"]) == (1, True)
    done = vimbank("import", str(file), "--data", other)
    assert done.out == "vimbank: added 1, already there 0, encoded 0, conflicting 0, failed 0\n"
    assert vimbank("list", "--user", "ana", "--json", "--data", other).json["total"] == 1
    assert list(tmp_path.glob("*.part")) == []


def test_standard_input_and_output(vimbank: Vimbank) -> None:
    vimbank("add", "the marigold key is under the mat", "--user", "ana")
    lines = vimbank("export", "--all-users").out
    assert len(lines.splitlines()) == 3
    again = vimbank("import", "-", stdin=lines)
    assert (again.code, again.out.split(",")[0]) == (0, "vimbank: added 0")


def test_a_bad_line_is_named_and_gives_exit_code_1(vimbank: Vimbank, tmp_path: Path) -> None:
    file = tmp_path / "memories.jsonl"
    file.write_bytes(b'{"text": "one", "user_id": "ana"}\nnonsense\n')
    done = vimbank("import", str(file))
    assert (done.code, done.err.split(":")[1]) == (1, " line 2")
    assert vimbank("list", "--user", "ana", "--json").json["total"] == 1


def test_an_export_that_was_cut_short_gives_exit_code_1(vimbank: Vimbank, tmp_path: Path) -> None:
    vimbank("add", "one", "--user", "ana")
    lines = vimbank("export", "--user", "ana").out.splitlines(keepends=True)
    done = vimbank("import", "-", "--data", str(tmp_path / "other"), stdin="".join(lines[:-1]))
    assert done.code == 1
    assert "cut short" in done.out


def test_whose_memories_has_to_be_said(vimbank: Vimbank) -> None:
    assert vimbank("export").code == 2
    assert vimbank("export", "--user", "ana", "--all-users").code == 2
