"""Erasing a session or an agent takes what was made of it, however far: summaries, portraits, their history."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SettableClock
from tests.unit.test_erase import gone, holding, left, settings_of
from vimbank.domain.jobs import JobState
from vimbank.domain.models import ListQuery, Memory, MemoryDraft, MemoryPatch, MemoryState, Query, StateChange
from vimbank.domain.summaries import FAN_IN, Derived
from vimbank.feed.notices import LocalNotices
from vimbank.feed.remote import RemoteFollower
from vimbank.feed.remotes import Remotes
from vimbank.indexes.in_memory_remote import InMemoryRemote
from vimbank.ingestion.dialog import Turn
from vimbank.portability.erase import leftovers
from vimbank.service import MemoryService
from vimbank.store.descent import made_of, named_sources
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_eraser

USER = "ana"
DAY = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@pytest.fixture
def place(tmp_path: Path, clock: SettableClock) -> Iterator[tuple[MemoryService, Path]]:
    with open_service(settings_of(tmp_path), clock=clock) as service:
        yield service, tmp_path


def say(service: MemoryService, session: str, *texts: str, day: datetime = DAY, agent: str | None = None) -> list[str]:
    turns = [Turn("user", text, event_at=day + timedelta(minutes=place)) for place, text in enumerate(texts)]
    added = service.add_turns(tenant="default", user_id=USER, session_id=session, turns=turns, agent_id=agent)
    return [each.id for each in added]  # type: ignore[union-attr]


def write_summaries(service: MemoryService, folder: Path) -> None:
    settings = settings_of(folder)
    with closing(open_jobs(settings, service)) as jobs:
        for name in ("summarise", "portrait"):
            job = jobs.start(name, {})
            jobs.run(job.id)
            ended = jobs.get(job.id)
            assert ended.state is JobState.SUCCEEDED, ended.error


def derived(service: MemoryService) -> list[Memory]:
    found = service.list(ListQuery(tenant="default", user_id=USER, state=None, limit=1_000)).items
    return [each for each in found if each.kind in ("summary", "portrait")]


MARKED = [f"I keep the quagmire{n} behind the house in Halvik and I like it" for n in range(6)]
KEPT = [f"I always play the cello{n} on Sundays and I like it" for n in range(6)]


@pytest.mark.parametrize("by", ["session_id", "agent_id"])
def test_no_summary_nor_its_history_tells_of_an_erased_session_or_agent(
    place: tuple[MemoryService, Path], by: str
) -> None:
    service, folder = place
    say(service, "sessmark", *MARKED, agent="agentmark")
    say(service, "other", *KEPT)
    write_summaries(service, folder)
    levels = {(each.kind, each.metadata["level"]) for each in derived(service) if "quagmire" in each.text}
    assert levels == {("summary", "group"), ("summary", "day"), ("summary", "global"), ("portrait", "day"),
                      ("portrait", "global")}  # fmt: skip
    say(service, "sessmark", "the quagmire9 was drained", agent="agentmark")
    write_summaries(service, folder)  # now the texts from before stand in the history alone
    service.flush()
    receipt = gone(service, USER, **{by: "sessmark" if by == "session_id" else "agentmark"})
    assert {word: holding(folder, word) for word in ("quagmire", "sessmark", "agentmark")} == {
        "quagmire": [],
        "sessmark": [],
        "agentmark": [],
    }
    assert receipt.counts["summaries"] == 5
    assert left(service, folder, receipt, user_id=USER) == []
    assert service.check().ok
    write_summaries(service, folder)
    assert {(each.kind, each.metadata["level"]) for each in derived(service)} == levels
    assert all("cello" in each.text for each in derived(service))
    assert left(service, folder, receipt, user_id=USER) == []  # what was made anew is no trace of before


def test_a_summary_that_no_longer_tells_of_a_source_goes_for_its_history(place: tuple[MemoryService, Path]) -> None:
    """The source was deleted and the summaries refreshed before the session is erased."""
    service, folder = place
    marked = say(service, "sessmark", *MARKED)
    say(service, "other", *KEPT)
    write_summaries(service, folder)
    for each in marked:
        service.delete("default", each)
    write_summaries(service, folder)
    assert not any("quagmire" in each.text for each in derived(service))
    assert holding(folder, "quagmire")
    receipt = gone(service, USER, session_id="sessmark")
    assert holding(folder, "quagmire") == holding(folder, "sessmark") == []
    assert left(service, folder, receipt) == []


def test_a_deleted_summary_is_found_by_its_history(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    say(service, "sessmark", *MARKED)
    write_summaries(service, folder)
    for each in derived(service):
        service.delete("default", each.id)
    receipt = gone(service, USER, session_id="sessmark")
    assert holding(folder, "quagmire") == []
    assert left(service, folder, receipt) == []


def test_months_stand_between_and_go_too(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    for number in range(FAN_IN + 2):
        day = DAY - timedelta(days=number)
        say(service, "sessmark" if number == 3 else "other", f"I saw the quagmire{number} on that day", day=day)
    write_summaries(service, folder)
    before = {each.id for each in derived(service)}
    receipt = gone(service, USER, session_id="sessmark")
    went = before - {each.id for each in derived(service)}
    # Of both kinds: its day, the month of that day, and all.
    assert sorted(each.split("-")[1] for each in went) == ["day", "day", "global", "global", "month", "month"]
    assert receipt.counts["summaries"] == 6
    assert holding(folder, "quagmire3 ") == []


def test_summaries_of_other_sessions_and_other_users_stay(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    say(service, "sessmark", *MARKED)
    say(service, "other", *KEPT, day=DAY + timedelta(days=1))
    write_summaries(service, folder)
    theirs = service.add(_summary("ben", ["nothing of ana's"]))
    day = [each for each in derived(service) if each.metadata["period"] == "2026-01-06"]
    gone(service, USER, session_id="sessmark")
    assert {each.id for each in day} <= {each.id for each in derived(service)}
    assert service.get("default", theirs.id).text == "a summary"


def _summary(user_id: str, sources: list[str], **given: Any) -> MemoryDraft:
    data = Derived("day", "2026-01-01", "llm", "a-model", tuple(sources), "0" * 32).metadata()
    return MemoryDraft(
        tenant="default", user_id=user_id, bank="dialog", kind="summary", text="a summary", metadata=data, **given
    )


def test_nothing_that_stays_names_what_went(place: tuple[MemoryService, Path]) -> None:
    """Successors: now, and in the history of what was restored or changed since."""
    service, folder = place
    draft = MemoryDraft(tenant="default", user_id=USER, bank="dialog", text="the new one", id="idmark",
                        session_id="sessmark")  # fmt: skip
    service.add(draft)
    for name in ("stays", "returns", "changes"):
        service.add(replace(draft, id=name, text=f"the old one {name}", session_id="other"))
        service.change_states(
            "default", [StateChange(id=name, to=MemoryState.SUPERSEDED, superseded_by="idmark")], actor="test"
        )
    service.restore("default", "returns")
    service.update("default", "changes", MemoryPatch(metadata={"a": 1}))
    service.flush()
    assert holding(folder, "idmark")
    gone(service, USER, session_id="sessmark")
    assert holding(folder, "idmark") == []
    stays = service.get("default", "stays")
    assert (stays.state, stays.superseded_by) == (MemoryState.SUPERSEDED, None)
    assert service.history("default", "stays")[-1].changes["superseded_by"] == (None, None)
    assert service.get("default", "returns").state is MemoryState.ACTIVE


def test_what_was_ended_by_an_erased_memory_stays_ended_and_names_nobody(place: tuple[MemoryService, Path]) -> None:
    """A statement of it, while the rest holds: in the row, in the change, and in the columns before a later change."""
    service, folder = place
    draft = MemoryDraft(tenant="default", user_id=USER, bank="dialog", text="", session_id="other")
    service.add(replace(draft, id="old", text="I live in Lisbon. My favourite colour is green.", created_at=DAY))
    service.add(replace(draft, id="idmark", text="I live in Porto now.", session_id="sessmark"))
    assert [each.new_id for each in service.get("default", "old").ended] == ["idmark"]
    service.update("default", "old", MemoryPatch(metadata={"a": 1}))
    service.flush()
    assert holding(folder, "idmark")
    gone(service, USER, session_id="sessmark")
    assert [holding(folder, word) for word in ("idmark", "sessmark", "Porto", "porto")] == [[], [], [], []]
    (ended,) = service.get("default", "old").ended
    assert (ended.value, ended.new_id) == ("lisbon", "")


def test_an_erasure_that_was_cut_short_finds_its_summaries_again(
    place: tuple[MemoryService, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the first transaction and the second, where an index outside the process has to hear of it."""
    service, folder = place
    remotes = Remotes([RemoteFollower(service.store, InMemoryRemote())], LocalNotices(), every_s=60.0)
    monkeypatch.setattr(service, "_remotes", remotes)
    say(service, "sessmark", *MARKED)
    write_summaries(service, folder)
    ids = [each.id for each in derived(service)]
    with monkeypatch.context() as broken:
        broken.setattr("vimbank.store.erasing._purge", _die)
        with pytest.raises(KeyboardInterrupt):
            gone(service, USER, session_id="sessmark")
    receipt = gone(service, USER, session_id="sessmark")
    assert receipt.counts["tombstones"] == len(ids) + len(MARKED)
    assert [each for each in (*ids, "sessmark") if holding(folder, each)] == []


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_check_finds_a_summary_that_would_have_been_left(place: tuple[MemoryService, Path]) -> None:
    service, _ = place
    (source, *_) = say(service, "s", "I like the quagmire")
    service.add(_summary(USER, [source], id="told"))
    state = service.store.state()
    receipt = gone(service, USER, session_id="nobody's")
    lying = replace(receipt, ids=[receipt.of(source)], revision=state.revision, last_number=2, digest="")
    service.delete("default", source)
    found = leftovers(service, open_eraser(service), lying)
    assert "store: 2 rows of memory are left" in found  # the tombstone, and the summary


