"""Records of deleted uploads that can be restored, and the name of the store, which locates its kept bytes."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "deleted_uploads",
        sa.Column("upload_id", INT, nullable=False, autoincrement=False),
        sa.Column("run_id", INT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("run", TEXT, nullable=False),
        sa.Column("run_facts", TEXT, nullable=False),
        sa.Column("file_name", TEXT, nullable=False),
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("size_bytes", INT, nullable=False),
        sa.Column("format", TEXT, nullable=False),
        sa.Column("launches", INT, nullable=False),
        sa.Column("samples", INT, nullable=False),
        sa.Column("facts", TEXT, nullable=False),
        sa.Column("received_at", TEXT, nullable=False),
        sa.Column("deleted_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("upload_id", name=op.f("pk_deleted_uploads")),
        sqlite_strict=True,
    )
    facts = sa.table("facts", sa.column("name"), sa.column("value"))
    op.bulk_insert(facts, [{"name": "store_id", "value": uuid.uuid4().hex}])


def downgrade() -> None:
    op.execute("DELETE FROM facts WHERE name = 'store_id'")
    op.drop_table("deleted_uploads")
