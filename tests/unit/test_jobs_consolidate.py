"""Consolidation on a real service: what is folded, what never, that it can be undone, and that it ends in one state."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import SettableClock
from tests.runner_kit import open_jobs, until
from vimbank.domain.filters import parse
from vimbank.domain.jobs import JobState
from vimbank.domain.models import Event, ListQuery, Memory, MemoryDraft, MemoryPatch, MemoryState, Query, Vector
from vimbank.errors import BackendUnavailable, InvalidInput
from vimbank.feed.remote import RemoteFollower
from vimbank.indexes.in_memory_remote import InMemoryRemote
from vimbank.ingestion.dialog import Turn
from vimbank.jobs import consolidate as job
from vimbank.jobs.context import JobContext, Surroundings
from vimbank.jobs.pulse import JobCancelled
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, IngestSettings, Settings
from vimbank.wiring import open_service

ACTIVE, SUPERSEDED = MemoryState.ACTIVE, MemoryState.SUPERSEDED


@pytest.fixture
def service(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    """Without conflicts: «I don't like tea» would supersede «I like tea» before anything could fold it."""
    settings = Settings(
        data_dir=tmp_path / "data", encoder=EncoderSettings(kind="hashing"), ingest=IngestSettings(conflicts=False)
    )
    with open_service(settings, clock=clock) as service:
        yield service


def towards(cosine: float, axis: int = 1) -> Vector:
    """A unit vector with this cosine to the first axis; two towards other axes are further apart."""
    vector = np.zeros(384, dtype=np.float32)
    vector[0], vector[axis] = cosine, (1 - cosine * cosine) ** 0.5
    return vector


def add(service: MemoryService, text: str, cosine: float = 1.0, **fields: Any) -> str:
    given = {"tenant": "default", "user_id": "ana", "bank": "dialog", "text": text, "vector": towards(cosine)}
    return service.add(MemoryDraft(**given | fields)).id


def run(service: MemoryService, clock: SettableClock, **params: Any) -> dict[str, Any]:
    jobs = open_jobs(service, clock)
    done = jobs.run(jobs.start("consolidate", params).id)
    assert done.state is JobState.SUCCEEDED, done
    return dict(done.result or {})


def one(service: MemoryService, name: str) -> Memory:
    return service.get("default", name)


def states(service: MemoryService, *names: str) -> list[MemoryState]:
    return [one(service, name).state for name in names]


def tea(service: MemoryService, clock: SettableClock) -> tuple[str, str]:
    """Two that say the same; the later one is the one that stays."""
    first = add(service, "I like tea")
    clock.advance(days=1)
    return first, add(service, "I really like tea", 0.98)


def test_case_92_near_duplicates_fold_and_can_be_brought_back(service: MemoryService, clock: SettableClock) -> None:
    first, second = tea(service, clock)
    third, other = add(service, "tea is something I like", 0.9), add(service, "I don't like tea", 1.0)
    report = run(service, clock)
    assert (report["folded"], report["flagged"], report["stopped"]) == (1, 1, None)
    [pair] = report["pairs"]
    assert pair == {
        "tenant": "default",
        "user_id": "ana",
        "bank": "dialog",
        "kept": second,
        "folded": first,
        "cosine": 0.98,
    }
    assert set(report["flagged_pairs"][0]["ids"]) == {second, third}
    assert states(service, first, second, third, other) == [SUPERSEDED, ACTIVE, ACTIVE, ACTIVE]
    source = one(service, first)
    assert (source.text, source.superseded_by) == ("I like tea", second)
    behind = ListQuery(tenant="default", state=SUPERSEDED, filter=parse({"superseded_by": second}))
    assert [each.id for each in service.list(behind).items] == [first]
    assert service.history("default", first)[-1].actor == "consolidate"
    restored = service.restore("default", first)
    assert (restored.state, restored.superseded_by) == (ACTIVE, None)


def test_what_was_brought_back_is_not_folded_again_until_it_says_something_else(
    service: MemoryService, clock: SettableClock
) -> None:
    first, second = tea(service, clock)
    run(service, clock)
    service.restore("default", first)
    report = run(service, clock)
    assert (report["folded"], report["spared"], report["flagged"]) == (0, 1, 1)
    assert states(service, first, second) == [ACTIVE, ACTIVE]
    service.update("default", first, MemoryPatch(text="I so like tea"))
    service.update("default", second, MemoryPatch(text="I so like tea!"))
    assert run(service, clock)["folded"] == 1


