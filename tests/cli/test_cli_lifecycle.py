"""archive, restore, suppress, unsuppress and forecast on the command line."""

import pytest

from tests.cli.conftest import Vimbank


@pytest.mark.parametrize(
    ("away", "back", "state"),
    [
        ("archive", "restore", "archived"),
        ("suppress", "unsuppress", "suppressed"),
    ],
)
def test_there_and_back(vimbank: Vimbank, away: str, back: str, state: str) -> None:
    name = vimbank("add", "the old pier", "--user", "ana", "--bank", "dialog", "--json").json["id"]
    assert vimbank(away, name, "--json").json["state"] == state
    assert vimbank("search", "old pier", "--user", "ana", "--json").json["results"] == []
    assert vimbank("list", "--state", state, "--json").json["total"] == 1
    assert "active" in vimbank(back, name).out
    assert vimbank("get", name, "--json").json["state"] == "active"


def test_what_may_not_be(vimbank: Vimbank) -> None:
    name = vimbank("add", "the old pier", "--user", "ana", "--json").json["id"]
    assert vimbank("archive", "nope").code == 1
    assert vimbank("archive", name, "--revision", "9").code != 0
    vimbank("suppress", name)
    outcome = vimbank("restore", name)
    assert outcome.code != 0
    assert "suppressed" in outcome.err


def test_forecast(vimbank: Vimbank) -> None:
    name = vimbank("add", "the old pier", "--user", "ana", "--bank", "dialog", "--json").json["id"]
    told = vimbank("forecast", "--user", "ana", "--days", "60")
    assert name in told.out
    assert "1 of 1 go until" in told.out
    assert "1 forgotten" in told.out
    assert vimbank("forecast", "--user", "ana", "--json").json["total"] in (0, 1)
    assert "0 of 0 go" in vimbank("forecast", "--user", "ben").out
    assert vimbank("forecast", "--user", "ana", "--days", "-1").code == 2


def test_a_dry_run_by_the_job(vimbank: Vimbank) -> None:
    vimbank("add", "the old pier", "--user", "ana", "--bank", "dialog", "--created-at", "2020-01-01")
    job = vimbank("jobs", "start", "forget", "--param", "dry_run=true", "--json").json
    assert (job["result"]["due"], job["result"]["moved"]) == (1, 0)
    assert "100.0%" in job["result"]["stopped"]
    job = vimbank("jobs", "start", "forget", "--param", "max_share=1", "--json").json
    assert job["result"]["moved"] == 1
