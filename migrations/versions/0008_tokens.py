"""Tokens of the service: what opens it to whom."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# A column ending in ! is never null.
COLUMNS = "name! hash! scopes! project created_at! expires_at last_used_at revoked_at"


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("token_id", INT, nullable=False),
        *(sa.Column(name.rstrip("!"), TEXT, nullable=not name.endswith("!")) for name in COLUMNS.split()),
        sa.CheckConstraint("length(hash) = 64", name=op.f("ck_tokens_hash")),
        sa.PrimaryKeyConstraint("token_id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("tokens")
