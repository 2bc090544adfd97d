"""The values that travel through VIMBank: frozen, slotted, free of I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from vimbank.domain.endings import Ended
from vimbank.domain.filters import Filter

__all__ = [
    "PARENT_KIND",
    "PLAIN_KIND",
    "RUN_KIND",
    "SEGMENT_KIND",
    "SHARED_USER",
    "UNSET",
    "AddResult",
    "BoolArray",
    "Change",
    "Event",
    "Explanation",
    "FloatArray",
    "FusionName",
    "HistoryEntry",
    "IntArray",
    "Label",
    "ListQuery",
    "Memory",
    "MemoryDraft",
    "MemoryPatch",
    "MemoryState",
    "Page",
    "Partition",
    "Query",
    "Recall",
    "RecallEntry",
    "Sample",
    "Scope",
    "ScoredMemory",
    "Signal",
    "Source",
    "StateChange",
    "StateResult",
    "Unset",
    "Vector",
    "Vectors",
]

Vector = NDArray[np.float32]  # (d,), unit length, or all zeros where the text carries no signal
Vectors = NDArray[np.float32]  # (n, d), rows as above
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

FusionName = Literal["convex", "rrf", "vimbank_eq4", "dense", "sparse"]

SHARED_USER: Final = "shared"
"""The user under which a tenant keeps what all of its users may read."""

PARENT_KIND: Final = "document"
"""Kind of a text kept whole and not indexed, because its segments are."""

SEGMENT_KIND: Final = "segment"
"""Kind of the parts of a document."""

PLAIN_KIND: Final = "note"
"""Kind of a memory whose author names none."""

RUN_KIND: Final = "task"
"""Kind of a task run, the parent of its steps."""


class Unset:
    """The type of ``UNSET``: «this field was not given», as opposed to None."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


class MemoryState(StrEnum):
    """Where a memory is in its life; only ``active`` ones are indexed and searched."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    SUPERSEDED = "superseded"
    SUPPRESSED = "suppressed"
    DELETED = "deleted"


class Sample(StrEnum):
    """What an experience is to the memory (V-6): worth remembering, or not."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Label(StrEnum):
    """What a record is to a question (V-9, V-11)."""

    RELEVANT = "relevant"
    """Contains the answer."""

    IRRELEVANT = "irrelevant"
    """On topic at best, no answer."""

    CONFLICTING = "conflicting"
    """Another record says otherwise, or replaced it."""


