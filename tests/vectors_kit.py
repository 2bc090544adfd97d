"""Vectors in a real Elasticsearch beside the same ones in process: for tests of the dense leg there."""

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from elasticsearch import Elasticsearch

from vimbank.domain.models import Change, Memory, MemoryState, Partition, Vector, Vectors
from vimbank.domain.text import analyze
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.elasticsearch.dense import ElasticsearchDense
from vimbank.indexes.elasticsearch.vectors import ElasticsearchVectors
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.ports import EncoderIdentity

NOW: Final = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HERE: Final = Partition("t", "u", "dialog")
DEFINITION: Final = json.loads((Path(__file__).parents[1] / "es_mappings" / "vectors.v1.json").read_text())


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

    def __init__(self, client: Elasticsearch, prefix: str, dimension: int, **given: Any) -> None:
        self.client = client
        self.dimension = dimension
        self.given = {
            "prefix": prefix,
            "banks": ("dialog", "knowledge"),
            "identity": EncoderIdentity("test", "1", dimension),
            "store_id": "a" * 32,
            "definition": DEFINITION,
            "search_timeout_s": 10.0,
        } | given
        self.remote = ElasticsearchVectors(client, **self.given)
        self.dense = ElasticsearchDense(self.remote.search)
        self.partitions: dict[Partition, LocalPartition] = {}

    def again(self, **given: Any) -> ElasticsearchVectors:
        """Another process's view, or one with other settings."""
        return ElasticsearchVectors(self.client, **(self.given | given))

    def index(self, partition: Partition = HERE) -> LocalPartition:
        """The partition in process."""
        if partition not in self.partitions:
            self.partitions[partition] = LocalPartition(partition, ExactIndex(self.dimension), PostingsIndex(), analyze)
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
def shelf(url: str, dimension: int = 8, **given: Any) -> Iterator[Shelf]:
    """An empty shelf, whose indexes are removed afterwards."""
    prefix = f"vbtest-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with Elasticsearch(url) as client:
        made = Shelf(client, prefix, dimension, **given)
        try:
            yield made
        finally:
            for index in client.indices.get_mapping(index=f"{prefix}-*").body:
                client.indices.delete(index=index)
