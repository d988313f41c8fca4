"""A criterion has a conditional form: without what other criteria measure."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

REAL = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    op.add_column("criteria", sa.Column("value_conditional", REAL))


def downgrade() -> None:
    op.drop_column("criteria", "value_conditional")
