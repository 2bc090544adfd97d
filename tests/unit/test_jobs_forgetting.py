"""forget, prune, expire and the forecast on a real service: what they take, and what they must leave alone."""

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SettableClock
from tests.runner_kit import open_folder, open_jobs
from vimbank.domain.jobs import JobState
from vimbank.domain.lifecycle import Reason
from vimbank.domain.models import (
    ListQuery,
    Memory,
    MemoryDraft,
    MemoryPatch,
    MemoryState,
    Query,
    RecallEntry,
    StateChange,
    StateResult,
)
from vimbank.errors import BackendUnavailable, Conflict, InvalidInput, NotFound, VimbankError
from vimbank.service import MemoryService
from vimbank.settings import BankSettings, EncoderSettings, LifecycleSettings, Settings
from vimbank.wiring import open_service

ROOT = Path(__file__).parents[2]


@pytest.fixture
def service(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    with open_folder(tmp_path / "data", clock=clock) as service:
        yield service


def add(service: MemoryService, text: str, *, user_id: str = "ana", bank: str = "dialog", **fields: Any) -> str:
    return service.add(MemoryDraft(tenant="default", user_id=user_id, bank=bank, text=text, **fields)).id


def run(service: MemoryService, clock: SettableClock, name: str, **params: Any) -> dict[str, Any]:
    jobs = open_jobs(service, clock)
    job = jobs.run(jobs.start(name, params).id)
    assert job.state is JobState.SUCCEEDED, job
    return dict(job.result or {})


def state(service: MemoryService, name: str) -> MemoryState:
    return service.get("default", name).state


def found(service: MemoryService, text: str, fusion: Any = None, user_id: str = "ana") -> list[str]:
    query = Query(tenant="default", user_id=user_id, text=text, fusion=fusion, top_k=50, reinforce=False)
    return [each.memory.id for each in service.search(query).results]


def all_of(service: MemoryService, user_id: str = "ana") -> list[Memory]:
    query = ListQuery(tenant="default", user_id=user_id, state=None, limit=1_000)
    items: list[Memory] = []
    while True:
        page = service.list(query)
        items += page.items
        if page.next_cursor is None:
            return items
        query = ListQuery(tenant="default", user_id=user_id, state=None, limit=1_000, cursor=page.next_cursor)


class TestForget:
    def test_what_has_faded_is_archived_and_no_longer_found(self, service: MemoryService, clock: SettableClock) -> None:
        """Dialog: exp(-30 / 10) = 0.0498 is under the floor of 0.05, and 30 days are the minimum age."""
        old = add(service, "the old pier")
        clock.advance(days=29)
        new = add(service, "the new pier")
        assert run(service, clock, "forget", max_share=1)["moved"] == 0
        clock.advance(days=1)
        report = run(service, clock, "forget", max_share=1)
        assert (report["moved"], report["reasons"], report["skipped"]) == (1, {"forgotten": 1}, 0)
        assert [each["id"] for each in report["sample"]] == [old]
        assert report["partitions"] == [{"tenant": "default", "user_id": "ana", "bank": "dialog", "forgotten": 1}]
        assert (state(service, old), state(service, new)) == (MemoryState.ARCHIVED, MemoryState.ACTIVE)
        for fusion in ("sparse", "dense", "convex"):
            assert found(service, "the old pier", fusion) == [new]
        assert service.check().ok
        entry = service.history("default", old)[-1]
        assert (entry.actor, dict(entry.changes)) == ("lifecycle", {"state": ("active", "archived")})

    def test_twice_in_one_period_is_once(self, service: MemoryService, clock: SettableClock) -> None:
        """Case 120."""
        add(service, "the old pier")
        clock.advance(days=60)
        run(service, clock, "forget", max_share=1)
        before = service.store.state()
        assert run(service, clock, "forget", max_share=1)["moved"] == 0
        assert service.store.state() == before

    def test_a_dry_run_tells_what_the_run_does_and_changes_nothing(
        self, service: MemoryService, clock: SettableClock
    ) -> None:
        """Case 101."""
        for place in range(5):
            add(service, f"the pier {place}")
        clock.advance(days=60)
        add(service, "the new pier")
        before = service.store.state(), all_of(service)
        dry = run(service, clock, "forget", max_share=1, dry_run=True)
        assert (service.store.state(), all_of(service)) == before
        wet = run(service, clock, "forget", max_share=1)
        assert (dry["moved"], wet["moved"]) == (0, 5)
        for name in ("due", "reasons", "partitions", "sample", "memories"):
            assert dry[name] == wet[name]

    def test_more_than_the_share_stops_it(self, service: MemoryService, clock: SettableClock) -> None:
        """Case 135: 5 of 24 is more than a fifth, 5 of 25 is not."""
        for place in range(5):
            add(service, f"the pier {place}")
        clock.advance(days=60)
        for place in range(19):
            add(service, f"the new pier {place}")
        report = run(service, clock, "forget")
        assert report["stopped"] == "it would take 5 of 24 memories (20.8%; at most 20.0% in one run)"
        assert (report["moved"], service.stats("default").by_state) == (0, {"active": 24})
        add(service, "one more")
        report = run(service, clock, "forget")
        assert (report["stopped"], report["moved"]) == (None, 5)

    def test_records_without_importance_under_default_settings(
        self, service: MemoryService, clock: SettableClock
    ) -> None:
        """Case 135: 1,000 records of 40 days; the scheduled runs leave them where they are."""
        texts = [MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=f"pier {n}") for n in range(1_000)]
        service.add_many(texts)
        clock.advance(days=40)
        jobs = open_jobs(service, clock)
        for name in ("forget", "expire", "prune"):
            jobs.run_scheduled(name)
        jobs.requeue(queued_s=0)
        for job in jobs.list():
            done = jobs.run(job.id)
            assert done.state is JobState.SUCCEEDED
        assert service.stats("default").by_state == {"active": 1_000}

    def test_pinned_important_and_recalled_ones_stay(self, service: MemoryService, clock: SettableClock) -> None:
        pinned = add(service, "the pinned pier", pinned=True)
        important = add(service, "the important pier", importance=1.0)
        trivial = add(service, "the trivial pier", importance=0.0)
        plain = add(service, "the plain pier")
        recalled = add(service, "the tower")
        clock.advance(days=29)
        service.search(Query(tenant="default", user_id="ana", text="tower", fusion="sparse"))
        service.fold_recalls()
        clock.advance(days=2)
        run(service, clock, "forget", max_share=1)
        active = {each.id for each in all_of(service) if each.state is MemoryState.ACTIVE}
        assert active == {pinned, important, recalled}
        assert {trivial, plain}.isdisjoint(active)

    def test_a_document_goes_as_a_whole_and_stays_for_one_recalled_segment(
        self, service: MemoryService, clock: SettableClock
    ) -> None:
        text = " ".join(f"Sentence {n} speaks of the pier number{n} at length and in detail." for n in range(80))
        document = service.add_document(tenant="default", user_id="ana", text=text, bank="dialog")
        assert document.segments > 1
        clock.advance(days=29)
        query = Query(tenant="default", user_id="ana", text="number79", fusion="sparse", top_k=1)
        assert service.search(query).results
        service.fold_recalls()
        clock.advance(days=2)
        assert run(service, clock, "forget", max_share=1)["due"] == 0
        clock.advance(days=4_000)  # a document tells much, which lasts a hundred times as long
        report = run(service, clock, "forget", max_share=1)
        assert (report["due"], report["moved"], report["memories"]) == (1, 1, 1)
        assert {each.state for each in all_of(service)} == {MemoryState.ARCHIVED}
        service.restore("default", document.id)
        assert {each.state for each in all_of(service)} == {MemoryState.ACTIVE}
        assert found(service, "number79", "sparse")

    def test_the_capacity_of_a_partition(self, tmp_path: Path, clock: SettableClock) -> None:
        banks = {"dialog": BankSettings(lifecycle=LifecycleSettings(capacity=3))}
        settings = Settings(data_dir=tmp_path / "data", encoder=EncoderSettings(kind="hashing"), banks=banks)
        with open_service(settings, clock=clock) as service:
            names = []
            for place in range(5):
                names.append(add(service, f"the pier {place}"))
                clock.advance(hours=1)
            add(service, "of ben", user_id="ben")
            report = run(service, clock, "forget", max_share=1)
            assert report["reasons"] == {"capacity": 2}
            assert [state(service, each) for each in names] == [MemoryState.ARCHIVED] * 2 + [MemoryState.ACTIVE] * 3

    def test_what_is_written_while_a_run_decides_stays(
        self, service: MemoryService, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        changed, other = add(service, "the pier"), add(service, "the tower")
        clock.advance(days=60)
        change = service.change_states

        def late(*args: Any, **named: Any) -> list[StateResult | VimbankError]:
            service.update("default", changed, MemoryPatch(pinned=True))
            return change(*args, **named)

        monkeypatch.setattr(service, "change_states", late)
        report = run(service, clock, "forget", max_share=1)
        assert (report["moved"], report["skipped"]) == (1, 1)
        assert (state(service, changed), state(service, other)) == (MemoryState.ACTIVE, MemoryState.ARCHIVED)

    def test_restored_it_is_not_forgotten_the_next_night(self, service: MemoryService, clock: SettableClock) -> None:
        name = add(service, "the pier")
        clock.advance(days=60)
        run(service, clock, "forget", max_share=1)
        service.restore("default", name)
        clock.advance(days=1)
        assert run(service, clock, "forget", max_share=1)["due"] == 0
        assert found(service, "pier") == [name]

    def test_another_tenant_is_left_alone_on_request(self, service: MemoryService, clock: SettableClock) -> None:
        mine = add(service, "the pier")
        service.add(MemoryDraft(tenant="other", user_id="ana", bank="dialog", text="the pier"))
        clock.advance(days=60)
        assert run(service, clock, "forget", max_share=1, tenant="other")["moved"] == 1
        assert state(service, mine) is MemoryState.ACTIVE

    @pytest.mark.parametrize(
        "params", [{"dry_run": 1}, {"max_share": 1.5}, {"max_share": True}, {"tenant": ""}, {"days": 3}]
    )
    def test_parameters_that_mean_nothing(
        self, service: MemoryService, clock: SettableClock, params: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidInput, match=r"params\."):
            open_jobs(service, clock).start("forget", params)


class TestPrune:
    def test_after_the_grace_and_never_a_pinned_one(self, service: MemoryService, clock: SettableClock) -> None:
        """Cases 70 and 100. Dialog's grace is 90 days."""
        name, pinned = add(service, "the pier"), add(service, "the tower")
        service.archive("default", name)
        service.archive("default", pinned)
        service.update("default", pinned, MemoryPatch(pinned=True))
        clock.advance(days=89)
        assert run(service, clock, "prune", max_share=1)["moved"] == 0
        clock.advance(days=3_650)
        dry = run(service, clock, "prune", max_share=1, dry_run=True)
        assert dry["reasons"] == {"grace": 1}
        assert run(service, clock, "prune", max_share=1)["moved"] == 1
        with pytest.raises(NotFound):
            service.get("default", name)
        assert state(service, pinned) is MemoryState.ARCHIVED
        for fusion in ("sparse", "dense", "convex"):
            assert found(service, "the pier", fusion) == []
        assert [entry.event.value for entry in service.history("default", name)] == ["add", "state", "delete"]
        assert service.check().ok

    def test_only_what_was_archived_is_ever_deleted(self, service: MemoryService, clock: SettableClock) -> None:
        name = add(service, "the pier", expires_at=clock() + timedelta(days=1))
        hidden = add(service, "the tower")
        service.suppress("default", hidden)
        clock.advance(days=3_650)
        assert run(service, clock, "prune", max_share=1)["due"] == 0
        assert (state(service, name), state(service, hidden)) == (MemoryState.ACTIVE, MemoryState.SUPPRESSED)

    def test_the_same_text_can_be_added_again(self, service: MemoryService, clock: SettableClock) -> None:
        """Case 137."""
        first = add(service, "the pier")
        service.archive("default", first)
        clock.advance(days=100)
        run(service, clock, "prune", max_share=1)
        second = add(service, "the pier")
        assert second != first
        assert found(service, "the pier") == [second]

    def test_killed_in_the_middle_it_ends_as_an_unbroken_one(self, tmp_path: Path, clock: SettableClock) -> None:
        """Case 122: kill -9 in a prune of 1,000."""
        with open_folder(tmp_path / "data", clock=clock) as service:
            drafts = [
                MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=f"pier {n}") for n in range(1_000)
            ]
            names = [each.id for each in service.add_many(drafts)]  # type: ignore[union-attr]
            kept = add(service, "the tower")
            changes = [StateChange(id=name, to=MemoryState.ARCHIVED) for name in names]
            service.change_states("default", changes, actor="test")
        clock.advance(days=100)
        command = [sys.executable, "-m", "tests.crash.killed_prune", str(tmp_path / "data"), clock().isoformat()]
        killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert killed.returncode == -9, killed.stderr
        with open_folder(tmp_path / "data", clock=clock) as service:
            assert service.stats("default").by_state == {"active": 1, "archived": 500}
            assert run(service, clock, "prune", max_share=1)["moved"] == 500
            assert [each.id for each in all_of(service)] == [kept]
            assert all(len(service.history("default", name)) == 3 for name in names)
            assert service.check().ok