def test_case_86_thirty_facts_stay(service: MemoryService, clock: SettableClock) -> None:
    """Even where an encoder takes them all for one."""
    things = (
        "tea jazz chess rain soup maps cats snow bread salt figs wool ink sand moss rope silk corn mint lime oats peas "
        "rice beer wine jam dogs owls bees ants"
    )
    names = [add(service, f"My brother thinks of {thing} at home") for thing in things.split()]
    report = run(service, clock)
    assert (report["memories"], report["due"], report["flagged"]) == (30, 0, 0)
    assert states(service, *names) == [ACTIVE] * 30


def test_a_dry_run_says_the_same_and_changes_nothing(service: MemoryService, clock: SettableClock) -> None:
    first, second = tea(service, clock)
    before = service.store.state().revision
    report = run(service, clock, dry_run=True)
    assert (report["due"], report["folded"], len(report["pairs"])) == (1, 0, 1)
    assert service.store.state().revision == before
    assert report["pairs"] == run(service, clock)["pairs"]
    assert states(service, first, second) == [SUPERSEDED, ACTIVE]


def test_a_second_run_changes_nothing(service: MemoryService, clock: SettableClock) -> None:
    """Case 120: a job may come twice."""
    tea(service, clock)
    run(service, clock)
    before = service.store.state().revision
    assert run(service, clock)["due"] == 0
    assert service.store.state().revision == before


def test_the_kept_one_stays_when_others_come(service: MemoryService, clock: SettableClock) -> None:
    """It speaks for one already; the new one was said later, but for itself alone."""
    first, second = tea(service, clock)
    run(service, clock)
    clock.advance(days=1)
    third = add(service, "I really like tea!", 0.98)
    assert run(service, clock)["folded"] == 1
    assert [one(service, name).superseded_by for name in (first, second, third)] == [second, None, second]


