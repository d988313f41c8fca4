"""The metrics that a rule of Nsight Compute names; that of older files stays null."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("rules", sa.Column("focus_metrics", TEXT, nullable=True))


def downgrade() -> None:
    op.drop_column("rules", "focus_metrics")
