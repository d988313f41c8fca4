"""Months whose rows are in Parquet files, and what history needs of them."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("uploads", sa.Column("archive_id", INT, nullable=True))
    op.create_table(
        "archives",
        sa.Column("archive_id", INT, nullable=False),
        sa.Column("month", TEXT, nullable=False),
        sa.Column("part", INT, nullable=False),
        sa.Column("place", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("made_at", TEXT, nullable=False),
        sa.Column("row_count", INT, nullable=False),
        sa.Column("size_bytes", INT, nullable=False),
        sa.PrimaryKeyConstraint("archive_id", name=op.f("pk_archives")),
        sa.UniqueConstraint("month", "part", name=op.f("uq_archives_month_part")),
        sa.CheckConstraint("state IN ('dropping', 'archived', 'restoring')", name=op.f("ck_archives_state")),
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )
    op.create_table(
        "archived_values",
        *(
            sa.Column(name, INT, nullable=False, autoincrement=False)
            for name in ("run_id", "kernel_id", "criterion_id")
        ),
        *(sa.Column(name, REAL) for name in ("value", "low", "high")),
        sa.Column("reason_id", INT),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.run_id"], name=op.f("fk_archived_values_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "kernel_id", "criterion_id", name=op.f("pk_archived_values")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("archived_values")
    op.drop_table("archives")
    op.drop_column("uploads", "archive_id")
