"""consolidate on the command line."""

import pytest

from tests.cli.conftest import Vimbank


@pytest.fixture
def names(vimbank: Vimbank) -> list[str]:
    """Two that the test encoder takes for one, as it knows the words alone, and one that says the contrary."""
    texts = ("I like tea at home", "At home I like tea", "At home I do not like tea")
    quiet = {"VIMBANK_INGEST__CONFLICTS": "false"}  # or the contrary supersedes what it contradicts at once
    return [vimbank("add", text, "--user", "ana", "--bank", "dialog", "--json", **quiet).json["id"] for text in texts]


def test_a_dry_run_shows_both_texts_and_changes_nothing(vimbank: Vimbank, names: list[str]) -> None:
    shown = vimbank("consolidate", "--dry-run").out
    assert "I like tea at home" in shown
    assert "At home I like tea" in shown
    assert "1 of 3 would be folded, 0 flagged, 0 spared" in shown
    assert vimbank("list", "--user", "ana", "--json").json["total"] == len(names)


def test_folding_and_bringing_back(vimbank: Vimbank, names: list[str]) -> None:
    report = vimbank("consolidate", "--json").json
    assert (report["folded"], report["flagged"]) == (1, 0)
    [pair] = report["pairs"]
    assert {pair["kept"], pair["folded"]} == set(names[:2])
    behind = vimbank("list", "--state", "superseded", "--filter", f'{{"superseded_by": "{pair["kept"]}"}}', "--json")
    assert [each["id"] for each in behind.json["items"]] == [pair["folded"]]
    assert "active" in vimbank("restore", pair["folded"]).out
    assert "0 of 3 folded, 1 flagged, 1 spared" in vimbank("consolidate").out


def test_too_much_is_a_failure_that_changes_nothing(vimbank: Vimbank, names: list[str]) -> None:
    outcome = vimbank("consolidate", "--max-share", "0.1")
    assert outcome.code == 1
    assert "stopped: it would fold 1 of 3 memories (33.3%; at most 10.0% in one run)" in outcome.out
    assert vimbank("list", "--user", "ana", "--json").json["total"] == len(names)
    assert vimbank("consolidate", "--max-share", "0.1", "--dry-run").code == 0


def test_a_share_of_nothing_is_a_share(vimbank: Vimbank, names: list[str]) -> None:
    outcome = vimbank("consolidate", "--max-share", "0")
    assert outcome.code == 1
    assert "at most 0.0% in one run" in outcome.out
    assert vimbank("list", "--user", "ana", "--json").json["total"] == len(names)


@pytest.mark.parametrize("option", [("--threshold", "0.5"), ("--max-share", "2")])
def test_bad_bounds_are_refused(vimbank: Vimbank, option: tuple[str, str]) -> None:
    outcome = vimbank("consolidate", *option)
    assert outcome.code == 2
    assert f"params.{option[0][2:].replace('-', '_')}" in outcome.err
