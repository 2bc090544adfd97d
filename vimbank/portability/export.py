"""A user's memories, or a tenant's, as JSON Lines: a header, a line an id, and an end that tells a whole file."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import orjson

from vimbank.domain.archive import Archived, Outcome
from vimbank.domain.sanitize import clean_id
from vimbank.domain.times import format_time
from vimbank.errors import Conflict, InvalidInput
from vimbank.portability.lines import identity_record, line_of
from vimbank.service import MemoryService

__all__ = ["FORMAT", "Archive", "export"]

FORMAT: Final = 1


class Archive(Protocol):
    """What export and import ask of the store (``store.archiving.SqlArchive``)."""

    def counts(self, tenant: str, user_id: str | None) -> dict[str, int]: ...
    def archived(self, tenant: str, user_id: str | None) -> Iterator[list[Archived]]: ...
    def restore(
        self, entries: Sequence[Archived], *, actor: str, now: datetime, dry_run: bool = False
    ) -> Sequence[Outcome | Conflict | InvalidInput]: ...


def export(service: MemoryService, archive: Archive, *, tenant: str, user_id: str | None) -> Iterator[bytes]:
    """The file in pieces of some lines: all of a user, or of all users of a tenant.

    First line: ``{"vimbank": 1, "store", "at", "user_id", "encoder", "counts", "revision"}``; last line:
    ``{"end": {"lines", "sha256"}}`` of the lines between. Recalls are folded in before, so the counters are whole.
    Memory by number, each with its history; then what was deleted, by its first change. What is written meanwhile may
    be in it or not; each memory is of one moment.

    Raises:  InvalidInput (``user_id``), at once. Conflict: the store changes over to another encoder meanwhile.
    """
    if user_id is not None:
        clean_id(user_id, "user_id")
    service.fold_recalls()
    header = {
        "vimbank": FORMAT,
        "store": service.store.store_id(),
        "at": format_time(service.clock()),
        "user_id": user_id,
        "encoder": identity_record(service.encoder.identity),
        "counts": archive.counts(tenant, user_id),
        "revision": service.store.state().revision,
    }
    return _pieces(header, archive.archived(tenant, user_id))


def _pieces(header: dict[str, Any], batches: Iterator[list[Archived]]) -> Iterator[bytes]:
    yield orjson.dumps(header) + b"\n"
    digest, lines = hashlib.sha256(), 0
    for batch in batches:
        piece = b"".join(orjson.dumps(line_of(entry)) + b"\n" for entry in batch)
        digest.update(piece)
        lines += len(batch)
        yield piece
    yield orjson.dumps({"end": {"lines": lines, "sha256": digest.hexdigest()}}) + b"\n"
