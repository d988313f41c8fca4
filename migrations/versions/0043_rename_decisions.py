"""What people say of two names of kernels: that they are one kernel, or two. Stores of before have no such words."""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "rename_decisions",
        sa.Column("decision_id", INT, primary_key=True),
        *(
            sa.Column(name, TEXT, nullable=False)
            for name in ("project", "kernel_before", "kernel", "decision", "said_by", "because", "said_at")
        ),
        sa.CheckConstraint("decision IN ('linked', 'refused', 'automatic')", name=op.f("ck_rename_decisions_decision")),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("rename_decisions")
