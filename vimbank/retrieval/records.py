"""Records that searches return, kept in memory for as long as their revision stands."""

from collections import OrderedDict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from threading import Lock

from vimbank.domain.models import Memory
from vimbank.ports import MemoryStore

__all__ = ["RecordCache"]


class RecordCache:
    """Loads records by id and revision, the least recently used leaving first. Thread-safe.

    The index names the revision of every row, and every change of a record makes a new one: what is kept under a
    revision can never be stale, whichever process wrote.

    Args:    store: the records.  size: how many are kept, >= 0.
    """

    def __init__(self, store: MemoryStore, size: int) -> None:
        self._store = store
        self._size = size
        self._lock = Lock()
        self._records: OrderedDict[tuple[str, str], Memory] = OrderedDict()

    def load(self, tenant: str, revisions: Mapping[str, int]) -> dict[str, Memory]:
        """The memories by id, at these revisions or later; those that are gone from the store are left out."""
        found = self._known(tenant, revisions)
        missing = [name for name in revisions if name not in found]
        if missing:
            fresh = self._store.get(tenant, missing)
            self._keep(tenant, fresh)
            found |= {memory.id: memory for memory in fresh}
        return found

    def _known(self, tenant: str, revisions: Mapping[str, int]) -> dict[str, Memory]:
        found = {}
        with self._lock:
            for name, revision in revisions.items():
                memory = self._records.get((tenant, name))
                if memory is not None and memory.revision == revision:
                    self._records.move_to_end((tenant, name))
                    found[name] = memory
        return {name: _own(memory) for name, memory in found.items()}

    def _keep(self, tenant: str, memories: list[Memory]) -> None:
        if not self._size:
            return
        with self._lock:
            for memory in memories:
                self._records[tenant, memory.id] = _own(memory)
                self._records.move_to_end((tenant, memory.id))
            while len(self._records) > self._size:
                self._records.popitem(last=False)


def _own(memory: Memory) -> Memory:
    """The memory with metadata of its own: the one part of it that a caller could change."""
    return replace(memory, metadata=deepcopy(memory.metadata)) if memory.metadata else memory
