"""Export, import and erasure on each engine that keeps a store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.backends import SHARED, new_url
from vimbank.domain.models import MemoryDraft, MemoryPatch, Query, Scope
from vimbank.portability.erase import erase, leftovers
from vimbank.portability.export import export
from vimbank.portability.import_ import Importer
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings, StoreSettings
from vimbank.wiring import open_service
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
