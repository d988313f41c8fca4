"""Kernels that go on under another name, as nightly reports found; reports of before found none."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "kernel_renames",
        sa.Column("rename_id", INT, primary_key=True),
        sa.Column("report_id", INT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        *(sa.Column(name, TEXT, nullable=True) for name in ("device", "branch")),
        *(sa.Column(name, TEXT, nullable=False) for name in ("kernel_before", "kernel")),
        sa.Column("run_id", INT, nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("renamed_at", "because")),
        sa.ForeignKeyConstraint(
            ["report_id"], ["reports.report_id"], name=op.f("fk_kernel_renames_report_id"), ondelete="CASCADE"
        ),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_kernel_renames_report_id"), "kernel_renames", ["report_id"])


def downgrade() -> None:
    op.drop_table("kernel_renames")
