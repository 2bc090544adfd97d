"""summaries: what the jobs have written, as a table and as JSON."""

from tests.cli.conftest import Vimbank


def fill(vimbank: Vimbank) -> None:
    for place in range(5):
        text = f"On {place + 1} January I walked along pier number {place}."
        vimbank("add", text, "--user", "ana", "--bank", "dialog", "--session", "s", "--event-at", "2026-01-01")
    assert vimbank("jobs", "start", "summarise", "--param", "user=ana").code == 0
    assert vimbank("jobs", "start", "portrait").code == 0


def test_a_table_of_summaries(vimbank: Vimbank) -> None:
    fill(vimbank)
    lines = vimbank("summaries", "--user", "ana").out.splitlines()
    assert lines[0].split() == ["level", "period", "method", "sources", "state", "text"]
    assert [line.split()[:5] for line in lines[1:]] == [
        ["group", "s", "extractive", "5", "fresh"],
        ["day", "2026-01-01", "extractive", "5", "fresh"],
        ["global", "all", "extractive", "1", "fresh"],
    ]


def test_one_level_portraits_and_json(vimbank: Vimbank) -> None:
    fill(vimbank)
    document = vimbank("summaries", "--user", "ana", "--level", "day", "--bank", "dialog", "--json").json
    assert [each["metadata"]["level"] for each in document["items"]] == ["day"]
    portraits = vimbank("summaries", "--user", "ana", "--portraits", "--json").json
    assert {each["kind"] for each in portraits["items"]} == {"portrait"}
    assert vimbank("summaries", "--user", "ben").out == "No summary found.\n"


def test_the_nearest_to_a_question(vimbank: Vimbank) -> None:
    fill(vimbank)
    document = vimbank("summaries", "--user", "ana", "--question", "which pier?", "--json").json
    assert [each["metadata"]["level"] for each in document["items"]] == ["group"]
    assert vimbank("summaries", "--user", "ana", "--question", "x", "--portraits").code == 2


def test_a_stale_one_says_so(vimbank: Vimbank) -> None:
    fill(vimbank)
    (first, *_) = vimbank("list", "--user", "ana", "--kind", "note", "--json").json["items"]
    vimbank("delete", first["id"])
    assert vimbank("summaries", "--user", "ana").out.count("  stale  ") == 3
