"""Blocks of samples hold their readings themselves, as a list of numbers; what is stored stays as it is."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
KEYS = ("sensor_id", "first_id")
COLUMNS = (*KEYS, "last_id", "first_index", "first_line")
ADDED = {
    **dict.fromkeys(("line_step", "first_ns", "rise", "unit_ns", "radix", "least"), INT),
    "divisor": REAL,
    **dict.fromkeys(("reason_id", "time_shift_ns", "local_shift_ns", "least_elapsed_ns", "most_elapsed_ns"), INT),
    "readings": TEXT,
}
NUMBERS = {
    "sqlite": "json_each(b.readings) o",
    "postgresql": (
        "LATERAL (SELECT x.place - 1 AS key, x.value"
        " FROM unnest(CAST(translate(b.readings, '[]', '{}') AS bigint[])) WITH ORDINALITY x(value, place)) o"
    ),
}
UNPACK = """
    INSERT INTO samples
      (sample_id, elapsed_ns, time_shift_ns, local_shift_ns, value, reason_id, index_shift, line_shift)
    SELECT b.first_id + o.key,
           b.first_ns + (o.key * b.rise / (b.last_id - b.first_id) + o.value / b.radix) * b.unit_ns,
           b.time_shift_ns, b.local_shift_ns, (b.least + o.value % b.radix) / b.divisor, b.reason_id,
           0, o.key * (b.line_step - 1)
    FROM sample_blocks b CROSS JOIN {} WHERE b.readings IS NOT NULL
"""


def on_server() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def make_again(added: dict[str, sa.types.TypeEngine[object]], with_rowid: bool) -> None:
    """Make the table of SQLite again: with row ids long rows lie in its pages, without them most are beside these."""
    op.create_table(
        "sample_blocks_made",
        *(sa.Column(name, INT, nullable=False, autoincrement=False) for name in COLUMNS),
        *(sa.Column(name, kind, nullable=True) for name, kind in added.items()),
        sa.PrimaryKeyConstraint(*KEYS, name=op.f("pk_sample_blocks")),
        sqlite_strict=True,
        sqlite_with_rowid=with_rowid,
    )
    names = ", ".join(COLUMNS)
    op.execute(f"INSERT INTO sample_blocks_made ({names}) SELECT {names} FROM sample_blocks ORDER BY 1, 2")
    op.drop_table("sample_blocks")
    op.rename_table("sample_blocks_made", "sample_blocks")


def upgrade() -> None:
    if not on_server():
        make_again(ADDED, with_rowid=True)
        return
    for name, kind in ADDED.items():
        op.add_column("sample_blocks", sa.Column(name, kind, nullable=True))
    # Digits that scatter do not get shorter, and to try takes longer than to write them.
    op.execute("ALTER TABLE sample_blocks ALTER COLUMN readings SET STORAGE EXTERNAL")


def downgrade() -> None:
    op.execute(UNPACK.format(NUMBERS[op.get_bind().dialect.name]))
    if not on_server():
        make_again({}, with_rowid=False)
        return
    for name in reversed(ADDED):
        op.drop_column("sample_blocks", name)
