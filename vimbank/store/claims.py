"""Which memories have claims, and which were never asked for any (``ClaimStore``)."""

from typing import Any

from sqlalchemy import Select, exists, select

from vimbank.domain.models import Partition
from vimbank.domain.superseding import OUTSIDE
from vimbank.store.rows import MEMORY_COLUMNS
from vimbank.store.tables import LIVE, claims, memories

__all__ = ["claiming", "unread"]


def unread(partition: Partition, *, after: int, again: bool) -> Select[Any]:
    """Memories of kinds that take part and, unless ``again``, have no row in ``claims``."""
    taking_part = _of(partition).where(
        memories.c.number > after, memories.c.parent_id.is_(None), memories.c.kind.not_in(sorted(OUTSIDE))
    )
    return taking_part if again else taking_part.where(~exists().where(claims.c.number == memories.c.number))


def claiming(partition: Partition) -> Select[Any]:
    """Memories with a claim that says something."""
    columns = claims.c
    said = select(columns.number).where(
        columns.tenant == partition.tenant,
        columns.user_id == partition.user_id,
        columns.bank == partition.bank,
        columns.subject != "",
    )
    return _of(partition).where(memories.c.number.in_(said))


def _of(partition: Partition) -> Select[Any]:
    return (
        select(*MEMORY_COLUMNS)
        .where(
            memories.c.tenant == partition.tenant,
            memories.c.user_id == partition.user_id,
            memories.c.bank == partition.bank,
            LIVE,
        )
        .order_by(memories.c.number)
    )
