"""Predictions: predicted and achieved speedups."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# A column ending in ! is never null.
RUNS = ("run_before", "run_after")
KERNELS = ("kernel_before_id", "kernel_after_id")
TEXTS = "device_id source_id! kind_id! criterion_id! matched_by_id! same_work_id reason_id analysis_version_id"
REALS = "predicted! achieved! value_before value_after before_ns! after_ns!"


def upgrade() -> None:
    texts = TEXTS.split()
    op.create_table(
        "predictions",
        sa.Column("prediction_id", INT, nullable=False),
        *(sa.Column(name, INT, nullable=False) for name in (*RUNS, *KERNELS)),
        *(sa.Column(name.rstrip("!"), INT, nullable=not name.endswith("!")) for name in texts),
        *(sa.Column(name.rstrip("!"), REAL, nullable=not name.endswith("!")) for name in REALS.split()),
        sa.Column("scored", INT, nullable=False),
        sa.Column("made_at", TEXT, nullable=False),
        *(
            sa.ForeignKeyConstraint([name], ["runs.run_id"], name=op.f(f"fk_predictions_{name}"), ondelete="CASCADE")
            for name in RUNS
        ),
        *(
            sa.ForeignKeyConstraint([name], ["kernels.kernel_id"], name=op.f(f"fk_predictions_{name}"))
            for name in KERNELS
        ),
        *(
            sa.ForeignKeyConstraint([name], ["texts.text_id"], name=op.f(f"fk_predictions_{name}"))
            for name in (name.rstrip("!") for name in texts)
        ),
        sa.PrimaryKeyConstraint("prediction_id", name=op.f("pk_predictions")),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
    for name in RUNS:
        op.create_index(op.f(f"ix_predictions_{name}"), "predictions", [name])


def downgrade() -> None:
    op.drop_table("predictions")
