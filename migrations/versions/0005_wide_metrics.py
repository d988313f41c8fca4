"""Columnar storage for metrics of pages with one column per metric."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
STRICT = {"sqlite_strict": True}
CLUSTERED = {"sqlite_strict": True, "sqlite_with_rowid": False}


def upgrade() -> None:
    op.create_table(
        "wide_layouts",
        sa.Column("layout_id", INT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("layout_id", name=op.f("pk_wide_layouts")),
        sa.UniqueConstraint("digest", name=op.f("uq_wide_layouts_digest")),
        **STRICT,
    )
    op.create_table(
        "wide_columns",
        sa.Column("layout_id", INT, nullable=False, autoincrement=False),
        sa.Column("metric_id", INT, nullable=False, autoincrement=False),
        sa.Column("place", INT, nullable=False, autoincrement=False),
        sa.Column("unit_id", INT, nullable=False),
        sa.Column("factor", REAL, nullable=False),
        sa.PrimaryKeyConstraint("layout_id", "metric_id", "place", name=op.f("pk_wide_columns")),
        **CLUSTERED,
    )
    op.create_table(
        "wide_blocks",
        sa.Column("first_launch", INT, nullable=False, autoincrement=False),
        sa.Column("launches", INT, nullable=False),
        sa.Column("layout_id", INT, nullable=False),
        sa.Column("first_cell", INT, nullable=False),
        sa.PrimaryKeyConstraint("first_launch", name=op.f("pk_wide_blocks")),
        **STRICT,
    )
    op.create_table(
        "wide_cells",
        sa.Column("cell_id", INT, nullable=False, autoincrement=False),
        sa.Column("list_id", INT, nullable=False),
        sa.PrimaryKeyConstraint("cell_id", name=op.f("pk_wide_cells")),
        **STRICT,
    )
    op.create_table(
        "wide_lists",
        sa.Column("list_id", INT, nullable=False, autoincrement=False),
        sa.Column("ending", TEXT, nullable=False),
        sa.Column("texts", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("list_id", name=op.f("pk_wide_lists")),
        **STRICT,
    )
    op.create_table(
        "wide_constants",
        sa.Column("cell_id", INT, nullable=False, autoincrement=False),
        sa.Column("raw_text", TEXT, nullable=False),
        sa.Column("value", REAL, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("cell_id", name=op.f("pk_wide_constants")),
        **STRICT,
    )


def downgrade() -> None:
    for name in ("wide_constants", "wide_lists", "wide_cells", "wide_blocks", "wide_columns", "wide_layouts"):
        op.drop_table(name)
