"""Superseded memories that are pruned: when, what stays of them, and that everything else stays sound."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SettableClock
from tests.repair_kit import Place, place
from vimbank.domain.jobs import JobState
from vimbank.domain.models import ListQuery, Memory, MemoryDraft, MemoryPatch, MemoryState, Query, StateChange
from vimbank.errors import NotFound
from vimbank.portability.export import export
from vimbank.portability.import_ import Importer
from vimbank.service import MemoryService
from vimbank.settings import BankSettings, LifecycleSettings
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_archive

GRACE_DAYS = 100.0
FORMS = ("alone", pytest.param("scaled", marks=pytest.mark.services))


@pytest.fixture(params=FORMS)
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Both forms; the dialog bank forgets nothing but what was superseded."""
    with place(request.param, tmp_path / "data") as made:
        yield Place(banked(made, forgets=False, superseded_grace_days=GRACE_DAYS))


def banked(made: Place, **lifecycle: Any) -> Any:
    banks = {"dialog": BankSettings(lifecycle=LifecycleSettings(**lifecycle))}
    return made.settings.model_copy(update={"banks": banks})


@pytest.fixture
def service(here: Place, clock: SettableClock) -> Iterator[MemoryService]:
    with here.open(clock=clock) as opened:
        yield opened


@pytest.fixture
def run(here: Place, service: MemoryService, clock: SettableClock) -> Any:
    """Runs a job to its report."""

    def run_(name: str, **params: Any) -> dict[str, Any]:
        with closing(open_jobs(here.settings, service, clock=clock)) as jobs:
            done = jobs.run(jobs.start(name, params).id)
        assert done.state is JobState.SUCCEEDED, done
        return dict(done.result or {})

    return run_


def say(service: MemoryService, text: str, **fields: Any) -> str:
    return service.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=text, **fields)).id


def move_house(service: MemoryService, clock: SettableClock, *places: str) -> list[str]:
    """One memory a month, each superseding the one before."""
    ids = []
    for name in places:
        ids.append(say(service, f"I live in {name}."))
        clock.advance(days=30)
    return ids


def states(service: MemoryService) -> Mapping[str, int]:
    return service.stats("default").by_state


def found(service: MemoryService, text: str, **given: Any) -> list[str]:
    query = Query(tenant="default", user_id="ana", text=text, reinforce=False, **given)
    return [each.memory.id for each in service.search(query).results]


def listed(service: MemoryService, **given: Any) -> Sequence[Memory]:
    return service.list(ListQuery(tenant="default", user_id="ana", **given)).items


def check_sound(service: MemoryService, run: Any) -> None:
    """Nothing is wrong, and nothing is left to decide."""
    report = service.check()
    assert report.everything == []
    decided = run("conflicts", rules_only=True)
    assert (decided["superseded"], decided["ended_partly"], decided["skipped"]) == (0, 0, 0)


def test_by_default_what_was_superseded_is_never_pruned(tmp_path: Path, clock: SettableClock) -> None:
    """D9."""
    with place("alone", tmp_path) as made, made.open(clock=clock) as service:
        move_house(service, clock, "Oslo", "Rome")
        clock.advance(days=36_500)
        with closing(open_jobs(made.settings, service, clock=clock)) as jobs:
            done = jobs.run(jobs.start("prune", {"max_share": 1}).id)
        assert done.result is not None
        assert (done.result["due"], done.result["memories"]) == (0, 1), "what stays is not even looked at"
        assert states(service) == {"active": 1, "superseded": 1}


def test_a_chain_goes_from_its_old_end_as_foreseen(service: MemoryService, clock: SettableClock, run: Any) -> None:
    """Oslo was superseded on day 30 and goes on day 130, Rome on day 60 and 160, Paris stays; today is day 90."""
    start = clock()
    oslo, rome, paris = move_house(service, clock, "Oslo", "Rome", "Paris")
    foreseen = service.forecast("default", "ana", days=365, limit=10)
    assert [(each.id, each.reason.value, (each.at - start).days) for each in foreseen.items] == [
        (oslo, "superseded", 130),
        (rome, "superseded", 160),
    ]
    assert {each.to for each in foreseen.items} == {MemoryState.DELETED}
    assert run("prune", max_share=1)["due"] == 0
    clock.advance(days=40)
    before = service.store.state()
    dry = run("prune", max_share=1, dry_run=True)
    assert (dry["due"], dry["memories"], service.store.state()) == (1, 3, before)
    wet = run("prune", max_share=1)
    assert (wet["moved"], wet["reasons"], wet["sample"]) == (1, {"superseded": 1}, dry["sample"])
    assert states(service) == {"active": 1, "superseded": 1}
    check_sound(service, run)
    clock.advance(days=30)
    assert run("prune", max_share=1)["moved"] == 1
    assert run("prune", max_share=1)["due"] == 0
    assert [each.id for each in listed(service)] == [paris]
    check_sound(service, run)


