"""ingest: JSONL, documents and folders; what is bad is named, the rest goes in."""

import json
from pathlib import Path

from tests.cli.conftest import Vimbank


def line(**fields: object) -> str:
    return json.dumps({"user_id": "ana", "bank": "dialog", **fields})


def test_case_116_a_corrupt_line_is_named_by_number_and_the_rest_goes_in(vimbank: Vimbank, tmp_path: Path) -> None:
    file = tmp_path / "memories.jsonl"
    good = [line(text="one").encode(), b'{"user_id": "ana", "text": ', b"caf\xe9", line(text="two").encode(), b"", b"7"]
    file.write_bytes(b"\n".join(good))
    done = vimbank("ingest", str(file), "--json")
    assert done.code == 1
    assert (done.json["added"], [each["line"] for each in done.json["failed"]]) == (2, [2, 3, 6])
    assert f"{file}:2: " in done.err
    assert vimbank("list", "--user", "ana", "--json").json["total"] == 2


def test_ingesting_again_stores_nothing_twice(vimbank: Vimbank, tmp_path: Path) -> None:
    file = tmp_path / "memories.jsonl"
    file.write_text("\n".join(line(text=f"fact {n}", id=f"f{n}") for n in range(3)))
    (tmp_path / "notes.md").write_text("# House rules\n\nQuiet hours start at ten.\n")
    arguments = ("ingest", str(file), str(tmp_path / "notes.md"), "--user", "ana", "--json")
    first = vimbank(*arguments).json
    again = vimbank(*arguments).json
    assert (first["added"], first["duplicates"]) == (4, 0)
    assert (again["added"], again["duplicates"]) == (0, 4)


def test_a_folder_is_read_to_the_bottom_without_hidden_and_foreign_files(vimbank: Vimbank, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "a.txt").write_text("the pump runs at 50 Hz")
    (folder / "deep" / "er" / "b.md").write_text("# Rules\n\nguests sign in at the front desk")
    (folder / "deep" / "c.jsonl").write_text(line(text="Ana likes tea"))
    (folder / ".git" / "d.txt").write_text("hidden")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    done = vimbank("ingest", str(folder), "--user", "ana", "--json")
    assert (done.code, done.json["added"], done.json["segments"]) == (0, 3, 2)
    found = vimbank("search", "front desk", "--user", "ana", "-k", "1", "--json").json["results"][0]
    assert (found["kind"], found["bank"]) == ("segment", "knowledge")


def test_a_bad_document_is_named_and_the_rest_goes_in(vimbank: Vimbank, tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")
    (tmp_path / "fine.txt").write_text("the pump runs at 50 Hz")
    done = vimbank("ingest", str(tmp_path), "--user", "ana", "--data", str(tmp_path / ".data"))
    assert done.code == 1
    assert "broken.pdf: " in done.err
    assert done.out.startswith("added 1, ")


def test_documents_need_a_user_and_files_have_to_be_there(vimbank: Vimbank, tmp_path: Path) -> None:
    (tmp_path / "fine.txt").write_text("the pump runs at 50 Hz")
    refused = vimbank("ingest", str(tmp_path / "fine.txt"))
    assert refused.code == 1
    assert "user_id" in refused.err
    assert vimbank("ingest", str(tmp_path / "missing.txt")).code == 2


def locomo(folder: Path) -> Path:
    """Three turns in LoCoMo's layout."""
    folder.mkdir()
    turns = [
        {"conv_id": "c1", "session_id": f"s{n // 2}", "turn_id": f"c1/{n}", "speaker": speaker, "text": text,
         "timestamp": "2023-05-08T13:56:00"}
        for n, (speaker, text) in enumerate([("Ana", "I bought a cello"), ("Ben", "Lovely"), ("Ana", "It is old")])
    ]  # fmt: skip
    (folder / "turns.jsonl").write_text("\n".join(json.dumps(turn) for turn in turns))
    return folder


def test_load_puts_a_data_set_in_once(vimbank: Vimbank, tmp_path: Path) -> None:
    folder = str(locomo(tmp_path / "locomo"))
    first = vimbank("load", "locomo", folder, "--json")
    assert (first.code, first.json["added"]) == (0, 3)
    assert vimbank("load", "locomo", folder, "--json").json["duplicates"] == 3
    found = vimbank("search", "cello", "--user", "locomo-c1", "-k", "1", "--json").json["results"][0]
    assert (found["text"], found["speaker"], found["bank"]) == ("I bought a cello", "Ana", "dialog")


def test_load_of_an_unknown_set_or_a_wrong_folder_is_refused(vimbank: Vimbank, tmp_path: Path) -> None:
    assert vimbank("load", "nonsense", str(tmp_path)).code == 2
    empty = vimbank("load", "locomo", str(tmp_path), "--json")
    assert (empty.code, empty.json["error"]["errors"][0]["field"]) == (2, "path")
