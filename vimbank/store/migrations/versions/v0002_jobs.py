"""Jobs and leases, the store's identity, and what the removal of tombstones has to be remembered by."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _create_identity()
    _create_compactions()
    _create_jobs()


def downgrade() -> None:
    op.drop_index("memories_tombstones")
    for table in ("leases", "jobs", "compactions", "store"):
        op.drop_table(table)
    op.drop_column("counter", "compacted")


def _create_identity() -> None:
    table = op.create_table(
        "store",
        sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.String, nullable=False),
        comment="Who this store is, for ever: indexes outside of it remember whose they are.",
    )
    op.bulk_insert(table, [{"one": 1, "id": uuid.uuid4().hex}])


def _create_compactions() -> None:
    op.add_column("counter", sa.Column("compacted", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "compactions",
        *(sa.Column(name, sa.String, nullable=False) for name in ("tenant", "user_id", "bank")),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "user_id", "bank"),
        comment="An index of the partition that stands before this revision has missed a deletion: it must be rebuilt.",
    )
    buried = sa.text("state = 'deleted'")
    op.create_index("memories_tombstones", "memories", ["revision"], sqlite_where=buried, postgresql_where=buried)


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("queue", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("key", sa.String, unique=True),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("total", sa.BigInteger),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("owner", sa.String),
        sa.Column("lease_until", sa.BigInteger),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("result", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("sent_at", sa.BigInteger, nullable=False),
    )
    op.create_index("jobs_state", "jobs", ["state", "number"])
    op.create_index("jobs_name", "jobs", ["name", "number"])
    op.create_table(
        "leases",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
    )
