"""Puts export, import and erasure together: the store's side of each, and where receipts are kept."""

from collections.abc import Iterator
from pathlib import Path

from vimbank.domain.models import Partition
from vimbank.errors import ConfigError
from vimbank.feed.snapshot import SnapshotFolder
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.store.archiving import SqlArchive
from vimbank.store.erasing import SqlEraser
from vimbank.store.sql import SqlStore

__all__ = ["open_archive", "open_eraser", "receipts_folder", "snapshots_in"]


def open_archive(service: MemoryService) -> SqlArchive:
    """The store's side of export and import. Raises ConfigError for a store in memory."""
    return SqlArchive(_sql_store(service))


def open_eraser(service: MemoryService) -> SqlEraser:
    """The store's side of an erasure. Raises ConfigError for a store in memory."""
    return SqlEraser(_sql_store(service))


def receipts_folder(settings: Settings) -> Path:
    """Where the receipts of erasures lie."""
    return settings.data_dir / "receipts"


def snapshots_in(settings: Settings) -> Iterator[tuple[Partition, int]]:
    """Partition and cursor of each index snapshot in the data folder."""
    yield from SnapshotFolder(settings.data_dir / "indexes").heads()


def _sql_store(service: MemoryService) -> SqlStore:
    store = service.store
    if not isinstance(store, SqlStore):
        raise ConfigError("this needs a store on a database")
    return store
