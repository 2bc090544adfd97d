"""The seams: what the flows need, in the domain's words. Every adapter keeps these contracts.

Two kinds of index live behind them. *In-process* indexes belong to one partition and address memories by
row: the partition's roster gives each memory a row, and roster, dense and sparse index apply the same
additions and swap-with-last removals, so one row number means the same memory in all three (docs/adr/0002).
``PartitionIndex`` is that bundle, and what the read path works on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from vimbank.domain.curves import Curve
from vimbank.domain.endings import Ended
from vimbank.domain.filters import Filter
from vimbank.domain.jobs import Job, JobState, Progress, QueueName
from vimbank.domain.models import (
    AddResult,
    BoolArray,
    Change,
    FloatArray,
    HistoryEntry,
    IntArray,
    ListQuery,
    Memory,
    MemoryDraft,
    MemoryPatch,
    MemoryState,
    Page,
    Partition,
    RecallEntry,
    Sample,
    Scope,
    StateChange,
    StateResult,
    Vector,
    Vectors,
)
from vimbank.errors import Conflict

__all__ = [
    "AccessLog",
    "Arrays",
    "ChatMessage",
    "ChatModel",
    "ChatReply",
    "ChatUsage",
    "ClaimStore",
    "Clock",
    "DenseIndex",
    "DenseLeg",
    "DenseSearch",
    "Embedded",
    "Encoder",
    "EncoderIdentity",
    "Ending",
    "JobQueue",
    "JobStore",
    "Judged",
    "LexicalQuery",
    "Lives",
    "MemoryStore",
    "Notices",
    "PartitionIndex",
    "PartitionIndexes",
    "PreparedDraft",
    "PreparedPatch",
    "RemoteIndex",
    "Reranker",
    "ScriptBound",
    "SparseIndex",
    "SparseLeg",
    "SparseScores",
    "SparseSearch",
    "StoreState",
    "TokenEncoder",
    "Utterance",
]

Clock: TypeAlias = Callable[[], datetime]
"""Gives now, aware UTC."""

Arrays: TypeAlias = dict[str, Any]
"""What an index saves: numpy arrays and plain JSON values by name."""


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """What makes two encoders interchangeable: all fields equal (cases 16, 134).

    ``revision`` is a model revision or the hash of its files; ``prefix`` what is put before queries/documents.
    """

    name: str
    revision: str
    dimension: int
    pooling: str = "mean"
    prefix: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.revision} ({self.dimension} dimensions)"


class Encoder(Protocol):
    """Turns text into unit vectors. Thread-safe.

    A text without any signal gives a zero vector, never NaN. Equal texts give equal vectors, alone or in a batch,
    to 1e-3 cosine. Raises ModelError when the model fails, BackendUnavailable when a remote one is out of reach.
    """

    @property
    def identity(self) -> EncoderIdentity: ...

    @property
    def window(self) -> int:
        """The longest text, in tokens of ``tokenize``, that is encoded whole."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """(n, d) float32 unit rows, in order; [] gives (0, d)."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """As ``encode_queries``, for what is stored. Batches by length inside; any n."""
        ...

    def tokenize(self, text: str) -> list[tuple[int, int]]:
        """Character offsets (start, end) of each of the model's tokens, without special tokens, in order."""
        ...


@runtime_checkable
class ScriptBound(Protocol):
    """What an encoder can say whose model was trained on text in some scripts alone."""

    def understood(self, text: str) -> float:
        """The share of the text's letters in those scripts, in [0, 1]; 1 for a text without letters."""
        ...


@runtime_checkable
class TokenEncoder(Protocol):
    """What only multi-vector (ColBERT type) encoders can do (V-13, B15)."""

    def encode_query_tokens(self, text: str) -> Vectors:
        """(t, d) float32 unit rows; cut to the model's query length (about 32 tokens)."""
        ...

    def encode_document_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """One (t, d) float32 array of unit rows a text."""
        ...


class Reranker(Protocol):
    """Scores the best candidates again, more precisely."""

    def rerank(self, query: str, memories: Sequence[Memory]) -> FloatArray:
        """(n,) in [0, 1], in the order given; NaN where the memory cannot be scored."""
        ...


