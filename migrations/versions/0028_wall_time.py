"""The wall time of traces by what went on; that of older runs comes with their next analysis."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "wall_time",
        sa.Column("run_id", INT, nullable=False, autoincrement=False),
        sa.Column("item", INT, nullable=False, autoincrement=False),
        sa.Column("part", TEXT, nullable=False),
        sa.Column("upload_id", INT, nullable=False),
        sa.Column("process_id", INT, nullable=True),
        sa.Column("device_index", INT, nullable=True),
        sa.Column("wall_ns", INT, nullable=False),
        sa.Column("category", TEXT, nullable=True),
        sa.Column("time_ns", INT, nullable=True),
        sa.Column("hidden_ns", INT, nullable=True),
        sa.Column("events", INT, nullable=True),
        sa.Column("name_id", INT, nullable=True, autoincrement=False),
        sa.Column("iteration", INT, nullable=True),
        sa.Column("start_ns", INT, nullable=True),
        sa.Column("message", TEXT, nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_wall_time_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["name_id"], ["texts.text_id"], name=op.f("fk_wall_time_name_id")),
        sa.PrimaryKeyConstraint("run_id", "item", name=op.f("pk_wall_time")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("wall_time")
