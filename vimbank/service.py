"""MemoryService: everything VIMBank does, in one facade that every entry point calls."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

from vimbank.domain.checks import CheckReport, IndexChecks, index_checks
from vimbank.domain.filters import And, Condition
from vimbank.domain.models import (
    PARENT_KIND,
    SHARED_USER,
    AddResult,
    HistoryEntry,
    ListQuery,
    Memory,
    MemoryDraft,
    MemoryPatch,
    MemoryState,
    Page,
    Partition,
    Query,
    Recall,
    RecallEntry,
    Scope,
    ScoredMemory,
    Signal,
    StateChange,
    StateResult,
)
from vimbank.domain.sanitize import clean_id, clean_text
from vimbank.domain.summaries import SUMMARY_KIND, DerivedKind, derived_of, marked, stale_ids
from vimbank.domain.superseding import forget_readings
from vimbank.errors import BackendError, ConfigError, Conflict, InvalidInput, NotFound, VimbankError
from vimbank.feed.check import Auditor, Checker, IndexChecker, Rewrite
from vimbank.feed.follow import Follower, IndexStatus
from vimbank.feed.recalls import RecallBuffer
from vimbank.feed.remote import RemoteStatus
from vimbank.feed.remotes import Remotes
from vimbank.ingestion.assess import Assessor
from vimbank.ingestion.dialog import Turn, drafts_of_turns, parts_of_turns
from vimbank.ingestion.documents import extract
from vimbank.ingestion.prepare import Limits, Preparer
from vimbank.ingestion.tasks import TaskRun, drafts_of_task
from vimbank.lifecycle.planning import Forecast, Lifecycles
from vimbank.ports import AccessLog, ClaimStore, Clock, Embedded, Encoder, EncoderIdentity, MemoryStore, PreparedDraft

if TYPE_CHECKING:
    from datetime import datetime

__all__ = [
    "ALL_USERS",
    "MAX_TOP_K",
    "MemoryService",
    "Readiness",
    "ReindexReport",
    "Stats",
    "Upkeep",
]

_LOG = logging.getLogger(__name__)

ALL_USERS: Final = "*"
"""As the user of a search: every user of the tenant, for keys that may."""

_FOLDED_AT_ONCE: Final = 50_000
"""Lines of the access log in one transaction, for which other writes wait: 1.0 s on SQLite, 1.7 s on PostgreSQL.

A memory is written once a transaction: with 10,000 lines each, 100,000 lines of 20,000 memories take PostgreSQL ten
times as long, as every update writes all indexes of the row.
"""

MAX_TOP_K: Final = 1_000
"""Most results of a search, and most items of a page."""
MAX_QUERY_CHARS: Final = 400_000
_UPDATE_TRIES: Final = 10
_MOST_DAYS: Final = 36_500
_SUMMARIES_COMPARED: Final = 100


@dataclass(frozen=True, slots=True)
class Stats:
    """What a tenant (or one user of it) holds, what the process holds for it, and how the indexes outside it are."""

    memories: int
    by_bank: Mapping[str, int]
    by_kind: Mapping[str, int]
    by_state: Mapping[str, int]
    users: int
    revision: int
    encoder: str
    index: IndexStatus
    disk_bytes: int
    remote: Sequence[RemoteStatus] = ()


@dataclass(frozen=True, slots=True)
class ReindexReport:
    """What a change of encoder did."""

    memories: int
    former: EncoderIdentity | None
    current: EncoderIdentity


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served in full; ``components`` says ``ok`` or what is wrong."""

    ok: bool
    components: Mapping[str, str]


class Upkeep(MemoryStore, ClaimStore, Protocol):
    """What the service asks of the store beyond reading and writing memories."""

    def encoder_identity(self) -> EncoderIdentity | None: ...
    def missing_embeddings(self, identity: EncoderIdentity, limit: int) -> Sequence[Memory]: ...
    def put_embeddings(self, identity: EncoderIdentity, embedded: Sequence[tuple[Memory, Embedded]]) -> int: ...
    def switch_encoder(self, identity: EncoderIdentity) -> None: ...
    def counts(self, tenant: str | None = None, user_id: str | None = None) -> Any: ...
    def disk_bytes(self) -> int: ...
    def store_id(self) -> str: ...