class Signal(StrEnum):
    """What happened to a memory that was returned: the access log's vocabulary (case 141)."""

    RETURNED = "returned"
    USED = "used"
    IGNORED = "ignored"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """(tenant, user, bank): indexes, statistics and caches never cross it."""

    tenant: str
    user_id: str
    bank: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What a bulk operation covers inside one tenant; ``user_id`` is always named."""

    tenant: str
    user_id: str
    bank: str | None = None
    agent_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a memory comes from.

    ``parent_id`` is the id of the document or task run it is a part of; ``position`` counts from 0 inside
    that parent or, for a dialog, inside the session; ``start`` and ``end`` are character offsets in the
    parent's text; ``event_id`` is the caller's name of the event, unique inside a tenant.
    """

    parent_id: str | None = None
    position: int | None = None
    start: int | None = None
    end: int | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One stored memory. All times are aware UTC; ``revision`` is the change that wrote this state."""

    id: str
    tenant: str
    user_id: str
    bank: str
    kind: str
    text: str
    created_at: datetime
    updated_at: datetime
    content_hash: str
    revision: int
    title: str | None = None
    speaker: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: Source = Source()
    event_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    importance: float | None = None  # [0, 1]; None is unknown, which is not «lowest» (case 135)
    pinned: bool = False
    strength: float = 1.0  # >= 1 (V-30, M-15)
    recall_count: int = 0
    last_recalled_at: datetime | None = None
    state: MemoryState = MemoryState.ACTIVE
    superseded_by: str | None = None
    token_count: int = 0
    stability_days: float | None = None  # FSRS's, > 0; None: never reviewed by it (D10)
    difficulty: float | None = None  # FSRS's, in [1, 10]; None: never reviewed by it
    sample: Sample | None = None  # None: nobody has judged it (V-5)
    sample_reasons: tuple[str, ...] = ()
    information: float | None = None  # how much it tells, in [0, 1); None: nobody has looked (domain.information)
    ended: tuple[Ended, ...] = ()  # what of it holds no longer, while the rest does (V-10)
    number: int = 0  # the store's own running number: stable, unique, breaks ties in rankings

    @property
    def partition(self) -> Partition:
        """The partition that indexes this memory."""
        return Partition(self.tenant, self.user_id, self.bank)

    @property
    def indexed(self) -> bool:
        """Whether the indexes hold it: active, and not a parent whose segments are indexed instead."""
        return self.state is MemoryState.ACTIVE and self.kind != PARENT_KIND


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDraft:
    """A memory as its author gives it, before the store gives it an id, a hash and a revision."""

    tenant: str
    user_id: str
    bank: str
    text: str
    kind: str = PLAIN_KIND
    title: str | None = None
    speaker: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: Source = Source()
    created_at: datetime | None = None  # None: the clock's now
    event_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    importance: float | None = None
    pinned: bool = False
    id: str | None = None
    idempotency_key: str | None = None
    deduplicate: bool = True
    vector: Vector | None = field(default=None, compare=False, repr=False)
    """The embedding, where the caller has it: unit length, made by the store's encoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPatch:
    """The fields an update changes; ``UNSET`` leaves a field as it is, None clears it (where it may be None).

    ``metadata`` replaces keys one by one: a key with None is removed, keys not named stay (case 73).
    """

    text: str | Unset = UNSET
    title: str | Unset | None = UNSET
    metadata: Mapping[str, Any] | Unset = UNSET
    event_at: datetime | Unset | None = UNSET
    valid_from: datetime | Unset | None = UNSET
    valid_to: datetime | Unset | None = UNSET
    expires_at: datetime | Unset | None = UNSET
    importance: float | Unset | None = UNSET
    pinned: bool | Unset = UNSET


@dataclass(frozen=True, slots=True)
class AddResult:
    """What became of one add: the memory's id, its revision, and whether it was already there.

    ``segments`` counts the indexed segments of a text longer than the encoder's window, else 0. ``superseded`` are the
    ids of the memories that are no longer true because of it, sorted (V-10).
    """

    id: str
    revision: int
    duplicate: bool = False
    segments: int = 0
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One memory's move to another state, with the parts of it that share its present state.

    ``active`` is reached from ``archived``, ``suppressed`` and ``superseded``, those from ``active``, and ``deleted``
    from ``archived`` and ``superseded``; ``sources`` narrows that. ``expected_revision`` is the memory's own; ``seen``
    is the revision of the store at which somebody decided: neither the memory nor a part of it may have been written
    since.
    ``superseded_by`` names the memory that is true instead, for ``superseded`` alone; every other state clears it.
    ``successor_revision`` is that memory's own: it must not have been written since.
    ``valid_to`` of UNSET stays; where a superseded memory becomes active, it is again what it was before, and nothing
    of it counts as ended. An active one of which something has ended becomes active whole. What comes back to
    ``active`` ages from that moment on, as if it had been recalled; it is not counted as a recall.
    """

    id: str
    to: MemoryState
    sources: Sequence[MemoryState] = ()
    expected_revision: int | None = None
    seen: int | None = None
    superseded_by: str | None = None
    successor_revision: int | None = None
    valid_to: datetime | Unset | None = UNSET


@dataclass(frozen=True, slots=True)
class StateResult:
    """What became of a StateChange: the memory's revision, and how many rows moved, parts included.

    ``moved`` 0: everything stood like that already, and nothing was written.
    """

    id: str
    revision: int
    moved: int


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the feed: the state of a memory at ``revision``.

    ``memory`` is None for a tombstone. ``vector`` is the pooled embedding under the store's current encoder,
    None where the memory has none (parents, tombstones). ``number`` is the store's running number of that life of
    the id: a deleted id that is used again has another one.
    """

    revision: int
    partition: Partition
    id: str
    memory: Memory | None
    vector: Vector | None = None
    number: int = 0


