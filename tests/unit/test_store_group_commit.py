"""GroupCommit without a database: who leads, who is told what."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vimbank.errors import BackendUnavailable, NotFound, VimbankError
from vimbank.store.group_commit import GroupCommit


class Journal:
    """Transactions of lists: what was committed, one list a transaction."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.failing: Exception | None = None

    @contextmanager
    def transaction(self) -> Iterator[list[str]]:
        self.entered.set()
        assert self.gate.wait(10)
        written: list[str] = []
        yield written
        if self.failing is not None:
            raise self.failing
        self.commits.append(written)


class Callers:
    """Threads that each run one operation; ``wait`` gives their results or errors in order."""

    def __init__(self, group: GroupCommit[list[str]], journal: Journal) -> None:
        self.group, self.journal = group, journal
        self.outcomes: dict[str, object] = {}
        self.threads: list[threading.Thread] = []

    def start(self, name: str, error: Exception | None = None) -> None:
        def operation(written: list[str]) -> str:
            if error is not None and not isinstance(error, NotFound):
                written.append(f"half of {name}")
            if error is not None:
                raise error
            written.append(name)
            return name.upper()

        def run() -> None:
            try:
                self.outcomes[name] = self.group.run(operation)
            except (VimbankError, ZeroDivisionError) as caught:
                self.outcomes[name] = caught

        thread = threading.Thread(target=run)
        thread.start()
        self.threads.append(thread)

    def start_together(self, *names: str, errors: dict[str, Exception] | None = None) -> None:
        """The first leads and is held in its transaction until the others wait."""
        self.journal.gate.clear()
        self.start("leader")
        assert self.journal.entered.wait(10)
        for name in names:
            self.start(name, (errors or {}).get(name))
        while len(self.group._waiting) < len(names):
            threading.Event().wait(0)
        self.journal.gate.set()

    def wait(self) -> dict[str, object]:
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive()
        return self.outcomes


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def callers(journal: Journal) -> Callers:
    return Callers(GroupCommit(journal.transaction), journal)


def test_who_waits_shares_one_transaction(callers: Callers, journal: Journal) -> None:
    callers.start_together("a", "b", "c")
    assert callers.wait() == {"leader": "LEADER", "a": "A", "b": "B", "c": "C"}
    assert [sorted(commit) for commit in journal.commits] == [["leader"], ["a", "b", "c"]]


def test_a_refusal_goes_to_its_caller_and_the_others_still_share(callers: Callers, journal: Journal) -> None:
    error = NotFound("b")
    callers.start_together("a", "b", "c", errors={"b": error})
    assert callers.wait() == {"leader": "LEADER", "a": "A", "b": error, "c": "C"}
    assert [sorted(commit) for commit in journal.commits] == [["leader"], ["a", "c"]]


def test_after_any_other_error_each_runs_alone(callers: Callers, journal: Journal) -> None:
    error = ZeroDivisionError()
    callers.start_together("a", "b", "c", errors={"b": error})
    assert callers.wait() == {"leader": "LEADER", "a": "A", "b": error, "c": "C"}
    assert sorted(journal.commits) == [["a"], ["c"], ["leader"]]


def test_an_engine_out_of_reach_fails_all_once(callers: Callers, journal: Journal) -> None:
    journal.failing = BackendUnavailable("sqlite", "the disk is full")
    callers.start_together("a", "b")
    assert callers.wait() == dict.fromkeys(("leader", "a", "b"), journal.failing)
    journal.failing = None
    callers.start("later")
    assert callers.wait()["later"] == "LATER"


def test_an_interrupted_leader_passes_the_lead_on(callers: Callers, journal: Journal) -> None:
    def interrupted(_: list[str]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        callers.group.run(interrupted)
    callers.start("next")
    assert callers.wait() == {"next": "NEXT"}
    assert journal.commits == [["next"]]
