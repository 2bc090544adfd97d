"""Export and import: lossless, resumable, and a bad line harms no other."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SettableClock
from vimbank.domain.models import MemoryDraft, MemoryPatch, Query, Scope, Signal
from vimbank.errors import InvalidInput
from vimbank.ingestion.dialog import Turn
from vimbank.portability.erase import erase
from vimbank.portability.export import export
from vimbank.portability.import_ import Importer, ImportReport
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings
from vimbank.wiring import open_service
from vimbank.wiring.portability import open_archive, open_eraser

HALF_AN_HOUR_LATER = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


def opened(folder: Path, clock: SettableClock, dimension: int | None = None) -> MemoryService:
    encoder = EncoderSettings(kind="hashing", dimension=dimension)
    return open_service(Settings(data_dir=folder, encoder=encoder), clock=clock)


@pytest.fixture
def here(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    with opened(tmp_path / "here", clock) as service:
        yield service


@pytest.fixture
def there(tmp_path: Path, clock: SettableClock) -> Iterator[MemoryService]:
    with opened(tmp_path / "there", clock) as service:
        yield service


def out(service: MemoryService, user_id: str | None = "ana") -> list[bytes]:
    """The lines of an export."""
    pieces = b"".join(export(service, open_archive(service), tenant="default", user_id=user_id))
    return pieces.splitlines(keepends=True)


def into(service: MemoryService, pieces: Sequence[bytes], **given: Any) -> ImportReport:
    importer = Importer(service, open_archive(service), tenant="default", actor="test", **given)
    for piece in pieces:
        importer.feed(piece)
    return importer.finish()


def live_a_life(service: MemoryService, clock: SettableClock) -> None:
    """Everything that a store can know of a memory."""

    def draft(text: str, **given: Any) -> MemoryDraft:
        return MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=text, **given)

    service.add_many(
        [
            draft("Ana is allergic to peanuts", id="a/b c?#", metadata={"x": [1, {"y": None}]}, pinned=True),
            draft("她住在里斯本 😀", importance=0.25, title="Lisbon", speaker="Ana", agent_id="agent"),
            draft("expires", expires_at=clock.now.replace(year=2030, microsecond=123), idempotency_key="key-1"),
            draft("deleted later", id="gone", session_id="s1"),
        ]
    )
    service.add_turns(
        tenant="default", user_id="ana", session_id="s1", turns=[Turn("user", "hello", event_id="e1"), Turn("x", "y")]
    )
    service.add_document(tenant="default", user_id="ana", title="Manual", text="The pump runs at 50 Hz. " * 300)
    clock.advance(hours=1)
    service.update("default", "a/b c?#", MemoryPatch(text="Ana is allergic to walnuts", metadata={"x": None}))
    clock.advance(seconds=0.000001)
    service.update("default", "a/b c?#", MemoryPatch(pinned=False))
    service.delete("default", "gone")
    clock.advance(days=2)
    service.add(draft("a second life", id="gone", session_id="s2"))
    service.add(draft("dead for good", id="dead", session_id="s3"))
    service.delete("default", "dead")
    service.search(Query(tenant="default", user_id="ana", text="allergic"))
    service.feedback("default", "a/b c?#", Signal.USED)
    service.fold_recalls()


def found(service: MemoryService, text: str, **given: Any) -> list[tuple[str, float]]:
    query = Query(tenant="default", user_id="ana", text=text, reinforce=False, **given)
    return [(each.memory.id, round(each.score, 6)) for each in service.search(query).results]


def test_case_127_export_empty_import_export_is_identical(here: MemoryService, clock: SettableClock) -> None:
    live_a_life(here, clock)
    before = out(here)
    answers, past = found(here, "pump walnuts Lisbon"), found(here, "peanuts", as_of=HALF_AN_HOUR_LATER)
    erase(here, open_eraser(here), Scope("default", "ana"), actor="test")
    assert out(here)[1:-1] == []
    report = into(here, before)
    assert (report.failed, report.duplicates, report.embedded, report.complete) == (0, 0, 0, True)
    assert report.added == len(before) - 2
    assert out(here)[1:] == before[1:]
    assert found(here, "pump walnuts Lisbon") == answers
    assert found(here, "peanuts", as_of=HALF_AN_HOUR_LATER) == past
    assert here.check().ok


def test_into_another_store_and_what_only_history_knows(
    here: MemoryService, there: MemoryService, clock: SettableClock
) -> None:
    live_a_life(here, clock)
    lines = out(here)
    assert into(there, lines).failed == 0
    assert out(there)[1:] == lines[1:]
    mine, theirs = here.get("default", "a/b c?#"), there.get("default", "a/b c?#")
    assert (theirs.recall_count, theirs.strength, theirs.last_recalled_at) == (2, 4.0, mine.last_recalled_at)
    assert [each.event for each in there.history("default", "dead")] == ["add", "delete"]
    assert [each.at for each in there.history("default", "gone")] == [x.at for x in here.history("default", "gone")]
    turn = Turn("user", "next")
    for service in (here, there):  # a position that was used once is never used again
        service.add_turns(tenant="default", user_id="ana", session_id="s1", turns=[turn])
    assert out(there)[-3].split(b'"position":')[1][:3] == out(here)[-3].split(b'"position":')[1][:3]
    key = MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="expires", idempotency_key="key-1")
    assert there.add(key).id == here.add(key).id


def test_a_second_run_goes_on_where_the_first_was_stopped(here: MemoryService, there: MemoryService) -> None:
    drafts = [
        MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=f"memory {n}", id=f"m{n}") for n in range(300)
    ]
    here.add_many(drafts)
    lines = out(here)
    first = into(there, lines[:150])
    assert (first.added, first.complete) == (149, False)
    second = into(there, lines)
    assert (second.added, second.duplicates, second.complete) == (151, 149, True)
    assert out(there)[1:] == lines[1:]
    assert into(there, lines).added == 0


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_pieces_may_end_anywhere(here: MemoryService, there: MemoryService, clock: SettableClock, size: int) -> None:
    here.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="她住在里斯本"))
    whole = b"".join(out(here))
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert into(there, pieces).complete is True
    assert out(there)[1:] == out(here)[1:]


def test_case_116_bad_lines_are_named_by_number_and_the_rest_goes_in(here: MemoryService, there: MemoryService) -> None:
    for n in range(10):
        here.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=f"memory {n}", id=f"m{n}"))
    lines = out(here)
    lines[2] = b'{"id": "m1", \xff\xfe\n'
    values = {n: json.loads(lines[n]) for n in (3, 4, 5, 6, 7)}
    values[3]["memory"]["strength"] = -1
    values[4]["vector"] = "AAAA"
    values[5]["surprise"] = 1
    values[6]["memory"]["created_at"] = "yesterday"
    values[7]["past"][0]["event"] = "forge"
    for n, value in values.items():
        lines[n] = json.dumps(value).encode() + b"\n"
    report = into(there, lines)
    assert [each.line for each in report.bad] == [3, 4, 5, 6, 7, 8]
    assert (report.added, report.failed, report.complete) == (4, 6, False)
    words = [each.error.split(":")[0] for each in report.bad]
    assert words == ["line", "memory.strength", "vector", "surprise", "memory.created_at", "past.0.event"]
    assert there.check().ok


@pytest.mark.parametrize(
    "past",
    [
        {"event": "state"},
        {"event": "state", "before": {"state": "nowhere"}},
        {"event": "update", "before": {"state": "active"}},
        {"event": "update", "before": {"id": "m", "metadata": "no JSON"}},
        {"event": "update", "before": {"password": "x"}},
        {"event": "add", "changes": {"pinned": 7}},
    ],
)
def test_a_forged_past_is_refused_and_not_met_later(
    here: MemoryService, there: MemoryService, past: dict[str, Any], clock: SettableClock
) -> None:
    here.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="memory", id="m"))
    lines = out(here)
    value = json.loads(lines[1])
    value["past"].append({**value["past"][0], **past, "at": "2026-02-01T00:00:00Z"})
    report = into(there, [lines[0], json.dumps(value).encode() + b"\n"])
    assert (report.added, report.bad[0].line) == (0, 2)
    assert found(there, "memory", as_of=HALF_AN_HOUR_LATER) == []


def test_another_content_under_the_id_is_a_conflict(here: MemoryService, there: MemoryService) -> None:
    here.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="mine", id="m", idempotency_key="k1"))
    here.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="other", id="n", idempotency_key="k2"))
    there.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="theirs", id="m"))
    there.add(MemoryDraft(tenant="default", user_id="ben", bank="dialog", text="his", id="x", idempotency_key="k2"))
    report = into(there, out(here))
    assert [(each.line, each.id) for each in report.conflicts] == [(2, "m"), (3, "n")]
    assert there.get("default", "m").text == "theirs"


def test_a_preview_tells_what_a_run_does_and_changes_nothing(
    here: MemoryService, there: MemoryService, clock: SettableClock
) -> None:
    live_a_life(here, clock)
    lines = [*out(here), out(here)[1], b"nonsense\n"]
    there.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="theirs", id="gone"))
    revision = there.store.state().revision
    preview = into(there, lines, dry_run=True)
    assert there.store.state().revision == revision
    run = into(there, lines)
    assert (preview.added, preview.duplicates, preview.failed) == (run.added, run.duplicates, run.failed)
    assert preview.conflicts == run.conflicts != []
    assert preview.bad == run.bad != []


def test_vectors_of_another_encoder_are_made_anew(here: MemoryService, tmp_path: Path, clock: SettableClock) -> None:
    live_a_life(here, clock)
    with opened(tmp_path / "other", clock, dimension=64) as other:
        report = into(other, out(here))
        assert report.failed == 0
        assert report.embedded > 5
        assert "encoded anew" in report.notes[0]
        assert found(other, "walnuts")[0][0] == "a/b c?#"
        assert other.check().ok


def test_a_deleted_memory_that_comes_back_says_so(here: MemoryService, clock: SettableClock) -> None:
    """Nothing of the history is written twice, and none of it is lost."""
    here.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="once", id="m"))
    lines = out(here)
    clock.advance(days=1)
    here.delete("default", "m")
    assert into(here, lines).added == 1
    events = [(each.event.value, each.actor) for each in here.history("default", "m")]
    assert events == [("add", "api"), ("delete", "api"), ("add", "test")]
    assert found(here, "once") != []
    assert here.check().ok


def test_a_changed_or_cut_file_is_told(here: MemoryService, there: MemoryService) -> None:
    here.add(MemoryDraft(tenant="default", user_id="ana", bank="dialog", text="peanuts"))
    lines = out(here)
    assert into(there, lines[:-1]).complete is False
    assert into(there, [lines[0], lines[1].replace(b"peanuts", b"walnuts"), lines[2]]).complete is False


def test_an_export_of_a_newer_format_is_refused(there: MemoryService) -> None:
    report = into(there, [b'{"vimbank": 2}\n'])
    assert "format 2" in report.bad[0].error


def test_all_users_of_a_tenant_and_no_other(here: MemoryService, there: MemoryService) -> None:
    for tenant, user in (("default", "ana"), ("default", "ben"), ("other", "ana")):
        here.add(MemoryDraft(tenant=tenant, user_id=user, bank="dialog", text=f"{tenant} {user}"))
    assert into(there, out(here, None)).added == 2
    assert there.stats("default").users == 2
    assert there.stats("other").memories == 0


@pytest.mark.parametrize("given", [{"format": "yaml"}, {"user_id": "*"}, {"bank": "nowhere"}, {"user_id": ""}])
def test_what_cannot_be_asked_for(there: MemoryService, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        into(there, [], **given)