def test_a_run_that_was_cut_short_ends_as_if_it_had_not_been(
    service: MemoryService, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job is killed between two of its batches, and run again."""
    words = ["tea", "jazz", "rain", "chess"]
    pairs = [[add(service, f"I like {word}"), add(service, f"I really like {word}")] for word in words]
    monkeypatch.setattr(job, "_BATCH", 1)
    context = JobContext(_around(service, clock), _Pulse(cancel_after="memories", count=2))  # type: ignore[arg-type]
    with pytest.raises(JobCancelled):
        job.consolidate(context, job.validate({}))
    assert sum(state is SUPERSEDED for pair in pairs for state in states(service, *pair)) == 2
    assert run(service, clock)["folded"] == 2
    for pair in pairs:
        gone, kept = sorted(pair, key=lambda name: one(service, name).state is ACTIVE)
        assert states(service, gone, kept) == [SUPERSEDED, ACTIVE]
        assert one(service, gone).superseded_by == kept


class _Pulse:
    """Cancels the job at its ``count``-th report of this unit."""

    def __init__(self, cancel_after: str, count: int) -> None:
        self._unit, self._left = cancel_after, count

    def report(self, done: int, total: int | None = None, message: str = "") -> None:
        del done, total
        self._left -= message == self._unit

    def check(self) -> None:
        if self._left <= 0:
            raise JobCancelled("cancelled")


def _around(service: MemoryService, clock: SettableClock) -> Surroundings:
    return Surroundings(service, service.store.jobs, clock, lambda _kind: service.encoder, (), 7.0)  # type: ignore[attr-defined]


def test_it_can_be_cancelled_while_it_reads(service: MemoryService, clock: SettableClock) -> None:
    tea(service, clock)
    context = JobContext(_around(service, clock), _Pulse("memories read", 1))  # type: ignore[arg-type]
    with pytest.raises(JobCancelled):
        job.consolidate(context, job.validate({}))


def test_groups_that_do_not_fit_at_once_are_read_one_after_the_other(
    service: MemoryService, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_HELD", 3)
    monkeypatch.setattr(job, "_READ", 2)
    for word in ("tea", "jazz", "rain", "chess", "soup"):
        add(service, f"I like {word}")
        add(service, f"I really like {word}")
    assert run(service, clock)["folded"] == 5


def test_users_banks_and_tenants_do_not_meet(service: MemoryService, clock: SettableClock) -> None:
    names = [
        add(service, "I like tea"),
        add(service, "I really like tea", user_id="ben"),
        add(service, "I really like tea", bank="knowledge"),
        add(service, "I really like tea", agent_id="bot"),
    ]
    elsewhere = [service.add(_of("acme", "I like tea")).id, service.add(_of("acme", "I really like tea")).id]
    assert run(service, clock, tenant="default")["due"] == 0
    assert states(service, *names) == [ACTIVE] * 4
    assert run(service, clock)["folded"] == 1
    assert {service.get("acme", name).state for name in elsewhere} == {ACTIVE, SUPERSEDED}


def _of(tenant: str, text: str) -> MemoryDraft:
    return MemoryDraft(tenant=tenant, user_id="ana", bank="dialog", text=text, vector=towards(1.0))


def test_turns_are_flagged_and_documents_left_out(service: MemoryService, clock: SettableClock) -> None:
    for session in ("one", "two"):
        turns = [Turn("user", f"{'' if session == 'one' else 'Oh, '}I like tea")]
        service.add_turns(tenant="default", user_id="ana", session_id=session, turns=turns)
        add(service, f"I like tea. {session}", kind="summary", vector=None)
    report = run(service, clock)
    assert (report["memories"], report["due"]) == (2, 0)
    turn = service.list(ListQuery(tenant="default", kind="turn")).items[0]
    assert turn.state is ACTIVE


def test_what_was_written_meanwhile_stays(
    service: MemoryService, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody rewrites the one that would stay, between the decision and the fold."""
    first, second = tea(service, clock)
    decided = job.reversible_guard

    def guard(context: Any, params: Any, **counts: int) -> Any:
        service.update("default", second, MemoryPatch(text="I like coffee"))
        return decided(context, params, **counts)

    monkeypatch.setattr(job, "reversible_guard", guard)
    report = run(service, clock)
    assert (report["due"], report["folded"], report["skipped"]) == (1, 0, 1)
    assert states(service, first, second) == [ACTIVE, ACTIVE]


def test_too_much_at_once_folds_nothing(service: MemoryService, clock: SettableClock) -> None:
    """Eleven of 22 are half of all; a handful may always be folded, unless a share is named."""
    for place in range(11):
        add(service, f"I like room {place}", kind="note")
        add(service, f"I really like room {place}", kind="note")
    report = run(service, clock)
    assert report["stopped"] == "it would fold 11 of 22 memories (50.0%; at most 20.0% in one run)"
    assert (report["due"], report["folded"], len(report["pairs"])) == (11, 0, 11)
    assert run(service, clock, max_share=0.4)["folded"] == 0
    assert run(service, clock, max_share=0.5)["folded"] == 11


def test_searches_find_the_one_that_stays(service: MemoryService, clock: SettableClock) -> None:
    first, second = tea(service, clock)
    query = Query(tenant="default", user_id="ana", text="tea", reinforce=False)
    assert {each.memory.id for each in service.search(query).results} == {first, second}
    was = clock.now
    clock.advance(days=1)
    run(service, clock)
    assert [each.memory.id for each in service.search(query).results] == [second]
    assert {each.memory.id for each in service.search(replace(query, as_of=was)).results} == {first, second}
    assert service.check().ok


def test_the_event_of_a_fold_is_a_change_of_state(service: MemoryService, clock: SettableClock) -> None:
    first, second = tea(service, clock)
    run(service, clock)
    entry = service.history("default", first)[-1]
    assert entry.event is Event.STATE
    assert dict(entry.changes) == {"state": ("active", "superseded"), "superseded_by": (None, second)}


def test_case_88_an_index_that_cannot_be_written_costs_no_source(service: MemoryService, clock: SettableClock) -> None:
    """The index outside the process fails right after the fold: it lags behind the store, which has all of it."""
    first, second = tea(service, clock)
    failures: list[Exception] = []

    def before(_call: str) -> None:
        if failures:
            raise failures[0]

    index = InMemoryRemote(before=before)
    follower = RemoteFollower(service.store, index, first_probe_s=0.01, longest_probe_s=0.05)
    partition = one(service, first).partition
    follower.catch_up()
    failures.append(BackendUnavailable("engine", "refused"))
    assert run(service, clock)["folded"] == 1
    with pytest.raises(BackendUnavailable):
        follower.catch_up()
    source = one(service, first)
    assert (source.text, source.state, source.superseded_by) == ("I like tea", SUPERSEDED, second)
    assert one(service, second).state is ACTIVE
    failures.clear()
    assert {each.id for each in index.searchable(partition)} == {first, second}
    until(lambda: _caught_up(follower))
    assert {each.id for each in index.searchable(partition)} == {second}
    assert service.restore("default", first).text == "I like tea"
    follower.close()


def _caught_up(follower: RemoteFollower) -> bool:
    try:
        follower.catch_up()
    except BackendUnavailable:  # the breaker lets nothing through for a moment
        return False
    return True


@pytest.mark.parametrize(
    "params",
    [
        {"threshold": 0.5},
        {"threshold": 1.1},
        {"threshold": "much"},
        {"max_share": 2},
        {"dry_run": "yes"},
        {"users": "ana"},
        {"tenant": ""},
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        job.validate(params)
    assert refused.value.errors[0].field == f"params.{next(iter(params))}"
