"""What it means that a stored memory was judged, once for all stores (see ``MemoryStore.put_samples``)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from vimbank.domain.information import information
from vimbank.domain.models import UNSET, Event, HistoryEntry
from vimbank.ports import Judged
from vimbank.store.changes import Record, Rows, differences

__all__ = ["put_samples"]


def put_samples(rows: Rows, judged: Sequence[Judged], *, actor: str, now: datetime) -> int:
    """Write each judgement whose memory still says what was judged and does not have it already; how many.

    The memory takes a revision, so that filters of every index see it, and a history entry of an update whose text
    stayed, so that the past knows what it was; ``updated_at`` stays, as its author changed nothing.
    """
    written = 0
    for each in judged:
        old = rows.by_id(each.memory.tenant, each.memory.id)
        if old is None or (old.number, old.text, old.kind) != (each.memory.number, each.memory.text, each.memory.kind):
            continue
        new = replace(old, sample=each.sample, sample_reasons=tuple(each.reasons), information=information(old.text))
        if new == old:
            continue
        new = replace(new, revision=rows.take_revision())
        rows.rewrite(new, UNSET)
        entry = HistoryEntry(old.id, new.revision, now, Event.UPDATE, actor, old.text, old.text, differences(old, new))
        rows.record(Record(entry, old.partition, old))
        written += 1
    return written
