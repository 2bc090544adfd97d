"""Export, import and erasure on each engine that keeps a store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.contracts.backends import SHARED, new_url
from vimbank.domain.models import MemoryDraft, MemoryPatch, Query, Scope
from vimbank.ingestion.dialog import Turn
from vimbank.portability.erase import erase, leftovers
from vimbank.portability.export import export
from vimbank.portability.import_ import Importer
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings, StoreSettings
from vimbank.store.tables import metadata
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_archive, open_eraser


@pytest.fixture(params=SHARED)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryService]:
    store = StoreSettings(url=new_url(request.param, tmp_path))
    settings = Settings(data_dir=tmp_path / "data", store=store, encoder=EncoderSettings(kind="hashing"))
    with open_service(settings) as opened:
        yield opened


def test_case_127_what_was_erased_comes_back_from_its_export(service: MemoryService) -> None:
    drafts = [
        MemoryDraft(tenant="t", user_id="ana", bank="dialog", text=f"memory {n}", id=f"m{n}", idempotency_key=f"k{n}")
        for n in range(600)
    ]
    service.add_many(drafts)
    service.update("t", "m7", MemoryPatch(text="changed", metadata={"n": 1}))
    service.delete("t", "m8")
    service.search(Query(tenant="t", user_id="ana", text="memory"))
    archive, eraser = open_archive(service), open_eraser(service)
    before = b"".join(export(service, archive, tenant="t", user_id="ana"))
    receipt = erase(service, eraser, Scope("t", "ana"), actor="test")
    assert (receipt.counts["memories"], receipt.counts["tombstones"], receipt.counts["history"]) == (599, 1, 602)
    assert leftovers(service, eraser, receipt, user_id="ana") == []
    assert service.search(Query(tenant="t", user_id="ana", text="memory")).results == []
    importer = Importer(service, archive, tenant="t", actor="test")
    importer.feed(before)
    report = importer.finish()
    assert (report.added, report.failed, report.complete) == (600, 0, True)
    after = b"".join(export(service, archive, tenant="t", user_id="ana"))
    assert after.splitlines()[1:] == before.splitlines()[1:]
    assert leftovers(service, eraser, receipt, user_id="ana") == []
    assert service.check().ok


def test_an_erased_session_is_in_no_row_of_any_table(service: MemoryService, tmp_path: Path) -> None:
    """Case 72 on each engine: what was made of it is gone, too, with its history, and its claims and job records."""
    marked = [f"My name is Ana. I live in Quagmire{n} and I like it." for n in range(6)]
    for session, texts in (("sessmark", marked), ("other", [f"I play the cello{n} on Sundays." for n in range(6)])):
        service.add_turns(tenant="t", user_id="ana", session_id=session, turns=[Turn("user", each) for each in texts])
    settings = Settings(data_dir=tmp_path / "data", encoder=EncoderSettings(kind="hashing"))
    with closing(open_jobs(settings, service)) as jobs:
        for name in ("summarise", "portrait"):
            jobs.run(jobs.start(name, {"user": "ana"}).id)
        service.add_turns(tenant="t", user_id="ana", session_id="sessmark", turns=[Turn("user", "I left Quagmire9.")])
        for name in ("summarise", "portrait"):
            jobs.run(jobs.start(name, {"user": "ana"}).id)
    service.search(Query(tenant="t", user_id="ana", text="Quagmire3"))
    assert {"memories", "history"} <= set(_tables_with(service, "quagmire"))
    receipt = erase(service, open_eraser(service), Scope("t", "ana", None, None, "sessmark"), actor="test")
    assert receipt.counts["summaries"] >= 5
    assert _tables_with(service, "quagmire") == _tables_with(service, "sessmark") == []
    assert set(_tables_with(service, "cello")) >= {"memories", "history"}
    assert leftovers(service, open_eraser(service), receipt, user_id="ana") == []
    receipt = erase(service, open_eraser(service), Scope("t", "ana"), actor="test")
    assert _tables_with(service, "cello") == [] == _tables_with(service, '"ana"')
    assert leftovers(service, open_eraser(service), receipt, user_id="ana") == []


def _tables_with(service: MemoryService, word: str) -> list[str]:
    """The tables of which a row holds the word, whatever its case: a dump of all of them."""
    found = []
    with service.store._engine.connect() as connection:  # type: ignore[attr-defined]
        for table in metadata.sorted_tables:
            rows = connection.execute(table.select()).fetchall()
            if any(word in str(tuple(row)).lower() or (word.strip('"') in tuple(row)) for row in rows):
                found.append(table.name)
    return found
