"""What the life of a memory needs: its assessment, its ended statements, FSRS's state, and an index of claims."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_ADDED = (
    ("stability_days", sa.Double),
    ("difficulty", sa.Double),
    ("sample", sa.String),
    ("sample_reasons", sa.Text),
    ("ended", sa.Text),
)


def upgrade() -> None:
    for name, kind in _ADDED:
        op.add_column("memories", sa.Column(name, kind))
    op.create_table(
        "claims",
        sa.Column("number", _NUMBER, sa.ForeignKey("memories.number", ondelete="CASCADE"), nullable=False),
        *(sa.Column(name, sa.String, nullable=False) for name in ("tenant", "user_id", "bank", "subject", "attribute")),
        sa.PrimaryKeyConstraint("number", "subject", "attribute"),
        comment="What each memory says something about, so that a write finds those that say otherwise.",
    )
    op.create_index("claims_key", "claims", ["tenant", "user_id", "bank", "subject", "attribute"])


def downgrade() -> None:
    op.drop_table("claims")
    for name, _ in _ADDED:
        op.drop_column("memories", name)
