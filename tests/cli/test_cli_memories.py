"""add, get, list, update, delete, history, feedback: what they print and how they end."""

from pathlib import Path

import pytest

from tests.cli.conftest import Vimbank
from vimbank.domain.times import parse_time


def add(vimbank: Vimbank, text: str, *options: str) -> str:
    done = vimbank("add", text, "--user", "ana", "--json", *options)
    assert done.code == 0, done.err
    return str(done.json["id"])


def test_add_prints_the_id_and_get_shows_the_memory(vimbank: Vimbank) -> None:
    added = vimbank("add", "Ana likes tea", "--user", "ana", "--bank", "dialog", "--metadata", '{"topic": "taste"}')
    assert (added.code, added.err) == (0, "")
    shown = vimbank("get", added.out.strip())
    assert shown.code == 0
    assert shown.out.endswith("\n\nAna likes tea\n")
    fields = dict(line.split(maxsplit=1) for line in shown.out.partition("\n\n")[0].splitlines())
    assert fields["metadata"] == '{"topic": "taste"}'
    assert (fields["user_id"], fields["bank"], fields["pinned"]) == ("ana", "dialog", "no")
    assert "title" not in fields
    assert "source" not in fields


def test_add_reads_standard_input(vimbank: Vimbank) -> None:
    done = vimbank("add", "-", "--user", "ana", "--json", stdin="two\nlines\n")
    assert vimbank("get", done.json["id"], "--json").json["text"].rstrip("\n") == "two\nlines"


def test_the_same_text_twice_is_one_memory_and_said_so(vimbank: Vimbank) -> None:
    first = vimbank("add", "Ana likes tea", "--user", "ana").out
    again = vimbank("add", "Ana likes tea", "--user", "ana").out
    assert again == f"{first.strip()} (already there)\n"


def test_list_tells_total_and_cursor(vimbank: Vimbank) -> None:
    """Case 79: no silent end of a listing."""
    ids = [add(vimbank, f"fact number {number}") for number in range(5)]
    page = vimbank("list", "--user", "ana", "--limit", "2")
    assert page.out.splitlines()[-1].startswith("2 of 5; more with --cursor ")
    first = vimbank("list", "--user", "ana", "--limit", "2", "--json").json
    assert [item["id"] for item in first["items"]] == ids[:2]
    rest = vimbank("list", "--user", "ana", "--cursor", first["next_cursor"], "--all", "--limit", "2", "--json").json
    assert ([item["id"] for item in rest["items"]], rest["total"], rest["next_cursor"]) == (ids[2:], 5, None)


def test_case_138_counts_are_exact_past_a_thousand(vimbank: Vimbank, tmp_path: Path) -> None:
    lines = "\n".join(f'{{"user_id": "ana", "bank": "knowledge", "text": "fact {n}"}}' for n in range(1_050))
    (tmp_path / "facts.jsonl").write_text(lines)
    assert vimbank("ingest", str(tmp_path / "facts.jsonl"), "--json").json["added"] == 1_050
    assert vimbank("list", "--user", "ana", "--limit", "1", "--json").json["total"] == 1_050
    assert vimbank("stats", "--json").json["memories"] == 1_050


def test_update_changes_what_is_named_and_clears_what_is_cleared(vimbank: Vimbank) -> None:
    """Case 73."""
    memory = add(vimbank, "likes tea", "--title", "Taste", "--metadata", '{"a": 1, "b": 2}', "--importance", "0.5")
    done = vimbank(
        "update",
        memory,
        "--text",
        "likes coffee",
        "--metadata",
        '{"b": null, "c": 3}',
        "--clear",
        "title",
        "--pinned",
        "--json",
    )
    changed = done.json
    assert (changed["text"], changed["title"], changed["importance"], changed["pinned"]) == (
        "likes coffee",
        None,
        0.5,
        True,
    )
    assert changed["metadata"] == {"a": 1, "c": 3}


def test_update_of_another_revision_is_a_conflict(vimbank: Vimbank) -> None:
    memory = add(vimbank, "likes tea")
    done = vimbank("update", memory, "--text", "likes coffee", "--revision", "999", "--json")
    assert (done.code, done.json["error"]["type"]) == (1, "Conflict")


def test_case_146_delete_says_what_it_deleted(vimbank: Vimbank) -> None:
    ids = [add(vimbank, f"fact {number}") for number in range(4)]
    assert vimbank("delete", ids[0]).out == "deleted 1\n"
    mixed = vimbank("delete", ids[1], "nope", ids[2])
    assert (mixed.code, mixed.out) == (1, "deleted 2\n")
    assert "nope" in mixed.err
    unknown = vimbank("delete", "nope", "--json")
    assert (unknown.code, unknown.json) == (1, {"deleted": 0, "not_found": ["nope"]})
    assert [item["id"] for item in vimbank("list", "--user", "ana", "--json").json["items"]] == [ids[3]]


