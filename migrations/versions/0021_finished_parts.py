"""Every part of the analysis of a run is marked when it is finished; runs that lack a part are seen as such."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# Of power a run had results if it had rows in one of these; one with samples and without any was cut short.
POWER = ("power_windows", "power_coefficients", "power_models", "power_quality")
STEP = 1_000_000_000
SENSED = (
    f"SELECT 1 FROM uploads u JOIN sensors s ON s.sensor_id >= u.upload_id * {STEP}"
    f" AND s.sensor_id < (u.upload_id + 1) * {STEP}"
    " WHERE u.run_id = r.run_id AND (s.quantity = 'power' OR s.x_mm IS NOT NULL)"
)
MARK = (
    "INSERT INTO finished_parts (run_id, part, changes, version_id)"
    " SELECT r.run_id, '{}', 0, {} FROM runs r WHERE r.version_id IS NOT NULL AND {}"
)


def upgrade() -> None:
    op.add_column("runs", sa.Column("changes", INT, nullable=False, server_default="0"))
    op.create_table(
        "finished_parts",
        sa.Column("run_id", INT, autoincrement=False, nullable=False),
        sa.Column("part", TEXT, nullable=False),
        sa.Column("changes", INT, nullable=False),
        sa.Column("version_id", INT, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_finished_parts_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["version_id"], ["texts.text_id"], name=op.f("fk_finished_parts_version_id")),
        sa.PrimaryKeyConstraint("run_id", "part", name=op.f("pk_finished_parts")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.execute(MARK.format("launches", "r.version_id", "1 = 1"))
    found = ", ".join(f"(SELECT max(p.version_id) FROM {name} p WHERE p.run_id = r.run_id)" for name in POWER)
    done = f"(coalesce({found}) IS NOT NULL OR NOT EXISTS ({SENSED}))"
    op.execute(MARK.format("power", f"coalesce({found}, r.version_id)", done))


def downgrade() -> None:
    op.drop_table("finished_parts")
    op.drop_column("runs", "changes")