class Event(StrEnum):
    """What a history entry records."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of one memory: text before and after (None where there was none), by whom and when (case 76).

    A change of state leaves the text as it is, and both texts of its entry are None.
    """

    memory_id: str
    revision: int
    at: datetime
    event: Event
    actor: str
    old_text: str | None
    new_text: str | None
    changes: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # field -> (old, new)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """A listing inside one tenant, oldest first, ``limit`` at a time from ``cursor``.

    ``as_of``: of the memories as they stood at that instant, those deleted since included.
    """

    tenant: str
    user_id: str | None = None
    bank: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    kind: str | None = None
    parent_id: str | None = None
    state: MemoryState | None = MemoryState.ACTIVE  # None: every state but deleted
    filter: Filter | None = None
    as_of: datetime | None = None
    cursor: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing: ``total`` counts all matches, ``next_cursor`` is None on the last page (case 79)."""

    items: Sequence[Memory]
    total: int
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search. ``banks`` None means all; ``fusion``, ``threshold`` None mean the bank's policy.

    ``vector`` replaces the encoder's work (unit length). ``threshold`` acts on the final score (case 28).
    ``as_of`` answers from the memories as they stood at that instant. ``labels``: say of each result whether it is
    relevant, irrelevant or conflicting.
    """

    tenant: str
    user_id: str
    text: str
    banks: Sequence[str] | None = None
    top_k: int = 10
    filter: Filter | None = None
    session_id: str | None = None
    agent_id: str | None = None
    fusion: FusionName | None = None
    threshold: float | None = None
    as_of: datetime | None = None
    explain: bool = False
    reinforce: bool = True
    include_shared: bool = True
    consistency: Literal["strong", "eventual"] = "strong"
    vector: Vector | None = None
    labels: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a score came about. ``score`` equals what the parts give, to 1e-6 (case 133)::

        relevance = sum(parts.values())      each part already weighted, in [0, 1]
        score     = relevance * product(factors.values())

    ``parts``: ``sparse``, ``dense``, ``neighbour``, ``hop``, ``temporal``, ``rerank``,
    ``information``, those that apply.
    ``factors``: ``time``, ``retention``, ``outcome``, ``derived``, ``currency``, ``recency``. ``inputs``: the raw
    figures they were made from (BM25, its best and upper bound, cosine, ranks, age_days, retention, strength,
    information, weights).
    """

    fusion: str
    parts: Mapping[str, float]
    factors: Mapping[str, float]
    inputs: Mapping[str, float]
    relevance: float
    score: float


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """A memory that a search returns; ``window`` holds it and its neighbours in order, where the policy asks."""

    memory: Memory
    score: float
    window: Sequence[Memory] = ()
    explanation: Explanation | None = None
    label: Label | None = None  # None: it was not asked for


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to a query: best first, ties by id. ``degraded`` names what was missing, if anything.

    ``took_ms`` is the whole search; ``encode_ms`` the part of it in which the query was encoded.
    """

    results: Sequence[ScoredMemory]
    revision: int
    took_ms: float
    degraded: Sequence[str] = ()
    encode_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class RecallEntry:
    """One line of the access log: at ``at`` the memory was returned, used, ignored or found wrong."""

    tenant: str
    memory_id: str
    at: datetime
    signal: Signal = Signal.RETURNED
    number: int = 0  # given by the log; grows
