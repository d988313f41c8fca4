"""Registers and shared memory of a launch, and the call that it belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COLUMNS = ("correlation_id", "registers_per_thread", "shared_mem_static_bytes", "shared_mem_dynamic_bytes")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("launches", sa.Column(name, INT, nullable=True))


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column("launches", name)
