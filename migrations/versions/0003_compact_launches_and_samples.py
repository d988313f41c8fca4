"""Launches name their place and shape, samples follow each other by sensor, and kernels are summed up by file."""

import sqlalchemy as sa
from alembic import op

from profsvc.store.maintenance.backfill import Fill, complete

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
STRICT = {"sqlite_strict": True}
CLUSTERED = {"sqlite_strict": True, "sqlite_with_rowid": False}
STEP = 1_000_000_000

PLACE = ("device_id", "host_id", "process_name_id", "process_id", "device_index", "context", "stream")
SHAPE = ("kernel_id", "block_x", "block_y", "block_z", "registers_per_thread", "shared_mem_static_bytes")
OWN = (
    *("grid_x", "grid_y", "grid_z", "shared_mem_dynamic_bytes", "start_ns", "duration_ns", "source_id"),
    *("correlation_id", "line"),
)
REFERRING = ("rules", "counters")
# What refers to what; a row that ends in ! goes with the other.
REFERENCES = {
    "places": {"device_id": "devices.device_id", "host_id": "texts.text_id", "process_name_id": "texts.text_id"},
    "shapes": {"kernel_id": "kernels.kernel_id"},
    "kernel_totals": {"kernel_id": "kernels.kernel_id", "upload_id": "uploads.upload_id!"},
    **{name: {"launch_id": "launches.launch_id!"} for name in REFERRING},
}


def key_of(columns: tuple[str, ...]) -> str:
    return " || ',' || ".join(f"coalesce(CAST(l.{column} AS TEXT), '')" for column in columns)


def integers(*names: str, nullable: bool = True) -> list[sa.Column]:
    return [sa.Column(name, INT, nullable=nullable) for name in names]


def expand() -> None:
    """Make the tables to be filled; those that replace others are called so later."""
    op.create_table(
        "places",
        *integers("place_id", nullable=False),
        sa.Column("key", TEXT, nullable=False),
        *integers(*PLACE),
        sa.PrimaryKeyConstraint("place_id", name=op.f("pk_places")),
        sa.UniqueConstraint("key", name=op.f("uq_places_key")),
        *references("places"),
        **STRICT,
    )
    op.create_table(
        "shapes",
        *integers("shape_id", nullable=False),
        sa.Column("key", TEXT, nullable=False),
        *integers("kernel_id", nullable=False),
        *integers(*SHAPE[1:]),
        sa.PrimaryKeyConstraint("shape_id", name=op.f("pk_shapes")),
        sa.UniqueConstraint("key", name=op.f("uq_shapes_key")),
        *references("shapes"),
        **STRICT,
    )
    op.create_index(op.f("ix_shapes_kernel_id"), "shapes", ["kernel_id"])
    op.create_table(
        "kernel_totals",
        sa.Column("kernel_id", INT, nullable=False, autoincrement=False),
        sa.Column("upload_id", INT, nullable=False, autoincrement=False),
        *integers("launches", "timed", nullable=False),
        *(sa.Column(name, REAL) for name in ("total_ns", "min_ns", "p50_ns", "p95_ns", "max_ns")),
        sa.PrimaryKeyConstraint("kernel_id", "upload_id", name=op.f("pk_kernel_totals")),
        *references("kernel_totals"),
        **CLUSTERED,
    )
    op.create_index(op.f("ix_kernel_totals_upload_id"), "kernel_totals", ["upload_id"])
    op.create_table(
        "launches_new",
        sa.Column("launch_id", INT, nullable=False, autoincrement=False),
        *integers("place_id", "shape_id", nullable=False),
        *integers("grid_x", "grid_y", "grid_z", "shared_mem_dynamic_bytes", "start_ns"),
        sa.Column("duration_ns", REAL),
        sa.Column("source_id", TEXT),
        *integers("correlation_id"),
        *integers("line", nullable=False),
        sa.PrimaryKeyConstraint("launch_id", name=new_key("launches")),
        **STRICT,
    )
    op.create_table(
        "sample_blocks",
        sa.Column("sensor_id", INT, nullable=False, autoincrement=False),
        sa.Column("first_id", INT, nullable=False, autoincrement=False),
        *integers("last_id", "first_index", "first_line", nullable=False),
        sa.PrimaryKeyConstraint("sensor_id", "first_id", name=op.f("pk_sample_blocks")),
        **CLUSTERED,
    )
    op.create_table(
        "samples_new",
        sa.Column("sample_id", INT, nullable=False, autoincrement=False),
        *integers("elapsed_ns", "time_shift_ns", "local_shift_ns"),
        sa.Column("value", REAL),
        *integers("reason_id"),
        *integers("index_shift", "line_shift", nullable=False),
        sa.PrimaryKeyConstraint("sample_id", name=new_key("samples")),
        **STRICT,
    )