# --- chat models ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message to a chat model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """Tokens of one exchange, as the server counted them; ``counted`` false: it did not, and they are an estimate."""

    prompt_tokens: int
    completion_tokens: int
    counted: bool = True


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a chat model answered: the text, never blank, the model's name by its own account, and what it cost."""

    text: str
    model: str
    usage: ChatUsage


class ChatModel(Protocol):
    """Answers messages. Thread-safe."""

    @property
    def name(self) -> str:
        """The model's name, as a memory that it wrote tells it."""
        ...

    @property
    def window(self) -> int:
        """Most tokens of messages and reply together."""
        ...

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        timeout_s: float | None = None,
        check: Callable[[], None] | None = None,
    ) -> ChatReply:
        """One reply. What a time-out, 429 or 5xx spoils is tried again with growing pauses, a bounded number of times.

        Args:    schema: JSON schema of an object: ``text`` is a JSON object then. Whether it keeps the schema is for
                 the caller to check, as not every server can promise it.  max_tokens: of the reply; None: the
                 adapter's.  temperature: >= 0.  timeout_s: patience of one try, seconds; None: the adapter's.
                 check: called while waiting; what it raises ends the request at once and is raised here.
        Raises:  ModelError: no reply, a blank one, one cut off where a schema was asked for, no JSON object.
                 BackendUnavailable: out of reach, or out of patience. BackendRejected: the server said no.
        """
        ...


# --- the record store -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Embedded:
    """What an encoder made of one text: the pooled vector and, from a multi-vector encoder, its token vectors."""

    vector: Vector
    token_vectors: Vectors | None = None


@dataclass(frozen=True, slots=True)
class PreparedDraft:
    """A checked draft with all the store needs to write it: hash, token count, embedding (None: not indexed).

    ``segments`` are written in the same transaction, with ``source.parent_id`` set to the id the parent gets and
    ids ``{parent}:{position:04d}``. ``claims``: the (subject, attribute) pairs of what it states, distinct; () where
    it takes no part in conflicts. ``sample``: whether it is worth remembering, with the reasons (V-5 to V-8).
    ``information``: how much it tells, in [0, 1).
    """

    draft: MemoryDraft
    content_hash: str
    token_count: int
    embedding: Embedded | None
    segments: Sequence["PreparedDraft"] = ()
    claims: Sequence[tuple[str, str]] = ()
    sample: Sample | None = None
    sample_reasons: tuple[str, ...] = ()
    information: float | None = None

    def memory(self, id: str, *, now: datetime) -> Memory:
        """The memory that it becomes, written at ``now``; its ``revision`` and ``number`` are the store's to give."""
        draft = self.draft
        return Memory(
            id=id,
            tenant=draft.tenant,
            user_id=draft.user_id,
            bank=draft.bank,
            kind=draft.kind,
            text=draft.text,
            created_at=now if draft.created_at is None else draft.created_at,
            updated_at=now,
            content_hash=self.content_hash,
            revision=0,
            title=draft.title,
            speaker=draft.speaker,
            agent_id=draft.agent_id,
            session_id=draft.session_id,
            metadata=draft.metadata,
            source=draft.source,
            event_at=draft.event_at,
            valid_from=draft.valid_from,
            valid_to=draft.valid_to,
            expires_at=draft.expires_at,
            importance=draft.importance,
            pinned=draft.pinned,
            token_count=self.token_count,
            sample=self.sample,
            sample_reasons=self.sample_reasons,
            information=self.information,
        )


