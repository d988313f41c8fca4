"""Schedules as rows, and their slots: the times at which they are due, each taken by one scheduler of many.

Who inserts the key of a slot runs it. The owner holds it by a lease that its heartbeat renews; a slot whose lease has
run out, because its owner died or because a try failed, is taken over by whoever asks next. Times are UTC as text of
one length, so that they compare as texts.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError
from profsvc.store.connection.sql import Connection, Engine, dicts_of, text
from profsvc.store.connection.timestamps import format_time, parse_time
from profsvc.store.connection.transactions import reading, writing

_ADD = """
    INSERT INTO schedules (kind, project, cron, zone, arguments, enabled, created_at, since, next_at)
    VALUES (:kind, :project, :cron, :zone, :arguments, 1, :now, :now, :next_at) RETURNING schedule_id
"""
_LISTED = """
    SELECT s.*, (SELECT max(t.due_at) FROM slots t WHERE t.schedule_id = s.schedule_id
                 AND t.slot_key NOT LIKE :asked) AS last_due_at,
           (SELECT min(t.lease_until) FROM slots t WHERE t.schedule_id = s.schedule_id) AS lease_until
    FROM schedules s ORDER BY s.schedule_id
"""
_TAKE = """
    INSERT INTO slots (schedule_id, slot_key, due_at, owner, attempts, lease_until, heartbeat_at, started_at, state,
                       message, deliveries)
    VALUES (:schedule_id, :slot_key, :due_at, :owner, 1, :lease_until, :now, :now, 'running', '', '{}')
    ON CONFLICT (schedule_id, slot_key) DO NOTHING RETURNING *
"""
# The lease is looked at again by the update itself: of two that found the same slot one changes it.
_TAKE_OVER = """
    UPDATE slots SET owner = :owner, attempts = attempts + 1, lease_until = :lease_until, heartbeat_at = :now,
                     started_at = :now, state = 'running'
    WHERE lease_until < :now AND slot_id = (
        SELECT min(t.slot_id) FROM slots t WHERE t.schedule_id = :schedule_id AND t.lease_until < :now
    ) RETURNING *
"""
_FORGET = """
    DELETE FROM slots WHERE schedule_id = :schedule_id AND lease_until IS NULL AND slot_id <= (
        SELECT t.slot_id FROM slots t WHERE t.schedule_id = :schedule_id ORDER BY t.slot_id DESC LIMIT 1 OFFSET :most
    )