def references(table: str) -> list[sa.ForeignKeyConstraint]:
    """Return the foreign keys of a new table; on a server `refer` makes them, as that waits for who writes."""
    return [] if on_server() else [
        sa.ForeignKeyConstraint(
            [column], [target.rstrip("!")], name=op.f(f"fk_{table}_{column}"),
            ondelete="CASCADE" if target.endswith("!") else None,
        )
        for column, target in REFERENCES[table].items()
    ]  # fmt: skip


def refer() -> None:
    """Create the foreign keys on a server; their rows are validated after the migration, without blocking others."""
    for table, columns in REFERENCES.items():
        for column, target in columns.items():
            other, _, key = target.rstrip("!").partition(".")
            cascade = "CASCADE" if target.endswith("!") else None
            name = op.f(f"fk_{table}_{column}")
            op.create_foreign_key(name, table, other, [column], [key], ondelete=cascade, postgresql_not_valid=True)


def on_server() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def new_key(table: str) -> str:
    """Name the key of a table that is to replace another; on a server the other has that name as yet."""
    return op.f(f"pk_{table}{'_new' * on_server()}")


OF_LAUNCHES = "l.launch_id >= :first AND l.launch_id < :end"
OF_SAMPLES = "o.sensor_id >= :first AND o.sensor_id < :end"
SHARED = tuple(
    f"INSERT INTO {table} (key, {', '.join(columns)}) SELECT {key_of(columns)}, {', '.join(columns)} FROM launches l"
    f" WHERE {OF_LAUNCHES} GROUP BY {', '.join(columns)} ORDER BY min(l.launch_id) ON CONFLICT (key) DO NOTHING"
    for table, columns in (("places", PLACE), ("shapes", SHAPE))
)
LAUNCHES = (
    f"INSERT INTO launches_new SELECT l.launch_id, p.place_id, s.shape_id, {', '.join(f'l.{c}' for c in OWN)}"
    f" FROM launches l JOIN places p ON p.key = {key_of(PLACE)} JOIN shapes s ON s.key = {key_of(SHAPE)}"
    f" WHERE {OF_LAUNCHES} ORDER BY l.launch_id"
)
TOTALS = f"""
    INSERT INTO kernel_totals
        (kernel_id, upload_id, launches, timed, total_ns, min_ns, p50_ns, p95_ns, max_ns)
    SELECT kernel_id, upload_id, count(*), count(duration_ns), sum(duration_ns), min(duration_ns),
        {", ".join(
            f"sum(CASE place WHEN (timed - 1) * {percent} / 100 THEN duration_ns"
            f" * (1.0 - (timed - 1) * {percent} % 100 / 100.0)"
            f" WHEN (timed - 1) * {percent} / 100 + 1 THEN duration_ns * ((timed - 1) * {percent} % 100 / 100.0) END)"
            for percent in (50, 95)
        )}, max(duration_ns)
    FROM (
        SELECT kernel_id, upload_id, duration_ns,
            count(duration_ns) OVER (PARTITION BY kernel_id, upload_id) AS timed,
            row_number() OVER (
                PARTITION BY kernel_id, upload_id ORDER BY duration_ns IS NULL, duration_ns
            ) - 1 AS place
        FROM launches l WHERE {OF_LAUNCHES}
    ) l
    GROUP BY kernel_id, upload_id ORDER BY kernel_id, upload_id
"""  # fmt: skip
BLOCKS = f"""
    INSERT INTO sample_blocks (sensor_id, first_id, last_id, first_index, first_line)
    SELECT g.sensor_id,
        CAST(g.sensor_id / {STEP} * {STEP} + 1 + sum(g.readings) OVER files - g.readings AS BIGINT),
        CAST(g.sensor_id / {STEP} * {STEP} + sum(g.readings) OVER files AS BIGINT),
        g.first_index, s.line
    FROM (
        SELECT o.sensor_id, count(*) AS readings, min(o.sample_index) AS first_index FROM samples o
        WHERE {OF_SAMPLES} GROUP BY o.sensor_id
    ) g
    JOIN samples s ON s.sensor_id = g.sensor_id AND s.sample_index = g.first_index
    WINDOW files AS (PARTITION BY g.sensor_id / {STEP} ORDER BY g.sensor_id)
"""
SAMPLES = f"""
    INSERT INTO samples_new
    SELECT b.first_id + s.place, s.elapsed_ns, s.time_shift_ns, s.local_shift_ns, s.value, s.reason_id,
        s.sample_index - b.first_index - s.place, s.line - b.first_line - s.place
    FROM (
        SELECT o.*, row_number() OVER (PARTITION BY o.sensor_id ORDER BY o.sample_index) - 1 AS place FROM samples o
        WHERE {OF_SAMPLES}
    ) s
    JOIN sample_blocks b ON b.sensor_id = s.sensor_id
    ORDER BY s.sensor_id, s.sample_index
"""


