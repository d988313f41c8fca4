"""The settled power of a window, which the mean was until now, and what a coefficient rests on."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    op.add_column("power_windows", sa.Column("settled_power_w", REAL, nullable=True))
    # The mean was of that part; the next analysis has both.
    op.execute("UPDATE power_windows SET settled_power_w = mean_power_w")


def downgrade() -> None:
    op.drop_column("power_windows", "settled_power_w")
