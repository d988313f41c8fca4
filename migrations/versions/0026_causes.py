"""Causes of lost time of each launch; their words are kept once."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
WORDS = ("cause", "title", "kind", "first_step", "evidence")


def upgrade() -> None:
    op.create_table(
        "cause_names",
        sa.Column("cause_id", INT, nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in WORDS),
        sa.PrimaryKeyConstraint("cause_id", name=op.f("pk_cause_names")),
        sa.UniqueConstraint(*WORDS, name=op.f("uq_cause_names_cause_title_kind_first_step_evidence")),
        sqlite_strict=True,
    )
    keys = ("run_id", "launch_id", "kernel_id", "cause_id", "version_id")
    op.create_table(
        "causes",
        *(sa.Column(name, INT, nullable=False, autoincrement=False) for name in keys),
        sa.Column("rank", INT, nullable=False),
        sa.Column("saving_ns", REAL, nullable=True),
        sa.Column("saving_fraction", REAL, nullable=False),
        *(sa.Column(name, REAL, nullable=True) for name in ("low", "high")),
        sa.Column("flags", INT, nullable=False),
        sa.Column("reason_id", INT, nullable=True, autoincrement=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_causes_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["cause_id"], ["cause_names.cause_id"], name=op.f("fk_causes_cause_id")),
        sa.ForeignKeyConstraint(["version_id"], ["texts.text_id"], name=op.f("fk_causes_version_id")),
        sa.ForeignKeyConstraint(["reason_id"], ["texts.text_id"], name=op.f("fk_causes_reason_id")),
        sa.PrimaryKeyConstraint(*keys, name=op.f("pk_causes")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("causes")
    op.drop_table("cause_names")