def test_a_recall_that_comes_late_is_gone_with_the_next_folding(tmp_path: Path) -> None:
    """Another process noted it before the erasure, and writes it down after."""
    with open_service(settings_of(tmp_path)) as first, open_service(settings_of(tmp_path)) as second:
        for name in ("idmark", "stays"):
            first.add(MemoryDraft(tenant="default", user_id=USER, bank="dialog", text=f"the pier {name}", id=name,
                                  session_id=name))  # fmt: skip
        assert len(second.search(Query(tenant="default", user_id=USER, text="pier")).results) == 2
        receipt = gone(first, USER, session_id="idmark")
        second.fold_recalls()
        assert second.get("default", "stays").recall_count == 1
        assert left(first, tmp_path, receipt, user_id=USER) == []
    assert holding(tmp_path, "idmark") == []


def test_search_gives_none_of_it(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    say(service, "sessmark", *MARKED)
    say(service, "other", *KEPT)
    write_summaries(service, folder)
    query = Query(tenant="default", user_id=USER, text="quagmire3", top_k=50)
    assert any(each.memory.kind == "summary" for each in service.search(query).results)
    gone(service, USER, session_id="sessmark")
    assert not any("quagmire" in each.memory.text for each in service.search(query).results)


def test_descent_follows_every_generation() -> None:
    sources = {"day": {"a", "b"}, "month": {"day"}, "global": {"month", "x"}, "other": {"c"}, "itself": {"itself"}}
    assert made_of(["a"], sources) == {"day", "month", "global"}
    assert made_of(["c", "month"], sources) == {"other", "global"}
    assert made_of(["itself"], sources) == set()
    assert made_of([], sources) == set()


@pytest.mark.parametrize("metadata", ["{}", '{"sources": 3}', '{"sources": null}', None, b"{}"])
def test_what_names_no_sources(metadata: object) -> None:
    assert named_sources("summary", metadata) == []
    assert named_sources("summary", '{"sources": ["a", 1]}') == ["a"]
    assert named_sources("note", '{"sources": ["a"]}') == []
