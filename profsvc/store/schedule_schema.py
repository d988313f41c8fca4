"""The base tables of schedules and of the times at which they were due; a part of `profsvc.store.schema`."""

from sqlalchemy import CheckConstraint, UniqueConstraint

from profsvc.store.parts import integer, ref, row_id, table, text

STATES = ("running", "waiting", "done", "failed")

schedules = table(
    "schedules",
    row_id("schedule_id"),
    text("kind", nullable=False),
    text("project"),
    text("cron", nullable=False),
    text("zone", nullable=False),
    text("arguments", nullable=False),
    integer("enabled", nullable=False),
    text("created_at", nullable=False),
    text("since", nullable=False),
    text("next_at"),
    CheckConstraint("enabled IN (0, 1)", name="enabled"),
    sqlite_autoincrement=True,
)
# Whose insert of a key succeeds runs the slot: that is how one of many schedulers is chosen.
slots = table(
    "slots",
    row_id("slot_id"),
    ref("schedule_id", "schedules.schedule_id", cascade=True, nullable=False),
    text("slot_key", nullable=False),
    text("due_at", nullable=False),
    text("owner", nullable=False),
    integer("attempts", nullable=False),
    text("lease_until"),
    text("heartbeat_at"),
    text("started_at", nullable=False),
    text("ended_at"),
    text("state", nullable=False),
    text("message", nullable=False),
    text("deliveries", nullable=False),
    UniqueConstraint("schedule_id", "slot_key"),
    CheckConstraint("state IN ({})".format(", ".join(f"'{state}'" for state in STATES)), name="state"),
    CheckConstraint("(state IN ('running', 'waiting')) = (lease_until IS NOT NULL)", name="lease"),
    sqlite_autoincrement=True,
)
