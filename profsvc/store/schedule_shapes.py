"""The views of schedules and of the times at which they were due."""

from profsvc.store.shapes import Shape

# Each schedule with its newest slot.
_LAST = (
    "schedules s LEFT JOIN slots t ON t.slot_id = (SELECT n.slot_id FROM slots n WHERE n.schedule_id = s.schedule_id"
    " ORDER BY n.due_at DESC, n.slot_id DESC LIMIT 1)"
)
_WHAT = (
    ("kind", "text", "s.kind", "what it does: nightly, prune, vacuum, backup"),
    ("project", "text", "s.project", "project that it is about; null for all"),
)
_ENDED = "when it ended"
_STATES = "running, lost (its scheduler ended before it did), waiting for another try, done or failed"
# Who was killed ends nothing: its lease tells.
_STATE = "CASE WHEN t.state = 'running' AND t.lease_until < {now} THEN 'lost' ELSE t.state END"

SHAPES: dict[str, Shape] = {
    "v1_schedules": Shape(
        "Something that is done again and again, and how it went the last time.",
        _LAST,
        (
            ("schedule_id", "int", "s.schedule_id", "the schedule's number"),
            *_WHAT,
            ("cron", "text", "s.cron", "minute, hour, day of the month, month and day of the week, in that zone"),
            ("zone", "text", "s.zone", "zone whose clock it goes by"),
            ("arguments", "text", "s.arguments", "what else it was told, as a JSON object"),
            ("enabled", "int", "s.enabled", "1 if it is done, 0 if it rests"),
            ("created_at", "text", "s.created_at", "when it was made, UTC, ISO 8601"),
            ("next_at", "text", "s.next_at", "when it is due next, UTC; a time gone by: no scheduler runs"),
            ("last_due_at", "text", "t.due_at", "when it was due last, UTC; null before the first time"),
            ("last_started_at", "text", "t.started_at", "when that was begun"),
            ("last_ended_at", "text", "t.ended_at", _ENDED),
            ("last_state", "text", _STATE, _STATES),
            ("last_attempts", "int", "t.attempts", "how often it was tried"),
            ("last_message", "text", "t.message", "what came of it, or why it failed"),
            (
                "last_deliveries",
                "text",
                "t.deliveries",
                "what became of it by channel, as a JSON object of texts; v1_deliveries has them one by one",
            ),
        ),
    ),
    "v1_slots": Shape(
        "A time at which a schedule was due, and what came of it.",
        "slots t JOIN schedules s ON s.schedule_id = t.schedule_id",
        (
            ("slot_id", "int", "t.slot_id", "the slot's number"),
            ("schedule_id", "int", "t.schedule_id", "its schedule"),
            *_WHAT,
            ("slot_key", "text", "t.slot_key", "local time that makes it one of a kind; UTC if the schedule is hourly"),
            ("due_at", "text", "t.due_at", "when it was due, UTC, ISO 8601"),
            ("owner", "text", "t.owner", "host, process and number of the scheduler that took it last"),
            ("attempts", "int", "t.attempts", "how often it was taken"),
            ("started_at", "text", "t.started_at", "when it was taken last"),
            ("heartbeat_at", "text", "t.heartbeat_at", "when its owner was last known to live"),
            ("lease_until", "text", "t.lease_until", "until then it is nobody else's; null once it has ended"),
            ("ended_at", "text", "t.ended_at", _ENDED),
            ("state", "text", _STATE, _STATES),
            ("message", "text", "t.message", "what came of it, or why it failed"),
            (
                "deliveries",
                "text",
                "t.deliveries",
                "what became of it by channel, as a JSON object of texts; v1_deliveries has them one by one",
            ),
        ),
    ),
}
