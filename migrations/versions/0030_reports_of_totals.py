"""The report of nsys stats that a row of totals is from; that of older files stays null."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("kernel_summaries", sa.Column("report_id", INT, nullable=True))


def downgrade() -> None:
    op.drop_column("kernel_summaries", "report_id")
