"""What a coded answer of a model means, in words."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0010"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("models", sa.Column("label_id", INT, nullable=True))


def downgrade() -> None:
    op.drop_column("models", "label_id")
