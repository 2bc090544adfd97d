"""The legs that settings put into Elasticsearch: client, indexes, followers, searches."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from vimbank.domain.models import Change
from vimbank.errors import ConfigError
from vimbank.feed.by_encoder import EncoderBound
from vimbank.feed.followed import FollowedDense, FollowedSparse
from vimbank.feed.remote import RemoteFollower
from vimbank.indexes.elasticsearch.client import ElasticsearchClient
from vimbank.indexes.elasticsearch.dense import ElasticsearchDense
from vimbank.indexes.elasticsearch.sparse import ElasticsearchSparse, sparse_index
from vimbank.indexes.elasticsearch.vectors import drop_former_vectors, vector_document, vectors_index
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex
from vimbank.ports import DenseSearch, EncoderIdentity, MemoryStore, SparseSearch
from vimbank.retrieval.legs import LocalSparse, SubstitutedSparse
from vimbank.settings import ElasticsearchSettings, Settings
from vimbank.store.sql import SqlStore
from vimbank.wiring import bank_policies, store_url

__all__ = [
    "Cluster",
    "ConfiguredIndex",
    "ElasticsearchLegs",
    "connect",
    "open_cluster",
    "open_legs",
    "open_sparse_index",
    "open_vectors_index",
]


@dataclass(frozen=True, slots=True)
class ElasticsearchLegs:
    """What a process needs to search in Elasticsearch.

    ``sparse``, ``dense``: None where that leg is in process. ``close`` ends what is not the followers'.
    """

    followers: Sequence[RemoteFollower]
    sparse: SparseSearch | None
    dense: Callable[[EncoderIdentity], DenseSearch] | None
    close: Callable[[], None]


def connect(settings: ElasticsearchSettings, *, search_timeout_s: float | None = None) -> ElasticsearchClient:
    """The cluster's client; nothing is asked yet. Raises ConfigError: no address, or contradicting credentials.

    Args:    search_timeout_s: in place of that of the settings.
    """
    if settings.url is None:
        raise ConfigError("an index in Elasticsearch needs VIMBANK_ELASTICSEARCH__URL")
    return ElasticsearchClient.connect(
        [url.strip() for url in settings.url.split(",") if url.strip()],
        api_key=settings.api_key.get_secret_value() if settings.api_key is not None else None,
        username=settings.username,
        password=settings.password.get_secret_value() if settings.password is not None else None,
        ca_certs=settings.ca_certs,
        verify_certs=settings.verify_certs,
        search_timeout_s=search_timeout_s or settings.search_timeout_s,
        request_timeout_s=settings.request_timeout_s,
    )


def open_sparse_index(
    settings: Settings, client: ElasticsearchClient, *, banks: Sequence[str], store_id: str
) -> ElasticsearchIndex:
    """The index of terms."""
    return sparse_index(
        client,
        banks=banks,
        prefix=settings.elasticsearch.prefix,
        store_id=store_id,
        k1=settings.index.k1,
        b=settings.index.b,
        batch_size=settings.elasticsearch.batch_size,
    )


def open_vectors_index(
    settings: Settings,
    client: ElasticsearchClient,
    *,
    banks: Sequence[str],
    store_id: str,
    identity: EncoderIdentity,
) -> ElasticsearchIndex:
    """The index of one encoder's vectors. Raises ConfigError where they are too long for Elasticsearch."""
    return vectors_index(
        client,
        banks=banks,
        prefix=settings.elasticsearch.prefix,
        store_id=store_id,
        identity=identity,
        batch_size=settings.elasticsearch.batch_size,
    )


def open_legs(
    settings: Settings,
    store: MemoryStore,
    *,
    banks: Sequence[str],
    store_id: str,
    encoder: Callable[[], EncoderIdentity],
) -> ElasticsearchLegs:
    """The legs that the settings put into Elasticsearch, each with its follower. Asks nothing of the cluster yet.

    So a cluster that is down, refuses the credentials, or holds another store's indexes (which are never written to)
    stops no server: the leg is out of service, readiness says why, and searches say that they are degraded.

    Args:    encoder: tells the store's encoder, which a reindex may change.
    Raises:  ConfigError: no address, or settings that contradict each other.
    """
    client = connect(settings.elasticsearch)
    # A search does not wait for what a follower asks, but until its own patience ends; a cursor may take longer.
    patient = connect(settings.elasticsearch, search_timeout_s=settings.elasticsearch.catch_up_timeout_s)
    opened = _Opened(settings, store, client, patient, sorted(banks), store_id, encoder)
    followers: list[RemoteFollower] = []
    closing: list[Callable[[], None]] = []
    sparse: SparseSearch | None = None
    dense: Callable[[EncoderIdentity], DenseSearch] | None = None
    if settings.index.sparse == "elasticsearch":
        follower, sparse, close_sparse = opened.sparse()
        followers.append(follower)
        closing.append(close_sparse)
    if settings.index.dense == "elasticsearch":
        follower, dense = opened.dense()
        followers.append(follower)

    def close() -> None:
        for each in (*closing, client.close, patient.close):
            each()

    return ElasticsearchLegs(followers, sparse, dense, close)


