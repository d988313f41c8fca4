"""One slot from its taking to its end: the lease, the heartbeat, the work, and what is kept of how it went.

A failure of the store, of a server or of the network is tried again after some minutes, three times; any other is
final. A slot whose owner died is taken over when its lease has run out. So the work of a slot must come to the same
when it is done twice: a report replaces itself, and what was delivered is not delivered again.
"""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Engine

from profsvc import store
from profsvc.channels import Channel
from profsvc.errors import ProfsvcError, ServiceError
from profsvc.scheduler.cron import times_of
from profsvc.scheduler.kinds import Job, kind_of

LEASE = timedelta(minutes=5)
"""How long a slot is its owner's without a word of it; longer than a writer of a large file holds others up."""
BEAT_S = 30.0
WAITS = (timedelta(minutes=2), timedelta(minutes=10), timedelta(minutes=30))
"""From a failure that may pass to the next try."""
log = logging.getLogger("profsvc.scheduler")


class House(NamedTuple):
    """What slots are worked off with: the store, its files, the channels, who the owner is, and a clock."""

    engine: Engine
    files: store.Files
    channels: Mapping[str, Channel]
    owner: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    lease: timedelta = LEASE
    beat_s: float = BEAT_S


class LostError(Exception):
    """The slot is somebody else's by now."""


def owner_name() -> str:
    """Return a name for this scheduler that no other has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def told(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line to the log."""
    log.log(level, event, extra={"fields": fields})


def wanted(house: House, row: Mapping[str, Any]) -> bool:
    """Tell whether a schedule has a slot to be taken; nothing is written."""
    return bool(row["enabled"]) and (_has_run_out(house, row) or _due(house, row) is not None)


def _has_run_out(house: House, row: Mapping[str, Any]) -> bool:
    return row["lease_until"] is not None and store.read_time(row["lease_until"]) < house.now()


def _due(house: House, row: Mapping[str, Any]) -> Any:
    due = times_of(row["cron"], row["zone"]).newest(house.now(), store.read_time(row["since"]))
    is_new = due is not None and (row["last_due_at"] is None or due.at > store.read_time(row["last_due_at"]))
    return due if is_new else None


def take(house: House, row: Mapping[str, Any]) -> store.Slot | None:
    """Take a slot of a schedule: one whose lease has run out, else the newest that is due; None if there is none.

    Of the slots that were missed only the newest is made up for.
    """
    now = house.now()
    slot = None
    if _has_run_out(house, row):
        slot = store.take_over_slot(house.engine, row["schedule_id"], house.owner, now, now + house.lease)
    if slot is None and (due := _due(house, row)):
        slot = store.take_slot(house.engine, row["schedule_id"], due.key, due.at, house.owner, now, now + house.lease)
    return slot


def perform(house: House, row: Mapping[str, Any], slot: store.Slot) -> str:
    """Do the work of a slot and keep how it ended; return its state: done, waiting, failed, or lost to another."""
    said = {"schedule": row["schedule_id"], "kind": row["kind"], "slot": slot.slot_key, "attempt": slot.attempts}
    told("slot taken", **said)
    state, message = "failed", f"its scheduler ended {len(WAITS) + 1} times before it did; it is not tried again"
    if slot.attempts <= len(WAITS) + 1:
        state, message = _worked(house, row, slot)
    if state == "waiting":
        kept = store.put_off_slot(house.engine, slot, house.now() + WAITS[slot.attempts - 1], message)
    elif state != "lost":
        kept = store.end_slot(house.engine, slot, house.now(), state, message)
    else:
        kept = False
    state = state if kept else "lost"
    told(f"slot {state}", logging.INFO if state == "done" else logging.WARNING, message=message, **said)
    return state


def _worked(house: House, row: Mapping[str, Any], slot: store.Slot) -> tuple[str, str]:
    """Work, and say what came of it."""

    def note(deliveries: Mapping[str, str]) -> None:
        if not store.note_deliveries(house.engine, slot, deliveries):
            raise LostError

    job = Job(
        house.engine, house.files, house.channels, row["project"], row["zone"], row["arguments"], slot.due_at,
        slot.attempts, slot.deliveries, note, f"schedule {row['schedule_id']}",
    )  # fmt: skip
    try:
        with _beating(house, slot):
            return "done", kind_of(row["kind"]).work(job)
    except LostError:
        return "lost", "another scheduler has taken it over"
    except ServiceError as error:
        return "waiting" if slot.attempts <= len(WAITS) else "failed", str(error)
    except ProfsvcError as error:
        return "failed", str(error)
    except Exception as error:
        log.exception("a defect of profsvc")
        return "failed", f"a defect of profsvc: {type(error).__name__}: {error}"


@contextmanager
def _beating(house: House, slot: store.Slot) -> Iterator[None]:
    """Renew the lease of a slot until the end of the block."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(house.beat_s):
            now = house.now()
            try:
                if not store.renew_slot(house.engine, slot, now, now + house.lease):
                    return
            except ProfsvcError as error:
                told("no heartbeat", logging.WARNING, slot=slot.slot_key, message=str(error))

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