@dataclass(frozen=True, slots=True)
class PreparedPatch:
    """A checked update: the patch, and what changes with the text where the text changes.

    Where the stored memory is a parent, or the new text is longer than the window, ``segments`` replace its
    segments; ``embedding`` None with ``text`` given makes it a parent (kind ``document``). ``claims`` None: the text
    is as it was, and so are claims, sample and information.
    """

    id: str
    patch: MemoryPatch
    content_hash: str | None = None
    token_count: int | None = None
    embedding: Embedded | None = None
    segments: Sequence[PreparedDraft] = ()
    expected_revision: int | None = None
    claims: Sequence[tuple[str, str]] | None = None
    sample: Sample | None = None
    sample_reasons: tuple[str, ...] = ()
    information: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a stored memory is worth remembering, by somebody who read ``memory`` as it is here (V-5)."""

    memory: Memory
    sample: Sample
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Utterance:
    """What is read of a turn or round to judge what follows it: one is judged for every one that comes in."""

    id: str
    position: int
    text: str
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class StoreState:
    """One cheap read: the newest revision, and the generation, which grows when all indexes must be rebuilt.

    ``compacted`` is the revision of the newest deletion whose tombstone was removed: the feed no longer tells of it,
    so what stands before it may have missed a deletion (``MemoryStore.compacted`` says where).
    """

    revision: int
    generation: int
    compacted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """How the active and archived memories of one partition stand in their lives: (n,) each, by ascending number.

    Also the superseded ones, where they were asked for: ``successors`` are the ids of what superseded them, and
    ``updated_at`` is when they were superseded, or changed since.
    Times are epoch seconds, NaN where there is none. ``revision`` is the store's when it was read. ``importance`` is
    in [0, 1], NaN: unknown. ``parents`` are the ids of what each is a part of. ``updated_at`` of an archived memory is
    when it was archived, or changed since. ``information`` is in [0, 1), NaN: unknown.
    """

    revision: int
    ids: Sequence[str]
    parents: Sequence[str | None]
    archived: BoolArray
    superseded: BoolArray
    successors: Sequence[str | None]
    created_at: FloatArray
    updated_at: FloatArray
    recalled_at: FloatArray
    expires_at: FloatArray
    importance: FloatArray
    pinned: BoolArray
    strength: FloatArray
    stability_days: FloatArray
    information: FloatArray


class MemoryStore(Protocol):
    """The only truth. Durable when a call returns; safe from any thread and, for engines that allow it, process.

    Every call names the tenant; an id of another tenant is unknown. Writes take revisions from one gap-free
    sequence, in commit order, and write history in the same transaction.
    """

    def add(self, drafts: Sequence[PreparedDraft], *, actor: str, now: datetime) -> list[AddResult | Exception]:
        """Write each draft, all in one transaction; one result a draft, in order.

        Known id, idempotency key or event id with the same content: the stored one, ``duplicate`` true; with other
        content: Conflict, as that draft's result, the others are written. Exact duplicates (equal ``content_hash``
        in the partition, active) fold where ``deduplicate`` and the draft names no id, key or event.
        """
        ...

    def update(self, patch: PreparedPatch, *, tenant: str, actor: str, now: datetime) -> Memory:
        """Apply the patch. Raises NotFound; Conflict where ``expected_revision`` is not the stored one."""
        ...

    def delete(self, tenant: str, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]:
        """Delete memories and their segments; the ids that were there. Unknown ids are left out.

        The row stays as a tombstone without text, title, metadata or vector; history keeps the old text.
        """
        ...

    def delete_scope(self, scope: Scope, *, actor: str, now: datetime) -> int:
        """Delete all memories of a scope; how many."""
        ...

    def change_states(
        self, changes: Sequence[StateChange], *, tenant: str, actor: str, now: datetime
    ) -> list[StateResult | Exception]:
        """Move memories between states, all in one transaction; one result a change, in order.

        NotFound, Conflict (it may not come from its present state, or was written meanwhile) and InvalidInput
        (``superseded_by`` names no other memory of the partition) are that change's result; the others are done.
        Segments of a document and steps of a task run that share its state go with it. A change that is done already
        writes nothing.
        """
        ...

    def put_samples(self, judged: Sequence[Judged], *, actor: str, now: datetime) -> int:
        """Write ``sample`` and ``sample_reasons`` of memories, and how much they tell, in one transaction; how many.

        Left out: what is gone, what says something else by now, what has this judgement already. A new revision and
        an update in the history; text and ``updated_at`` stay.
        """
        ...

    def get(self, tenant: str, ids: Sequence[str], *, as_of: datetime | None = None) -> list[Memory]:
        """The memories with these ids, in the order given, every state but deleted; unknown ids are left out.

        Args:    as_of: as they stood at this instant, as ``as_of`` has it; None: as they are.
        """
        ...

    def page(self, query: ListQuery) -> Page:
        """One page, oldest first. Raises InvalidInput for a cursor it did not make."""
        ...

    # -- the feed --

    def state(self) -> StoreState:
        """Newest revision and generation; fast, asked before every strongly consistent search."""
        ...

    def changes(self, after: int, *, limit: int, partition: Partition | None = None) -> list[Change]:
        """The newest state of each memory written after revision ``after``, by revision, at most ``limit``."""
        ...

    def compact(self, *, up_to: int, deleted_before: datetime, limit: int) -> int:
        """Remove up to ``limit`` tombstones of revision <= ``up_to`` from before; how many. History stays as it is.

        A session keeps the tombstone of its highest position, for ``next_position``.
        """
        ...

    def compacted(self, partition: Partition) -> int:
        """The revision of the newest tombstone that was removed from the partition; 0 where none was.

        An index whose cursor is lower must be rebuilt from ``live``.
        """
        ...

    def live(self, partition: Partition, *, batch: int = 5_000) -> Iterable[list[Change]]:
        """All indexed memories of a partition, in batches, by ``number``, as of one moment: for a rebuild."""
        ...

    def next_position(self, partition: Partition, session_id: str) -> int:
        """One more than the highest position in the session, deleted memories included; 0 for a new session."""
        ...

    def session_tail(self, partition: Partition, session_id: str, *, before: int, limit: int) -> list[Utterance]:
        """What was said last in a session before a position, newest first; every state but deleted."""
        ...

    def partitions(self, tenant: str | None = None, *, state: MemoryState = MemoryState.ACTIVE) -> list[Partition]:
        """Every partition that holds a memory in this state (any but deleted), sorted."""
        ...

    def lives(self, partition: Partition, *, superseded: bool = False) -> Lives:
        """What the forgetting of a partition decides by, as of one moment; no texts are read.

        ``superseded``: also of what was superseded.
        """
        ...

    # -- the past --

    def history(self, tenant: str, memory_id: str) -> list[HistoryEntry]:
        """All changes of a memory, oldest first, also of a deleted one; [] where it never was."""
        ...

    def as_of(self, partition: Partition, instant: datetime) -> list[tuple[Memory, Vector | None]]:
        """The indexed memories of a partition as they stood at an instant, history undone (case 106).

        A memory counts from its ``created_at``, also where it was written down later, and what it ended of others
        counts from when both hold. What was deleted since is there, what was erased is not.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ending:
    """What has ended of a memory by what others say; of each of them, the content hash with which it was read."""

    tenant: str
    id: str
    content_hash: str
    ended: Sequence[Ended]
    enders: Mapping[str, str]