def test_the_past_stays_as_it_was(service: MemoryService, clock: SettableClock, run: Any) -> None:
    """Also once the tombstones are gone."""
    start = clock()
    oslo, rome, paris = move_house(service, clock, "Oslo", "Rome", "Paris")
    clock.advance(days=200)
    assert run("prune", max_share=1)["moved"] == 2
    for tombstones in (0, 2):
        clock.advance(days=1)
        assert run("compact", keep_days=0.5 if tombstones else 9)["tombstones"] == tombstones
        for days, there in ((10, oslo), (40, rome), (70, paris)):
            at = start + timedelta(days=days)
            assert found(service, "live in", as_of=at) == [there]
            assert service.get("default", there, as_of=at).text.startswith("I live in")
            assert [each.id for each in listed(service, as_of=at, state=MemoryState.ACTIVE)] == [there]
        assert found(service, "live in") == [paris]
        assert [each.event.value for each in service.history("default", oslo)] == ["add", "state", "delete"]
        with pytest.raises(NotFound):
            service.restore("default", oslo)
        check_sound(service, run)


def test_case_135_too_many_at_once_stop_it(service: MemoryService, clock: SettableClock, run: Any) -> None:
    move_house(service, clock, "Oslo", "Rome", "Paris", "Bern")
    clock.advance(days=200)
    stopped = run("prune")
    assert stopped["stopped"] == "it would take 3 of 4 memories (75.0%; at most 20.0% in one run)"
    assert (stopped["moved"], states(service)) == (0, {"active": 1, "superseded": 3})


def test_case_100_a_pinned_one_stays_with_what_superseded_it(
    service: MemoryService, clock: SettableClock, run: Any
) -> None:
    oslo, rome, paris = move_house(service, clock, "Oslo", "Rome", "Paris")
    service.update("default", oslo, MemoryPatch(pinned=True))
    clock.advance(days=500)
    assert run("prune", max_share=1)["due"] == 0
    service.update("default", oslo, MemoryPatch(pinned=False))
    clock.advance(days=99)
    assert run("prune", max_share=1)["due"] == 0, "it was changed 99 days ago, and its successor waits for it"
    clock.advance(days=1)
    assert run("prune", max_share=1)["moved"] == 2
    assert [each.id for each in listed(service)] == [paris]
    check_sound(service, run)
    assert [each.event.value for each in service.history("default", rome)][-1] == "delete"


def test_what_was_restored_in_time_stays(service: MemoryService, clock: SettableClock, run: Any) -> None:
    oslo, rome = move_house(service, clock, "Oslo", "Rome")
    service.restore("default", oslo)
    clock.advance(days=500)
    assert run("prune", max_share=1)["due"] == 0
    assert sorted(found(service, "live in")) == sorted([oslo, rome])


def test_what_has_ended_in_part_outlives_what_ended_it(service: MemoryService, clock: SettableClock, run: Any) -> None:
    """The first memory says two things; Rome ends one of them, Paris supersedes Rome, and Rome goes."""
    both = say(service, "I live in Oslo. I work at Statoil.")
    clock.advance(days=30)
    rome, paris = move_house(service, clock, "Rome", "Paris")
    ended = service.get("default", both).ended
    assert {each.new_id for each in ended} == {rome}
    clock.advance(days=200)
    assert run("prune", max_share=1)["moved"] == 1
    with pytest.raises(NotFound):
        service.get("default", rome)
    assert service.get("default", both).ended == ended
    assert sorted(found(service, "live in Oslo Rome Paris")) == sorted([both, paris])
    check_sound(service, run)
    service.restore("default", both)
    assert service.get("default", both).ended == ()
    assert service.check().everything == []


def test_folded_duplicates_go_and_their_kept_one_stays(service: MemoryService, clock: SettableClock, run: Any) -> None:
    kept = say(service, "the ferry leaves at nine")
    twin = say(service, "the ferry leaves at nine.", deduplicate=False)
    change = StateChange(id=twin, to=MemoryState.SUPERSEDED, superseded_by=kept)
    service.change_states("default", [change], actor="consolidate")
    clock.advance(days=100)
    assert run("prune", max_share=1)["moved"] == 1
    assert found(service, "ferry") == [kept]
    assert run("consolidate", max_share=1)["folded"] == 0
    check_sound(service, run)


def test_what_is_said_again_after_it_went_is_decided_anew(
    service: MemoryService, clock: SettableClock, run: Any
) -> None:
    """An old message that is delivered again with its own time and event id: true then, outdated now."""
    said = clock()
    oslo = say(service, "I live in Oslo.", event_at=said)
    clock.advance(days=30)
    rome = say(service, "I live in Rome.")
    clock.advance(days=200)
    assert run("prune", max_share=1)["moved"] == 1
    again = say(service, "I live in Oslo.", event_at=said, deduplicate=False)
    assert (again != oslo, service.get("default", again).superseded_by) == (True, rome)
    check_sound(service, run)


def test_an_export_takes_the_past_along(service: MemoryService, clock: SettableClock, run: Any, tmp_path: Path) -> None:
    start = clock()
    oslo, rome, paris = move_house(service, clock, "Oslo", "Rome", "Paris")
    clock.advance(days=50)
    assert run("prune", max_share=1)["moved"] == 1
    lines = b"".join(export(service, open_archive(service), tenant="default", user_id="ana")).splitlines(keepends=True)
    with place("alone", tmp_path / "there") as made, made.open(clock=clock) as there:
        importer = Importer(there, open_archive(there), tenant="default", actor="test")
        for line in lines:
            importer.feed(line)
        assert importer.finish().failed == 0
        assert there.check().everything == []
        assert found(there, "live in") == [paris]
        assert there.get("default", rome).superseded_by == paris
        assert found(there, "live in", as_of=start + timedelta(days=15)) == [oslo]
