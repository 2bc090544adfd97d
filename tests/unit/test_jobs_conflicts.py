"""The job `conflicts` on a real service: what the writes have left, once, and never against somebody's will."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SettableClock
from tests.runner_kit import open_folder, open_jobs
from vimbank.domain.jobs import JobState
from vimbank.domain.models import Memory, MemoryDraft, MemoryPatch, MemoryState, Query, StateChange
from vimbank.errors import InvalidInput
from vimbank.jobs.conflicts import validate
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, IngestSettings, Settings
from vimbank.wiring import open_service

ACTIVE, SUPERSEDED = MemoryState.ACTIVE, MemoryState.SUPERSEDED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def service(folder: Path, clock: SettableClock) -> Iterator[MemoryService]:
    with open_folder(folder, clock=clock) as service:
        yield service


def open_off(folder: Path, clock: SettableClock) -> MemoryService:
    """A service whose writes decide nothing."""
    ingest = IngestSettings(conflicts=False)
    return open_service(Settings(data_dir=folder, encoder=EncoderSettings(kind="hashing"), ingest=ingest), clock=clock)


def say(service: MemoryService, text: str, **fields: Any) -> str:
    return service.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=text, **fields)).id


def run(service: MemoryService, clock: SettableClock, **params: Any) -> dict[str, Any]:
    jobs = open_jobs(service, clock)
    job = jobs.run(jobs.start("conflicts", params).id)
    assert job.state is JobState.SUCCEEDED, job
    return dict(job.result or {})


def one(service: MemoryService, name: str) -> Memory:
    return service.get("default", name)


def done(report: dict[str, Any]) -> tuple[int, int, int]:
    return report["superseded"], report["ended_partly"], report["skipped"]


def found(service: MemoryService, text: str) -> list[str]:
    query = Query(tenant="default", user_id="ana", text=text, reinforce=False)
    return [each.memory.id for each in service.search(query).results]


def test_what_was_written_without_is_decided_once(folder: Path, clock: SettableClock) -> None:
    with open_off(folder, clock) as service:
        oslo = say(service, "I live in Oslo.")
        both = say(service, "I live in Bonn. My phone number is 555-0100.")
        say(service, "the weather was splendid by the fjord")
        clock.advance(days=1)
        rome = say(service, "I live in Rome.")
        assert one(service, oslo).state is ACTIVE
        before = service.store.state().revision
        dry = run(service, clock, dry_run=True)
        assert (dry["due"], dry["due_partly"], dry["read"], done(dry)) == (1, 1, 4, (0, 0, 0))
        assert {each["id"]: (each["whole"], each["by"]) for each in dry["items"]} == {
            oslo: (True, rome),
            both: (False, rome),
        }
        assert service.store.state().revision == before
        report = run(service, clock)
        assert (report["read"], done(report)) == (4, (1, 1, 0))
        assert (one(service, oslo).state, one(service, oslo).superseded_by) == (SUPERSEDED, rome)
        assert [each.new_id for each in one(service, both).ended] == [rome]
        assert one(service, both).state is ACTIVE
        assert oslo not in found(service, "live in Oslo")
        after = service.store.state().revision
        again = run(service, clock)
        assert (again["read"], again["due"], again["due_partly"], done(again)) == (0, 0, 0, (0, 0, 0))
        assert service.store.state().revision == after
        assert (run(service, clock, reread=True)["read"], service.store.state().revision) == (4, after)


def test_writes_and_job_agree(service: MemoryService, clock: SettableClock) -> None:
    for text in ("I live in Oslo.", "I live in Rome.", "I like tea.", "I no longer like tea.", "I am vegetarian."):
        say(service, text)
        clock.advance(days=1)
    before = service.store.state().revision
    assert done(run(service, clock)) == (0, 0, 0)
    assert service.store.state().revision == before


def test_what_somebody_took_back_is_not_done_again(service: MemoryService, clock: SettableClock) -> None:
    oslo = say(service, "I live in Oslo.")
    both = say(service, "I live in Bonn. My phone number is 555-0100.")
    clock.advance(days=1)
    say(service, "I live in Rome.")
    for name in (oslo, both):
        service.restore("default", name)
        assert (one(service, name).state, one(service, name).ended) == (ACTIVE, ())
    assert run(service, clock)["due"] == 0
    assert done(run(service, clock)) == (0, 0, 0)
    assert one(service, oslo).state is ACTIVE
    clock.advance(days=1)
    bern = say(service, "I live in Bern.")
    assert one(service, oslo).superseded_by == bern


def test_what_begins_later_is_done_when_its_time_has_come(service: MemoryService, clock: SettableClock) -> None:
    oslo = say(service, "I live in Oslo.")
    clock.advance(days=1)
    start = clock.now + timedelta(days=10)
    rome = say(service, "I live in Rome.", valid_from=start)
    assert done(run(service, clock)) == (0, 0, 0)
    assert found(service, "live in") == [oslo]
    clock.advance(days=11)
    assert done(run(service, clock)) == (1, 0, 0)
    assert (one(service, oslo).superseded_by, one(service, oslo).valid_to) == (rome, start)
    assert found(service, "live in") == [rome]


def test_a_date_that_was_changed(service: MemoryService, clock: SettableClock) -> None:
    """A new date without a new text waits for the job; the interval follows it both ways."""
    oslo = say(service, "I live in Oslo.")
    clock.advance(days=10)
    said = clock.now
    rome = say(service, "I live in Rome.", event_at=said)
    clock.advance(days=10)
    service.update("default", rome, MemoryPatch(event_at=said - timedelta(days=4)))
    assert one(service, oslo).valid_to == said
    assert done(run(service, clock)) == (1, 0, 0)
    assert one(service, oslo).valid_to == said - timedelta(days=4)
    service.update("default", rome, MemoryPatch(event_at=said + timedelta(days=4)))
    assert done(run(service, clock)) == (1, 0, 0)
    assert one(service, oslo).valid_to == said + timedelta(days=4)


@pytest.mark.parametrize(("away", "back"), [("archive", "restore"), ("suppress", "unsuppress")])
def test_what_comes_back_is_decided_then(service: MemoryService, clock: SettableClock, away: str, back: str) -> None:
    oslo = say(service, "I live in Oslo.")
    getattr(service, away)("default", oslo)
    clock.advance(days=1)
    rome = say(service, "I live in Rome.")
    assert done(run(service, clock)) == (0, 0, 0)
    getattr(service, back)("default", oslo)
    assert done(run(service, clock)) == (1, 0, 0)
    assert one(service, oslo).superseded_by == rome


def test_what_is_no_longer_pinned_goes(service: MemoryService, clock: SettableClock) -> None:
    oslo = say(service, "I live in Oslo.", pinned=True)
    clock.advance(days=1)
    rome = say(service, "I live in Rome.")
    assert done(run(service, clock)) == (0, 0, 0)
    assert sorted(found(service, "live in")) == sorted([oslo, rome])
    service.update("default", oslo, MemoryPatch(pinned=False))
    assert done(run(service, clock)) == (1, 0, 0)
    assert found(service, "live in") == [rome]


def test_the_share_guard(folder: Path, clock: SettableClock) -> None:
    """Eleven of twelve are more than a handful and more than a fifth."""
    with open_off(folder, clock) as service:
        for place in (
            "Oslo",
            "Rome",
            "Bonn",
            "Bern",
            "Lima",
            "Cairo",
            "Delhi",
            "Kyoto",
            "Paris",
            "Quito",
            "Accra",
            "Riga",
        ):
            say(service, f"I live in {place}.")
            clock.advance(days=1)
        stopped = run(service, clock)
        assert (stopped["due"], done(stopped)) == (11, (0, 0, 0))
        assert "11 of 12" in stopped["stopped"]
        assert done(run(service, clock, max_share=1)) == (11, 0, 0)


def test_a_duplicate_that_was_folded_stays_with_its_kept_one(service: MemoryService, clock: SettableClock) -> None:
    oslo = say(service, "I live in Oslo.")
    twin = say(service, "I live in Oslo now.", deduplicate=False)
    change = StateChange(id=twin, to=SUPERSEDED, superseded_by=oslo)
    service.change_states("default", [change], actor="consolidate")
    clock.advance(days=1)
    rome = say(service, "I live in Rome.")
    assert (one(service, oslo).superseded_by, one(service, twin).superseded_by) == (rome, oslo)
    assert done(run(service, clock)) == (0, 0, 0)


def test_what_it_is_asked_with() -> None:
    assert validate({}) == {"dry_run": False, "reread": False, "rules_only": False}
    with pytest.raises(InvalidInput, match="max_share"):
        validate({"max_share": 2})
    with pytest.raises(InvalidInput, match="nope"):
        validate({"nope": 1})
