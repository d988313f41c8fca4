"""Deliveries of reports to channels; addresses are removed from the slots of schedules."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ADDRESS = re.compile(r"[^\s,;:<>()\"']+@[^\s,;:<>()\"']+")
FOUND = sa.text("SELECT slot_id, message, deliveries FROM slots WHERE message LIKE '%@%' OR deliveries LIKE '%@%'")
KEEP = sa.text("UPDATE slots SET message = :message, deliveries = :deliveries WHERE slot_id = :slot_id")


def upgrade() -> None:
    op.create_table(
        "deliveries",
        sa.Column("delivery_id", INT, nullable=False),
        sa.Column("report_id", INT, nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("channel", "kind")),
        sa.Column("delivered", INT, nullable=False),
        sa.Column("message", TEXT, nullable=True),
        *(sa.Column(name, TEXT, nullable=False) for name in ("sent_by", "sent_at")),
        sa.CheckConstraint("delivered IN (0, 1)", name=op.f("ck_deliveries_delivered")),
        sa.ForeignKeyConstraint(
            ["report_id"], ["reports.report_id"], name=op.f("fk_deliveries_report_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("delivery_id", name=op.f("pk_deliveries")),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_deliveries_report_id"), "deliveries", ["report_id"])
    bind = op.get_bind()
    for row in bind.execute(FOUND).mappings().all():
        texts = {name: ADDRESS.sub("(an address)", row[name]) for name in ("message", "deliveries")}
        bind.execute(KEEP, {"slot_id": row["slot_id"], **texts})


def downgrade() -> None:
    op.drop_table("deliveries")
