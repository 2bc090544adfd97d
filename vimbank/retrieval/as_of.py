"""Searching the past: the memories as they stood at an instant, in an index made for one search (case 106)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol, TypeAlias

import numpy as np

from vimbank.domain.memory_text import embedding_text
from vimbank.domain.models import Change, Memory, Partition, Vector
from vimbank.ports import Encoder, MemoryStore, PartitionIndex

__all__ = ["MakePartition", "PastView", "TransientPartition"]


class TransientPartition(PartitionIndex, Protocol):
    """A partition index that can be filled."""

    def apply(self, changes: Sequence[Change]) -> None:
        """Take these memories in."""
        ...


MakePartition: TypeAlias = Callable[[Partition], TransientPartition]
"""Makes an empty index of a partition, which nobody else sees."""


class PastView:
    """What a search reads instead of the live indexes and the store: the memories as of ``instant``.

    Vectors that are not kept, because the text has changed since, are encoded again. Raises what the encoder
    raises: a past that is only half searchable would be answered wrongly.
    """

    def __init__(self, store: MemoryStore, encoder: Encoder, make_partition: MakePartition, instant: datetime) -> None:
        self._store = store
        self._encoder = encoder
        self._make_partition = make_partition
        self._instant = instant
        self._memories: dict[str, Memory] = {}

    @contextmanager
    def read(self, partition: Partition) -> Iterator[PartitionIndex]:
        """The partition's index as of the instant."""
        index = self._make_partition(partition)
        past = self._store.as_of(partition, self._instant)
        self._memories |= {memory.id: memory for memory, _ in past}
        index.apply(
            [
                Change(memory.revision, partition, memory.id, memory, vector, memory.number)
                for (memory, _), vector in zip(past, self._vectors(past), strict=True)
            ]
        )
        yield index

    def load(self, revisions: Mapping[str, int]) -> Mapping[str, Memory]:
        """The memories with these ids, as they stood, of the partitions read so far."""
        return {name: self._memories[name] for name in revisions if name in self._memories}

    def _vectors(self, past: Sequence[tuple[Memory, Vector | None]]) -> list[Vector]:
        missing = [embedding_text(memory) for memory, vector in past if vector is None]
        fresh = iter(self._encoder.encode_documents(missing)) if missing else iter(())
        return [np.asarray(next(fresh)) if vector is None else vector for _, vector in past]