FILL = Fill(
    revision,
    expand,
    (
        "DELETE FROM kernel_totals WHERE upload_id BETWEEN :low AND :high",
        "DELETE FROM launches_new WHERE launch_id >= :first AND launch_id < :end",
        "DELETE FROM sample_blocks WHERE sensor_id >= :first AND sensor_id < :end",
        "DELETE FROM samples_new WHERE sample_id >= :first AND sample_id < :end",
    ),
    (*SHARED, TOTALS, LAUNCHES, BLOCKS, SAMPLES),
)


def upgrade() -> None:
    complete(op.get_bind(), FILL)
    if on_server():
        for name in REFERRING:
            op.drop_constraint(f"fk_{name}_launch_id", name)
    for table in ("launches", "samples"):
        op.drop_table(table)
        op.rename_table(f"{table}_new", table)
        if on_server():
            op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT pk_{table}_new TO pk_{table}")
    if on_server():
        refer()


def replace(table: str, new: list[sa.Column], key: tuple[str, ...], fill: str, **options: bool) -> None:
    """Create a table again, with the same name and the rows of ``fill``."""
    postgres = op.get_bind().dialect.name == "postgresql"
    if postgres:
        op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT pk_{table} TO pk_{table}_old")
    op.create_table(f"{table}_new", *new, sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")), **options)
    op.execute(f"INSERT INTO {table}_new {fill}")
    if postgres and table == "launches":
        for name in REFERRING:
            op.drop_constraint(f"fk_{name}_launch_id", name)
    op.drop_table(table)
    op.rename_table(f"{table}_new", table)
    if postgres and table == "launches":
        for name in REFERRING:
            op.create_foreign_key(
                op.f(f"fk_{name}_launch_id"), name, "launches", ["launch_id"], ["launch_id"], ondelete="CASCADE"
            )


def downgrade() -> None:
    replace(
        "samples",
        [
            *(sa.Column(name, INT, nullable=False, autoincrement=False) for name in ("sensor_id", "sample_index")),
            *integers("elapsed_ns", "time_shift_ns", "local_shift_ns"),
            sa.Column("value", REAL),
            *integers("reason_id"),
            *integers("line", nullable=False),
        ],
        ("sensor_id", "sample_index"),
        "SELECT b.sensor_id, b.first_index + s.sample_id - b.first_id + s.index_shift, s.elapsed_ns, s.time_shift_ns,"
        " s.local_shift_ns, s.value, s.reason_id, b.first_line + s.sample_id - b.first_id + s.line_shift"
        " FROM sample_blocks b JOIN samples s ON s.sample_id BETWEEN b.first_id AND b.last_id",
        **CLUSTERED,
    )
    op.drop_table("sample_blocks")
    references = {"upload_id": "uploads", "kernel_id": "kernels", "device_id": "devices", "host_id": "texts"}
    references["process_name_id"] = "texts"
    replace(
        "launches",
        [
            sa.Column("launch_id", INT, nullable=False, autoincrement=False),
            *integers("upload_id", "run_id", "launch_index", "kernel_id", nullable=False),
            *integers("device_id", "host_id", "process_name_id"),
            sa.Column("source_id", TEXT),
            *integers("process_id", "device_index", "context", "stream", "start_ns"),
            sa.Column("duration_ns", REAL),
            *integers("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
            *integers("line", nullable=False),
            *integers("correlation_id", "registers_per_thread", "shared_mem_static_bytes", "shared_mem_dynamic_bytes"),
            *(
                sa.ForeignKeyConstraint(
                    [column],
                    [f"{table}.{'text_id' if table == 'texts' else column}"],
                    name=op.f(f"fk_launches_{column}"),
                    ondelete="CASCADE" if table == "uploads" else None,
                )
                for column, table in references.items()
            ),
        ],
        ("launch_id",),
        f"SELECT l.launch_id, u.upload_id, u.run_id, l.launch_id - u.upload_id * {STEP} - 1, s.kernel_id, p.device_id,"
        " p.host_id, p.process_name_id, l.source_id, p.process_id, p.device_index, p.context, p.stream, l.start_ns,"
        " l.duration_ns, l.grid_x, l.grid_y, l.grid_z, s.block_x, s.block_y, s.block_z, l.line, l.correlation_id,"
        " s.registers_per_thread, s.shared_mem_static_bytes, l.shared_mem_dynamic_bytes FROM launches l"
        f" JOIN uploads u ON u.upload_id = l.launch_id / {STEP} JOIN places p ON p.place_id = l.place_id"
        " JOIN shapes s ON s.shape_id = l.shape_id ORDER BY l.launch_id",
        **STRICT,
    )
    for table in ("kernel_totals", "shapes", "places"):
        op.drop_table(table)
