"""What an add supersedes, as the command line tells it, and `vimbank conflicts`."""

import json
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Vimbank
from tests.unit.test_chat_openai_compatible import Endpoint


def test_an_add_tells_what_it_superseded(vimbank: Vimbank) -> None:
    oslo = vimbank("add", "I live in Oslo.", "--user", "ana", "--created-at", "2026-01-01", "--json").json["id"]
    rome = vimbank("add", "I live in Rome.", "--user", "ana", "--json").json
    assert rome["superseded"] == [oslo]
    bern = vimbank("add", "I live in Bern.", "--user", "ana")
    assert f"(supersedes {rome['id']})" in bern.out
    assert vimbank("get", oslo, "--json").json["state"] == "superseded"


def test_conflicts_lists_what_no_write_has_superseded(vimbank: Vimbank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIMBANK_INGEST__CONFLICTS", "false")
    oslo = vimbank("add", "I live in Oslo.", "--user", "ana", "--created-at", "2026-01-01", "--json").json["id"]
    rome = vimbank("add", "I live in Rome.", "--user", "ana", "--json").json
    assert rome["superseded"] == []
    told = vimbank("conflicts", "--dry-run")
    assert oslo in told.out
    assert "1 of 2 would be superseded, 0 in part" in told.out
    assert vimbank("get", oslo, "--json").json["state"] == "active"
    done = vimbank("conflicts", "--json").json
    assert (done["superseded"], done["items"][0]["id"], done["items"][0]["by"]) == (1, oslo, rome["id"])
    assert vimbank("get", oslo, "--json").json["superseded_by"] == rome["id"]
    assert "0 of 1 superseded" in vimbank("conflicts").out


def test_it_stops_where_it_would_take_too_much(vimbank: Vimbank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIMBANK_INGEST__CONFLICTS", "false")
    vimbank("add", "I live in Oslo.", "--user", "ana", "--created-at", "2026-01-01")
    vimbank("add", "I live in Rome.", "--user", "ana")
    outcome = vimbank("conflicts", "--max-share", "0.1")
    assert outcome.code == 1
    assert "stopped" in outcome.out


def test_as_of_tells_what_was_true_then(vimbank: Vimbank) -> None:
    oslo = vimbank("add", "I live in Oslo.", "--user", "ana", "--created-at", "2026-01-01", "--json").json["id"]
    rome = vimbank("add", "I live in Rome.", "--user", "ana", "--created-at", "2026-03-01", "--json").json["id"]
    assert vimbank("get", oslo, "--as-of", "2026-02-01", "--json").json["state"] == "active"
    assert vimbank("get", oslo, "--as-of", "2026-04-01", "--json").json["state"] == "superseded"
    assert vimbank("get", rome, "--as-of", "2026-02-01").code == 1
    listed = vimbank("list", "--user", "ana", "--as-of", "2026-02-01", "--json").json
    assert ([each["id"] for each in listed["items"]], listed["total"]) == ([oslo], 1)
    vimbank("delete", oslo)
    assert vimbank("get", oslo).code == 1
    assert vimbank("get", oslo, "--as-of", "2026-02-01", "--json").json["text"] == "I live in Oslo."
    assert vimbank("get", oslo, "--as-of", "soon").code != 0


def test_a_chat_model_is_asked_over_http_where_one_is_set(vimbank: Vimbank) -> None:
    """What it calls stale stays, and can be taken back for good; without its word the rules are alone."""
    bus, bike = "the bus takes Ana to the office on weekdays", "the bike takes Ana to the office on weekdays"
    old = vimbank("add", bus, "--user", "ana", "--created-at", "2026-01-01", "--json").json["id"]
    new = vimbank("add", bike, "--user", "ana", "--json").json["id"]
    assert vimbank("conflicts", "--json").json["by_model"] is None
    with Endpoint() as endpoint:
        serving = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            endpoint.content = json.dumps({"reason": "another way", "relation": "update"})
            model = {"VIMBANK_LLM__BASE_URL": endpoint.url, "VIMBANK_LLM__MODEL": "small"}
            assert vimbank("conflicts", "--rules-only", "--json", **model).json["by_model"] is None
            dry = vimbank("conflicts", "--dry-run", **model)
            assert "small was asked about 1 pairs: 1 would be named stale, 0 failed, 10 tokens" in dry.out
            assert bus in dry.out
            assert vimbank("get", old, "--json").json["ended"] == []
            told = vimbank("conflicts", "--json", **model).json["by_model"]
            assert (told["asked"], told["ended"], told["pairs"][0]["newer"]) == (1, 1, new)
            stale = vimbank("get", old, "--json").json
            assert (stale["state"], stale["ended"][0]["new_id"]) == ("active", new)
            assert (stale["ended"][0]["attribute"], stale["ended"][0]["value"]) == ("text", None)
            assert vimbank("restore", old).code == 0
            assert vimbank("get", old, "--json").json["ended"] == []
            assert vimbank("conflicts", "--reread", "--json", **model).json["by_model"]["ended"] == 0
            assert len(endpoint.requests) == 3
        finally:
            endpoint.shutdown()
            serving.join()


def test_what_was_imported_is_superseded_too(vimbank: Vimbank, tmp_path: Path) -> None:
    second, third = ("--data", str(tmp_path / "second")), ("--data", str(tmp_path / "third"))
    given = ("I live in Oslo.", "--user", "ana", "--created-at", "2026-01-01", "--valid-to", "2100-01-01", "--id", "o")
    vimbank("add", *given)
    vimbank("export", "--user", "ana", "--out", str(tmp_path / "ana.jsonl"))
    assert vimbank("import", str(tmp_path / "ana.jsonl"), *second).code == 0
    rome = vimbank("add", "I live in Rome.", "--user", "ana", "--json", *second).json
    assert rome["superseded"] == ["o"]
    assert vimbank("conflicts", "--json", *second).json["read"] == 0
    vimbank("export", "--user", "ana", "--out", str(tmp_path / "both.jsonl"), *second)
    assert "already there 2" in vimbank("import", str(tmp_path / "both.jsonl"), *second).out
    assert vimbank("import", str(tmp_path / "both.jsonl"), *third).code == 0
    old = vimbank("get", "o", "--json", *third).json
    assert (old["state"], old["superseded_by"], old["ended"][0]["new_id"]) == ("superseded", rome["id"], rome["id"])
    report = vimbank("conflicts", "--json", *third).json
    assert (report["read"], report["due"], report["superseded"]) == (0, 0, 0)
    assert "(already there)" in vimbank("add", *given, *third).out
    assert vimbank("restore", "o", "--json", *third).json["valid_to"] == "2100-01-01T00:00:00Z"
