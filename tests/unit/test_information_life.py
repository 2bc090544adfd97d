"""How much a memory tells, from the write to forgetting, on a real service."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import SettableClock
from tests.runner_kit import open_folder, open_jobs
from vimbank.domain.filters import Condition
from vimbank.domain.information import information
from vimbank.domain.models import MemoryDraft, MemoryPatch, MemoryState, Query
from vimbank.service import MemoryService

TALK = "Wow, that sounds really great! Good luck!"
TOLD = "I moved to Berlin in May 2023 and work as a nurse at the Charite hospital near the river."


@pytest.fixture
def service(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    with open_folder(tmp_path / "data", clock=clock) as service:
        yield service


def add(service: MemoryService, text: str, bank: str = "dialog") -> str:
    return service.add(MemoryDraft(tenant="default", user_id="ana", bank=bank, text=text)).id


def test_it_is_known_at_the_write_and_after_an_update(service: MemoryService) -> None:
    name = add(service, TALK)
    assert service.get("default", name).information == information(TALK) == 0.0
    service.update("default", name, MemoryPatch(text=TOLD))
    assert service.get("default", name).information == information(TOLD) > 0.6
    service.update("default", name, MemoryPatch(metadata={"a": 1}))
    assert service.get("default", name).information == information(TOLD), "metadata tells nothing"


def test_a_document_and_each_of_its_segments_have_their_own(service: MemoryService) -> None:
    text = " ".join(f"I sold bike number{n} to customer{n} on street{n}." for n in range(60)) + f" {TALK}" * 60
    document = service.add_document(tenant="default", user_id="ana", bank="knowledge", text=text)
    whole = service.get("default", document.id)
    parts = [service.get("default", f"{document.id}:{place:04d}") for place in range(document.segments)]
    assert [each.information for each in (whole, *parts)] == [information(each.text) for each in (whole, *parts)]
    assert parts[-1].information == 0.0


def test_talk_is_forgotten_first_and_what_was_told_stays(service: MemoryService, clock: SettableClock) -> None:
    talk, told = add(service, TALK), add(service, TOLD)
    clock.advance(days=200)
    jobs = open_jobs(service, clock)
    jobs.run(jobs.start("forget", {"max_share": 1.0}).id)
    states = [service.get("default", name).state for name in (talk, told)]
    assert states == [MemoryState.ARCHIVED, MemoryState.ACTIVE]


def test_a_filter_may_ask_for_what_tells_something(service: MemoryService) -> None:
    add(service, TALK)
    told = add(service, TOLD)
    wanted = Condition("information", "gte", 0.3)
    query = Query(tenant="default", user_id="ana", text="great nurse", filter=wanted, fusion="sparse")
    assert [each.memory.id for each in service.search(query).results] == [told]


def test_assess_looks_at_what_was_written_before_it_was_known(tmp_path: Path, clock: SettableClock) -> None:
    """A store of an earlier version has NULL there: unknown, which counts as the middle, until the job has run."""
    with open_folder(tmp_path / "data", clock=clock) as service:
        name = add(service, TOLD)
    with closing(sqlite3.connect(next((tmp_path / "data").rglob("*.db")))) as connection, connection:
        connection.execute("UPDATE memories SET information = NULL")
    with open_folder(tmp_path / "data", clock=clock) as service:
        assert service.get("default", name).information is None
        jobs = open_jobs(service, clock)
        report = jobs.run(jobs.start("assess", {}).id).result
        assert report is not None
        assert report["judged"] == 1
        assert service.get("default", name).information == information(TOLD)