class ClaimStore(Protocol):
    """What a store knows of claims: what each memory says something about (V-10, docs/adr/0011).

    A memory is as it was read as long as its content hash is the same.
    """

    def unread(self, partition: Partition, *, after: int, limit: int, again: bool = False) -> list[Memory]:
        """Memories, of kinds that take part, whose claims nobody has noted (``again``: or has), in any state but
        deleted, by ascending number, from above ``after``."""
        ...

    def put_claims(self, read: Sequence[tuple[Memory, Sequence[tuple[str, str]]]]) -> int:
        """Note the (subject, attribute) pairs of memories, () where one states nothing; how many are as they were."""
        ...

    def claiming(self, partition: Partition, *, batch: int = 1_000) -> Iterable[list[Memory]]:
        """Every memory with a claim, in any state but deleted, in batches, by number, as of one moment."""
        ...

    def uncompared(self, partition: Partition) -> list[int]:
        """The numbers of active memories, of kinds that take part, which nobody has compared with others since their
        text was written or read again (claim ``domain.comparing.COMPARED``), ascending."""
        ...

    def end(self, endings: Sequence[Ending], *, dry_run: bool = False, now: datetime) -> list[Memory | Conflict | None]:
        """Write what has ended by ``now``, in one transaction; the memory then, one result an ending, in order.

        None: nothing new, as it stands already, or somebody has taken it back. Conflict: the memory or one that ended
        it is not as it was read, or is suppressed. ``dry_run``: what would be; nothing is written.
        """
        ...


