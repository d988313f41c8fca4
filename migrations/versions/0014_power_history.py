"""Indexes from a load and a window to the runs that its power was measured in: a history costs what is shown of it."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

COLUMNS = ("load_id", "window_id")


def upgrade() -> None:
    for column in COLUMNS:
        op.create_index(op.f(f"ix_power_windows_{column}_run_id"), "power_windows", [column, "run_id"])


def downgrade() -> None:
    for column in COLUMNS:
        op.drop_index(op.f(f"ix_power_windows_{column}_run_id"), table_name="power_windows")
