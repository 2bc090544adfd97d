"""A service in either form that a test may damage: on SQLite alone, or on PostgreSQL and Elasticsearch."""

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from tests.contracts.postgres import empty_store
from tests.services import service_url
from vimbank.domain.checks import CheckReport
from vimbank.domain.models import MemoryDraft, Query
from vimbank.encoders.hashing import HashingEncoder
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.ports import Clock
from vimbank.service import MemoryService
from vimbank.settings import ElasticsearchSettings, EncoderSettings, IndexSettings, Settings, StoreSettings
from vimbank.wiring import open_service, store_url, utc_now

__all__ = ["Place", "components", "place"]

ALONE: Final = "alone"


@dataclass
class Place:
    """One form's settings, and ways behind its back."""

    settings: Settings

    def open(self, *, clock: Clock = utc_now, encoder: HashingEncoder | None = None) -> MemoryService:
        """A process of it."""
        return open_service(self.settings, clock=clock, encoder=encoder)

    def sql(self, *statements: str, foreign_keys: bool = False) -> list[Any]:
        """Run statements on the database, past every check of the store; the rows of the last."""
        engine = create_engine(
            store_url(self.settings).replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool
        )
        rows: list[Any] = []
        with engine.begin() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
            elif not foreign_keys:
                connection.exec_driver_sql("SET session_replication_role = replica")
            for statement in statements:
                result = connection.exec_driver_sql(statement)
                rows = list(result.fetchall()) if result.returns_rows else []
        engine.dispose()
        return rows

    @property
    def client(self) -> ElasticsearchClient:
        """The cluster's client."""
        assert self.settings.elasticsearch.url is not None
        return ElasticsearchClient.connect([self.settings.elasticsearch.url])

    @property
    def snapshots(self) -> list[Path]:
        """Every file of the snapshot folder."""
        return sorted((self.settings.data_dir / "indexes").glob("*"))


@contextmanager
def place(form: str, folder: Path, *legs: str, server: str = "ELASTICSEARCH_A") -> Iterator[Place]:
    """``alone``: SQLite; ``scaled``: PostgreSQL and, where legs are named, Elasticsearch. Indexes go in the end."""
    encoder = EncoderSettings(kind="hashing", dimension=32)
    if form == ALONE:
        yield Place(Settings(data_dir=folder, encoder=encoder))
        return
    prefix = f"vbtest-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    url = service_url(server)
    patient = ElasticsearchSettings(url=url, prefix=prefix, search_timeout_s=10, catch_up_timeout_s=20)
    index = IndexSettings(**dict.fromkeys(legs, "elasticsearch"))
    yield Place(
        Settings(
            data_dir=folder, encoder=encoder, store=StoreSettings(url=empty_store()), elasticsearch=patient, index=index
        )
    )
    client = ElasticsearchClient.connect([url])
    for name in client.ask("GET", f"/{prefix}-*/_mapping"):
        client.ask("DELETE", f"/{name}")
    client.close()


def components(report: CheckReport) -> list[str]:
    """The component of each problem."""
    return [problem.component for problem in report.everything]


def fill(service: MemoryService, texts: Sequence[str], *, user: str = "ana", bank: str = "knowledge") -> list[str]:
    """Memories of these texts; their ids."""
    drafts = [MemoryDraft(tenant="default", user_id=user, bank=bank, text=text) for text in texts]
    return [result.id for result in service.add_many(drafts)]  # type: ignore[union-attr]


def found(service: MemoryService, text: str, **given: Any) -> list[str]:
    """The texts that a search of ana's finds."""
    query = Query(tenant="default", user_id="ana", text=text, reinforce=False, **given)
    recall = service.search(query)
    assert recall.degraded == ()
    return [each.memory.text for each in recall.results]


def repaired(service: MemoryService, *expected: str, check: Callable[..., CheckReport] | None = None) -> CheckReport:
    """Check, repair, check again: the first finds these components, the second mends them, the third finds nothing."""
    check = check or service.check
    first = check()
    assert sorted(set(components(first))) == sorted(expected), first.everything
    assert not first.ok
    assert first.repaired == {}
    second = check(repair=True)
    assert second.ok, second.everything
    assert set(second.repaired) >= set(expected)
    third = check()
    assert components(third) == [], third.everything
    return second
