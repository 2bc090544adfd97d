"""Keeps this process's indexes in step with the store.

A partition is loaded when it is first asked for: from its snapshot where one checks out, else from the store. From
there it follows the feed: before a strongly consistent read its cursor is compared with the store's revision, and
what is missing is applied. Least recently used partitions leave memory when the budget is spent.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from vimbank.domain.models import Change, Partition
from vimbank.errors import BackendError, IndexCorrupt
from vimbank.feed.locks import ReadWriteLock
from vimbank.feed.snapshot import Snapshot, SnapshotFolder
from vimbank.ports import Arrays, MemoryStore, PartitionIndex, StoreState

__all__ = ["Follower", "IndexStatus", "WritableIndex"]

_LOG = logging.getLogger(__name__)
_BATCH: Final = 5_000
EVENTUAL_LAG_S: Final = 1.0
"""How old the last comparison with the store may be for an eventually consistent read."""


class WritableIndex(PartitionIndex, Protocol):
    """What the feed asks of an in-process partition index beside reading."""

    cursor: int

    def apply(self, changes: Sequence[Change]) -> None:
        """Bring the index to the state that the changes describe; applying them twice changes nothing."""
        ...

    def compare(self, live: Iterable[Change]) -> Sequence[str]:
        """Differences to the store's indexed memories of the partition; none: []."""
        ...

    def copy(self) -> "WritableIndex":
        """The same, apart: it stays as it is, whatever becomes of this one."""
        ...

    def dump(self) -> Arrays: ...

    def restore(self, arrays: Arrays) -> None: ...

    @property
    def nbytes(self) -> int: ...


