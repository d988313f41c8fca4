"""What else differs between the runs before a finding and those since; findings of before have none."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "finding_differences",
        sa.Column("finding_id", INT, nullable=False, autoincrement=False),
        sa.Column("item", INT, nullable=False, autoincrement=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("fact", "part", "title", "unit")),
        sa.Column("kernel", TEXT, nullable=True),
        *(sa.Column(name, REAL, nullable=True) for name in ("before", "after")),
        *(sa.Column(name, TEXT, nullable=True) for name in ("before_text", "after_text")),
        sa.Column("change", REAL, nullable=True),
        sa.ForeignKeyConstraint(
            ["finding_id"], ["findings.finding_id"], name=op.f("fk_finding_differences_finding_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("finding_id", "item", name=op.f("pk_finding_differences")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("finding_differences")