class AccessLog(Protocol):
    """The append-only log of recalls; the ``reinforce`` job folds it in."""

    def append(self, entries: Sequence[RecallEntry]) -> None:
        """Durable when it returns."""
        ...

    def fold(self, curve_of: Callable[[str], Curve], *, limit: int, now: datetime) -> int:
        """Fold the ``limit`` oldest entries into their memories, each once: ``domain.reinforcement.reinforce``.

        One transaction, with the cursor: an entry counts once, whoever folds and whenever they die. A memory takes
        one revision at most. Entries whose memory is gone say nothing. Args: curve_of: the curve of a bank.
        Returns how many entries were folded; 0 when none is left.
        """
        ...

    def trim(self, *, before: datetime, batch: int = 1_000) -> Iterator[int]:
        """Remove what was folded in and noted before that instant, the oldest ``batch`` at a time; how many each time.

        Each batch is a transaction of its own. What is not folded in stays, however old, and no number is given to
        another entry, so that folding goes on where it was: the cursor alone says what has been counted.
        """
        ...


# --- in-process indexes: one partition, addressed by row --------------------------------------------------------


class DenseIndex(Protocol):
    """One partition's vectors by row: row i is the i-th appended, unless removals moved it. Similarity is cosine."""

    def __len__(self) -> int: ...

    def append(self, vectors: Vectors) -> None:
        """Add rows at the end; (n, d) float32 unit or zero rows."""
        ...

    def replace(self, row: int, vector: Vector) -> None: ...

    def remove(self, row: int) -> None:
        """Move the last row into ``row`` and drop the last (swap-with-last)."""
        ...

    def search(self, vector: Vector, *, allowed: BoolArray | None, top_k: int) -> IntArray:
        """Rows of the ``top_k`` most similar among ``allowed`` (a mask over rows; None: all), best first.

        Fewer where fewer are allowed; never -1; [] for an empty index. Ties at the cut may be broken either way.
        """
        ...

    def score(self, vector: Vector, rows: IntArray) -> FloatArray:
        """Exact cosine in [-1, 1] of these rows, each independent of where the row stands."""
        ...

    def vectors(self, rows: IntArray) -> Vectors:
        """Stored float32 vectors of these rows (for ``check``)."""
        ...

    def dump(self) -> Arrays:
        """What ``restore`` needs; arrays may be memory-mapped on restore and are then copied on first write."""
        ...

    def restore(self, arrays: Arrays) -> None: ...

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class SparseScores:
    """BM25 of every row for one query: ``scores`` (n,) float64 >= 0, and the sum of the query terms' idf.

    Scores are without the constant (k1+1): each is below ``upper_bound``. 0: the row shares no term.
    """

    scores: FloatArray
    upper_bound: float


