"""Vectors in a real Elasticsearch beside the same ones in process: for tests of the dense leg there."""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from vimbank.domain.models import Change, Memory, MemoryState, Partition, Vector, Vectors
from vimbank.domain.text import analyze
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.indexes.elasticsearch.dense import ElasticsearchDense
from vimbank.indexes.elasticsearch.vectors import vectors_index
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.ports import EncoderIdentity

NOW: Final = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HERE: Final = Partition("t", "u", "dialog")


def units(count: int, dimension: int, seed: int = 0) -> Vectors:
    """(count, dimension) random unit rows."""
    rows: Vectors = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def change(
    number: int, vector: Vector | None, *, partition: Partition = HERE, revision: int | None = None, **given: Any
) -> Change:
    """The state of memory ``m<number>``, at revision ``number`` unless another is given."""
    revision = number if revision is None else revision
    given = {"id": f"m{number:04}", "text": "words", **given}
    memory = Memory(
        tenant=partition.tenant, user_id=partition.user_id, bank=partition.bank, kind="note", created_at=NOW,
        updated_at=NOW, content_hash=f"{revision}", revision=revision, number=number, **given,
    )  # fmt: skip
    return Change(revision, partition, memory.id, memory, vector, number)


def tombstone(number: int, revision: int, *, partition: Partition = HERE) -> Change:
    """The deletion of memory ``m<number>``."""
    return Change(revision, partition, f"m{number:04}", None, None, number)


def archived(number: int, vector: Vector, revision: int) -> Change:
    """A memory that is kept but not searched any more."""
    return change(number, vector, revision=revision, state=MemoryState.ARCHIVED)


class Shelf:
    """One encoder's vectors in Elasticsearch, and in process under the same numbers."""

    def __init__(self, client: ElasticsearchClient, prefix: str, dimension: int, banks: Sequence[str]) -> None:
        self.client = client
        self.banks = banks
        self.prefix = prefix
        self.store_id = "a" * 32
        self.identity = EncoderIdentity("test", "1", dimension)
        self.remote = self.again()
        self.dense = self.search()
        self.partitions: dict[Partition, LocalPartition] = {}

    def again(self, **given: Any) -> ElasticsearchIndex:
        """Another process's index, or one with other settings."""
        settings: dict[str, Any] = {
            "banks": self.banks, "prefix": self.prefix, "store_id": self.store_id,
            "identity": self.identity,
        }  # fmt: skip
        return vectors_index(given.pop("client", self.client), **(settings | given))

    def search(self, **given: Any) -> ElasticsearchDense:
        """A search on this encoder's vectors."""
        return ElasticsearchDense(given.pop("client", self.client), prefix=self.prefix, identity=self.identity, **given)

    def indexes(self) -> dict[str, Any]:
        """Every index under the prefix, with its mapping."""
        found: dict[str, Any] = self.client.ask("GET", f"/{self.prefix}-*/_mapping")
        return found

    def index(self, partition: Partition = HERE) -> LocalPartition:
        """The partition in process."""
        if partition not in self.partitions:
            dense = ExactIndex(self.identity.dimension)
            self.partitions[partition] = LocalPartition(partition, dense, PostingsIndex(), analyze)
        return self.partitions[partition]

    def put(self, changes: Sequence[Change], *, locally: bool = True) -> None:
        """Apply the changes to both and make them searchable."""
        self.remote.cursor()
        self.remote.apply(changes)
        self.remote.advance(max((each.revision for each in changes), default=0))
        for each in changes if locally else ():
            self.index(each.partition).apply([each])

    def fill(self, vectors: Vectors, partition: Partition = HERE) -> None:
        """Put memories m0001 … with these vectors."""
        self.put([change(at + 1, vector, partition=partition) for at, vector in enumerate(vectors)])


@contextmanager
def shelf(url: str, dimension: int = 8, *, banks: Sequence[str] = ("dialog", "knowledge")) -> Iterator[Shelf]:
    """An empty shelf, whose indexes are removed afterwards."""
    client = ElasticsearchClient.connect([url], search_timeout_s=10.0)
    made = Shelf(client, f"vbtest-{os.getpid()}-{uuid.uuid4().hex[:8]}", dimension, banks)
    try:
        yield made
    finally:
        for index in made.indexes():
            client.ask("DELETE", f"/{index}")
        client.close()
