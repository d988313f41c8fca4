"""The timer: runs the schedules of the store, exactly once per slot even with several schedulers.

`add` stores a schedule; `running` runs schedules until its block ends. APScheduler only says when to look: its jobs
live in memory and are made from the rows at the start and whenever these change. What a slot is, who has it and how it
went stands in the store alone.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.channels import Channel
from profsvc.errors import NotFoundError, ProfsvcError
from profsvc.scheduler.cron import ScheduleTrigger, parse_cron
from profsvc.scheduler.execution import SchedulerContext, is_due, log_line, owner_name, run_job, take_slot
from profsvc.scheduler.jobs import parse_arguments

POLL_S = 10.0
"""Seconds between two polls of the rows: for schedules that changed, slots that were missed, and owners that died."""
FINISH_S = 300.0
"""Seconds between two polls for results that an upload left when it was stopped."""


def add(
    engine: Engine, kind: str, cron: str, zone: str, said: Iterable[tuple[str, str]] = (), project: str | None = None
) -> int:
    """Keep a schedule and return its number; ``said`` are its arguments as texts."""
    arguments, now = parse_arguments(kind, project, said), datetime.now(UTC)
    next_at = parse_cron(cron, zone).after(now)
    return store.add_schedule(engine, kind, cron, zone, arguments, project=project, next_at=next_at, now=now)


def pause(engine: Engine, schedule_id: int) -> None:
    """Pause a schedule."""
    store.enable_schedule(engine, schedule_id, False, datetime.now(UTC))


def resume(engine: Engine, schedule_id: int) -> None:
    """Resume a paused schedule; missed slots are skipped."""
    store.enable_schedule(engine, schedule_id, True, datetime.now(UTC))


def run_now(
    engine: Engine, files: store.BlobStore, channels: Mapping[str, Channel], schedule_id: int
) -> dict[str, Any]:
    """Run a schedule now, outside its timetable; return the finished slot."""
    rows = [row for row in store.list_schedules(engine) if row["schedule_id"] == schedule_id]
    if not rows:
        raise NotFoundError(f"no schedule has the number {schedule_id}; profsvc schedule list shows them")
    context = SchedulerContext(engine, files, channels, owner_name())
    now = context.now()
    key = f"{store.MANUAL_PREFIX}{now.isoformat()}"
    slot = store.take_slot(engine, schedule_id, key, now, context.owner, now, now + context.lease)
    assert slot is not None
    run_job(context, rows[0], slot)
    return store.select(engine, "v1_slots", slot_id=slot.slot_id)[0]


class Timer:
    """Runs the schedules of a store; several timers may share one store."""

    def __init__(self, context: SchedulerContext, poll_s: float = POLL_S) -> None:
        """Nothing is done before `start`."""
        self.context = context
        self._poll_s = poll_s
        self._timer = BackgroundScheduler(timezone=UTC)
        self._triggers: dict[int, tuple[str, str]] = {}
        self._lacking: set[int] = set()
        self._poll_lock = threading.Lock()
        self._stopping = False

    def start(self) -> None:
        """Look at the rows now and from now on."""
        defaults = {"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        self._timer.configure(job_defaults=defaults)
        self._timer.add_job(
            self.poll, IntervalTrigger(seconds=self._poll_s, timezone=UTC), next_run_time=datetime.now(UTC)
        )
        self._timer.add_job(
            self.finish_results, IntervalTrigger(seconds=FINISH_S, timezone=UTC), next_run_time=datetime.now(UTC)
        )
        self._timer.start()
        log_line("scheduler started", owner=self.context.owner, store=store.address(self.context.engine))

    def stop(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        log_line("scheduler stops", owner=self.context.owner)
        with self._poll_lock:  # the shutdown holds a lock that a poll under way takes, and waits for the poll
            self._stopping = True
        self._timer.shutdown(wait=True)
        log_line("scheduler stopped", owner=self.context.owner)

    def poll(self) -> None:
        """Make triggers of the rows, and begin what is to be done now."""
        with self._poll_lock:
            if self._stopping:
                return
            try:
                rows = {row["schedule_id"]: row for row in store.list_schedules(self.context.engine)}
                self._update_triggers(rows)
                for row in rows.values():
                    if is_due(self.context, row):
                        number = row["schedule_id"]
                        self._timer.add_job(
                            self.run_due_slots, args=[number], id=f"due slots {number}", replace_existing=True
                        )
            except ProfsvcError as error:
                log_line("the store cannot be looked at", logging.WARNING, message=str(error))

    def finish_results(self) -> None:
        """Compute what runs lacked at the last poll too: who stored their files is not there to do it any more."""
        try:
            lacking = set(store.unfinished(self.context.engine))
        except ProfsvcError as error:
            log_line("the store cannot be looked at", logging.WARNING, message=str(error))
            return
        for run_id in sorted(lacking & self._lacking):
            if self._stopping:
                return
            try:
                pipeline.analyze_stored(self.context.engine, self.context.files, run_id)
                log_line("results computed", run=run_id)
            except ProfsvcError as error:
                log_line("results cannot be computed", logging.WARNING, run=run_id, message=str(error))
        self._lacking = lacking

    def _update_triggers(self, rows: Mapping[int, Mapping[str, Any]]) -> None:
        """Make the triggers those of the rows, and keep in each row when it is due next."""
        asked = {n: (row["cron"], row["zone"]) for n, row in rows.items() if row["enabled"]}
        for schedule_id in self._triggers.keys() - asked.keys():
            self._timer.remove_job(f"schedule {schedule_id}")
        for schedule_id, (cron, zone) in asked.items():
            if self._triggers.get(schedule_id) != (cron, zone):
                trigger = ScheduleTrigger(parse_cron(cron, zone))
                self._timer.add_job(self.run_due_slots, trigger, args=[schedule_id], id=f"schedule {schedule_id}",
                                    replace_existing=True)  # fmt: skip
        self._triggers = asked
        for schedule_id, row in rows.items():
            known = None if row["next_at"] is None else store.parse_time(row["next_at"])
            due = parse_cron(row["cron"], row["zone"]).after(self.context.now()) if row["enabled"] else None
            if due != known:
                store.save_next_time(self.context.engine, schedule_id, due)

    def run_due_slots(self, schedule_id: int) -> None:
        """Run the due slots of a schedule."""
        try:
            while row := self._row(schedule_id):
                slot = take_slot(self.context, row) if row["enabled"] else None
                if slot is None:
                    return
                run_job(self.context, row, slot)
        except ProfsvcError as error:  # the next look finds it again
            log_line("a slot cannot be taken", logging.WARNING, schedule=schedule_id, message=str(error))

    def _row(self, schedule_id: int) -> dict[str, Any] | None:
        rows = store.list_schedules(self.context.engine)
        return next((row for row in rows if row["schedule_id"] == schedule_id), None)


@contextmanager
def running(
    engine: Engine, files: store.BlobStore, channels: Mapping[str, Channel], say: Callable[[str], None] = print
) -> Iterator[Timer]:
    """Run the schedules of a store until the end of the block; the running job is finished."""
    timer = Timer(SchedulerContext(engine, files, channels, owner_name()))
    if count := sum(row["enabled"] for row in store.list_schedules(engine)):
        say(f"active schedules: {count}; list them with: profsvc schedule list")
    timer.start()
    try:
        yield timer
    finally:
        timer.stop()
