"""An index from a load to the runs that its power was measured in: its history costs what is shown of it."""

from alembic import op

revision = "0012"
down_revision = "0009"
branch_labels = None
depends_on = None

NAME = "ix_power_windows_load_id_run_id"


def upgrade() -> None:
    op.create_index(op.f(NAME), "power_windows", ["load_id", "run_id"])


def downgrade() -> None:
    op.drop_index(op.f(NAME), table_name="power_windows")
