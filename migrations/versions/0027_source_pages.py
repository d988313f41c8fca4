"""Source pages: lines and instructions of profiled launches, with samples per stall reason and counts."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# Keys, and the other columns; one ending in ! is never null, one with :t is a text.
TABLES = {
    "source_kernels": (
        "source_id",
        "kernel_id! launch_index launch_id reason:t repeats! kinds! row_count! samples line!",
    ),
    "source_lines": (
        "line_id",
        "source_id! kind! source_line address repeated! file_id source_text_id sass_id opcode_id address_space_id"
        " access_operation_id access_size_id samples samples_not_issued instructions thread_instructions"
        " thread_instructions_on divergent_branches l2_sectors ideal_l2_sectors local_l2_sectors shared_wavefronts"
        " ideal_shared_wavefronts line!",
    ),
    "source_stalls": ("line_id reason_id", "samples samples_not_issued"),
    "source_texts": ("text_id", "text!:t"),
}
INDEXES = {"source_kernels": "launch_id", "source_lines": "source_id"}


def upgrade() -> None:
    for table, (keys, columns) in TABLES.items():
        parts = [column.removesuffix(":t") for column in columns.split()]
        op.create_table(
            table,
            *(sa.Column(name, INT, nullable=False, autoincrement=False) for name in keys.split()),
            *(
                sa.Column(part.rstrip("!"), TEXT if column.endswith(":t") else INT, nullable=not part.endswith("!"))
                for part, column in zip(parts, columns.split(), strict=True)
            ),
            sa.PrimaryKeyConstraint(*keys.split(), name=op.f(f"pk_{table}")),
            sqlite_strict=True,
            sqlite_with_rowid=" " not in keys,
        )
    for table, column in INDEXES.items():
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def downgrade() -> None:
    for table, column in INDEXES.items():
        op.drop_index(op.f(f"ix_{table}_{column}"), table_name=table)
    for table in reversed(TABLES):
        op.drop_table(table)
