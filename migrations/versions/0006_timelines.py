"""Sums over the launches of an upload in the order of their start; those of older uploads come with their analysis."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "timelines",
        sa.Column("upload_id", INT, nullable=False, autoincrement=False),
        sa.Column("first_ns", INT, nullable=True),
        sa.Column("span_ns", REAL, nullable=True),
        sa.Column("busy_ns", REAL, nullable=True),
        sa.Column("last_start_ns", INT, nullable=True),
        sa.Column("last_end_ns", REAL, nullable=True),
        sa.Column("total_ns", REAL, nullable=True),
        sa.Column("overlapped", INT, nullable=True),
        sa.Column("suspected", INT, nullable=True),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.upload_id"], name=op.f("fk_timelines_upload_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("upload_id", name=op.f("pk_timelines")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("timelines")
