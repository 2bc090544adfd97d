"""Tombstones that have served: which may go, and what is remembered of them."""

import hashlib
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, and_, delete, exists, func, insert, not_, select, text, update

from vimbank.domain.models import Partition
from vimbank.domain.times import to_micros
from vimbank.store.sql_rows import SqlRows
from vimbank.store.tables import compactions, memories

__all__ = ["compact", "compacted_in", "erased_user", "note_compacted"]

_BURIED: Final = text("memories.state = 'deleted'")  # literally, as the partial index says it


def compact(rows: SqlRows, *, up_to: int, deleted_before: datetime, limit: int) -> int:
    """Remove the oldest tombstones and note, partition by partition, how far; how many went."""
    doomed = rows.all(_removable(up_to, deleted_before).limit(limit))
    if not doomed:
        return 0
    rows.all(delete(memories).where(memories.c.number.in_([row[0] for row in doomed])), fetch=False)
    newest: dict[Partition, int] = {}
    for _number, tenant, user_id, bank, revision in doomed:
        newest[Partition(tenant, user_id, bank)] = revision  # they come by revision
    for partition, revision in newest.items():
        note_compacted(rows, partition, revision)
    rows.counters.compacted = max(rows.counters.compacted, doomed[-1][4])
    return len(doomed)


def compacted_in(partition: Partition) -> Select[Any]:
    """The query of the newest tombstone that was removed from a partition, by compaction or by erasure."""
    names = (partition.user_id, erased_user(partition.tenant, partition.user_id))
    return select(func.max(compactions.c.revision)).where(
        compactions.c.tenant == partition.tenant, compactions.c.user_id.in_(names), compactions.c.bank == partition.bank
    )


def erased_user(tenant: str, user_id: str) -> str:
    """What stands for the name of a user who was erased: nothing else may be left that says it."""
    name = b"".join(len(part).to_bytes(4) + part for part in (tenant.encode(), user_id.encode()))
    return f"erased:{hashlib.blake2b(name, digest_size=16).hexdigest()}"


def _removable(up_to: int, deleted_before: datetime) -> Select[Any]:
    row, other = memories, memories.alias("other")
    later = and_(
        other.c.tenant == row.c.tenant,
        other.c.user_id == row.c.user_id,
        other.c.bank == row.c.bank,
        other.c.session_id == row.c.session_id,
        other.c.parent_id.is_(None),
        (other.c.position > row.c.position) | ((other.c.position == row.c.position) & (other.c.number > row.c.number)),
    )
    in_session = and_(row.c.session_id.is_not(None), row.c.position.is_not(None), row.c.parent_id.is_(None))
    # Else a session's next position would be one that a deleted memory had.
    last_of_session = and_(in_session, ~exists().where(later))
    columns = (row.c.number, row.c.tenant, row.c.user_id, row.c.bank, row.c.revision)
    return (
        select(*columns)
        .where(_BURIED, row.c.revision <= up_to, row.c.updated_at < to_micros(deleted_before), not_(last_of_session))
        .order_by(row.c.revision)
    )


def note_compacted(rows: SqlRows, partition: Partition, revision: int) -> None:
    """Remember that the feed no longer tells of what was deleted in a partition up to ``revision``."""
    if not rows.all(select(compactions.c.revision).where(*_of(partition))):
        values = {"tenant": partition.tenant, "user_id": partition.user_id, "bank": partition.bank}
        rows.all(insert(compactions).values(**values, revision=revision), fetch=False)
        return
    further = compactions.c.revision < revision
    rows.all(update(compactions).values(revision=revision).where(*_of(partition), further), fetch=False)


def _of(partition: Partition) -> tuple[Any, ...]:
    return (
        compactions.c.tenant == partition.tenant,
        compactions.c.user_id == partition.user_id,
        compactions.c.bank == partition.bank,
    )
