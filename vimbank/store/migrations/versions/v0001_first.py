"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _create_counter()
    _create_memories()
    _create_embeddings()
    _create_logs()


def downgrade() -> None:
    for table in ("recalls", "history", "embeddings", "memories", "encoders", "counter"):
        op.drop_table(table)


def _create_counter() -> None:
    sequences = ("revision", "generation", "number", "recall", "folded")
    table = op.create_table(
        "counter",
        sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in sequences),
        sa.Column("encoder", sa.Integer, nullable=False),
        comment="Read and written inside each writing transaction, so all sequences are gap-free, in commit order.",
    )
    op.bulk_insert(table, [{"one": 1, "encoder": 0} | dict.fromkeys(sequences, 0)])


def _create_memories() -> None:
    op.create_table(
        "memories",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.String, nullable=False) for name in ("tenant", "id", "user_id", "bank", "kind")),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("content_hash", sa.String, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("title", sa.Text),
        *(sa.Column(name, sa.String) for name in ("speaker", "agent_id", "session_id")),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("parent_id", sa.String),
        *(sa.Column(name, sa.BigInteger) for name in ("position", "start_offset", "end_offset")),
        sa.Column("event_id", sa.String),
        *(sa.Column(name, sa.BigInteger) for name in ("event_at", "valid_from", "valid_to", "expires_at")),
        sa.Column("importance", sa.Double),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.Column("strength", sa.Double, nullable=False),
        sa.Column("recall_count", sa.BigInteger, nullable=False),
        sa.Column("last_recalled_at", sa.BigInteger),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("superseded_by", sa.String),
        sa.Column("token_count", sa.BigInteger, nullable=False),
        sa.Column("idempotency_key", sa.String),
    )
    _index("memories_id", "tenant", "id", where="state <> 'deleted'", unique=True)
    _index("memories_key", "tenant", "idempotency_key", where="idempotency_key IS NOT NULL", unique=True)
    _index("memories_event", "tenant", "event_id", where="event_id IS NOT NULL", unique=True)
    _index("memories_revision", "revision", unique=True)
    _index("memories_partition_revision", "tenant", "user_id", "bank", "revision")
    _index("memories_partition_state", "tenant", "user_id", "bank", "state", "number")
    _index("memories_content", "content_hash", where="state = 'active'")
    _index("memories_parent", "tenant", "user_id", "bank", "parent_id", where="parent_id IS NOT NULL")
    _index("memories_session", "tenant", "user_id", "bank", "session_id", "position", where="session_id IS NOT NULL")


def _index(name: str, *columns: str, where: str | None = None, unique: bool = False) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, "memories", list(columns), unique=unique, sqlite_where=condition, postgresql_where=condition)


def _create_embeddings() -> None:
    op.create_table(
        "encoders",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("identity", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "embeddings",
        sa.Column("encoder", sa.Integer, nullable=False),
        sa.Column("number", _NUMBER, sa.ForeignKey("memories.number", ondelete="CASCADE"), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("tokens", sa.LargeBinary),
        sa.PrimaryKeyConstraint("number", "encoder"),
        comment="Apart from the memories, so that listings carry no vectors and a second encoder can be filled online.",
    )


def _create_logs() -> None:
    op.create_table(
        "history",
        sa.Column("revision", _NUMBER, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.String, nullable=False) for name in ("tenant", "user_id", "bank", "memory_id")),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("event", sa.String, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("old_text", sa.Text),
        sa.Column("new_text", sa.Text),
        sa.Column("changes", sa.Text, nullable=False),
        sa.Column("before", sa.Text),
        sa.Column("moved", sa.Boolean, nullable=False),
        sa.Column("old_vector", sa.LargeBinary),
        sa.Column("old_encoder", sa.Integer),
    )
    op.create_index("history_memory", "history", ["tenant", "memory_id", "revision"])
    op.create_index("history_partition", "history", ["tenant", "user_id", "bank", "at"])
    op.create_table(
        "recalls",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("memory_id", sa.String, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("signal", sa.String, nullable=False),
    )
