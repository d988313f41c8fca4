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
from profsvc.scheduler.cron import parse_cron
from profsvc.scheduler.jobs import Job, job_kind

LEASE = timedelta(minutes=5)
"""How long a slot stays its owner's without a heartbeat; longer than the upload of a large file blocks writers."""
HEARTBEAT_S = 30.0
RETRY_DELAYS = (timedelta(minutes=2), timedelta(minutes=10), timedelta(minutes=30))
"""Delays between a transient failure and the next try."""
log = logging.getLogger("profsvc.scheduler")


class SchedulerContext(NamedTuple):
    """What jobs run with: the store, its files, the channels, the owner's name, and a clock."""

    engine: Engine
    files: store.BlobStore
    channels: Mapping[str, Channel]
    owner: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    lease: timedelta = LEASE
    heartbeat_s: float = HEARTBEAT_S


class SlotLostError(Exception):
    """Another scheduler has taken the slot over."""


def owner_name() -> str:
    """Return a name for this scheduler that no other has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def log_line(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line to the log."""
    log.log(level, event, extra={"fields": fields})


def is_due(context: SchedulerContext, row: Mapping[str, Any]) -> bool:
    """Tell whether a schedule has a slot to be taken; nothing is written."""
    return bool(row["enabled"]) and (_lease_expired(context, row) or _latest_due(context, row) is not None)


def _lease_expired(context: SchedulerContext, row: Mapping[str, Any]) -> bool:
    return row["lease_until"] is not None and store.parse_time(row["lease_until"]) < context.now()


def _latest_due(context: SchedulerContext, row: Mapping[str, Any]) -> Any:
    due = parse_cron(row["cron"], row["zone"]).latest(context.now(), store.parse_time(row["since"]))
    is_new = due is not None and (row["last_due_at"] is None or due.at > store.parse_time(row["last_due_at"]))
    return due if is_new else None


def take_slot(context: SchedulerContext, row: Mapping[str, Any]) -> store.Slot | None:
    """Take a slot of a schedule: one whose lease has run out, else the newest that is due; None if there is none.

    Of the slots that were missed only the newest is made up for.
    """
    now = context.now()
    slot = None
    if _lease_expired(context, row):
        slot = store.take_over_slot(context.engine, row["schedule_id"], context.owner, now, now + context.lease)
    if slot is None and (due := _latest_due(context, row)):
        slot = store.take_slot(
            context.engine, row["schedule_id"], due.key, due.at, context.owner, now, now + context.lease
        )
    return slot


def run_job(context: SchedulerContext, row: Mapping[str, Any], slot: store.Slot) -> str:
    """Run the job of a slot and store its outcome; return its state: done, waiting, failed, or lost to another."""
    said = {"schedule": row["schedule_id"], "kind": row["kind"], "slot": slot.slot_key, "attempt": slot.attempts}
    log_line("slot taken", **said)
    state, message = "failed", f"its scheduler ended {len(RETRY_DELAYS) + 1} times before it did; it is not tried again"
    if slot.attempts <= len(RETRY_DELAYS) + 1:
        state, message = _run(context, row, slot)
    if state == "waiting":
        kept = store.postpone_slot(context.engine, slot, context.now() + RETRY_DELAYS[slot.attempts - 1], message)
    elif state != "lost":
        kept = store.end_slot(context.engine, slot, context.now(), state, message)
    else:
        kept = False
    state = state if kept else "lost"
    log_line(f"slot {state}", logging.INFO if state == "done" else logging.WARNING, message=message, **said)
    return state


def _run(context: SchedulerContext, row: Mapping[str, Any], slot: store.Slot) -> tuple[str, str]:
    """Run the job; return the state and the message."""

    def note(deliveries: Mapping[str, str], newest: store.Delivery) -> None:
        if not store.save_slot_deliveries(context.engine, slot, deliveries, newest):
            raise SlotLostError

    job = Job(
        context.engine, context.files, context.channels, row["project"], row["zone"], row["arguments"], slot.due_at,
        slot.attempts, slot.deliveries, note, f"schedule {row['schedule_id']}",
    )  # fmt: skip
    try:
        with _heartbeat(context, slot):
            return "done", job_kind(row["kind"]).work(job)
    except SlotLostError:
        return "lost", "another scheduler has taken it over"
    except ServiceError as error:
        return "waiting" if slot.attempts <= len(RETRY_DELAYS) else "failed", str(error)
    except ProfsvcError as error:
        return "failed", str(error)
    except Exception as error:
        log.exception("internal error")
        return "failed", f"internal error: {type(error).__name__}: {error}"


@contextmanager
def _heartbeat(context: SchedulerContext, slot: store.Slot) -> Iterator[None]:
    """Renew the lease of a slot until the end of the block."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(context.heartbeat_s):
            now = context.now()
            try:
                if not store.renew_slot(context.engine, slot, now, now + context.lease):
                    return
            except ProfsvcError as error:
                log_line("no heartbeat", logging.WARNING, slot=slot.slot_key, message=str(error))

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
