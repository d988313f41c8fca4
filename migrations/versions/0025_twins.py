"""Launches that several files tell of are one launch: which is which, and why; the devices of each file."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
STEP = 1_000_000_000


def upgrade() -> None:
    op.add_column("uploads", sa.Column("same_as_reason", TEXT, nullable=True))
    op.add_column("uploads", sa.Column("repeats", INT, nullable=True))
    op.create_table(
        "twins",
        sa.Column("launch_id", INT, nullable=False, autoincrement=False),
        sa.Column("first_id", INT, nullable=False),
        sa.PrimaryKeyConstraint("launch_id", name=op.f("pk_twins")),
        sqlite_strict=True,
    )
    # Until now these were pages of one report, in which a launch has one ordinal.
    op.execute(
        "INSERT INTO twins (launch_id, first_id)"
        f" SELECT l.launch_id, l.launch_id + (u.same_as - u.upload_id) * {STEP} FROM uploads u JOIN launches l"
        f" ON l.launch_id BETWEEN u.upload_id * {STEP} + 1 AND u.upload_id * {STEP} + {STEP - 1}"
        " WHERE u.same_as IS NOT NULL"
    )
    op.create_index(op.f("ix_twins_first_id"), "twins", ["first_id"])
    op.create_table(
        "upload_devices",
        sa.Column("upload_id", INT, nullable=False, autoincrement=False),
        sa.Column("device_id", INT, nullable=False, autoincrement=False),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.upload_id"], name=op.f("fk_upload_devices_upload_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_upload_devices_device_id")),
        sa.PrimaryKeyConstraint("upload_id", "device_id", name=op.f("pk_upload_devices")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    # A launch has results once; those of a second page are omitted until its run is analyzed again.
    for name in ("criteria", "potential", "models"):
        op.execute(
            f"DELETE FROM {name} WHERE EXISTS (SELECT 1 FROM uploads u WHERE u.same_as IS NOT NULL"
            f" AND u.run_id = {name}.run_id AND u.upload_id = {name}.launch_id / {STEP})"
        )


def downgrade() -> None:
    op.drop_table("upload_devices")
    op.drop_index(op.f("ix_twins_first_id"), table_name="twins")
    op.drop_table("twins")
    op.drop_column("uploads", "repeats")
    op.drop_column("uploads", "same_as_reason")
