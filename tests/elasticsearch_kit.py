"""The keyword leg on a real Elasticsearch beside the same memories in process, and what each test server can do."""

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tests.services import service_url
from vimbank.domain.models import Change, Memory, Partition
from vimbank.domain.text import analyze, analyze_query
from vimbank.indexes.absent import AbsentDense
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.indexes.elasticsearch.sparse import ElasticsearchSparse, sparse_index
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.ports import LexicalQuery

NOW: Final = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HERE: Final = Partition("t", "u", "dialog")

CAPABILITIES: Final[Mapping[str, frozenset[str]]] = {
    # An independent server of the wire API: it ignores ``similarity`` and ``_source.excludes``, scans linearly, and
    # forgets the version of a deletion at once.
    "ELASTICSEARCH_A": frozenset({"require_alias", "knn"}),
    # Elasticsearch 7.0's own server code.
    "ELASTICSEARCH_B": frozenset({"similarity", "shards", "source_excludes", "merges", "thousands", "deletions"}),
}
"""What tests may ask of each server beside what both can do. A test names what it needs; none catches a refusal."""


def servers(*needs: str) -> list[Any]:
    """Parameters for ``pytest.mark.parametrize``: the servers that can do all of this."""
    able = [name for name, can in CAPABILITIES.items() if can >= set(needs)]
    assert able, f"no server can do {needs}"
    return [pytest.param(name, id=name.rsplit("_", 1)[1]) for name in able]


def change(number: int, text: str, *, revision: int | None = None, partition: Partition = HERE, **given: Any) -> Change:
    """The state of memory ``m<number>``, at revision ``number`` unless another is given."""
    revision = number if revision is None else revision
    memory = Memory(
        id=given.pop("id", f"m{number}"), tenant=partition.tenant, user_id=partition.user_id, bank=partition.bank,
        text=text, updated_at=NOW, content_hash=text, revision=revision, number=number,
        **{"kind": "note", "created_at": NOW, **given},
    )  # fmt: skip
    return Change(revision, partition, memory.id, memory, None, number)


def tombstone(number: int, revision: int, *, partition: Partition = HERE) -> Change:
    """The deletion of memory ``m<number>``."""
    return Change(revision, partition, f"m{number}", None, None, number)


def lexical(text: str) -> LexicalQuery:
    """A query as the pipeline makes it."""
    return LexicalQuery(text, analyze_query(text))


class Bookshelf:
    """Memories in Elasticsearch, and in process by the same feed. Everything of one test has one index prefix."""

    def __init__(self, client: ElasticsearchClient, **given: Any) -> None:
        self.client = client
        self.prefix = f"vbtest-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.settings: dict[str, Any] = {"banks": ("dialog", "knowledge"), "store_id": "a" * 32, **given}
        self.remote = self.again()
        k1 = self.settings.get("k1", 1.2)
        self.sparse = ElasticsearchSparse(client, prefix=self.prefix, k1=k1)
        self.partitions: dict[Partition, LocalPartition] = {}

    def again(self, **given: Any) -> ElasticsearchIndex:
        """Another process's index, or one with other settings."""
        return sparse_index(given.pop("client", self.client), prefix=self.prefix, **(self.settings | given))

    def index(self, partition: Partition = HERE) -> LocalPartition:
        """The partition in process, with postings."""
        if partition not in self.partitions:
            postings = PostingsIndex(self.settings.get("k1", 1.2), self.settings.get("b", 0.75))
            self.partitions[partition] = LocalPartition(partition, AbsentDense(4), postings, analyze)
        return self.partitions[partition]

    def put(self, changes: Sequence[Change]) -> None:
        """Apply the changes to both and make them searchable."""
        self.remote.cursor()
        self.remote.apply(changes)
        self.remote.advance(max((each.revision for each in changes), default=0))
        for partition in {each.partition for each in changes}:
            self.index(partition).apply([each for each in changes if each.partition == partition])

    def indexes(self) -> dict[str, Any]:
        """Every index under the prefix, with its mapping."""
        found: dict[str, Any] = self.client.ask("GET", f"/{self.prefix}-*/_mapping")
        return found

    def close(self) -> None:
        """Remove the indexes, end the connections."""
        for index in self.indexes():
            self.client.ask("DELETE", f"/{index}")
        self.sparse.close()
        self.client.close()


@contextmanager
def bookshelf(server: str, **given: Any) -> Iterator[Bookshelf]:
    """An empty one on this server, removed afterwards."""
    made = Bookshelf(ElasticsearchClient.connect([service_url(server)], search_timeout_s=10.0), **given)
    try:
        yield made
    finally:
        made.close()
