"""Records that searches return, kept in memory for as long as their revision stands."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, NoReturn

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
            fresh = [_read_only(memory) for memory in self._store.get(tenant, missing)]
            self._keep(tenant, fresh)
            found |= {memory.id: memory for memory in fresh}
        return found

    def clear(self) -> None:
        """Keep nothing of what was read so far."""
        with self._lock:
            self._records.clear()

    def _known(self, tenant: str, revisions: Mapping[str, int]) -> dict[str, Memory]:
        found = {}
        with self._lock:
            for name, revision in revisions.items():
                memory = self._records.get((tenant, name))
                if memory is not None and memory.revision == revision:
                    self._records.move_to_end((tenant, name))
                    found[name] = memory
        return found

    def _keep(self, tenant: str, memories: list[Memory]) -> None:
        if not self._size:
            return
        with self._lock:
            for memory in memories:
                self._records[tenant, memory.id] = memory
                self._records.move_to_end((tenant, memory.id))
            while len(self._records) > self._size:
                self._records.popitem(last=False)


def _read_only(memory: Memory) -> Memory:
    """The memory with metadata that nobody can change: it is shared by all who are given the record."""
    return replace(memory, metadata=_frozen(memory.metadata)) if memory.metadata else memory


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _FrozenDict((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return _FrozenList(_frozen(item) for item in value)
    return value


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("a returned record cannot be changed; update the memory instead, or copy its metadata")


class _FrozenDict(dict[str, Any]):
    """A dict to all who read or serialise it."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class _FrozenList(list[Any]):
    """A list to all who read or serialise it."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)
