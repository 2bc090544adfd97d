"""Erasure: nothing of a user is left in any byte of the data folder, and the receipt can tell."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import SettableClock
from vimbank.domain.jobs import JobState
from vimbank.domain.models import MemoryDraft, MemoryPatch, Partition, Query, Scope
from vimbank.errors import InvalidInput
from vimbank.feed.notices import LocalNotices
from vimbank.feed.remote import RemoteFollower
from vimbank.feed.remotes import Remotes
from vimbank.indexes.in_memory_remote import InMemoryRemote
from vimbank.ingestion.dialog import Turn
from vimbank.portability.erase import erase, leftovers
from vimbank.portability.receipts import Receipt, load_receipt, receipt_from, save_receipt
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_eraser, snapshots_in

WORDS = ("quagmire", "titlemark", "metamark", "metakeymark", "idmark", "sessmark", "agentmark", "usermark", "keymark")
USER = "usermark"


def draft(number: int, user_id: str = USER, session: str = "sessmark1", **given: object) -> MemoryDraft:
    values: dict[str, object] = {
        "tenant": "default",
        "user_id": user_id,
        "bank": "dialog",
        "text": f"quagmire {number} stands in the meadow",
        "title": f"titlemark {number}",
        "metadata": {"metakeymark": f"metamark {number}"},
        "id": f"idmark-{number}",
        "idempotency_key": f"keymark-{number}",
        "session_id": session,
        "agent_id": "agentmark",
        **given,
    }
    return MemoryDraft(**values)  # type: ignore[arg-type]


def settings_of(folder: Path) -> Settings:
    return Settings(data_dir=folder / "data", encoder=EncoderSettings(kind="hashing"))


def holding(folder: Path, word: str) -> list[str]:
    """The files of a folder that hold the word, in any byte."""
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def live_a_life(service: MemoryService, count: int = 40) -> None:
    """Adds, a long document, changes, deletions, searches, feedback and snapshots."""
    service.add_many([draft(number) for number in range(count)])
    service.add_document(tenant="default", user_id=USER, title="titlemark", text="quagmire and reeds. " * 400)
    service.add_turns(tenant="default", user_id=USER, session_id="sessmark2", turns=[Turn("user", "quagmire?")])
    for number in range(0, count, 3):
        service.update("default", f"idmark-{number}", MemoryPatch(text=f"another quagmire {number}", title="titlemark"))
    for number in range(4):
        service.delete("default", f"idmark-{number}")
    service.search(Query(tenant="default", user_id=USER, text="where is the quagmire"))
    service.flush()


@pytest.fixture
def place(tmp_path: Path, clock: SettableClock) -> Iterator[tuple[MemoryService, Path]]:
    with open_service(settings_of(tmp_path), clock=clock) as service:
        yield service, tmp_path


def gone(service: MemoryService, user_id: str = USER, **scope: str) -> Receipt:
    given = Scope("default", user_id, None, scope.get("agent_id"), scope.get("session_id"))
    return erase(service, open_eraser(service), given, actor="test")


def left(service: MemoryService, folder: Path, receipt: Receipt, **given: str) -> list[str]:
    heads = list(snapshots_in(settings_of(folder)))
    return leftovers(service, open_eraser(service), receipt, snapshots=heads, **given)


def test_no_byte_of_the_data_folder_says_a_word_of_an_erased_user(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    service.add(draft(1, user_id="ben", id="b1", text="ben stays", title=None, metadata={}, session_id=None,
                      agent_id=None, idempotency_key=None))  # fmt: skip
    live_a_life(service)
    assert all(holding(folder, word) for word in WORDS)
    receipt = gone(service)
    assert {word: holding(folder, word) for word in WORDS} == {word: [] for word in WORDS}
    written = json.dumps(receipt.record())
    assert not any(word in written for word in WORDS)
    assert receipt.counts["memories"] > 36
    assert receipt.counts["tombstones"] == 4
    assert len(receipt.contents) == receipt.counts["memories"]
    assert left(service, folder, receipt) == []
    assert left(service, folder, receipt, user_id=USER) == []
    assert service.get("default", "b1").text == "ben stays"
    assert service.check().ok
    service.close()
    assert not any(holding(folder, word) for word in WORDS)


def test_a_session_goes_and_the_others_stay(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    service.add_many([draft(n) for n in range(5)])
    service.add_many([draft(n, session="other", text=f"kept {n}", title=None, metadata={}) for n in range(5, 10)])
    service.delete("default", "idmark-2")
    receipt = gone(service, session_id="sessmark1")
    assert (receipt.counts["memories"], receipt.counts["tombstones"]) == (4, 1)
    for word in ("quagmire", "sessmark1", "titlemark", "metamark", "idmark-2"):
        assert holding(folder, word) == []
    found = service.search(Query(tenant="default", user_id=USER, text="kept quagmire", top_k=20)).results
    assert sorted(each.memory.id for each in found) == [f"idmark-{n}" for n in range(5, 10)]
    assert left(service, folder, receipt, user_id=USER) == []


def test_an_agent_goes_also_what_it_said_and_was_deleted(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    service.add_many([draft(1), draft(2, agent_id="other", text="kept", title=None, metadata={})])
    service.delete("default", "idmark-1")
    receipt = gone(service, agent_id="agentmark")
    assert receipt.counts["history"] == 2
    assert holding(folder, "quagmire") == holding(folder, "agentmark") == []
    assert service.get("default", "idmark-2").text == "kept"


def test_another_process_drops_what_it_holds_and_writes_no_old_snapshot(tmp_path: Path) -> None:
    with open_service(settings_of(tmp_path)) as first, open_service(settings_of(tmp_path)) as second:
        first.add_many([draft(number) for number in range(20)])
        query = Query(tenant="default", user_id=USER, text="quagmire", reinforce=False)
        assert second.search(query).results
        gone(first)
        second.flush()  # its index has not heard of the erasure yet
        assert holding(tmp_path / "data" / "indexes", "quagmire") == []
        assert second.search(query).results == []
    assert not any(holding(tmp_path, word) for word in WORDS)


def test_a_user_who_comes_back_is_no_trace_of_before(place: tuple[MemoryService, Path]) -> None:
    """Case 137 for erasure: the id and the text may be used again."""
    service, folder = place
    service.add(draft(1))
    receipt = gone(service)
    service.add(draft(1))
    service.flush()
    assert service.search(Query(tenant="default", user_id=USER, text="quagmire")).results
    assert left(service, folder, receipt, user_id=USER) == []
    again = gone(service)
    assert again.counts["memories"] == 1
    assert gone(service).counts["memories"] == 0


def test_the_check_finds_what_an_erasure_would_have_left(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    service.add_many([draft(1), draft(2)])
    service.search(Query(tenant="default", user_id=USER, text="quagmire"))
    service.flush()
    state = service.store.state()
    service.add(draft(3, user_id="ben"))
    honest = gone(service, user_id="ben")
    lying = replace(
        honest, user=honest.of(USER), ids=[honest.of("idmark-1")], revision=state.revision, last_number=2, digest=""
    )
    found = left(service, folder, lying)
    assert [problem.split(" ", 4)[4] for problem in found] == ["history are left", "memory are left", "recall are left"]


def test_a_receipt_survives_its_file_and_no_change_of_it(place: tuple[MemoryService, Path]) -> None:
    service, folder = place
    service.add(draft(1))
    receipt = gone(service)
    path = save_receipt(receipt, folder / "receipts")
    assert load_receipt(path) == receipt
    with pytest.raises(InvalidInput, match="digest"):
        receipt_from({**receipt.record(), "by": "somebody else"})
    with pytest.raises(InvalidInput, match="not the receipt"):
        receipt_from({"receipt": 1})
    with pytest.raises(InvalidInput, match="user_id"):
        left(service, folder, receipt, user_id="ben")


@pytest.mark.parametrize("user_id", ["", " ", "*"])
def test_case_68_nobody_and_everybody_cannot_be_erased(place: tuple[MemoryService, Path], user_id: str) -> None:
    with pytest.raises(InvalidInput, match="user_id"):
        gone(place[0], user_id=user_id)


def test_case_130_a_user_with_a_thousand_memories_is_erased_in_two_seconds(place: tuple[MemoryService, Path]) -> None:
    service, _ = place
    service.add_many([draft(number) for number in range(1_000)])
    started = time.perf_counter()
    gone(service)
    took = time.perf_counter() - started
    print(f"erasing 1,000 memories took {took:.2f} s")
    assert took <= 2.0


def test_an_index_outside_the_process_hears_of_it_and_is_asked(
    place: tuple[MemoryService, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, folder = place
    index = InMemoryRemote()
    remotes = Remotes([RemoteFollower(service.store, index)], LocalNotices(), every_s=60.0)
    monkeypatch.setattr(service, "_remotes", remotes)
    service.add_many([draft(number) for number in range(5)])
    remotes.catch_up()
    partition = Partition("default", USER, "dialog")
    assert len(index.holds(partition)) == 5
    receipt = gone(service)
    assert index.holds(partition) == {}
    assert set(receipt.remote.values()) == {"holds none of it"}
    assert index.cursor() == service.store.state().compacted  # so nobody fills it anew
    assert not any(holding(folder, word) for word in WORDS)


def test_as_a_job_whose_record_names_nobody(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    with open_service(settings) as service, closing(open_jobs(settings, service)) as jobs:
        live_a_life(service, 8)
        other = jobs.start("check", {"tenant": "default"})
        jobs.run(other.id)
        job = jobs.start("erase", {"user_id": USER})
        jobs.run(job.id)
        ended = jobs.get(job.id)
        assert ended.state is JobState.SUCCEEDED, ended.error
        assert ended.result is not None
        assert left(service, tmp_path, receipt_from(dict(ended.result))) == []
    assert not any(holding(tmp_path, word) for word in WORDS)


@pytest.mark.parametrize(
    "params", [{}, {"user_id": ""}, {"user_id": "a", "session_id": "s", "agent_id": "b"}, {"user_id": "a", "bank": "x"}]
)
def test_the_job_wants_one_user(tmp_path: Path, params: dict[str, str]) -> None:
    settings = settings_of(tmp_path)
    with (
        open_service(settings) as service,
        closing(open_jobs(settings, service)) as jobs,
        pytest.raises(InvalidInput, match="params"),
    ):
        jobs.start("erase", params)
