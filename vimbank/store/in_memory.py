"""The record store in plain dicts: the reference for tests and demonstrations. Nothing outlives the process."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import numpy as np
import orjson

from vimbank.domain.comparing import COMPARED
from vimbank.domain.curves import Curve, Trace
from vimbank.domain.models import (
    PARENT_KIND,
    AddResult,
    Change,
    HistoryEntry,
    ListQuery,
    Memory,
    MemoryState,
    Page,
    Partition,
    RecallEntry,
    Scope,
    StateChange,
    StateResult,
    Unset,
    Vector,
    Vectors,
)
from vimbank.domain.reinforcement import Standing
from vimbank.domain.superseding import said_at, takes_part
from vimbank.errors import ConfigError, Conflict
from vimbank.ports import (
    Embedded,
    EncoderIdentity,
    Ending,
    Judged,
    Lives,
    PreparedDraft,
    PreparedPatch,
    StoreState,
    Utterance,
)
from vimbank.store.assessing import put_samples
from vimbank.store.changes import (
    IdSource,
    Record,
    as_they_stood,
    delete_memories,
)
from vimbank.store.conflicts import NOTHING, add_memory, change_memory, end, put_claims
from vimbank.store.counts import StoreCounts
from vimbank.store.folding import Recalled, Touched, fold_recalls
from vimbank.store.lives import life_row, life_states, lives
from vimbank.store.paging import fits, page_of
from vimbank.store.states import change_states

__all__ = ["InMemoryStore"]


class _Rows:
    """``changes.Rows`` on dicts. Rows of deleted memories stay, as tombstones."""

    def __init__(self, ids: IdSource) -> None:
        self.revision = 0
        self.memories: dict[int, Memory] = {}
        self.live: dict[tuple[str, str], int] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self.claims: dict[int, frozenset[tuple[str, str]]] = {}
        self.embeddings: dict[EncoderIdentity | None, dict[int, Embedded]] = {}
        self.encoder: EncoderIdentity | None = None
        self.records: list[Record] = []
        self._ids = ids
        self._number = 0

    def take_revision(self) -> int:
        self.revision += 1
        return self.revision

    def take_number(self) -> int:
        self._number += 1
        return self._number

    def take_id(self, now: datetime) -> str:
        return self._ids.take(now)

    def by_id(self, tenant: str, memory_id: str) -> Memory | None:
        number = self.live.get((tenant, memory_id))
        return None if number is None else self.memories[number]

    def by_key(self, tenant: str, key: str) -> Memory | None:
        number = self.keys.get((tenant, key))
        return None if number is None else self.memories[number]

    def by_event(self, tenant: str, event_id: str) -> Memory | None:
        return next(
            (each for each in self.standing() if (each.tenant, each.source.event_id) == (tenant, event_id)), None
        )

    def twin(self, partition: Partition, kind: str, content_hash: str) -> Memory | None:
        same = (each for each in self.standing() if each.content_hash == content_hash)
        wanted = (partition, kind, MemoryState.ACTIVE, ())
        return next((each for each in same if (each.partition, each.kind, each.state, each.ended) == wanted), None)

    def by_ids(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        return [memory for name in dict.fromkeys(ids) if (memory := self.by_id(tenant, name)) is not None]

    def parts(self, memories: Sequence[Memory]) -> list[Memory]:
        wanted = {(memory.partition, memory.id) for memory in memories}
        found = (each for each in self.standing() if (each.partition, each.source.parent_id) in wanted)
        return sorted(found, key=lambda memory: memory.number)

    def vectors(self, memories: Sequence[Memory]) -> dict[int, Vector]:
        found = ((memory.number, self.vector(memory)) for memory in memories)
        return {number: vector for number, vector in found if vector is not None}

    def vector(self, memory: Memory) -> Vector | None:
        embedding = self.current.get(memory.number)
        return None if embedding is None else embedding.vector

    def insert(self, memory: Memory, key: str | None, embedding: Embedded | None) -> None:
        self.memories[memory.number] = _own(memory)
        self.live[memory.tenant, memory.id] = memory.number
        if key is not None:
            self.keys[memory.tenant, key] = memory.number
        if embedding is not None:
            self.current[memory.number] = _kept(embedding)

    def rewrite(self, memory: Memory, embedding: Embedded | Unset | None) -> None:
        self.memories[memory.number] = _own(memory)
        if isinstance(embedding, Unset):
            return
        for made in self.embeddings.values():
            made.pop(memory.number, None)
        if embedding is not None:
            self.current[memory.number] = _kept(embedding)

    def put_claims(self, memory: Memory, claims: Sequence[tuple[str, str]]) -> None:
        self.claims[memory.number] = frozenset(claims)

    def rivals(self, memory: Memory, subject: str, attribute: str | None, *, limit: int) -> list[Memory]:
        said = said_at(memory)
        others = [
            each
            for each in self.standing()
            if (each.partition, each.agent_id) == (memory.partition, memory.agent_id)
            and each.number != memory.number
            and each.state is not MemoryState.SUPPRESSED
            and any(subject == key[0] and attribute in (None, key[1]) for key in self.claims.get(each.number, ()))
        ]
        before = [each for each in others if said_at(each) <= said]
        before.sort(key=lambda each: (_ended_by(each, said), said - said_at(each), -each.number))
        after = [each for each in others if said_at(each) > said]
        after.sort(key=lambda each: (said_at(each), each.number))
        return before[:limit] + after[:limit]

    def history_of(self, memory: Memory) -> list[Record]:
        wanted = (memory.tenant, memory.id)
        return [each for each in self.records if (each.partition.tenant, each.entry.memory_id) == wanted]

    def bury(self, memory: Memory) -> None:
        self.rewrite(memory, None)
        self.claims.pop(memory.number, None)
        del self.live[memory.tenant, memory.id]
        self.keys = {key: number for key, number in self.keys.items() if number != memory.number}

    def recalled(self, tenant: str, ids: Sequence[str]) -> list[Recalled]:
        found = [memory for name in ids if (memory := self.by_id(tenant, name)) is not None]
        return [Recalled(each.number, each.id, each.bank, each.created_at, _standing(each)) for each in found]

    def touch(self, touched: Sequence[Touched]) -> None:
        for each in touched:
            standing, trace = each.standing, each.standing.trace
            self.memories[each.number] = replace(
                self.memories[each.number],
                strength=trace.strength,
                stability_days=trace.stability_days,
                difficulty=trace.difficulty,
                recall_count=standing.recall_count,
                last_recalled_at=standing.last_recalled_at,
                revision=each.revision,
            )

    def move(self, memory: Memory) -> None:
        self.memories[memory.number] = memory

    def record(self, record: Record) -> None:
        self.records.append(record)

    @property
    def current(self) -> dict[int, Embedded]:
        """The embeddings by the current encoder, by number."""
        return self.embeddings.setdefault(self.encoder, {})

    def standing(self) -> list[Memory]:
        """All memories but deleted ones, by number."""
        # A number is given later than all others and its id is put in at the end, so these are sorted.
        return [self.memories[number] for number in self.live.values()]


class InMemoryStore:
    """``MemoryStore`` and ``AccessLog`` with the meaning of ``SqlStore``. Thread-safe; each call scans everything."""

    def __init__(self, *, ids: IdSource | None = None) -> None:
        self._rows: Final = _Rows(IdSource() if ids is None else ids)
        self._lock: Final = threading.RLock()
        self._generation = 0
        self._log: list[RecallEntry] = []
        self._noted = 0  # last number given to an entry of the log
        self._folded = 0  # last one that was folded in
        self._compacted: dict[Partition, int] = {}
        self._id: Final = uuid.uuid4().hex

    def close(self) -> None:
        """Nothing to close."""

    # -- writes --

    def add(self, drafts: Sequence[PreparedDraft], *, actor: str, now: datetime) -> list[AddResult | Exception]:
        """See ``MemoryStore.add``."""
        with self._lock:
            return [self._add(draft, actor, now) for draft in drafts]

    def _add(self, draft: PreparedDraft, actor: str, now: datetime) -> AddResult | Exception:
        try:
            return add_memory(self._rows, draft, actor=actor, now=now)
        except Conflict as conflict:
            return conflict

    def update(self, patch: PreparedPatch, *, tenant: str, actor: str, now: datetime) -> Memory:
        """See ``MemoryStore.update``."""
        with self._lock:
            return change_memory(self._rows, patch, tenant=tenant, actor=actor, now=now)

    def delete(self, tenant: str, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]:
        """See ``MemoryStore.delete``."""
        with self._lock:
            found = {memory.id: memory for name in ids if (memory := self._rows.by_id(tenant, name)) is not None}
            delete_memories(self._rows, found.values(), actor=actor, now=now)
            return list(found)

    def delete_scope(self, scope: Scope, *, actor: str, now: datetime) -> int:
        """See ``MemoryStore.delete_scope``."""
        query = ListQuery(
            tenant=scope.tenant,
            user_id=scope.user_id,
            bank=scope.bank,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            state=None,
        )
        with self._lock:
            return delete_memories(self._rows, self._matching(query), actor=actor, now=now)

    def change_states(
        self, changes: Sequence[StateChange], *, tenant: str, actor: str, now: datetime
    ) -> list[StateResult | Exception]:
        """See ``MemoryStore.change_states``."""
        with self._lock:
            return change_states(self._rows, changes, tenant=tenant, actor=actor, now=now)

    def put_samples(self, judged: Sequence[Judged], *, actor: str, now: datetime) -> int:
        """See ``MemoryStore.put_samples``."""
        with self._lock:
            return put_samples(self._rows, judged, actor=actor, now=now)

    # -- claims --

    def unread(self, partition: Partition, *, after: int, limit: int, again: bool = False) -> list[Memory]:
        """See ``ClaimStore.unread``."""
        with self._lock:
            found = [each for each in self._rows.standing() if each.partition == partition and each.number > after]
            found = [each for each in found if takes_part(each)]
            return [each for each in found if again or not self._rows.claims.get(each.number)][:limit]

    def put_claims(self, read: Sequence[tuple[Memory, Sequence[tuple[str, str]]]]) -> int:
        """See ``ClaimStore.put_claims``."""
        with self._lock:
            return put_claims(self._rows, read)

    def claiming(self, partition: Partition, *, batch: int = 1_000) -> Iterator[list[Memory]]:
        """See ``ClaimStore.claiming``."""
        with self._lock:
            claims = self._rows.claims
            found = [each for each in self._rows.standing() if each.partition == partition]
            found = [each for each in found if claims.get(each.number, frozenset()) - {NOTHING, COMPARED}]
        for start in range(0, len(found), batch):
            yield found[start : start + batch]

    def uncompared(self, partition: Partition) -> list[int]:
        """See ``ClaimStore.uncompared``."""
        with self._lock:
            found = [each for each in self._rows.standing() if each.partition == partition and takes_part(each)]
            claims = self._rows.claims
            return [
                each.number
                for each in found
                if each.state is MemoryState.ACTIVE and COMPARED not in claims.get(each.number, ())
            ]

    def end(self, endings: Sequence[Ending], *, dry_run: bool = False, now: datetime) -> list[Memory | Conflict | None]:
        """See ``ClaimStore.end``."""
        with self._lock:
            return end(self._rows, endings, dry_run=dry_run, now=now)

    # -- reads --

    def get(self, tenant: str, ids: Sequence[str], *, as_of: datetime | None = None) -> list[Memory]:
        """See ``MemoryStore.get``."""
        if as_of is not None:
            past = {memory.id: memory for memory, _ in self._stood(as_of) if memory.tenant == tenant}
            return [past[name] for name in ids if name in past]
        with self._lock:
            return [memory for name in ids if (memory := self._rows.by_id(tenant, name)) is not None]

    def page(self, query: ListQuery) -> Page:
        """See ``MemoryStore.page``."""
        if query.as_of is not None:
            return page_of(query, [memory for memory, _ in self._stood(query.as_of) if fits(query, memory)])
        with self._lock:
            found = self._matching(query)
        return page_of(query, found)

    def _matching(self, query: ListQuery) -> list[Memory]:
        return [memory for memory in self._rows.standing() if fits(query, memory)]

    def state(self) -> StoreState:
        """See ``MemoryStore.state``."""
        with self._lock:
            return StoreState(self._rows.revision, self._generation, max(self._compacted.values(), default=0))

    def changes(self, after: int, *, limit: int, partition: Partition | None = None) -> list[Change]:
        """See ``MemoryStore.changes``."""
        with self._lock:
            newer = sorted(
                (each for each in self._rows.memories.values() if each.revision > after),
                key=lambda memory: memory.revision,
            )
            return [self._change(each) for each in newer if partition in (None, each.partition)][:limit]

    def live(self, partition: Partition, *, batch: int = 5_000) -> Iterator[list[Change]]:
        """See ``MemoryStore.live``."""
        with self._lock:
            found = [each for each in self._rows.standing() if each.indexed and each.partition == partition]
            changes = [self._change(each) for each in found]
        for start in range(0, len(changes), batch):
            yield changes[start : start + batch]

    def _change(self, memory: Memory) -> Change:
        gone = memory.state is MemoryState.DELETED
        vector = None if gone else self._rows.vector(memory)
        return Change(memory.revision, memory.partition, memory.id, None if gone else memory, vector, memory.number)

    def compact(self, *, up_to: int, deleted_before: datetime, limit: int) -> int:
        """See ``MemoryStore.compact``."""
        with self._lock:
            rows = self._rows.memories
            last = self._last_of_sessions()
            doomed = [
                each
                for each in sorted(rows.values(), key=lambda memory: memory.revision)
                if each.state is MemoryState.DELETED
                and each.revision <= up_to
                and each.updated_at < deleted_before
                and each.number not in last
            ][:limit]
            for each in doomed:
                del rows[each.number]
                self._compacted[each.partition] = max(self._compacted.get(each.partition, 0), each.revision)
        return len(doomed)

    def _last_of_sessions(self) -> set[int]:
        """The numbers of the rows that a session's next position depends on."""
        last: dict[tuple[Partition, str], tuple[int, int]] = {}
        for each in self._rows.memories.values():
            if each.session_id is not None and each.source.position is not None and each.source.parent_id is None:
                session = (each.partition, each.session_id)
                last[session] = max(last.get(session, (-1, -1)), (each.source.position, each.number))
        return {number for _position, number in last.values()}

    def compacted(self, partition: Partition) -> int:
        """See ``MemoryStore.compacted``."""
        with self._lock:
            return self._compacted.get(partition, 0)

    def next_position(self, partition: Partition, session_id: str) -> int:
        """See ``MemoryStore.next_position``."""
        with self._lock:
            memories = list(self._rows.memories.values())
        wanted = (partition, session_id, None)
        found = [each for each in memories if (each.partition, each.session_id, each.source.parent_id) == wanted]
        return 1 + max((each.source.position for each in found if each.source.position is not None), default=-1)

    def session_tail(self, partition: Partition, session_id: str, *, before: int, limit: int) -> list[Utterance]:
        """See ``MemoryStore.session_tail``."""
        wanted = (partition, session_id, None)
        with self._lock:
            found = [
                Utterance(each.id, each.source.position, each.text, self._rows.vector(each))
                for each in self._rows.standing()
                if (each.partition, each.session_id, each.source.parent_id) == wanted
                and each.source.position is not None
                and each.source.position < before
            ]
        return sorted(found, key=lambda each: -each.position)[:limit]

    def partitions(self, tenant: str | None = None, *, state: MemoryState = MemoryState.ACTIVE) -> list[Partition]:
        """See ``MemoryStore.partitions``."""
        with self._lock:
            found = [each for each in self._rows.standing() if each.state is state]
        return sorted({each.partition for each in found if tenant in (None, each.tenant)})

    def lives(self, partition: Partition, *, superseded: bool = False) -> Lives:
        """See ``MemoryStore.lives``."""
        with self._lock:
            found = [each for each in self._rows.standing() if each.partition == partition]
            revision = self._rows.revision
        states = life_states(superseded=superseded)
        rows = [life_row(each) for each in found if each.state.value in states]
        return lives(revision, [rows] if rows else [])

    def history(self, tenant: str, memory_id: str) -> list[HistoryEntry]:
        """See ``MemoryStore.history``."""
        with self._lock:
            records = list(self._rows.records)
        wanted = (tenant, memory_id)
        return [record.entry for record in records if (record.partition.tenant, record.entry.memory_id) == wanted]

    def as_of(self, partition: Partition, instant: datetime) -> list[tuple[Memory, Vector | None]]:
        """See ``MemoryStore.as_of``."""
        return [(each, vector) for each, vector in self._stood(instant) if each.indexed and each.partition == partition]

    def _stood(self, instant: datetime) -> list[tuple[Memory, Vector | None]]:
        with self._lock:
            later = [each for each in self._rows.records if each.entry.at > instant]
            current = [(each, self._rows.vector(each)) for each in self._rows.standing()]
        places = {each.partition for each in later} | {each.partition for each, _ in current}
        found = [
            pair
            for place in places
            for pair in as_they_stood(
                [pair for pair in current if pair[0].partition == place],
                [each for each in later if each.partition == place],
                instant,
            )
        ]
        return sorted(found, key=lambda pair: pair[0].number)

    def counts(self, tenant: str | None = None, user_id: str | None = None) -> StoreCounts:
        """Exact counts of a tenant's or user's memories, or of all."""
        with self._lock:
            standing = self._rows.standing()
        found = [each for each in standing if tenant in (None, each.tenant) and user_id in (None, each.user_id)]
        return StoreCounts(
            len(found),
            len({(each.tenant, each.user_id) for each in found}),
            Counter(each.bank for each in found),
            Counter(each.state.value for each in found),
            Counter(each.kind for each in found),
        )

    # -- the access log --

    def append(self, entries: Sequence[RecallEntry]) -> None:
        """See ``AccessLog.append``; as durable as this store can be."""
        with self._lock:
            self._log.extend(replace(entry, number=self._noted + place) for place, entry in enumerate(entries, 1))
            self._noted += len(entries)

    def fold(self, curve_of: Callable[[str], Curve], *, limit: int, now: datetime) -> int:
        """See ``AccessLog.fold``."""
        with self._lock:
            entries = [entry for entry in self._log if entry.number > self._folded][:limit]
            fold_recalls(self._rows, entries, curve_of, now=now)
            self._folded += len(entries)
            return len(entries)

    def trim(self, *, before: datetime, batch: int = 1_000) -> Iterator[int]:
        """See ``AccessLog.trim``."""
        while True:
            with self._lock:
                spent = [each.number for each in self._log if each.number <= self._folded and each.at < before][:batch]
                gone = set(spent)
                self._log = [each for each in self._log if each.number not in gone]
            if not spent:
                return
            yield len(spent)

    # -- the encoder --

    def encoder_identity(self) -> EncoderIdentity | None:
        """See ``SqlStore.encoder_identity``."""
        return self._rows.encoder

    def claim_encoder(self, identity: EncoderIdentity) -> None:
        """See ``SqlStore.claim_encoder``."""
        with self._lock:
            rows = self._rows
            if rows.encoder != identity and any(rows.embeddings.values()):
                raise ConfigError(
                    f"the store holds embeddings by {rows.encoder}, but {identity} is set: `vimbank reindex`"
                )
            rows.encoder = identity

    def missing_embeddings(self, identity: EncoderIdentity, limit: int) -> list[Memory]:
        """See ``SqlStore.missing_embeddings``."""
        with self._lock:
            made = self._rows.embeddings.get(identity, {})
            found = [each for each in self._rows.standing() if each.kind != PARENT_KIND and each.number not in made]
        return found[:limit]

    def put_embeddings(self, identity: EncoderIdentity, embedded: Sequence[tuple[Memory, Embedded]]) -> int:
        """See ``SqlStore.put_embeddings``."""
        kept = 0
        with self._lock:
            for memory, embedding in embedded:
                standing = self._rows.by_id(memory.tenant, memory.id)
                if standing is not None and _same_words(standing, memory):
                    self._rows.embeddings.setdefault(identity, {})[memory.number] = _kept(embedding)
                    kept += 1
        return kept

    def switch_encoder(self, identity: EncoderIdentity) -> None:
        """See ``SqlStore.switch_encoder``."""
        with self._lock:
            lacking = self.missing_embeddings(identity, len(self._rows.live))
            if lacking:
                raise Conflict(f"{len(lacking)} memories have no embedding by {identity} yet")
            if identity != self._rows.encoder:
                self._rows.embeddings = {identity: self._rows.embeddings.get(identity, {})}
                self._rows.encoder = identity
                self._generation += 1

    def vectors(self, tenant: str, ids: Sequence[str]) -> dict[str, Vector]:
        """See ``SqlStore.vectors``."""
        with self._lock:
            found = self._rows.by_ids(tenant, ids)
            return {memory.id: vector for memory in found if (vector := self._rows.vector(memory)) is not None}

    def token_vectors(self, tenant: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """See ``SqlStore.token_vectors``."""
        with self._lock:
            found = [memory for name in ids if (memory := self._rows.by_id(tenant, name)) is not None]
            made = ((memory.id, self._rows.current.get(memory.number)) for memory in found)
            return {
                name: each.token_vectors for name, each in made if each is not None and each.token_vectors is not None
            }

    # -- upkeep --

    def store_id(self) -> str:
        """See ``SqlStore.store_id``."""
        return self._id

    def disk_bytes(self) -> int:
        """None of it is on a disk."""
        return 0

    def integrity(self) -> list[str]:
        """There is no file that could be damaged."""
        return []


def _standing(memory: Memory) -> Standing:
    trace = Trace(memory.strength, memory.stability_days, memory.difficulty)
    return Standing(trace, memory.recall_count, memory.last_recalled_at)


def _ended_by(memory: Memory, instant: datetime) -> bool:
    """Whether it was superseded by then."""
    superseded = memory.state is MemoryState.SUPERSEDED
    return superseded and memory.valid_to is not None and memory.valid_to <= instant


def _same_words(one: Memory, other: Memory) -> bool:
    return (one.number, one.text, one.title) == (other.number, other.text, other.title)


def _own(memory: Memory) -> Memory:
    """With metadata of the store's own, of the types that JSON keeps."""
    metadata: dict[str, Any] = orjson.loads(orjson.dumps(dict(memory.metadata)))
    return replace(memory, metadata=metadata)


def _kept(embedding: Embedded) -> Embedded:
    tokens = embedding.token_vectors
    return Embedded(
        np.array(embedding.vector, dtype=np.float32), None if tokens is None else np.array(tokens, dtype=np.float32)
    )
