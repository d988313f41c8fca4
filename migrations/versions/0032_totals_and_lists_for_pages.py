"""Totals of transfers by kind and of launches by place and shape, and the launches of long files that pages show."""

import sqlalchemy as sa
from alembic import op

from profsvc.store.maintenance.backfill import Fill, complete

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
CLUSTERED = {"sqlite_strict": True, "sqlite_with_rowid": False}
STEP = 1_000_000_000
MIN_LAUNCHES, DEPTH, KERNEL_DEPTH, MAX_KERNEL_LAUNCHES = 100_000, 1024, 100, 100_000
TABLES = ("transfer_totals", "place_totals", "shape_totals", "launch_lists")
SIZES = ("grid_x", "grid_y", "grid_z", "shared_mem_dynamic_bytes")
RANGES = tuple(f"{end}_{name}" for name in SIZES for end in ("min", "max"))


def integers(*names: str, nullable: bool = False) -> list[sa.Column]:
    return [sa.Column(name, INT, nullable=nullable, autoincrement=False) for name in names]


def on_server() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def references(table: str) -> list[sa.ForeignKeyConstraint]:
    """Return the foreign key of a new table; on a server `refer` makes it, as that waits for who writes."""
    name = op.f(f"fk_{table}_upload_id")
    key = sa.ForeignKeyConstraint(["upload_id"], ["uploads.upload_id"], name=name, ondelete="CASCADE")
    return [] if on_server() else [key]


def refer(table: str) -> None:
    op.create_foreign_key(
        op.f(f"fk_{table}_upload_id"), table, "uploads", ["upload_id"], ["upload_id"], ondelete="CASCADE",
        postgresql_not_valid=True,
    )  # fmt: skip


def expand() -> None:
    op.create_table(
        "transfer_totals",
        *integers("upload_id", "kind_id", "transfers"),
        sa.Column("total_ns", REAL),
        *integers("bytes", nullable=True),
        sa.PrimaryKeyConstraint("upload_id", "kind_id", name=op.f("pk_transfer_totals")),
        *references("transfer_totals"),
        **CLUSTERED,
    )
    op.create_table(
        "place_totals",
        *integers("upload_id", "place_id", "launches"),
        sa.PrimaryKeyConstraint("upload_id", "place_id", name=op.f("pk_place_totals")),
        *references("place_totals"),
        **CLUSTERED,
    )
    op.create_table(
        "shape_totals",
        *integers("upload_id", "shape_id", "launches"),
        *integers(*RANGES, nullable=True),
        sa.PrimaryKeyConstraint("upload_id", "shape_id", name=op.f("pk_shape_totals")),
        *references("shape_totals"),
        **CLUSTERED,
    )
    op.create_table(
        "launch_lists",
        *integers("upload_id", "depth", "kernel_depth"),
        sa.PrimaryKeyConstraint("upload_id", name=op.f("pk_launch_lists")),
        *references("launch_lists"),
        sqlite_strict=True,
    )
    op.create_table(
        "listed_launches",
        *integers("upload_id", "kernel_id", "launch_id"),
        sa.Column("duration_ns", REAL),
        sa.PrimaryKeyConstraint("upload_id", "kernel_id", "launch_id", name=op.f("pk_listed_launches")),
        **CLUSTERED,
    )


# A sum of more than 64 bits, which no real file has, is left null.
TRANSFERS = f"""
    INSERT INTO transfer_totals (upload_id, kind_id, transfers, total_ns, bytes)
    SELECT e.transfer_id / {STEP}, e.kind_id, count(*), sum(e.duration_ns),
        CASE WHEN sum(1.0 * e.bytes) < 9.2e18 THEN CAST(sum(e.bytes) AS BIGINT) END
    FROM transfers e WHERE e.transfer_id >= :first AND e.transfer_id < :end GROUP BY 1, 2
"""
PLACES = f"""
    INSERT INTO place_totals (upload_id, place_id, launches)
    SELECT l.launch_id / {STEP}, l.place_id, count(*)
    FROM launches l WHERE l.launch_id >= :first AND l.launch_id < :end GROUP BY 1, 2
"""
SHAPES = f"""
    INSERT INTO shape_totals (upload_id, shape_id, launches, {", ".join(RANGES)})
    SELECT l.launch_id / {STEP}, l.shape_id, count(*),
        {", ".join(f"{end}(l.{name})" for name in SIZES for end in ("min", "max"))}
    FROM launches l WHERE l.launch_id >= :first AND l.launch_id < :end GROUP BY 1, 2
"""
LISTS = f"""
    INSERT INTO launch_lists (upload_id, depth, kernel_depth)
    SELECT u.upload_id, {DEPTH}, CASE WHEN t.kernels * {KERNEL_DEPTH} > {MAX_KERNEL_LAUNCHES}
        THEN {MAX_KERNEL_LAUNCHES} / t.kernels ELSE {KERNEL_DEPTH} END
    FROM uploads u
    JOIN (SELECT upload_id, count(*) AS kernels FROM kernel_totals WHERE upload_id BETWEEN :low AND :high
          GROUP BY upload_id) t ON t.upload_id = u.upload_id
    WHERE u.launches >= {MIN_LAUNCHES}
"""
PLACED = """
    SELECT {group}, l.launch_id, l.duration_ns, {depth} AS depth,
        row_number() OVER (PARTITION BY {group} ORDER BY l.duration_ns DESC NULLS LAST, l.launch_id) AS longest,
        row_number() OVER (PARTITION BY {group} ORDER BY l.duration_ns NULLS LAST, l.launch_id) AS shortest{more}
    FROM launch_lists b JOIN launches l ON l.launch_id / {step} = b.upload_id
        AND l.launch_id BETWEEN b.upload_id * {step} AND b.upload_id * {step} + {step} - 1{shapes}
    WHERE b.upload_id BETWEEN :low AND :high
"""
OF_FILE = PLACED.format(group="b.upload_id", depth="b.depth", more="", step=STEP, shapes="")
OF_KERNELS = PLACED.format(
    group="b.upload_id, h.kernel_id",
    depth="b.kernel_depth",
    more=", row_number() OVER (PARTITION BY b.upload_id, h.kernel_id ORDER BY l.launch_id) AS place,"
    " count(*) OVER (PARTITION BY b.upload_id, h.kernel_id) AS launches",
    step=STEP,
    shapes=" JOIN shapes h ON h.shape_id = l.shape_id",
)
INSERT = "INSERT INTO listed_launches (upload_id, kernel_id, launch_id, duration_ns)"
FILE_ROWS = (
    f"{INSERT} SELECT upload_id, 0, launch_id, duration_ns FROM ({OF_FILE}) o"
    " WHERE longest <= depth OR shortest <= depth"
)
KERNEL_ROWS = (
    f"{INSERT} SELECT upload_id, kernel_id, launch_id, duration_ns FROM ({OF_KERNELS}) o"
    " WHERE longest <= depth OR shortest <= depth OR place <= depth OR place > launches - depth"
)

FILL = Fill(
    revision,
    expand,
    tuple(f"DELETE FROM {name} WHERE upload_id BETWEEN :low AND :high" for name in (*TABLES, "listed_launches")),
    (TRANSFERS, PLACES, SHAPES, LISTS, FILE_ROWS, KERNEL_ROWS),
)


def upgrade() -> None:
    complete(op.get_bind(), FILL)
    if on_server():
        for table in TABLES:
            refer(table)


def downgrade() -> None:
    for table in (*TABLES, "listed_launches"):
        op.drop_table(table)
