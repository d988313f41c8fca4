"""The timer: what is done again and again, by rows of the store, once a slot however many schedulers run.

`add` keeps a schedule; `running` works schedules off until its block ends. APScheduler only says when to look: its jobs
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

from profsvc import store
from profsvc.channels import Channel
from profsvc.errors import NotFoundError, ProfsvcError
from profsvc.scheduler.cron import Ticking, times_of
from profsvc.scheduler.kinds import KINDS, Kind, checked
from profsvc.scheduler.work import House, owner_name, perform, take, told, wanted

__all__ = ["KINDS", "Kind", "Timer", "add", "rest", "resume", "run", "running"]

LOOK_S = 10.0
"""How often the rows are looked at: for schedules that changed, slots that were missed, and owners that died."""


def add(
    engine: Engine, kind: str, cron: str, zone: str, said: Iterable[tuple[str, str]] = (), project: str | None = None
) -> int:
    """Keep a schedule and return its number; ``said`` are its arguments as texts."""
    arguments, now = checked(kind, project, said), datetime.now(UTC)
    next_at = times_of(cron, zone).after(now)
    return store.add_schedule(engine, kind, cron, zone, arguments, project=project, next_at=next_at, now=now)


def rest(engine: Engine, schedule_id: int) -> None:
    """Let a schedule rest."""
    store.enable_schedule(engine, schedule_id, False, datetime.now(UTC))


def resume(engine: Engine, schedule_id: int) -> None:
    """Let a schedule be done again; what it missed while it rested is not made up for."""
    store.enable_schedule(engine, schedule_id, True, datetime.now(UTC))


def run(engine: Engine, files: store.Files, channels: Mapping[str, Channel], schedule_id: int) -> dict[str, Any]:
    """Do what a schedule does now, besides its times; return the slot as it ended."""
    rows = [row for row in store.list_schedules(engine) if row["schedule_id"] == schedule_id]
    if not rows:
        raise NotFoundError(f"no schedule has the number {schedule_id}; profsvc schedule list shows them")
    house = House(engine, files, channels, owner_name())
    now = house.now()
    key = f"{store.ASKED}{now.isoformat()}"
    slot = store.take_slot(engine, schedule_id, key, now, house.owner, now, now + house.lease)
    assert slot is not None
    perform(house, rows[0], slot)
    return store.select(engine, "v1_slots", slot_id=slot.slot_id)[0]


class Timer:
    """Works off the schedules of a store; any number of them may run on one store."""

    def __init__(self, house: House, look_s: float = LOOK_S) -> None:
        """Nothing is done before `start`."""
        self.house = house
        self._look_s = look_s
        self._timer = BackgroundScheduler(timezone=UTC)
        self._made: dict[int, tuple[str, str]] = {}
        self._looking = threading.Lock()

    def start(self) -> None:
        """Look at the rows now and from now on."""
        defaults = {"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        self._timer.configure(job_defaults=defaults)
        self._timer.add_job(
            self.look, IntervalTrigger(seconds=self._look_s, timezone=UTC), next_run_time=datetime.now(UTC)
        )
        self._timer.start()
        told("scheduler started", owner=self.house.owner, store=store.address(self.house.engine))

    def stop(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        told("scheduler stops", owner=self.house.owner)
        self._timer.shutdown(wait=True)
        told("scheduler stopped", owner=self.house.owner)

    def look(self) -> None:
        """Make triggers of the rows, and begin what is to be done now."""
        with self._looking:
            try:
                rows = {row["schedule_id"]: row for row in store.list_schedules(self.house.engine)}
                self._follow(rows)
                for row in rows.values():
                    if wanted(self.house, row):
                        self._timer.add_job(self.turn, args=[row["schedule_id"]], id=f"turn {row['schedule_id']}",
                                            replace_existing=True)  # fmt: skip
            except ProfsvcError as error:
                told("the store cannot be looked at", logging.WARNING, message=str(error))

    def _follow(self, rows: Mapping[int, Mapping[str, Any]]) -> None:
        """Make the triggers those of the rows, and keep in each row when it is due next."""
        asked = {n: (row["cron"], row["zone"]) for n, row in rows.items() if row["enabled"]}
        for schedule_id in self._made.keys() - asked.keys():
            self._timer.remove_job(f"schedule {schedule_id}")
        for schedule_id, (cron, zone) in asked.items():
            if self._made.get(schedule_id) != (cron, zone):
                trigger = Ticking(times_of(cron, zone))
                self._timer.add_job(self.turn, trigger, args=[schedule_id], id=f"schedule {schedule_id}",
                                    replace_existing=True)  # fmt: skip
        self._made = asked
        for schedule_id, row in rows.items():
            known = None if row["next_at"] is None else store.read_time(row["next_at"])
            due = times_of(row["cron"], row["zone"]).after(self.house.now()) if row["enabled"] else None
            if due != known:
                store.note_next(self.house.engine, schedule_id, due)

    def turn(self, schedule_id: int) -> None:
        """Work off what a schedule has to be done now."""
        try:
            while row := self._row(schedule_id):
                slot = take(self.house, row) if row["enabled"] else None
                if slot is None:
                    return
                perform(self.house, row, slot)
        except ProfsvcError as error:  # the next look finds it again
            told("a slot cannot be taken", logging.WARNING, schedule=schedule_id, message=str(error))

    def _row(self, schedule_id: int) -> dict[str, Any] | None:
        rows = store.list_schedules(self.house.engine)
        return next((row for row in rows if row["schedule_id"] == schedule_id), None)


@contextmanager
def running(
    engine: Engine, files: store.Files, channels: Mapping[str, Channel], say: Callable[[str], None] = print
) -> Iterator[Timer]:
    """Work off the schedules of a store until the end of the block; what is under way then is finished."""
    timer = Timer(House(engine, files, channels, owner_name()))
    if count := sum(row["enabled"] for row in store.list_schedules(engine)):
        say(f"schedules that are worked off: {count}; profsvc schedule list shows them")
    timer.start()
    try:
        yield timer
    finally:
        timer.stop()