class SparseIndex(Protocol):
    """One partition's inverted index by row, with the rows of its DenseIndex.

    Scores by Lucene's BM25, idf = ln(1 + (N - n + 0.5) / (n + 0.5)).
    """

    def __len__(self) -> int: ...

    def append(self, documents: Sequence[Sequence[str]]) -> None:
        """Add rows at the end; each document is its analysed terms, in order, with repeats."""
        ...

    def replace(self, row: int, terms: Sequence[str]) -> None: ...

    def remove(self, row: int) -> None:
        """Move the last row into ``row`` and drop the last (swap-with-last); statistics follow exactly."""
        ...

    def score(self, terms: Sequence[str]) -> SparseScores:
        """BM25 of all rows; a term repeated in the query counts once."""
        ...

    def dump(self) -> Arrays: ...

    def restore(self, arrays: Arrays) -> None: ...

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query for a sparse leg: the text, and its analysed distinct terms in order.

    ``also``: rows of the partition whose scores are going to be asked for in any case; an engine that is a round trip
    away may find them out together with the hits.
    """

    text: str
    terms: Sequence[str]
    also: IntArray | None = None


class PartitionIndex(Protocol):
    """Roster, dense and sparse index of one partition at one cursor; valid inside ``PartitionIndexes.read``.

    Columns are numpy arrays over rows, NaN or -1 where unknown. Times are epoch seconds, float64.
    """

    @property
    def partition(self) -> Partition: ...
    @property
    def cursor(self) -> int: ...
    def __len__(self) -> int: ...

    dense: DenseIndex
    sparse: SparseIndex

    def ids(self, rows: IntArray) -> list[str]: ...

    def rows(self, ids: Sequence[str]) -> IntArray:
        """Rows of these ids, -1 where unknown."""
        ...

    def column(self, name: str) -> FloatArray:
        """``number``, ``revision``, ``event_at`` (event or creation), ``last_recalled_at``, ``strength``,
        ``stability_days``, ``importance``, ``position``, ``group`` (an integer a parent, or a session where there is
        no parent; -1: none), ``derived`` (1: a summary or portrait). Read-only, not copied."""
        ...

    def select(
        self, filter: Filter | None, *, now: datetime, session_id: str | None = None, agent_id: str | None = None
    ) -> BoolArray | None:
        """Mask of rows that may be returned: the filter, the scopes, not expired at ``now``, valid at ``now``.

        None where every row may."""
        ...

    def neighbours(self, rows: IntArray, radius: int) -> IntArray:
        """(len(rows), 2*radius+1): rows at position-radius … position+radius in the same group; -1 where none."""
        ...

    def titles(self) -> Mapping[str, Sequence[int]]:
        """Normalised title -> rows that bear it."""
        ...


class PartitionIndexes(Protocol):
    """The process's in-process indexes: loads, follows the feed, evicts. Only ``feed/`` implements it."""

    def read(self, partition: Partition, *, consistency: str = "strong") -> AbstractContextManager[PartitionIndex]:
        """The partition's index, caught up with the store where ``strong``; nothing moves inside the context."""
        ...


# --- the two legs of a search -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SparseLeg:
    """What the keyword search found in one partition.

    ``rows``: those it brings, ascending. ``score``: BM25 of any rows, (n,) float64 >= 0, 0 for a row that shares no
    term; may ask the engine and raise BackendUnavailable. ``best``: the largest score among the rows allowed,
    ``upper_bound`` the sum of the query terms' idf; both 0 where no term is in the partition. Scores are without
    BM25's constant (k1+1). ``degraded``: a substitute answered because the engine is down.
    """

    rows: IntArray
    score: Callable[[IntArray], FloatArray]
    best: float
    upper_bound: float
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class DenseLeg:
    """What the vector search found in one partition.

    ``rows``: those it brings, ascending. ``score``: cosine of any rows, (n,) float64 in [-1, 1]; may ask the engine
    and raise BackendUnavailable. ``asked``: whether there was a vector to search with; without, all scores are 0.
    """

    rows: IntArray
    score: Callable[[IntArray], FloatArray]
    asked: bool = True


class SparseSearch(Protocol):
    """The keyword leg: in process, or an engine that all processes share."""

    @property
    def remote(self) -> bool:
        """Whether it waits for a network, so that asking for several partitions side by side is quicker."""
        ...

    def search(self, index: PartitionIndex, query: LexicalQuery, *, allowed: BoolArray | None, limit: int) -> SparseLeg:
        """The ``limit`` best rows by BM25 among those allowed (None: all); a row that shares no term is no hit.

        Of rows that tie at the cut those with the smallest ``number`` stay. Raises BackendUnavailable.
        """
        ...


class DenseSearch(Protocol):
    """The vector leg: in process, or an engine that all processes share."""

    @property
    def remote(self) -> bool: ...

    def search(self, index: PartitionIndex, vector: Vector, *, allowed: BoolArray | None, limit: int) -> DenseLeg:
        """The ``limit`` nearest rows among those allowed (None: all). Raises BackendUnavailable."""
        ...