"""
_MINE = "slot_id = :slot_id AND owner = :owner AND attempts = :attempts AND state = 'running'"


MAX_SLOTS = 1000
"""Maximum number of slots that are kept per schedule."""
MANUAL_PREFIX = "asked "
"""Prefix of the keys of slots that a user started, outside the timetable."""


class Slot(NamedTuple):
    """A slot that somebody has taken."""

    slot_id: int
    schedule_id: int
    slot_key: str
    due_at: datetime
    owner: str
    attempts: int
    message: str
    deliveries: dict[str, str]


def _slot(row: Any) -> Slot | None:
    if row is None:
        return None
    found = {name: row[name] for name in Slot._fields}
    found |= {"due_at": parse_time(row["due_at"]), "deliveries": json.loads(row["deliveries"])}
    return Slot(**found)


def add_schedule(
    engine: Engine, kind: str, cron: str, zone: str, arguments: Mapping[str, Any], *, project: str | None = None,
    next_at: datetime | None, now: datetime,
) -> int:  # fmt: skip
    """Keep a schedule and return its number; what was due before ``now`` is not missed by it."""
    row = {
        "kind": kind,
        "project": project,
        "cron": cron,
        "zone": zone,
        "now": format_time(now),
        "arguments": json.dumps(arguments, sort_keys=True),
        "next_at": None if next_at is None else format_time(next_at),
    }
    with writing(engine) as connection:
        return int(connection.execute(text(_ADD), row).scalar_one())


def list_schedules(engine: Engine) -> list[dict[str, Any]]:
    """Return every schedule: its row, when its newest slot was due, and when the first lease of them runs out."""
    with reading(engine) as connection:
        rows = dicts_of(connection.execute(text(_LISTED), {"asked": f"{MANUAL_PREFIX}%"}))
    return [row | {"arguments": json.loads(row["arguments"])} for row in rows]


def remove_schedule(engine: Engine, schedule_id: int) -> None:
    """Remove a schedule with the record of its slots."""
    _change(engine, "DELETE FROM schedules WHERE schedule_id = :schedule_id", schedule_id)


def enable_schedule(engine: Engine, schedule_id: int, enabled: bool, now: datetime) -> None:
    """Pause a schedule, or resume it from ``now`` on."""
    query = "UPDATE schedules SET enabled = :enabled, since = :now WHERE schedule_id = :schedule_id"
    _change(engine, query, schedule_id, enabled=int(enabled), now=format_time(now))


def _change(engine: Engine, query: str, schedule_id: int, **values: Any) -> None:
    with writing(engine) as connection:
        if connection.execute(text(query), {"schedule_id": schedule_id, **values}).rowcount == 0:
            raise NotFoundError(f"no schedule has the number {schedule_id}; profsvc schedule list shows them")


def save_next_time(engine: Engine, schedule_id: int, next_at: datetime | None) -> None:
    """Keep when a schedule is due next, for who looks at it, and of its slots that have ended the newest."""
    query = "UPDATE schedules SET next_at = :next_at WHERE schedule_id = :schedule_id"
    row = {"schedule_id": schedule_id, "next_at": None if next_at is None else format_time(next_at)}
    with writing(engine) as connection:
        connection.execute(text(query), row)
        connection.execute(text(_FORGET), {"schedule_id": schedule_id, "most": MAX_SLOTS})


def take_slot(
    engine: Engine, schedule_id: int, slot_key: str, due_at: datetime, owner: str, now: datetime, until: datetime
) -> Slot | None:
    """Take a slot for ``owner``; None if somebody has, or had, it already."""
    row = {"slot_key": slot_key, "due_at": format_time(due_at), **_lease(schedule_id, owner, now, until)}
    with writing(engine) as connection:
        return _slot(connection.execute(text(_TAKE), row).mappings().first())


def take_over_slot(engine: Engine, schedule_id: int, owner: str, now: datetime, until: datetime) -> Slot | None:
    """Take the oldest slot of a schedule whose lease has run out; None if there is none."""
    with writing(engine) as connection:
        row = _lease(schedule_id, owner, now, until)
        return _slot(connection.execute(text(_TAKE_OVER), row).mappings().first())


def _lease(schedule_id: int, owner: str, now: datetime, until: datetime) -> dict[str, Any]:
    return {"schedule_id": schedule_id, "owner": owner, "now": format_time(now), "lease_until": format_time(until)}


def renew_slot(engine: Engine, slot: Slot, now: datetime, until: datetime) -> bool:
    """Say that the owner lives; tell whether the slot is still its own."""
    return _update(
        engine, slot, "heartbeat_at = :now, lease_until = :until", now=format_time(now), until=format_time(until)
    )


def end_slot(engine: Engine, slot: Slot, now: datetime, state: str, message: str) -> bool:
    """Keep how a slot ended, ``done`` or ``failed``; tell whether it was still the owner's."""
    values = "state = :state, message = :message, ended_at = :now, heartbeat_at = :now, lease_until = NULL"
    return _update(engine, slot, values, state=state, message=message, now=format_time(now))


def postpone_slot(engine: Engine, slot: Slot, until: datetime, message: str) -> bool:
    """Leave a slot to whoever takes it after ``until``; tell whether it was still the owner's."""
    values = "state = 'waiting', message = :message, lease_until = :until"
    return _update(engine, slot, values, message=message, until=format_time(until))


def _update(engine: Engine, slot: Slot, values: str, **said: str) -> bool:
    with writing(engine) as connection:
        return write_slot(connection, slot, values, said)


def write_slot(connection: Connection, slot: Slot, values: str, said: Mapping[str, str]) -> bool:
    """Update the row of a slot; tell whether it was still the owner's."""
    row = {"slot_id": slot.slot_id, "owner": slot.owner, "attempts": slot.attempts, **said}
    return connection.execute(text(f"UPDATE slots SET {values} WHERE {_MINE}"), row).rowcount == 1
