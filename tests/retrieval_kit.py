"""Real partition indexes over memories in a dict, filled by hand: for tests of the read path alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from vimbank.domain.banks import DEFAULT_POLICIES, BankPolicy
from vimbank.domain.curves import Curve
from vimbank.domain.models import Change, Memory, Partition, Query, Recall, Vector, Vectors
from vimbank.domain.text import analyze
from vimbank.encoders.hashing import HashingEncoder
from vimbank.errors import BackendUnavailable
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.ports import Encoder, Reranker
from vimbank.retrieval.pipeline import Pipeline

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
TENANT = "t"


class Library:
    """Memories, their indexes and a pipeline over them.

    Texts are encoded by ``encoder`` unless a memory is added with a vector. Whatever is named in ``policy`` replaces
    fields of the banks' policies; all banks fade by ``curve``.
    """

    def __init__(
        self,
        encoder: Encoder | None = None,
        *,
        reranker: Reranker | None = None,
        curve: Curve | None = None,
        **policy: Any,
    ) -> None:
        self.encoder = encoder or HashingEncoder(64)
        self.memories: dict[str, Memory] = {}
        self.past: list[tuple[Memory, Vector | None]] = []
        self.asked: list[list[str]] = []
        self.partitions: dict[Partition, LocalPartition] = {}
        self.policies: Mapping[str, BankPolicy] = {
            name: replace(bank, **policy) for name, bank in DEFAULT_POLICIES.items()
        }
        self.pipeline = Pipeline(
            encoder=self.encoder,
            indexes=self,
            store=self,  # type: ignore[arg-type]
            policies=self.policies,
            curves={} if curve is None else dict.fromkeys(self.policies, curve),
            make_partition=self._make_partition,
            reranker=reranker,
        )

    # -- filling --

    def add(self, id: str, text: str, *, bank: str = "dialog", user_id: str = "u", **given: Any) -> Memory:
        """Add one memory; ``vector`` is taken as it is, everything else is a field of the memory."""
        vector = given.pop("vector", None)
        number = len(self.memories)
        given = {"created_at": NOW, "kind": "note", **given}
        memory = Memory(
            id=id, tenant=TENANT, user_id=user_id, bank=bank, text=text, updated_at=given["created_at"],
            content_hash="", revision=number + 1, number=number, **given,
        )  # fmt: skip
        self.memories[id] = memory
        index = self.partitions.setdefault(memory.partition, self._make_partition(memory.partition))
        wanted = self.encoder.encode_documents([text])[0] if vector is None else np.array(vector, dtype=np.float32)
        index.apply([Change(memory.revision, memory.partition, id, memory, wanted)])
        index.cursor = memory.revision
        return memory

    def _make_partition(self, partition: Partition) -> LocalPartition:
        dense = ExactIndex(self.encoder.identity.dimension)
        return LocalPartition(partition, dense, PostingsIndex(), analyze)

    # -- what the pipeline asks for --

    @contextmanager
    def read(self, partition: Partition, *, consistency: str = "strong") -> Iterator[LocalPartition]:
        yield self.partitions.get(partition) or self._make_partition(partition)

    def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        self.asked.append(list(ids))
        return [self.memories[name] for name in ids if name in self.memories and tenant == TENANT]

    def as_of(self, partition: Partition, instant: datetime) -> list[tuple[Memory, Vector | None]]:
        return [pair for pair in self.past if pair[0].partition == partition and pair[0].created_at <= instant]

    # -- searching --

    def recall(
        self, text: str, *, banks: Sequence[str] = ("dialog",), users: Sequence[str] = ("u",), **asked: Any
    ) -> Recall:
        """Search these banks of these users; the rest are fields of the query, or ``now``."""
        now = asked.pop("now", NOW)
        if "vector" in asked:
            asked["vector"] = np.array(asked["vector"], dtype=np.float32)
        query = Query(tenant=TENANT, user_id=users[0], text=text, **asked)
        partitions = [Partition(TENANT, user, bank) for user in users for bank in banks]
        return self.pipeline.search(query, partitions, now=now)

    def search(self, text: str, **asked: Any) -> list[str]:
        """The ids that ``recall`` finds."""
        return [result.memory.id for result in self.recall(text, **asked).results]


class DeadLeg:
    """A leg of an engine that is out of reach."""

    def __init__(self, leg: Any) -> None:
        self._leg = leg

    def search(self, *_: Any, **__: Any) -> Any:
        raise BackendUnavailable("engine", "no answer")

    score = search

    def __getattr__(self, name: str) -> Any:
        return getattr(self._leg, name)


class DeadEncoder(HashingEncoder):
    """An encoder that cannot encode queries."""

    def __init__(self, error: Exception) -> None:
        super().__init__(64)
        self._error = error

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        raise self._error