class TestInterrupted:
    def test_a_run_that_fails_is_taken_up_where_it_stopped(
        self, service: MemoryService, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        drafts = [MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=f"pier {n}") for n in range(700)]
        service.add_many(drafts)
        clock.advance(days=60)
        change, calls = service.change_states, []

        def failing(*args: Any, **named: Any) -> list[StateResult | VimbankError]:
            calls.append(1)
            if len(calls) == 2:
                raise BackendUnavailable("store", "gone")
            return change(*args, **named)

        monkeypatch.setattr(service, "change_states", failing)
        jobs = open_jobs(service, clock)
        job = jobs.start("forget", {"max_share": 1})
        with pytest.raises(BackendUnavailable):
            jobs.run(job.id)
        assert service.stats("default").by_state == {"active": 200, "archived": 500}
        done = jobs.run(job.id)
        assert done.result is not None
        assert done.result["moved"] == 200
        assert service.stats("default").by_state == {"archived": 700}


class TestExpire:
    @pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Asia/Tokyo", "America/Los_Angeles"])
    def test_by_the_instant_whatever_the_zone(
        self, service: MemoryService, clock: SettableClock, monkeypatch: pytest.MonkeyPatch, zone: str
    ) -> None:
        """Case 105."""
        name = add(service, "the pier", expires_at=datetime(2026, 3, 1, tzinfo=UTC), pinned=True)
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        try:
            clock.now = datetime(2026, 2, 28, 23, 30, tzinfo=UTC)
            assert run(service, clock, "expire")["moved"] == 0
            assert found(service, "pier") == [name]
            clock.now = datetime(2026, 3, 1, tzinfo=UTC)
            assert found(service, "pier") == []
            report = run(service, clock, "expire")
        finally:
            monkeypatch.undo()
            time.tzset()
        assert (report["moved"], report["reasons"]) == (1, {"expired": 1})
        assert state(service, name) is MemoryState.ARCHIVED


