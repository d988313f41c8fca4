"""A potential has the range in which eight of ten mended kernels lie. Stored ones have none until they are computed."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

REAL = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    for name in ("speedup_low", "speedup_high"):
        op.add_column("potential", sa.Column(name, REAL))


def downgrade() -> None:
    for name in ("speedup_high", "speedup_low"):
        op.drop_column("potential", name)
