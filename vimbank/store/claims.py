"""Which memories have claims, which were never asked for any, and which were never compared (``ClaimStore``)."""

from typing import Any, Final

from sqlalchemy import Select, and_, exists, select

from vimbank.domain.comparing import COMPARED
from vimbank.domain.models import MemoryState, Partition
from vimbank.domain.superseding import OUTSIDE
from vimbank.store.rows import MEMORY_COLUMNS
from vimbank.store.tables import LIVE, claims, memories

__all__ = ["claiming", "uncompared", "unread"]

_TAKES_PART: Final = and_(memories.c.parent_id.is_(None), memories.c.kind.not_in(sorted(OUTSIDE)))


def unread(partition: Partition, *, after: int, again: bool) -> Select[Any]:
    """Memories of kinds that take part and, unless ``again``, have no row in ``claims``."""
    taking_part = _of(partition).where(memories.c.number > after, _TAKES_PART)
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


def uncompared(partition: Partition) -> Select[Any]:
    """The numbers of active memories, of kinds that take part, without the claim ``COMPARED``."""
    subject, attribute = COMPARED
    compared = (claims.c.number == memories.c.number, claims.c.subject == subject, claims.c.attribute == attribute)
    active = memories.c.state == MemoryState.ACTIVE.value
    return _in(select(memories.c.number), partition).where(active, _TAKES_PART, ~exists().where(*compared))


def _of(partition: Partition) -> Select[Any]:
    return _in(select(*MEMORY_COLUMNS), partition)


def _in(wanted: Select[Any], partition: Partition) -> Select[Any]:
    return wanted.where(
        memories.c.tenant == partition.tenant,
        memories.c.user_id == partition.user_id,
        memories.c.bank == partition.bank,
        LIVE,
    ).order_by(memories.c.number)
