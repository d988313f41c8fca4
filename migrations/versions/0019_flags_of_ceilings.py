"""A ceiling has flags of its own; those of the potential stood for it until now."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("potential", sa.Column("ceiling_flags", INT, nullable=True))
    # Until a ceiling is computed again, it keeps its flags.
    op.execute("UPDATE potential SET ceiling_flags = flags WHERE speedup_ceiling IS NOT NULL")


def downgrade() -> None:
    op.drop_column("potential", "ceiling_flags")
