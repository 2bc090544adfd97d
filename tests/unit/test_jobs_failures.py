"""Unit tests of the failures of a run: how many are told, what ends a run, what is raised (case 89)."""

import pytest

from vimbank.errors import BackendUnavailable, ModelError
from vimbank.jobs.failures import Failures
from vimbank.llm.writer import TokensSpent


def test_twenty_are_told_and_all_are_counted() -> None:
    failures = Failures()
    for number in range(25):
        failures.note(ModelError("no JSON"), id=f"m{number}")
        failures.note_success()
    assert failures.count == 25
    assert [each["id"] for each in failures.told] == [f"m{number}" for number in range(20)]
    assert failures.record()["stopped"] is None


def test_five_in_a_row_end_a_run() -> None:
    failures = Failures()
    with failures.ending_the_run():
        for number in range(9):
            failures.note(ModelError("no JSON"), older="a", newer=f"m{number}")
    assert failures.stopped == "5 failures in a row"
    assert failures.count == 5
    assert failures.told[0] == {"older": "a", "newer": "m0", "error": "no JSON"}


def test_a_success_begins_the_row_anew() -> None:
    failures = Failures()
    with failures.ending_the_run():
        for _ in range(4):
            failures.note(ModelError("no JSON"), id="m")
        failures.note_success()
        for _ in range(4):
            failures.note(ModelError("no JSON"), id="m")
    assert (failures.count, failures.stopped) == (8, None)


def test_spent_tokens_end_a_run_and_another_error_goes_through() -> None:
    failures = Failures()
    with failures.ending_the_run():
        raise TokensSpent("30 tokens are spent, 20 are allowed")
    assert failures.stopped == "30 tokens are spent, 20 are allowed"
    with pytest.raises(BackendUnavailable), failures.ending_the_run():
        raise BackendUnavailable("chat", "refused")


def test_nothing_done_but_failures_is_an_error() -> None:
    failures = Failures()
    failures.raise_unless(False)  # nothing was to be done
    failures.note(ModelError("no JSON"), id="m")
    failures.raise_unless(True)
    with pytest.raises(ModelError, match=r"1 of 1 failed, nothing was changed: no JSON"):
        failures.raise_unless(False)
