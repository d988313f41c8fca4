"""What was simulated of memory traces: the caches, the orders drawn, the instructions of the source."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TYPES = {"i": INT, "r": REAL, "t": TEXT}
# Parent, key beside upload_id, columns with their type; one ending in ! is never null.
TABLES = {
    "traces": (
        "uploads",
        "",
        "kernel:t device:t references_read!:i lines!:i blocks!:i blocks_left_out!:i draws!:i sms:i slots:i l1_sets:i"
        " l1_ways:i l2_sets:i l2_ways:i line_bytes:i flags!:i reason:t version!:t",
    ),
    "trace_draws": (
        "traces",
        "draw",
        "l1_load_ratio:r l1_store_ratio:r l2_load_ratio:r l2_store_ratio:r dram_lines!:r",
    ),
    "trace_sites": ("traces", "item", "site!:t requests!:i lines_per_request:r l1_ratio:r l2_ratio:r"),
}


def upgrade() -> None:
    for table, (parent, key, columns) in TABLES.items():
        keys = ["upload_id", *([key] if key else [])]
        op.create_table(
            table,
            *(sa.Column(name, INT, nullable=False, autoincrement=False) for name in keys),
            *(
                sa.Column(name.rstrip("!"), TYPES[kind], nullable=not name.endswith("!"))
                for name, kind in (column.split(":") for column in columns.split())
            ),
            sa.ForeignKeyConstraint(
                ["upload_id"], [f"{parent}.upload_id"], name=op.f(f"fk_{table}_upload_id"), ondelete="CASCADE"
            ),
            sa.PrimaryKeyConstraint(*keys, name=op.f(f"pk_{table}")),
            sqlite_strict=True,
            sqlite_with_rowid=not key,
        )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