@dataclass(slots=True)
class _Slot:
    """One loaded partition. ``index`` and ``generation`` change only under ``lock.writing()``."""

    index: WritableIndex
    generation: int
    lock: ReadWriteLock = field(default_factory=ReadWriteLock)
    checked_at: float = 0.0
    unsaved: int = 0
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What is in memory, and which snapshot files were found damaged."""

    partitions: int
    rows: int
    nbytes: int
    damaged: Sequence[str]


class Follower:
    """The process's ``PartitionIndexes`` (see ports): thread-safe, one per process and store."""

    def __init__(
        self,
        store: MemoryStore,
        make_index: Callable[[Partition], WritableIndex],
        *,
        snapshots: SnapshotFolder | None,
        configuration: str,
        memory_bytes: int,
        snapshot_every: int,
    ) -> None:
        self._store = store
        self._make_index = make_index
        self._snapshots = snapshots
        self._configuration = configuration
        self._memory_bytes = memory_bytes
        self._snapshot_every = snapshot_every
        self._slots: OrderedDict[Partition, _Slot] = OrderedDict()
        self._lock = threading.Lock()  # of _slots and _loading
        self._loading: dict[Partition, threading.Lock] = {}
        self._held_bytes = 0  # by all slots
        self._saver = ThreadPoolExecutor(1, thread_name_prefix="vimbank-snapshot")

    @contextmanager
    def read(
        self, partition: Partition, *, consistency: str = "strong", state: StoreState | None = None
    ) -> Iterator[WritableIndex]:
        """The partition's index, caught up as asked; nothing moves inside the context.

        ``state`` is a store state the caller has just read, to save asking again.
        """
        slot = self._slot(partition)
        if consistency == "strong" or time.monotonic() - slot.checked_at > EVENTUAL_LAG_S:
            self._catch_up(partition, slot, state or self._store.state())
        with slot.lock.reading():
            yield slot.index

    def drop(self, partition: Partition) -> None:
        """Forget the partition's index and its snapshot; the next read rebuilds it from the store."""
        with self._lock:
            slot = self._slots.pop(partition, None)
            self._held_bytes -= slot.nbytes if slot is not None else 0
        self._saver.submit(lambda: None).result()  # a snapshot being written would come back
        if self._snapshots is not None:
            self._snapshots.drop(partition)

    def rebuild(self, partition: Partition) -> None:
        """Make the partition's index anew from the store, and its snapshot; what was set aside of it goes then.

        Searches go on meanwhile: they wait for no longer than the making takes, and see the old one or the new one.
        """
        slot = self._slot(partition)
        state = self._store.state()
        with slot.lock.writing():
            self._replace(partition, slot, state)
            nbytes = slot.index.nbytes
        self._weigh(partition, slot, nbytes)
        slot.unsaved = max(1, slot.unsaved)  # also where nothing is left to index: the old file says otherwise
        self._save_later(partition, slot)
        self._saver.submit(lambda: None).result()
        if self._snapshots is not None and self._snapshots.stands(partition):
            self._snapshots.drop_damaged(self._snapshots.damaged(partition))

    def snapshot_faults(self, partition: Partition) -> list[str]:
        """What is wrong with the partition's snapshot file, and files of it that were set aside."""
        if self._snapshots is None:
            return []
        fault = self._snapshots.fault(partition)
        told = [] if fault is None else [f"snapshot {fault}"]
        return told + [f"snapshot {name} was damaged and set aside" for name in self._snapshots.damaged(partition)]

    def loaded(self) -> list[Partition]:
        """The partitions that are in memory, the least recently used first."""
        with self._lock:
            return list(self._slots)

    def is_loaded(self, partition: Partition) -> bool:
        """Whether the partition is in memory."""
        with self._lock:
            return partition in self._slots

    def set_aside(self, partition: Partition) -> bool:
        """Whether a damaged snapshot of the partition was set aside."""
        return self._snapshots is not None and bool(self._snapshots.damaged(partition))

    def strays(self, known: Iterable[Partition]) -> list[str]:
        """Names of files that were set aside and belong to none of these partitions."""
        if self._snapshots is None:
            return []
        names = self._snapshots.damaged()
        theirs = {name for partition in known for name in self._snapshots.damaged(partition)} if names else ()
        return [name for name in names if name not in theirs]

    def drop_strays(self, names: Iterable[str]) -> None:
        """Delete files that were set aside."""
        if self._snapshots is not None:
            self._snapshots.drop_damaged(names)

    def status(self) -> IndexStatus:
        """What is loaded now."""
        with self._lock:
            slots = list(self._slots.values())
        return IndexStatus(
            partitions=len(slots),
            rows=sum(len(slot.index) for slot in slots),
            nbytes=sum(slot.nbytes for slot in slots),
            damaged=self._snapshots.damaged() if self._snapshots is not None else (),
        )

    def save(self) -> None:
        """Snapshot every loaded partition that has unsaved changes, and wait for it."""
        with self._lock:
            slots = list(self._slots.items())
        for partition, slot in slots:
            self._save_later(partition, slot)
        self._saver.submit(lambda: None).result()

    def close(self) -> None:
        """Save, and stop the background thread."""
        self.save()
        self._saver.shutdown()

    # -- loading --

    def _slot(self, partition: Partition) -> _Slot:
        with self._lock:
            slot = self._slots.get(partition)
            if slot is not None:
                self._slots.move_to_end(partition)
                return slot
            loading = self._loading.setdefault(partition, threading.Lock())
        with loading:
            with self._lock:
                slot = self._slots.get(partition)
            if slot is None:
                slot = self._load(partition)
                with self._lock:
                    self._slots[partition] = slot
                    self._held_bytes += slot.nbytes
                    self._loading.pop(partition, None)
                self._evict(keep=partition)
            return slot

    def _load(self, partition: Partition) -> _Slot:
        state = self._store.state()
        index = self._from_snapshot(partition, state)
        if index is None:
            index = self._rebuild(partition, state)
            slot = _Slot(index, state.generation, unsaved=len(index))
        else:
            slot = _Slot(index, state.generation)
        slot.nbytes = index.nbytes
        return slot

    def _from_snapshot(self, partition: Partition, state: StoreState) -> WritableIndex | None:
        if self._snapshots is None:
            return None
        try:
            snapshot = self._snapshots.load(partition)
            if snapshot is None or not self._usable(snapshot, state):
                return None
            index = self._make_index(partition)
            index.restore(snapshot.arrays)
        except IndexCorrupt as error:  # damaged, or of a version that this one does not read
            _LOG.warning("rebuilding the index of a partition: %s", error)
            return None
        index.cursor = snapshot.cursor
        return index

    def _usable(self, snapshot: Snapshot, state: StoreState) -> bool:
        return (
            snapshot.generation == state.generation
            and snapshot.configuration == self._configuration
            and snapshot.cursor <= state.revision  # else the store is an older copy: its snapshot knows too much
        )

    def _rebuild(self, partition: Partition, state: StoreState) -> WritableIndex:
        index = self._make_index(partition)
        for batch in self._store.live(partition, batch=_BATCH):
            index.apply(batch)
        index.cursor = state.revision
        return index

    # -- following --

    def _catch_up(self, partition: Partition, slot: _Slot, state: StoreState) -> None:
        if slot.index.cursor < state.revision or slot.generation != state.generation:
            with slot.lock.writing():
                if slot.generation != state.generation:
                    self._replace(partition, slot, state)
                start = slot.index.cursor
                slot.unsaved += self._apply_missing(partition, slot.index, state)
                if self._missed_deletions(partition, start):
                    self._replace(partition, slot, self._store.state())
                nbytes = slot.index.nbytes
            self._weigh(partition, slot, nbytes)
            if slot.unsaved >= max(self._snapshot_every, len(slot.index) // 5):
                self._save_later(partition, slot)
            self._evict(keep=partition)
        slot.checked_at = time.monotonic()

    def _replace(self, partition: Partition, slot: _Slot, state: StoreState) -> None:
        slot.index, slot.generation = self._rebuild(partition, state), state.generation
        slot.unsaved = len(slot.index)

    def _missed_deletions(self, partition: Partition, cursor: int) -> bool:
        """Whether the feed no longer tells of a deletion after ``cursor``.

        Asked after the changes were read: tombstones may have been removed just before.
        """
        return self._store.state().compacted > cursor and self._store.compacted(partition) > cursor

    def _apply_missing(self, partition: Partition, index: WritableIndex, state: StoreState) -> int:
        applied = 0
        while index.cursor < state.revision:
            changes = self._store.changes(index.cursor, limit=_BATCH, partition=partition)
            index.apply(changes)
            applied += len(changes)
            last = changes[-1].revision if changes else 0
            index.cursor = last if len(changes) == _BATCH else max(last, state.revision)
        return applied

    # -- saving and evicting --

    def _save_later(self, partition: Partition, slot: _Slot) -> None:
        if self._snapshots is not None and slot.unsaved:
            slot.unsaved = 0
            self._saver.submit(self._save, partition, slot)

    def _save(self, partition: Partition, slot: _Slot) -> None:
        if self._snapshots is None:
            return
        try:
            if self._missed_deletions(partition, slot.index.cursor):
                return  # it may have been an erasure, whose words must not come back to the disk
            with slot.lock.reading():
                cursor = slot.index.cursor
                self._snapshots.save(
                    Snapshot(partition, cursor, slot.generation, self._configuration, slot.index.dump())
                )
            if self._missed_deletions(partition, cursor):  # while it was written
                self._snapshots.drop(partition)
        except (OSError, BackendError):
            # A snapshot only saves time: the store has everything. The next change tries again.
            slot.unsaved += 1
            _LOG.exception("could not write the index snapshot of a partition")

    def _weigh(self, partition: Partition, slot: _Slot, nbytes: int) -> None:
        """Note how much a slot holds now; one that has been let go meanwhile no longer counts."""
        with self._lock:
            if self._slots.get(partition) is slot:
                self._held_bytes += nbytes - slot.nbytes
            slot.nbytes = nbytes

    def _evict(self, *, keep: Partition) -> None:
        while True:
            with self._lock:
                victim = next((each for each in self._slots if each != keep), None)
                if victim is None or self._held_bytes <= self._memory_bytes:
                    return
                slot = self._slots.pop(victim)
                self._held_bytes -= slot.nbytes
            self._save_later(victim, slot)