def test_case_146_delete_by_tag_and_by_session(vimbank: Vimbank) -> None:
    add(vimbank, "one", "--metadata", '{"tags": ["old", "x"]}')
    add(vimbank, "two", "--metadata", '{"tags": ["new"]}', "--session", "s1")
    add(vimbank, "three", "--session", "s1")
    assert vimbank("delete", "--user", "ana", "--filter", '{"tags": {"contains": "old"}}').out == "deleted 1\n"
    assert vimbank("delete", "--user", "ana", "--session", "s1").out == "deleted 2\n"


@pytest.mark.parametrize("scope", [(), ("--bank", "dialog"), ("some-id", "--user", "ana")])
def test_case_68_delete_without_a_clear_scope_deletes_nothing(vimbank: Vimbank, scope: tuple[str, ...]) -> None:
    add(vimbank, "stays")
    assert vimbank("delete", *scope).code == 2
    blank = vimbank("delete", "--user", "", "--json")
    assert (blank.code, blank.json["error"]["errors"][0]["field"]) == (2, "user_id")
    assert vimbank("stats", "--json").json["memories"] == 1


@pytest.mark.parametrize("unknown", ["nope", "../../etc", "x" * 5_000, "%00"])
@pytest.mark.parametrize("command", [("get",), ("history",), ("update", "--text", "x"), ("delete",)])
def test_case_82_an_unknown_id_is_said_to_be_unknown(vimbank: Vimbank, command: tuple[str, ...], unknown: str) -> None:
    done = vimbank(command[0], unknown, *command[1:])
    assert done.code in (1, 2)
    assert done.err.startswith("vimbank: ")


def test_case_84_an_id_of_odd_characters_works_everywhere(vimbank: Vimbank) -> None:
    memory = add(vimbank, "odd", "--id", "a/b c?#")
    assert memory == "a/b c?#"
    assert vimbank("get", memory, "--json").json["text"] == "odd"
    assert vimbank("update", memory, "--text", "odder", "--json").json["text"] == "odder"
    assert vimbank("delete", memory).code == 0


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00+09:00", "2025-12-31T15:00:00Z"),
        ("1767225600", "2026-01-01T00:00:00Z"),
        ("1767225600000", "2026-01-01T00:00:00Z"),
        ("2026-01-01", "2026-01-01T00:00:00Z"),
    ],
)
def test_case_103_a_time_is_an_instant(vimbank: Vimbank, given: str, instant: str) -> None:
    memory = add(vimbank, "dated", "--created-at", given)
    assert parse_time(vimbank("get", memory, "--json").json["created_at"], "x") == parse_time(instant, "x")


def test_case_103_what_is_no_time_is_refused_by_name(vimbank: Vimbank) -> None:
    done = vimbank("add", "dated", "--user", "ana", "--event-at", "yesterday")
    assert done.code == 2
    assert "event_at" in done.err


@pytest.mark.parametrize("blank", ["", "   ", "\n", "\u200b\u200d\ufeff"])
def test_case_81_blank_text_is_refused_and_nothing_stored(vimbank: Vimbank, blank: str) -> None:
    done = vimbank("add", blank, "--user", "ana", "--json")
    assert (done.code, done.json["error"]["errors"][0]["field"]) == (2, "text")
    assert vimbank("stats", "--json").json["memories"] == 0


@pytest.mark.parametrize("metadata", ["[1]", "{", "7"])
def test_metadata_that_is_no_object_is_refused_by_name(vimbank: Vimbank, metadata: str) -> None:
    done = vimbank("add", "text", "--user", "ana", "--metadata", metadata)
    assert done.code == 2
    assert "metadata" in done.err


def test_history_shows_old_and_new(vimbank: Vimbank) -> None:
    memory = add(vimbank, "likes tea")
    vimbank("update", memory, "--text", "likes coffee")
    vimbank("delete", memory)
    lines = vimbank("history", memory).out.splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["add", "update", "delete"]
    assert lines[2].endswith("likes tea -> likes coffee")


def test_feedback_is_noted_and_an_unknown_id_is_not(vimbank: Vimbank) -> None:
    memory = add(vimbank, "likes tea")
    assert vimbank("feedback", memory, "used").out == f"{memory} used\n"
    assert vimbank("feedback", "nope", "used").code == 1
    assert vimbank("feedback", memory, "loved").code == 2


def test_tenants_do_not_see_each_other(vimbank: Vimbank) -> None:
    memory = add(vimbank, "likes tea", "--tenant", "acme")
    assert vimbank("get", memory).code == 1
    assert vimbank("get", memory, "--tenant", "acme").code == 0