class Searcher(Protocol):
    """The read path (``retrieval.pipeline.Pipeline``)."""

    def search(self, query: Query, partitions: Sequence[Partition], *, now: "datetime") -> Recall: ...
    def recalled(self, recall: Recall) -> list[str]: ...
    def forget(self) -> None: ...
    def close(self) -> None: ...


class MemoryService:
    """Remember, recall and look after memories. Thread-safe; one a process and data folder.

    Made by ``vimbank.wiring``; ``MemoryService.open`` is the short way for programs.
    """

    def __init__(
        self,
        *,
        store: Upkeep,
        auditor: Auditor,
        log: AccessLog,
        encoder: Encoder,
        indexes: Follower,
        make_searcher: Callable[[Encoder], Searcher],
        limits: Limits,
        lifecycles: Lifecycles,
        clock: Clock,
        recalls_flush_s: float,
        recalls_fold_s: float | None,
        remotes: Remotes | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._auditor = auditor
        self._log = log
        self._indexes = indexes
        self._make_searcher = make_searcher
        self._limits = limits
        self._lifecycles = lifecycles
        self._clock = clock
        self._remotes = remotes
        self._recalls = RecallBuffer(log, flush_s=recalls_flush_s, fold=self._fold_log, fold_s=recalls_fold_s)
        self._on_close = on_close
        self._closed = False
        self._index_checks: IndexChecks | None = None
        self._noting = threading.Lock()
        self._use(encoder)

    def _use(self, encoder: Encoder) -> None:
        self._generation = self._store.state().generation
        self._encoder = encoder
        self._preparer = Preparer(encoder, self._limits)
        self._assessor = Assessor(self._store, encoder)
        self._searcher = self._make_searcher(encoder)

    @staticmethod
    def open(data_dir: str | Path = "data", **settings: Any) -> "MemoryService":
        """Open a data folder in this process; ``settings`` as in ``vimbank.settings.Settings``.

        Raises ConfigError where the folder was built with another encoder.
        """
        from vimbank.wiring import open_folder  # the composition root imports this module

        return open_folder(data_dir, **settings)

    def __enter__(self) -> "MemoryService":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def flush(self) -> None:
        """Bring waiting recalls to the access log and the indexes to disk."""
        self._recalls.flush()
        self._indexes.save()

    def close(self) -> None:
        """Flush and let go of the data folder; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._recalls.close()
        self._searcher.close()
        if self._remotes is not None:
            self._remotes.close()
        self._indexes.close()
        self._store.close()
        self._on_close()

    # -- remember --

    def add(self, draft: MemoryDraft, *, actor: str = "api") -> AddResult:
        """Keep one memory; durable when this returns, and found by the next search of any process.

        Raises InvalidInput, Conflict (its id is taken by other content), ModelError, BackendUnavailable.
        """
        result = self.add_many([draft], actor=actor)[0]
        if isinstance(result, VimbankError):
            raise result
        return result

    def add_many(self, drafts: Sequence[MemoryDraft], *, actor: str = "api") -> list[AddResult | VimbankError]:
        """Keep many, in one transaction; one result a draft, in order. A bad draft does not harm the others."""
        return self._add(drafts, actor)

    def _add(
        self, drafts: Sequence[MemoryDraft], actor: str, parts: Sequence[tuple[str, str] | None] = ()
    ) -> list[AddResult | VimbankError]:
        if len(drafts) > self._limits.max_batch:
            raise InvalidInput.of("items", f"must be at most {self._limits.max_batch}")
        self._check_generation()
        prepared = self._assessor.drafts(self._preparer.drafts(drafts), parts)
        good = [each for each in prepared if isinstance(each, PreparedDraft)]
        written = self._store.add(good, actor=actor, now=self._clock()) if good else []
        new = [each.revision for each in written if isinstance(each, AddResult) and not each.duplicate]
        if new:
            # What claims something may have ended others, at revisions of their own.
            self._announce(None if any(each.claims for each in good) else max(new))
        results = iter(written)
        return [_result(next(results) if isinstance(each, PreparedDraft) else each) for each in prepared]

    def add_document(
        self,
        *,
        tenant: str,
        user_id: str,
        title: str | None = None,
        text: str | None = None,
        content: bytes | None = None,
        media_type: str | None = None,
        filename: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        bank: str = "knowledge",
        id: str | None = None,
        idempotency_key: str | None = None,
        created_at: "datetime | None" = None,
        actor: str = "api",
    ) -> AddResult:
        """Keep a document whole, and its segments for retrieval (V-2, V-12). Give either ``text`` or ``content``.

        ``content`` is the file's bytes: text, Markdown, HTML, PDF or DOCX, told by media type or file name.
        """
        if (text is None) == (content is None):
            raise InvalidInput.of("content", "give either text or content")
        if content is not None:
            extracted = extract(
                content, media_type=media_type, filename=filename, max_chars=self._limits.max_text_chars
            )
            text, title = extracted.text, title or extracted.title
        draft = MemoryDraft(
            tenant=tenant,
            user_id=user_id,
            bank=bank,
            kind=PARENT_KIND,
            text=text or "",
            title=title,
            metadata=metadata or {},
            id=id,
            idempotency_key=idempotency_key,
            created_at=created_at,
        )
        return self.add(draft, actor=actor)

    def add_turns(
        self,
        *,
        tenant: str,
        user_id: str,
        session_id: str,
        turns: Sequence[Turn],
        agent_id: str | None = None,
        bank: str = "dialog",
        actor: str = "api",
    ) -> list[AddResult | VimbankError]:
        """Keep consecutive turns of a session: a query and its response as one round (V-3), other turns singly."""
        position = self._store.next_position(Partition(tenant, user_id, bank), clean_id(session_id, "session_id"))
        drafts = drafts_of_turns(
            turns,
            tenant=tenant,
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            bank=bank,
            start_position=position,
        )
        return self._add(drafts, actor, parts_of_turns(turns))

    def add_task(self, run: TaskRun, *, actor: str = "api") -> list[AddResult | VimbankError]:
        """Keep a task run: first the run itself, then its steps (V-4)."""
        run_id = run.id if run.id is not None else str(uuid.uuid4())
        return self.add_many(drafts_of_task(run, run_id), actor=actor)

    def update(
        self,
        tenant: str,
        id: str,
        patch: MemoryPatch,
        *,
        expected_revision: int | None = None,
        actor: str = "api",
    ) -> Memory:
        """Change what the patch names; embeds anew where the text changes (case 19).

        Raises NotFound; InvalidInput; Conflict where ``expected_revision`` is given and not the stored one.
        """
        self._check_generation()
        for _ in range(_UPDATE_TRIES):
            memory = self._stored(tenant, id)
            if expected_revision is not None and memory.revision != expected_revision:
                raise Conflict(f"{id} is at revision {memory.revision}, not {expected_revision}")
            prepared = self._assessor.patch(memory, self._preparer.patch(memory, patch, memory.revision))
            try:
                updated = self._store.update(prepared, tenant=tenant, actor=actor, now=self._clock())
            except Conflict:  # somebody changed it between reading and writing
                continue
            self._announce(None if prepared.claims else updated.revision)
            return updated
        raise Conflict(f"{id} keeps changing")

    def delete(self, tenant: str, id: str, *, actor: str = "api") -> None:
        """Delete a memory, with its segments where it is a document. Raises NotFound, InvalidInput."""
        _check_ids(tenant=tenant, id=id)
        if not self._store.delete(tenant, [id], actor=actor, now=self._clock()):
            raise _not_found(id)
        self._announce()

    def delete_all(self, scope: Scope, *, actor: str = "api") -> int:
        """Delete all memories of one user, or of a bank, session or agent of that user; how many (case 68)."""
        _check_ids(
            tenant=scope.tenant,
            user_id=scope.user_id,
            bank=scope.bank,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
        )
        if scope.user_id == ALL_USERS:
            raise InvalidInput.of("user_id", "must name one user")
        deleted = self._store.delete_scope(scope, actor=actor, now=self._clock())
        for bank in [scope.bank] if scope.bank is not None else self._limits.banks:
            # The partition's snapshot would keep the deleted words until it is written next.
            self._indexes.drop(Partition(scope.tenant, scope.user_id, bank))
        self._announce()
        return deleted

    # -- archive and suppress --

    def archive(self, tenant: str, id: str, *, expected_revision: int | None = None, actor: str = "api") -> Memory:
        """Take an active memory out of every search, with its segments or steps, until it is restored.

        What is archived is deleted when the grace of its bank is over, unless it is pinned. Doing it again changes
        nothing. Raises NotFound; InvalidInput; Conflict where it is suppressed or superseded, or at another revision.
        """
        return self._move(tenant, id, MemoryState.ARCHIVED, (), expected_revision, actor)

    def restore(self, tenant: str, id: str, *, expected_revision: int | None = None, actor: str = "api") -> Memory:
        """Bring a memory back from the archive, or one that was superseded; it ages anew. Raises as ``archive``.

        What was superseded is again valid as long as it said itself, and nothing of it counts as ended: so does an
        active one of which a part had. The memory that had ended it does not do so again.
        """
        sources = (MemoryState.ARCHIVED, MemoryState.SUPERSEDED)
        return self._move(tenant, id, MemoryState.ACTIVE, sources, expected_revision, actor)

    def suppress(self, tenant: str, id: str, *, expected_revision: int | None = None, actor: str = "api") -> Memory:
        """Take an active memory out of every search, and leave it so: no job touches it. Raises as ``archive``."""
        return self._move(tenant, id, MemoryState.SUPPRESSED, (), expected_revision, actor)

    def unsuppress(self, tenant: str, id: str, *, expected_revision: int | None = None, actor: str = "api") -> Memory:
        """Undo ``suppress``; from now on the memory ages anew."""
        return self._move(tenant, id, MemoryState.ACTIVE, (MemoryState.SUPPRESSED,), expected_revision, actor)

    def _move(
        self,
        tenant: str,
        id: str,
        to: MemoryState,
        sources: Sequence[MemoryState],
        expected_revision: int | None,
        actor: str,
    ) -> Memory:
        _check_ids(tenant=tenant, id=id)
        change = StateChange(id=id, to=to, sources=sources, expected_revision=expected_revision)
        (result,) = self.change_states(tenant, [change], actor=actor)
        if isinstance(result, VimbankError):
            raise _not_found(id) if isinstance(result, NotFound) else result
        return self.get(tenant, id)

    def change_states(
        self, tenant: str, changes: Sequence[StateChange], *, actor: str
    ) -> list[StateResult | VimbankError]:
        """Move memories between states in one transaction; one result a change, in order (``MemoryStore``)."""
        results = self._store.change_states(changes, tenant=tenant, actor=actor, now=self._clock())
        moved = [each.revision for each in results if isinstance(each, StateResult) and each.moved]
        if moved:
            self._announce(max(moved))
        return [_outcome(each) for each in results]

    @property
    def lifecycles(self) -> Lifecycles:
        """How the memories of each bank live and go."""
        return self._lifecycles

    def forecast(
        self, tenant: str, user_id: str, *, bank: str | None = None, days: float = 30.0, limit: int = 100
    ) -> Forecast:
        """What of a user's memories goes within so many days, when and why, by the rule of the jobs themselves.

        Args:    bank: only this one; None: all.  days: in [0, 36500].  limit: how many are told in full, the first to
                 go first; all are counted.
        Raises:  InvalidInput.
        """
        _check_ids(tenant=tenant, user_id=user_id, bank=bank)
        if not 0 <= days <= _MOST_DAYS:
            raise InvalidInput.of("days", f"must be between 0 and {_MOST_DAYS}")
        if not 1 <= limit <= MAX_TOP_K:
            raise InvalidInput.of("limit", f"must be between 1 and {MAX_TOP_K}")
        if bank is not None and bank not in self._limits.banks:
            raise InvalidInput.of("bank", f"must be one of {', '.join(sorted(self._limits.banks))}")
        now = self._clock()
        partitions = [Partition(tenant, user_id, each) for each in sorted(self._limits.banks) if bank in (None, each)]
        return self._lifecycles.forecast(partitions, now=now, until=now + timedelta(days=days), limit=limit)

    # -- recall --

    def search(self, query: Query) -> Recall:
        """The memories that answer a query, best first, each score explained on request (case 133).

        Raises InvalidInput. A leg that is down is named in ``degraded``, and the other one answers.
        """
        started = time.perf_counter()
        self._check_generation()
        query = self._checked(query)
        now = self._clock()
        recall = self._searcher.search(query, self._partitions(query), now=now)
        if query.reinforce and query.as_of is None and recall.results:
            self._recalls.note(
                [RecallEntry(query.tenant, each, now, Signal.RETURNED) for each in self._searcher.recalled(recall)]
            )
        return replace(self._with_staleness(query, recall), took_ms=(time.perf_counter() - started) * 1e3)

    def get(self, tenant: str, id: str, *, as_of: "datetime | None" = None) -> Memory:
        """One memory, in whatever state but deleted. Raises NotFound, also for another tenant's id (case 61).

        Args:    as_of: as it stood at this instant, also where it was changed, superseded or deleted since; None: as
                 it is.

        A summary or portrait says in its metadata whether it is ``stale`` (cases 74, 93), here and in searches and
        listings. Raises InvalidInput for what can be no id (case 114).
        """
        _check_instant(as_of)
        return self._marked(tenant, [self._stored(tenant, id, as_of)], as_of)[0]

    def _stored(self, tenant: str, id: str, as_of: "datetime | None" = None) -> Memory:
        _check_ids(tenant=tenant, id=id)
        found = self._store.get(tenant, [id], as_of=as_of)
        if not found:
            raise _not_found(id)
        return found[0]

    def list(self, query: ListQuery) -> Page:
        """One page of a listing, with the exact total (case 79)."""
        if not 1 <= query.limit <= MAX_TOP_K:
            raise InvalidInput.of("limit", f"must be between 1 and {MAX_TOP_K}")
        _check_ids(
            tenant=query.tenant,
            user_id=query.user_id,
            bank=query.bank,
            agent_id=query.agent_id,
            session_id=query.session_id,
            kind=query.kind,
            parent_id=query.parent_id,
        )
        _check_instant(query.as_of)
        page = self._store.page(query)
        return replace(page, items=self._marked(query.tenant, page.items, query.as_of))

    def derived(
        self,
        tenant: str,
        user_id: str,
        kind: DerivedKind,
        *,
        bank: str | None = None,
        level: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page:
        """One page of a user's summaries or portraits, oldest first; all levels where ``level`` is None."""
        wanted = None if level is None else Condition("metadata.level", "eq", level)
        return self.list(
            ListQuery(tenant=tenant, user_id=user_id, bank=bank, kind=kind, filter=wanted, cursor=cursor, limit=limit)
        )

    def best_summary(self, tenant: str, user_id: str, question: str, *, bank: str = "dialog") -> Memory | None:
        """The summary of a group of turns that is nearest to a question by plain cosine (I-32); stale ones are passed
        over. None where there is none. Counts as no recall."""
        query = Query(
            tenant=tenant,
            user_id=user_id,
            text=question,
            banks=[bank],
            top_k=_SUMMARIES_COMPARED,
            filter=And((Condition("kind", "eq", SUMMARY_KIND), Condition("metadata.level", "eq", "group"))),
            fusion="dense",
            explain=True,
            reinforce=False,
            include_shared=False,
        )
        fresh = [each for each in self.search(query).results if each.memory.metadata.get("stale") is False]
        best = max(fresh, key=_cosine, default=None)
        return None if best is None else best.memory

    def _with_staleness(self, query: Query, recall: Recall) -> Recall:
        memories = [each.memory for each in recall.results]
        if not any(map(derived_of, memories)):
            return recall
        shown = self._marked(query.tenant, memories, query.as_of)
        return replace(
            recall, results=[replace(each, memory=mark) for each, mark in zip(recall.results, shown, strict=True)]
        )

    def _marked(self, tenant: str, memories: Sequence[Memory], as_of: "datetime | None" = None) -> Sequence[Memory]:
        """The same, each summary with whether it is (or was) stale: told at read, so that no write knows of them."""
        if not any(map(derived_of, memories)):
            return memories
        stale = stale_ids(memories, lambda ids: self._store.get(tenant, ids, as_of=as_of), now=as_of or self._clock())
        return [each if derived_of(each) is None else marked(each, stale=each.id in stale) for each in memories]

    def history(self, tenant: str, id: str) -> Sequence[HistoryEntry]:
        """All changes of a memory, oldest first, also of a deleted one. Raises NotFound, InvalidInput."""
        _check_ids(tenant=tenant, id=id)
        entries = self._store.history(tenant, id)
        if not entries:
            raise _not_found(id)
        return entries

    def feedback(self, tenant: str, id: str, signal: Signal) -> None:
        """Note that a returned memory was used, ignored or wrong; durable when this returns. Raises NotFound."""
        self.get(tenant, id)
        self._recalls.append([RecallEntry(tenant, id, self._clock(), signal)])

    def fold_recalls(self, *, progress: Callable[[int], None] = lambda _done: None) -> int:
        """Fold the access log into the memories now, through the curve of each one's bank; how many entries.

        A memory that was recalled fades more slowly from then on (V-31, M-16), one that was wrong faster; each entry
        counts once, and strength is capped (case 144). Where no job does so, the service folds by itself from time to
        time, and when it closes.

        Args:    progress: called after each batch with how many entries are folded; what it raises ends the run.
        """
        self._recalls.flush()
        return self._fold_log(progress)

    def leave_folding(self) -> None:
        """From now on the job ``reinforce`` alone folds the access log: a scheduler starts it."""
        self._recalls.leave_folding()

    def _fold_log(self, progress: Callable[[int], None] = lambda _done: None) -> int:
        folded = 0
        while count := self._log.fold(self._lifecycles.curve_of, limit=_FOLDED_AT_ONCE, now=self._clock()):
            folded += count
            self._announce()
            progress(folded)
        return folded

    # -- look after --

    def stats(self, tenant: str, user_id: str | None = None) -> Stats:
        """Exact counts of a tenant or of one user of it."""
        _check_ids(tenant=tenant, user_id=user_id)
        counts = self._store.counts(tenant, user_id)
        return Stats(
            memories=counts.memories,
            by_bank=counts.by_bank,
            by_kind=counts.by_kind,
            by_state=counts.by_state,
            users=counts.users,
            revision=self._store.state().revision,
            encoder=str(self._encoder.identity),
            index=self._indexes.status(),
            disk_bytes=self._store.disk_bytes(),
            remote=self.remote_status(),
        )

    def check(
        self,
        tenant: str | None = None,
        *,
        repair: bool = False,
        rewrite: Rewrite | None = None,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> CheckReport:
        """Compare the store with itself, and every index, snapshot and summary with the store. Reads everything.

        Indexes outside the process are brought up to date first, as before a search; one that is out of reach is a
        problem of every partition. See ``feed.check``.

        Args:    repair: make anew what differs, from the store; what is left then says why.
                 rewrite: brings stale summaries up to date (``jobs.check``); None: they are only told of.
        Raises:  ConfigError: a repair with another encoder than the store's.
        """
        identity = self._store.encoder_identity()
        if repair and identity not in (None, self._encoder.identity):
            raise ConfigError(f"the store holds embeddings by {identity}, this process uses {self._encoder.identity}")
        checker = Checker(
            self._store,
            self._auditor,
            self._indexes,
            () if self._remotes is None else self._remotes.followers,
            self._preparer.embeddings,
            identity,
            now=self._clock(),
            repair=repair,
            rewrite=rewrite,
        )
        report = checker.run(tenant, progress)
        if tenant is None:
            self._note_check(report)
        return report

    def check_indexes(
        self, *, repair: bool = False, progress: Callable[[int, int], None] = lambda _done, _all: None
    ) -> CheckReport:
        """Compare what this process alone holds, the indexes in memory and their snapshots, with the store.

        ``check`` does so too, but only for the process in which it runs.

        Args:    repair: make anew what differs, from the store.
        """
        report = IndexChecker(self._store, self._indexes, self._store.encoder_identity(), repair=repair).run(progress)
        self._note_check(report)
        return report

    def _note_check(self, report: CheckReport) -> None:
        with self._noting:
            self._index_checks = index_checks(self._index_checks, report, at=self._clock())

    @property
    def index_checks(self) -> IndexChecks | None:
        """What the checks of this process's own indexes have come to since it started; None before the first."""
        return self._index_checks

    def reindex(
        self, encoder: Encoder, *, batch: int = 256, progress: Callable[[int], None] = lambda _done: None
    ) -> ReindexReport:
        """Embed every memory with another encoder while the present one serves, then change over at once.

        Resumable: a second call goes on where the first was stopped. Other processes that still use the former
        encoder answer with ConfigError from the change-over on.
        """
        former = self._store.encoder_identity()
        preparer = Preparer(encoder, self._limits)
        done = 0
        while True:
            memories = self._store.missing_embeddings(encoder.identity, batch)
            if memories:
                self._store.put_embeddings(encoder.identity, preparer.embeddings(memories))
                done += len(memories)
                progress(done)
                continue
            try:
                self._store.switch_encoder(encoder.identity)
            except Conflict:  # a memory came in meanwhile
                continue
            break
        self._use(encoder)
        return ReindexReport(done, former, encoder.identity)

    def compact(self, *, deleted_before: "datetime", up_to: int | None = None, limit: int = 1_000) -> int:
        """Remove up to ``limit`` tombstones of what was deleted before; how many. 0: none is left.

        Args:    up_to: the revision that every index outside this process has passed; None: there is none.
                 An in-process index that stands before a removed tombstone rebuilds its partition by itself.
        """
        newest = self._store.state().revision
        return self._store.compact(
            up_to=newest if up_to is None else min(up_to, newest), deleted_before=deleted_before, limit=limit
        )

    def trim_recalls(self, *, before: "datetime") -> Iterator[int]:
        """Remove lines of the access log that were folded in and noted before, batch by batch; how many each time.

        Nothing reads a line again once it is folded in: the memories keep what it said.
        """
        return self._log.trim(before=before)

    def follow_remote(self, *, duration_s: float = 0.0, stop: threading.Event | None = None) -> Mapping[str, int]:
        """Bring the indexes outside the process up to the store, and go on for so long; the cursor of each, by name.

        Raises BackendUnavailable while one is out of reach; the others were brought up to date.
        """
        return {} if self._remotes is None else self._remotes.follow(duration_s, stop)

    def remote_status(self) -> Sequence[RemoteStatus]:
        """How each index outside the process is: asks it, and waits no longer than a search would."""
        return () if self._remotes is None else self._remotes.statuses(count=True)

    @property
    def remotes(self) -> Remotes | None:
        """The indexes outside the process, for what the composition root puts beside the service."""
        return self._remotes

    @property
    def store(self) -> Upkeep:
        """The record store, for what the composition root puts beside the service."""
        return self._store

    # -- for what works beside the service: export, import, erasure --

    @property
    def clock(self) -> Clock:
        """The service's clock."""
        return self._clock

    @property
    def preparer(self) -> Preparer:
        """Checks, cuts and encodes with the present encoder."""
        return self._preparer

    @property
    def assessor(self) -> Assessor:
        """Judges by rules whether something is worth remembering."""
        return self._assessor

    @property
    def encoder(self) -> Encoder:
        """The present encoder."""
        return self._encoder

    @property
    def limits(self) -> Limits:
        """What is accepted."""
        return self._limits

    def announce(self) -> None:
        """Something was written to the store beside the service."""
        self._announce()

    def forget(self, partitions: Sequence[Partition]) -> None:
        """Let go of what this process keeps of partitions: indexes, snapshots, cached records and queries."""
        for partition in partitions:
            self._indexes.drop(partition)
        self._searcher.forget()
        self._assessor.forget()
        forget_readings()

    def ready(self) -> Readiness:
        """Ask every part whether it works; one that does not is named, with what it said."""
        components: dict[str, str] = {}
        for name, probe in (("store", self._store.state), ("encoder", self._probe_encoder)):
            try:
                probe()
                components[name] = "ok"
            except VimbankError as error:
                components[name] = str(error)
        damaged = self._indexes.status().damaged
        components["indexes"] = f"{len(damaged)} damaged snapshots were set aside" if damaged else "ok"
        needed = ["store", "encoder"]
        for status in self._remotes.statuses() if self._remotes is not None else ():
            components[status.name] = "ok" if status.error is None else status.error
            needed.append(status.name)
        return Readiness(all(components[name] == "ok" for name in needed), components)

    def _probe_encoder(self) -> None:
        self._check_generation()
        self._encoder.encode_queries(["ready"])

    # -- inside --

    def _announce(self, revision: int | None = None) -> None:
        """Tell followers that there is something new; a hint, which never fails or holds up a write (case 125).

        Args:    revision: one that was just written; None: the store is asked.
        """
        if self._remotes is None:
            return
        try:
            self._remotes.announce(self._store.state().revision if revision is None else revision)
        except BackendError:
            _LOG.debug("a revision was not announced", exc_info=True)  # the write itself is durable

    def _check_generation(self) -> None:
        state = self._store.state()
        if state.generation == self._generation:
            return
        stored = self._store.encoder_identity()
        if stored != self._encoder.identity:
            raise ConfigError(
                f"the store was reindexed for {stored} while this process uses {self._encoder.identity}; "
                "restart it with the store's encoder"
            )
        self._generation = state.generation

    def _checked(self, query: Query) -> Query:
        if not 1 <= query.top_k <= MAX_TOP_K:
            raise InvalidInput.of("top_k", f"must be between 1 and {MAX_TOP_K}")
        if query.threshold is not None and not 0 <= query.threshold <= 1:
            raise InvalidInput.of("threshold", "must be between 0 and 1")
        for bank in query.banks or ():
            if bank not in self._limits.banks:
                raise InvalidInput.of("banks", f"{bank!r} is not one of {', '.join(sorted(self._limits.banks))}")
        if query.banks is not None and not query.banks:
            raise InvalidInput.of("banks", "must name at least one bank, or be left out")
        _check_instant(query.as_of)
        return replace(
            query,
            user_id=clean_id(query.user_id, "user_id"),
            text=clean_text(query.text, "query", max_chars=MAX_QUERY_CHARS),
        )

    def _partitions(self, query: Query) -> Sequence[Partition]:
        banks = sorted(set(query.banks or self._limits.banks))
        if query.user_id == ALL_USERS:
            return [each for each in self._store.partitions(query.tenant) if each.bank in banks]
        users = [query.user_id]
        if query.include_shared and query.user_id != SHARED_USER:
            users.append(SHARED_USER)
        return [Partition(query.tenant, user, bank) for bank in banks for user in users]


def _result(value: AddResult | Exception) -> AddResult | VimbankError:
    if isinstance(value, AddResult | VimbankError):
        return value
    raise value


def _outcome(value: StateResult | Exception) -> StateResult | VimbankError:
    if isinstance(value, StateResult | VimbankError):
        return value
    raise value


def _check_ids(**given: str | None) -> None:
    """Raises InvalidInput, naming the field, for what can be no id: the store could not even be asked for it."""
    for field, value in given.items():
        if value is not None:
            clean_id(value, field)


def _check_instant(as_of: "datetime | None") -> None:
    if as_of is not None and as_of.tzinfo is None:
        raise InvalidInput.of("as_of", "must have a time zone")


def _cosine(hit: ScoredMemory) -> float:
    return hit.explanation.inputs.get("cosine", 0.0) if hit.explanation is not None else 0.0


def _not_found(id: str) -> NotFound:
    return NotFound(f"no memory with the id {id!r}")
