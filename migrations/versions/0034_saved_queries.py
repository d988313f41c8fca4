"""Queries that people save under a name."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "saved_queries",
        sa.Column("query_id", INT, nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("name", "sql", "params", "chart")),
        sa.Column("author", TEXT),
        sa.Column("saved_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("query_id", name=op.f("pk_saved_queries")),
        sa.UniqueConstraint("name", name=op.f("uq_saved_queries_name")),
        sa.CheckConstraint("length(name) > 0", name=op.f("ck_saved_queries_named")),
        sqlite_autoincrement=True,
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("saved_queries")
