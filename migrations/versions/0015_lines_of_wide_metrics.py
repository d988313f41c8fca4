"""Where cells that are kept column by column stand below the first line of their launch: details pages are kept so."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TABLES = ("wide_cells", "wide_constants")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("lines", TEXT, nullable=True))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "lines")