class RemoteIndex(Protocol):
    """An index outside this process, shared by all, with one cursor of its own. Only ``feed/`` writes to it.

    Applying is idempotent and safe out of order, also from several processes at once: a change that is not newer
    than what the index holds of that memory is left out. Every call may raise BackendUnavailable or BackendRejected.
    """

    @property
    def name(self) -> str:
        """``sparse`` or ``dense``: the leg that it serves."""
        ...

    def cursor(self) -> int:
        """The revision up to which everything is searchable; 0 for an index that is new, which this call makes."""
        ...

    def apply(self, changes: Sequence[Change]) -> None:
        """Bring the index to the state that the changes describe; not searchable before ``advance``."""
        ...

    def advance(self, cursor: int) -> None:
        """Make all that was applied searchable, then note the cursor beside it, durably."""
        ...

    def holds(self, partition: Partition) -> Mapping[int, int]:
        """``number`` -> revision of everything that the index holds of a partition: for ``check``."""
        ...

    def reset(self) -> None:
        """Forget everything: the next ``cursor`` is 0."""
        ...


class Notices(Protocol):
    """Tells other processes that the store has moved on. Only a hint: without one, followers poll."""

    def announce(self, revision: int) -> None:
        """Say so; returns at once and raises nothing, because a write must not wait for a hint (case 125)."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when something was announced since the last call, or after ``timeout_s``."""
        ...

    def close(self) -> None: ...


# --- jobs -------------------------------------------------------------------------------------------------------


class JobStore(Protocol):
    """Jobs, durably, beside the memories: what every process that runs or watches them agrees on."""

    def create(
        self, name: str, params: Mapping[str, Any], *, queue: QueueName, key: str | None, now: datetime
    ) -> tuple[Job, bool]:
        """A new job, queued, and True; or the job that has this key, and False.

        Raises Conflict where the key belongs to a job of another name or other parameters.
        """
        ...

    def get(self, job_id: str) -> Job:
        """Raises NotFound."""
        ...

    def list(self, *, name: str | None = None, state: JobState | None = None, limit: int = 100) -> Sequence[Job]:
        """The newest first."""
        ...

    def claim(self, job_id: str, owner: str, *, lease_s: float, now: datetime) -> Job | None:
        """Take the job up: queued, or running under a lease that ran out. None: another has it, or it has ended."""
        ...

    def beat(self, job_id: str, owner: str, progress: Progress, *, lease_s: float, now: datetime) -> bool:
        """Renew the lease and note the progress; whether the job should go on, False when it is to be cancelled.

        Raises Conflict where another worker has taken the job over.
        """
        ...

    def finish(
        self,
        job_id: str,
        owner: str,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        error: str | None = None,
        now: datetime,
    ) -> Job:
        """End the job; saying so twice changes nothing. Raises Conflict where another worker has taken it over."""
        ...

    def release(self, job_id: str, owner: str, *, now: datetime) -> None:
        """Put the job back in the queue, for a later attempt."""
        ...

    def cancel(self, job_id: str, *, now: datetime) -> Job:
        """End a queued job, ask a running one to stop; one that has ended stays as it is. Raises NotFound."""
        ...

    def stale(self, *, sent_before: datetime, lease_s: float, now: datetime) -> Sequence[Job]:
        """Queued jobs last sent before ``sent_before``, and running ones whose lease ran out, oldest first.

        A running one is left out for ``lease_s`` after it was sent. A time of sending in the future counts as long
        ago: the clock was set back.
        """
        ...

    def note_sent(self, job_id: str, *, now: datetime) -> None:
        """The job was given to a queue (again)."""
        ...

    def forget(self, *, finished_before: datetime) -> int:
        """Remove ended jobs from before; how many."""
        ...

    def hold(self, name: str, owner: str, *, lease_s: float, now: datetime) -> bool:
        """Take or renew the lease ``name``; False while another holds it."""
        ...

    def let_go(self, name: str, owner: str) -> None:
        """Give the lease back, where it is held."""
        ...


class JobQueue(Protocol):
    """Brings a job to whoever runs it."""

    def send(self, job: Job) -> None:
        """Raises BackendUnavailable, and the job stays queued in the store."""
        ...

    def close(self) -> None: ...
