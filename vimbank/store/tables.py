"""The tables, as the newest migration leaves them. Times are microseconds since the epoch, UTC; JSON is text.

A row whose state is ``deleted`` is a tombstone: the feed needs it, nothing else does. Ids, keys and event ids are
unique among the others only, so a deleted id may be used again and both lives keep their own row.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    text,
)

__all__ = [
    "LIVE",
    "SCHEMA_VERSION",
    "claims",
    "compactions",
    "counter",
    "embeddings",
    "encoders",
    "history",
    "jobs",
    "leases",
    "memories",
    "metadata",
    "recalls",
    "store",
]

SCHEMA_VERSION: Final = "0004"
"""The newest migration; a store at another one is migrated, or refused when this code does not know it."""

metadata: Final = MetaData()

LIVE: Final = text("state <> 'deleted'")
# In words of the partial indexes: an engine uses such an index only where the query repeats its condition literally.

_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite's row id has to be called INTEGER

counter: Final = Table(
    "counter",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),  # always 1: the table has one row
    Column("revision", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),  # last given to a memory
    Column("recall", BigInteger, nullable=False),  # last given to a line of the access log
    Column("folded", BigInteger, nullable=False),  # last line of the access log that was folded in
    Column("encoder", Integer, nullable=False),  # the current encoder, 0: not named yet
    Column("compacted", BigInteger, nullable=False, server_default="0"),  # newest tombstone that was removed
    comment="Read and written inside each writing transaction, so all sequences are gap-free, in commit order.",
)

encoders: Final = Table(
    "encoders",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("identity", Text, nullable=False, unique=True),
)

memories: Final = Table(
    "memories",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("tenant", String, nullable=False),
    Column("id", String, nullable=False),
    Column("user_id", String, nullable=False),
    Column("bank", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("title", Text),
    Column("speaker", String),
    Column("agent_id", String),
    Column("session_id", String),
    Column("metadata", Text, nullable=False),
    Column("parent_id", String),
    Column("position", BigInteger),
    Column("start_offset", BigInteger),
    Column("end_offset", BigInteger),
    Column("event_id", String),
    Column("event_at", BigInteger),
    Column("valid_from", BigInteger),
    Column("valid_to", BigInteger),
    Column("expires_at", BigInteger),
    Column("importance", Double),
    Column("pinned", Boolean, nullable=False),
    Column("strength", Double, nullable=False),
    Column("recall_count", BigInteger, nullable=False),
    Column("last_recalled_at", BigInteger),
    Column("state", String, nullable=False),
    Column("superseded_by", String),
    Column("token_count", BigInteger, nullable=False),
    Column("stability_days", Double),
    Column("difficulty", Double),
    Column("sample", String),
    Column("sample_reasons", Text),  # words, a blank between
    Column("ended", Text),  # JSON list; NULL: nothing has
    Column("information", Double),  # in [0, 1); NULL: written before it was known
    Column("idempotency_key", String),
)


def _index(name: str, *columns: str, where: str | None = None, unique: bool = False) -> None:
    condition = None if where is None else text(where)
    Index(
        name,
        *(memories.c[column] for column in columns),
        unique=unique,
        sqlite_where=condition,
        postgresql_where=condition,
    )


_index("memories_id", "tenant", "id", where=LIVE.text, unique=True)
_index("memories_key", "tenant", "idempotency_key", where="idempotency_key IS NOT NULL", unique=True)
_index("memories_event", "tenant", "event_id", where="event_id IS NOT NULL", unique=True)
_index("memories_revision", "revision", unique=True)
_index("memories_tombstones", "revision", where="state = 'deleted'")
_index("memories_partition_revision", "tenant", "user_id", "bank", "revision")
_index("memories_partition_state", "tenant", "user_id", "bank", "state", "number")
_index("memories_content", "content_hash", where="state = 'active'")
_index("memories_parent", "tenant", "user_id", "bank", "parent_id", where="parent_id IS NOT NULL")
_index("memories_session", "tenant", "user_id", "bank", "session_id", "position", where="session_id IS NOT NULL")

embeddings: Final = Table(
    "embeddings",
    metadata,
    Column("encoder", Integer, nullable=False),
    Column("number", _NUMBER, ForeignKey("memories.number", ondelete="CASCADE"), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("tokens", LargeBinary),
    PrimaryKeyConstraint("number", "encoder"),
    comment="Apart from the memories, so that listings carry no vectors and a second encoder can be filled online.",
)

claims: Final = Table(
    "claims",
    metadata,
    Column("number", _NUMBER, ForeignKey("memories.number", ondelete="CASCADE"), nullable=False),
    Column("tenant", String, nullable=False),
    Column("user_id", String, nullable=False),
    Column("bank", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("attribute", String, nullable=False),
    PrimaryKeyConstraint("number", "subject", "attribute"),
    comment="What each memory says something about, so that a write finds those that say otherwise.",
)
Index("claims_key", claims.c.tenant, claims.c.user_id, claims.c.bank, claims.c.subject, claims.c.attribute)

history: Final = Table(
    "history",
    metadata,
    Column("revision", _NUMBER, primary_key=True, autoincrement=False),
    Column("tenant", String, nullable=False),
    Column("user_id", String, nullable=False),
    Column("bank", String, nullable=False),
    Column("memory_id", String, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("event", String, nullable=False),
    Column("actor", String, nullable=False),
    Column("old_text", Text),
    Column("new_text", Text),
    Column("changes", Text, nullable=False),
    Column("before", Text),  # the memory before an update or deletion, without its text; before a move, its fields
    Column("moved", Boolean, nullable=False),  # whether the embedding changed or went with it
    Column("old_vector", LargeBinary),
    Column("old_encoder", Integer),
)
Index("history_memory", history.c.tenant, history.c.memory_id, history.c.revision)
Index("history_partition", history.c.tenant, history.c.user_id, history.c.bank, history.c.at)

recalls: Final = Table(
    "recalls",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("tenant", String, nullable=False),
    Column("memory_id", String, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("signal", String, nullable=False),
)

store: Final = Table(
    "store",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),  # always 1: the table has one row
    Column("id", String, nullable=False),
    comment="Who this store is, for ever: indexes outside of it remember whose they are.",
)

compactions: Final = Table(
    "compactions",
    metadata,
    Column("tenant", String, nullable=False),
    Column("user_id", String, nullable=False),
    Column("bank", String, nullable=False),
    Column("revision", BigInteger, nullable=False),  # newest tombstone that was removed from the partition
    PrimaryKeyConstraint("tenant", "user_id", "bank"),
    comment="An index of the partition that stands before this revision has missed a deletion: it must be rebuilt.",
)

jobs: Final = Table(
    "jobs",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("id", String, nullable=False, unique=True),
    Column("name", String, nullable=False),
    Column("params", Text, nullable=False),
    Column("queue", String, nullable=False),
    Column("state", String, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("key", String, unique=True),
    Column("done", BigInteger, nullable=False),
    Column("total", BigInteger),
    Column("message", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("owner", String),
    Column("lease_until", BigInteger),
    Column("cancel_requested", Boolean, nullable=False),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    Column("result", Text),
    Column("error", Text),
    Column("sent_at", BigInteger, nullable=False),  # when it was last given to a queue
)
Index("jobs_state", jobs.c.state, jobs.c.number)
Index("jobs_name", jobs.c.name, jobs.c.number)

leases: Final = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("owner", String, nullable=False),
    Column("until", BigInteger, nullable=False),
)