@dataclass(frozen=True, slots=True)
class _Opened:
    settings: Settings
    store: MemoryStore
    client: ElasticsearchClient
    patient: ElasticsearchClient
    banks: Sequence[str]
    store_id: str
    encoder: Callable[[], EncoderIdentity]

    def sparse(self) -> tuple[RemoteFollower, SparseSearch, Callable[[], None]]:
        index = open_sparse_index(self.settings, self.patient, banks=self.banks, store_id=self.store_id)
        follower = self._follower(index, lambda: index, expected=lambda change: change.partition.bank in self.banks)
        engine = ElasticsearchSparse(self.client, prefix=self.settings.elasticsearch.prefix, k1=self.settings.index.k1)
        search: SparseSearch = FollowedSparse(follower, engine)
        if self.settings.elasticsearch.sparse_fallback:
            search = SubstitutedSparse(search, LocalSparse())
        return follower, search, engine.close

    def dense(self) -> tuple[RemoteFollower, Callable[[EncoderIdentity], DenseSearch]]:
        made: dict[EncoderIdentity, ElasticsearchIndex] = {}

        def make(identity: EncoderIdentity) -> ElasticsearchIndex:
            made[identity] = open_vectors_index(
                self.settings, self.patient, banks=self.banks, store_id=self.store_id, identity=identity
            )
            return made[identity]

        make(self.encoder())  # vectors that cannot be kept there are a mistake in the settings: say so at once
        prefix = self.settings.elasticsearch.prefix
        follower = self._follower(
            EncoderBound("dense", self.encoder, make),
            lambda: made[self.encoder()],
            expected=lambda change: change.partition.bank in self.banks and vector_document(change) is not None,
            on_filled=lambda: drop_former_vectors(
                self.patient, prefix=prefix, store_id=self.store_id, identity=self.encoder()
            ),
        )

        def search(identity: EncoderIdentity) -> DenseSearch:
            follower.forget()  # what is known is of the former encoder's vectors
            return FollowedDense(follower, ElasticsearchDense(self.client, prefix=prefix, identity=identity))

        return follower, search

    def _follower(
        self,
        index: ElasticsearchIndex | EncoderBound,
        current: Callable[[], ElasticsearchIndex],
        *,
        expected: Callable[[Change], bool],
        on_filled: Callable[[], object] = lambda: None,
    ) -> RemoteFollower:
        elasticsearch = self.settings.elasticsearch
        return RemoteFollower(
            self.store,
            index,
            batch_size=elasticsearch.batch_size,
            search_patience_s=elasticsearch.search_timeout_s,
            catch_up_timeout_s=elasticsearch.catch_up_timeout_s,
            expected=expected,
            count=lambda: sum(each.documents for each in current().status().values()),
            on_filled=on_filled,
        )


@dataclass(frozen=True, slots=True)
class ConfiguredIndex:
    """An index in Elasticsearch as the settings have it; ``expected``: whether it has to hold a memory."""

    index: ElasticsearchIndex
    expected: Callable[[Change], bool]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What an operator works on: the cluster, the store, and the indexes that the settings put there."""

    url: str
    client: ElasticsearchClient
    store: SqlStore
    indexes: Sequence[ConfiguredIndex]


@contextmanager
def open_cluster(settings: Settings) -> Iterator[Cluster]:
    """For commands on the indexes themselves; no encoder is loaded. A store without an encoder has no vectors.

    Raises:  ConfigError: the settings put no index into Elasticsearch, or contradict each other.
    """
    if "elasticsearch" not in (settings.index.sparse, settings.index.dense):
        raise ConfigError(
            "no index is in Elasticsearch: VIMBANK_INDEX__SPARSE=elasticsearch or VIMBANK_INDEX__DENSE=elasticsearch "
            "puts one there"
        )
    with (
        closing(connect(settings.elasticsearch, search_timeout_s=settings.elasticsearch.request_timeout_s)) as client,
        closing(SqlStore.open(store_url(settings), busy_timeout_s=settings.store.busy_timeout_s)) as store,
    ):
        yield Cluster(str(settings.elasticsearch.url), client, store, list(_configured(settings, client, store)))


def _configured(settings: Settings, client: ElasticsearchClient, store: SqlStore) -> Iterator[ConfiguredIndex]:
    banks = sorted(bank_policies(settings.banks))
    if settings.index.sparse == "elasticsearch":
        sparse = open_sparse_index(settings, client, banks=banks, store_id=store.store_id())
        yield ConfiguredIndex(sparse, lambda change: change.partition.bank in banks)
    identity = store.encoder_identity()
    if settings.index.dense == "elasticsearch" and identity is not None:
        dense = open_vectors_index(settings, client, banks=banks, store_id=store.store_id(), identity=identity)
        yield ConfiguredIndex(
            dense, lambda change: change.partition.bank in banks and vector_document(change) is not None
        )