class TestForecast:
    def test_it_names_what_the_runs_take(self, service: MemoryService, clock: SettableClock) -> None:
        """What a forecast has until an instant is what a run at that instant takes (case 101)."""
        names = []
        for place in range(6):
            names.append(add(service, f"the pier {place}", importance=place / 5))
            clock.advance(days=3)
        expiring = add(service, "the ferry", expires_at=clock() + timedelta(days=5))
        archived = add(service, "the tower")
        service.archive("default", archived)
        told = service.forecast("default", "ana", days=40)
        assert told.memories == 8
        assert told.total == len(told.items) == sum(told.reasons.values())
        assert [each.at for each in told.items] == sorted(each.at for each in told.items)
        assert {each.id for each in told.items if each.reason is Reason.EXPIRED} == {expiring}
        assert archived not in {each.id for each in told.items}
        clock.advance(days=40)
        forgotten = {each.id for each in told.items if each.reason is Reason.FORGOTTEN}
        report = run(service, clock, "forget", max_share=1)
        assert {each["id"] for each in report["sample"]} == forgotten
        assert forgotten

    def test_limit_bank_and_bounds(self, service: MemoryService, clock: SettableClock) -> None:
        for place in range(3):
            add(service, f"the pier {place}")
        add(service, "the task", bank="task")
        add(service, "of ben", user_id="ben")
        clock.advance(days=10)
        told = service.forecast("default", "ana", bank="dialog", days=60, limit=2)
        assert (told.total, len(told.items), told.memories) == (3, 2, 3)
        assert service.forecast("default", "ana", days=0).total == 0
        for wrong in ({"days": -1}, {"limit": 0}, {"bank": "attic"}):
            with pytest.raises(InvalidInput):
                service.forecast("default", "ana", **wrong)


