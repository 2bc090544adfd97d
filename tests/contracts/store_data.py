"""Small makers for the tests of stores."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from vimbank.domain.curves import Curve, ExponentialCurve
from vimbank.domain.fingerprint import content_hash
from vimbank.domain.models import AddResult, MemoryDraft, MemoryPatch, Partition, Source, Vector
from vimbank.ports import Embedded, EncoderIdentity, MemoryStore, PreparedDraft, PreparedPatch

JAN = datetime(2026, 1, 1, tzinfo=UTC)
FEB = datetime(2026, 2, 1, tzinfo=UTC)
MAR = datetime(2026, 3, 1, tzinfo=UTC)
APR = datetime(2026, 4, 1, tzinfo=UTC)
ALICE = Partition("t", "alice", "dialog")
MINI = EncoderIdentity("mini", "1", 4)


def vector(text: str) -> Vector:
    """A unit vector of the text's own."""
    rng = np.random.default_rng(list(text.encode()))
    row = rng.standard_normal(4).astype(np.float32)
    return row / np.float32(np.linalg.norm(row))


def prepared(text: str, *, segments: Sequence[str] = (), **fields: Any) -> PreparedDraft:
    """A draft of alice's, embedded; with ``segments`` a document and its parts."""
    values: dict[str, Any] = {"tenant": "t", "user_id": "alice", "bank": "dialog"} | fields
    if not segments:
        draft = MemoryDraft(text=text, **values)
        return PreparedDraft(draft, content_hash(draft), len(text.split()), Embedded(vector(text)))
    draft = MemoryDraft(text=text, **values | {"kind": "document"})
    common = {name: value for name, value in values.items() if name not in ("id", "idempotency_key")}
    parts = [
        prepared(
            part, **common | {"kind": "segment", "deduplicate": False, "source": Source(start=place, end=place + 1)}
        )
        for place, part in enumerate(segments)
    ]
    return PreparedDraft(draft, content_hash(draft), len(text.split()), None, parts)


def patch(
    memory_id: str, *, segments: Sequence[str] = (), expected_revision: int | None = None, **fields: Any
) -> PreparedPatch:
    """A patch, with the embedding (or segments) of its text where it has one."""
    changes = MemoryPatch(**fields)
    text = fields.get("text")
    if text is None:
        return PreparedPatch(memory_id, changes, expected_revision=expected_revision)
    whole = prepared(text, segments=segments)
    return PreparedPatch(
        memory_id, changes, whole.content_hash, whole.token_count, whole.embedding, whole.segments, expected_revision
    )


def add(store: MemoryStore, *drafts: PreparedDraft, now: datetime = JAN) -> list[AddResult]:
    """Add them; every one has to succeed."""
    results = store.add(drafts, actor="test", now=now)
    for result in results:
        assert isinstance(result, AddResult), result
    return [result for result in results if isinstance(result, AddResult)]


def add_one(store: MemoryStore, text: str, *, now: datetime = JAN, **fields: Any) -> str:
    """The id of a new memory."""
    return add(store, prepared(text, **fields), now=now)[0].id


def live_ids(store: MemoryStore, partition: Partition = ALICE) -> list[str]:
    return [change.id for batch in store.live(partition) for change in batch]


def curve_of(_bank: str) -> Curve:
    """The curve of every bank: an exponential of ten days, with the usual cap."""
    return ExponentialCurve()
