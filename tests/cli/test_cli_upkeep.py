"""stats, check, reindex, serve: the commands that look after a folder."""

import json
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import ENVIRONMENT, Vimbank

COMMAND = str(Path(sys.executable).parent / "vimbank")


def fill(vimbank: Vimbank, count: int = 3) -> list[str]:
    return [vimbank("add", f"fact {n}", "--user", "ana", "--json").json["id"] for n in range(count)]


def execute(data: Path, *statements: str) -> None:
    """Run SQL on the store's file, past every check."""
    with closing(sqlite3.connect(data / "vimbank.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_stats_count_by_bank_kind_and_state(vimbank: Vimbank) -> None:
    fill(vimbank)
    vimbank("add", "hello", "--user", "ben", "--bank", "dialog", "--kind", "greeting")
    stats = vimbank("stats", "--json").json
    assert (stats["memories"], stats["users"]) == (4, 2)
    assert stats["by_bank"] == {"knowledge": 3, "dialog": 1}
    assert stats["by_kind"] == {"note": 3, "greeting": 1}
    assert stats["disk_bytes"] > 0
    assert vimbank("stats", "--user", "ben", "--json").json["memories"] == 1
    assert vimbank("stats").out.splitlines()[0].split() == ["memories", "4"]


def test_check_of_a_sound_folder_is_clean(vimbank: Vimbank) -> None:
    fill(vimbank)
    done = vimbank("check")
    assert (done.code, done.out.splitlines()[-1]) == (0, "clean")
    document = vimbank("check", "--json").json
    assert document["ok"] is True
    assert [each["memories"] for each in document["partitions"]] == [3]


def test_check_tells_a_damaged_snapshot_and_ends_with_1(vimbank: Vimbank, data: Path) -> None:
    """Case 116: damage is said, and the rest works."""
    fill(vimbank)
    vimbank("search", "fact 1", "--user", "ana")
    (snapshot,) = [path for path in (data / "indexes").rglob("*") if path.is_file()]
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    snapshot.write_bytes(content)
    for _ in range(2):  # also the second time: nothing is changed without --repair
        done = vimbank("check", "--json")
        assert (done.code, done.json["ok"], done.json["found"]) == (1, False, {"snapshots": 1})
    assert vimbank("search", "fact 1", "--user", "ana", "-k", "1", "--json").json["results"][0]["text"] == "fact 1"
    repaired = vimbank("check", "--repair")
    assert (repaired.code, repaired.out.splitlines()[-2:]) == (0, ["repaired 1 of 1", "clean"])
    assert "damaged and set aside (repaired)" in repaired.out
    assert vimbank("check").out.splitlines()[-1] == "clean"


def test_check_repairs_a_lost_embedding_and_a_stale_summary(vimbank: Vimbank, data: Path) -> None:
    turns = [f"turn {n} on the harbour" for n in range(5)]
    ids = [vimbank("add", text, "--user", "ana", "--bank", "dialog", "--json").json["id"] for text in turns]
    assert vimbank("jobs", "start", "summarise").code == 0
    vimbank("update", ids[0], "--text", "turn 0 on the lighthouse")
    execute(data, "DELETE FROM embeddings WHERE number = 2")
    found = vimbank("check", "--json")
    assert (found.code, set(found.json["found"]), found.json["repaired"]) == (
        1,
        {"embeddings", "summaries"},
        {},
    )
    mended = vimbank("check", "--repair", "--json")
    assert (mended.code, mended.json["ok"]) == (0, True)
    assert mended.json["repaired"] == mended.json["found"]
    assert vimbank("check", "--json").json["found"] == {}


def test_check_tells_what_it_cannot_repair_and_ends_with_1(vimbank: Vimbank, data: Path) -> None:
    ids = fill(vimbank)
    execute(data, "DELETE FROM embeddings WHERE number = 1", f"DELETE FROM memories WHERE id = '{ids[0]}'")
    done = vimbank("check", "--repair")
    assert (done.code, done.out.splitlines()[-1]) == (1, "NOT CLEAN")
    assert "has a history, but is not there (nothing else tells what was there: restore it from a backup)" in done.out


def test_check_refuses_to_repair_by_a_receipt(vimbank: Vimbank, tmp_path: Path) -> None:
    (tmp_path / "receipt").write_text("{}")
    assert vimbank("check", "--repair", "--receipt", str(tmp_path / "receipt")).code == 2


def test_cases_16_and_134_another_encoder_is_refused_by_both_names_until_reindexed(vimbank: Vimbank) -> None:
    fill(vimbank)
    other = {"VIMBANK_ENCODER__DIMENSION": "64"}
    before = vimbank("search", "fact 2", "--user", "ana", "--json").json["results"][0]["id"]
    refused = vimbank("search", "fact 2", "--user", "ana", **other)
    assert refused.code == 2
    for word in ("384", "64", "hashing", "vimbank reindex"):
        assert word in refused.err
    assert vimbank("stats", "--json").json["memories"] == 3

    done = vimbank("reindex", "--json", **other)
    assert (done.code, done.json["memories"]) == (0, 3)
    assert "384" in done.json["former"]
    assert "64" in done.json["current"]
    assert vimbank("search", "fact 2", "--user", "ana", "--json", **other).json["results"][0]["id"] == before
    assert vimbank("check", **other).code == 0
    assert vimbank("stats").code == 2


def test_reindex_of_an_unchanged_encoder_changes_nothing(vimbank: Vimbank) -> None:
    fill(vimbank)
    assert vimbank("reindex", "--json").json["memories"] == 0
    assert vimbank("check").code == 0


def test_a_data_folder_that_cannot_be_made_is_said(vimbank: Vimbank, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = vimbank("stats", "--data", str(tmp_path / "file" / "data"))
    assert done.code in (2, 3)
    assert done.err.startswith("vimbank: ")


def test_serve_prints_its_address_answers_and_ends_on_a_signal(vimbank: Vimbank, data: Path) -> None:
    """A real process: the command on the same folder sees what the server took, and the other way round."""
    command = [COMMAND, "serve", "--port", "0", "--allow-anonymous", "--data", str(data)]
    environment = {**ENVIRONMENT, "PATH": "/usr/bin"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            body = json.dumps({"user_id": "ana", "bank": "dialog", "text": "Ana likes tea"}).encode()
            request = urllib.request.Request(
                f"{address}/v1/memories", body, {"Content-Type": "application/json"}, method="POST"
            )
            with urllib.request.urlopen(request) as answer:
                added = json.load(answer)["id"]
            assert vimbank("get", added, "--json").json["text"] == "Ana likes tea"
            mine = vimbank("add", "Ana moved to Lisbon", "--user", "ana", "--json").json["id"]
            with urllib.request.urlopen(f"{address}/v1/memories/{mine}") as answer:
                assert json.load(answer)["text"] == "Ana moved to Lisbon"
        finally:
            server.send_signal(signal.SIGTERM)
            _, err = server.communicate(timeout=20)
    assert (server.returncode, err) == (0, "")


def test_serve_without_keys_or_the_switch_is_refused(vimbank: Vimbank) -> None:
    """Case 67."""
    done = vimbank("serve", "--port", "0")
    assert done.code == 2
    assert "VIMBANK_API__KEYS" in done.err
    everywhere = vimbank("serve", "--port", "0", "--host", "0.0.0.0", "--allow-anonymous")
    assert everywhere.code == 2
