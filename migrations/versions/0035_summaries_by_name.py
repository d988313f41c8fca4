"""Indexes of summaries by kernel and operation, which find what another report says of the same."""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

COLUMNS = ("kernel_id", "name_id")


def upgrade() -> None:
    for column in COLUMNS:
        op.create_index(op.f(f"ix_kernel_summaries_{column}_summary_id"), "kernel_summaries", [column, "summary_id"])


def downgrade() -> None:
    for column in COLUMNS:
        op.drop_index(op.f(f"ix_kernel_summaries_{column}_summary_id"), "kernel_summaries")