class TestOneMemory:
    def test_archive_and_restore(self, service: MemoryService) -> None:
        """Case 70: out of each mode at once."""
        name = add(service, "the pier")
        found(service, "the pier")
        assert service.archive("default", name).state is MemoryState.ARCHIVED
        for fusion in ("sparse", "dense", "convex"):
            assert found(service, "the pier", fusion) == []
        assert service.archive("default", name).revision == 2
        assert service.restore("default", name).state is MemoryState.ACTIVE
        assert found(service, "the pier") == [name]

    def test_suppress_and_unsuppress(self, service: MemoryService) -> None:
        name = add(service, "the pier")
        service.suppress("default", name)
        assert found(service, "the pier") == []
        with pytest.raises(Conflict):
            service.restore("default", name)
        with pytest.raises(Conflict):
            service.archive("default", name)
        service.unsuppress("default", name)
        assert found(service, "the pier") == [name]
        with pytest.raises(Conflict):
            service.archive("default", name, expected_revision=1)

    def test_of_another_tenant(self, service: MemoryService) -> None:
        """Case 61."""
        name = add(service, "the pier")
        for verb in (service.archive, service.restore, service.suppress, service.unsuppress):
            with pytest.raises(NotFound):
                verb("other", name)
        assert service.get("default", name).revision == 1

    def test_as_of_finds_it_where_it_stood(self, service: MemoryService, clock: SettableClock) -> None:
        """Case 106."""
        name = add(service, "the pier")
        clock.advance(days=5)
        service.archive("default", name)
        then = Query(tenant="default", user_id="ana", text="pier", as_of=clock() - timedelta(days=1), reinforce=False)
        assert [each.memory.id for each in service.search(then).results] == [name]

    def test_strength_is_capped_and_a_fresh_match_outranks_it(
        self, service: MemoryService, clock: SettableClock
    ) -> None:
        """Case 144: 10,000 recalls of one trivial memory."""
        trivial = add(service, "lunch was fine")
        for _ in range(10):
            service.store.append([RecallEntry("default", trivial, clock())] * 1_000)  # type: ignore[attr-defined]
        service.fold_recalls()
        assert service.get("default", trivial).strength == 20.0
        fresh = add(service, "the reactor code is seven four two")
        assert found(service, "the reactor code is seven four two")[0] == fresh
        told = service.forecast("default", "ana", days=36_500)
        assert trivial in {each.id for each in told.items}
