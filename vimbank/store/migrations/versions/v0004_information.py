"""How much a memory tells. What was written before has none until the job ``assess`` looks at it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("memories", sa.Column("information", sa.Double))


def downgrade() -> None:
    op.drop_column("memories", "information")
