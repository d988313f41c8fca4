"""The base tables of schedules, their slots, tokens and saved queries; a part of `profsvc.store.schema.tables`."""

from profsvc.store.schema.column_types import check, fields, ref, row_id, table, text, unique
from profsvc.store.schema.view_definition import ViewDefinition, view_columns

STATES = ("running", "waiting", "done", "failed")

schedules = table(
    "schedules",
    row_id("schedule_id"),
    *fields(
        "kind text, project text?, cron text, zone text, arguments text, enabled int, created_at text, since text",
        "next_at text?",
    ),
    check("enabled IN (0, 1)", "enabled"),
    sqlite_autoincrement=True,
)
# The scheduler whose insert of the key succeeds runs the slot, so exactly one of several does.
slots = table(
    "slots",
    row_id("slot_id"),
    ref("schedule_id", "schedules.schedule_id", cascade=True, nullable=False),
    *fields(
        "slot_key text, due_at text, owner text, attempts int, lease_until text?, heartbeat_at text?, started_at text",
        "ended_at text?, state text, message text, deliveries text",
    ),
    unique("schedule_id", "slot_key"),
    check("state IN ({})".format(", ".join(f"'{state}'" for state in STATES)), "state"),
    check("(state IN ('running', 'waiting')) = (lease_until IS NOT NULL)", "lease"),
    sqlite_autoincrement=True,
)


# Each schedule with its newest slot.
_LAST = (
    "schedules s LEFT JOIN slots t ON t.slot_id = (SELECT n.slot_id FROM slots n WHERE n.schedule_id = s.schedule_id"
    " ORDER BY n.due_at DESC, n.slot_id DESC LIMIT 1)"
)

_WHAT = (
    ("kind", "text", "s.kind", "kind of job: nightly, prune, vacuum, backup"),
    ("project", "text", "s.project", "project of the job; null for all projects"),
)

_ENDED = "end of the job, UTC, ISO 8601"

_STATES = "running, lost (the scheduler ended before the job), waiting for a retry, done or failed"


# A killed scheduler leaves its slot in the state running; only the expired lease shows it.
_STATE = "CASE WHEN t.state = 'running' AND t.lease_until < {now} THEN 'lost' ELSE t.state END"

VIEW_DEFINITIONS: dict[str, ViewDefinition] = {
    "v1_saved_queries": ViewDefinition(
        "Queries that people saved, each under a name.",
        "saved_queries q",
        view_columns(
            "q",
            "query_id | int | number of the query",
            "name | text | unique name",
            "sql | text | one SELECT over the views",
            "params | text | values of its parameters, as a JSON object of texts",
            "chart | text | its chart as a JSON object: kind, x, y, by; empty without one",
            "author | text | name of the token that saved it; null without a token",
            "saved_at | text | when it was saved, UTC, ISO 8601",
        ),
    ),
    "v1_schedules": ViewDefinition(
        "Schedules of recurring jobs, with the outcome of the newest one.",
        _LAST,
        view_columns(
            "s",
            "schedule_id | int | schedule number",
            *_WHAT,
            "cron | text | cron expression: minute, hour, day of the month, month and day of the week",
            "zone | text | time zone of the cron expression",
            "arguments | text | further arguments of the job, as a JSON object",
            "enabled | int | 1 if enabled, 0 if paused",
            "created_at | text | creation time, UTC, ISO 8601",
            "next_at | text | next due time, UTC; a time in the past means that no scheduler is running",
            "last_due_at | text | t.due_at | newest due time, UTC; null before the first job",
            "last_started_at | text | t.started_at | start of the job, UTC, ISO 8601",
            ("last_ended_at", "text", "t.ended_at", _ENDED),
            ("last_state", "text", _STATE, _STATES),
            "last_attempts | int | t.attempts | number of attempts",
            "last_message | text | t.message | result of the job, or why it failed",
            (
                "last_deliveries | text | t.deliveries | outcome per channel, as a JSON object of texts; "
                "v1_deliveries has one row per delivery"
            ),
        ),
    ),
    "v1_slots": ViewDefinition(
        "Due times of schedules, with the outcome of each.",
        "slots t JOIN schedules s ON s.schedule_id = t.schedule_id",
        view_columns(
            "t",
            "slot_id | int | slot number",
            "schedule_id | int | schedule number",
            *_WHAT,
            "slot_key | text | local time that identifies the slot; UTC if the schedule is hourly",
            "due_at | text | due time, UTC, ISO 8601",
            "owner | text | host, process and number of the scheduler that ran it last",
            "attempts | int | number of attempts",
            "started_at | text | start of the newest attempt, UTC, ISO 8601",
            "heartbeat_at | text | newest heartbeat of the owner, UTC, ISO 8601",
            "lease_until | text | end of the lease, until which no other scheduler may run it; null once the job ended",
            ("ended_at", "text", "t.ended_at", _ENDED),
            ("state", "text", _STATE, _STATES),
            "message | text | result of the job, or why it failed",
            (
                "deliveries | text | outcome per channel, as a JSON object of texts; v1_deliveries has one row per "
                "delivery"
            ),
        ),
    ),
}

tokens = table(
    "tokens",
    row_id("token_id"),
    text("name", nullable=False),
    text("hash", nullable=False, unique=True),
    *fields("scopes text, project text?, created_at text, expires_at text?, last_used_at text?, revoked_at text?"),
    check("length(hash) = 64", "hash"),
    sqlite_autoincrement=True,
)
saved_queries = table(
    "saved_queries",
    row_id("query_id"),
    text("name", nullable=False, unique=True),
    *fields("sql text, params text, chart text, author text?, saved_at text"),
    check("length(name) > 0", "named"),
    sqlite_autoincrement=True,
)
