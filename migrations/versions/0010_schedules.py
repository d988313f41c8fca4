"""Schedules, and the times at which they were due."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# A column ending in ! is never null, one that begins with # is a number.
SCHEDULES = "kind! project cron! zone! arguments! #enabled! created_at! since! next_at"
SLOTS = (
    "#schedule_id! slot_key! due_at! owner! #attempts! lease_until heartbeat_at started_at! ended_at state! message! "
    "deliveries!"
)


def columns(names: str) -> list[sa.Column]:
    return [
        sa.Column(name.strip("#!"), INT if name.startswith("#") else TEXT, nullable=not name.endswith("!"))
        for name in names.split()
    ]


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("schedule_id", INT, nullable=False),
        *columns(SCHEDULES),
        sa.CheckConstraint("enabled IN (0, 1)", name=op.f("ck_schedules_enabled")),
        sa.PrimaryKeyConstraint("schedule_id", name=op.f("pk_schedules")),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
    op.create_table(
        "slots",
        sa.Column("slot_id", INT, nullable=False),
        *columns(SLOTS),
        sa.CheckConstraint("state IN ('running', 'waiting', 'done', 'failed')", name=op.f("ck_slots_state")),
        sa.CheckConstraint(
            "(state IN ('running', 'waiting')) = (lease_until IS NOT NULL)", name=op.f("ck_slots_lease")
        ),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["schedules.schedule_id"],
            name=op.f("fk_slots_schedule_id_schedules"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("slot_id", name=op.f("pk_slots")),
        sa.UniqueConstraint("schedule_id", "slot_key", name=op.f("uq_slots_schedule_id_slot_key")),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("slots")
    op.drop_table("schedules")
