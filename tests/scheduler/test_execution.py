"""Slots are worked once: when they are due, after their owner died, and when somebody asks."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from profsvc import scheduler, store
from profsvc.errors import NotFoundError, ServiceError, UsageError
from profsvc.pipeline import nightly
from profsvc.scheduler import execution
from profsvc.scheduler import jobs as kinds
from profsvc.scheduler.execution import SchedulerContext, is_due, run_job, take_slot
from profsvc.scheduler.jobs import Job
from tests.scheduler.conftest import BEGIN, Clock, row_of, schedule, slots, worked


def test_a_slot_is_worked_once_when_it_is_due(context: SchedulerContext, clock: Clock, done: list[Job]) -> None:
    schedule(context.engine)
    assert not is_due(context, row_of(context))
    assert worked(context) is None
    clock.at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert is_due(context, row_of(context))
    assert worked(context) == "done"
    assert not is_due(context, row_of(context))
    assert worked(context) is None
    (slot,) = slots(context)
    assert (slot["state"], slot["message"], slot["due_at"]) == ("done", "done for all", "2026-03-29T01:30:00Z")
    assert (done[0].due_at, done[0].zone, done[0].attempts) == (clock.at, "Europe/Berlin", 1)


def test_the_second_half_past_two_is_the_same_slot(context: SchedulerContext, clock: Clock, done: list[Job]) -> None:
    clock.at = datetime(2026, 10, 24, 12, tzinfo=UTC)
    schedule(context.engine)
    with_begin = row_of(context) | {"since": "2026-10-24T12:00:00Z"}
    for hour in (0, 1):
        clock.at = datetime(2026, 10, 25, hour, 30, tzinfo=UTC)
        slot = take_slot(context, with_begin)
        assert (slot is not None) is (hour == 0)
        if slot:
            assert run_job(context, with_begin, slot) == "done"
    assert len(done) == 1


def test_of_what_was_missed_the_newest_is_made_up_for(context: SchedulerContext, clock: Clock, done: list[Job]) -> None:
    schedule(context.engine)
    clock.at = BEGIN + timedelta(days=10)
    assert worked(context) == "done"
    assert worked(context) is None
    assert [slot["slot_key"] for slot in slots(context)] == ["2026-04-07T02:30"]


def test_what_rests_is_not_worked_and_not_made_up_for(context: SchedulerContext, clock: Clock, done: list[Job]) -> None:
    number = schedule(context.engine)
    store.enable_schedule(context.engine, number, False, clock.at)
    clock.at += timedelta(days=2)
    assert not is_due(context, row_of(context))
    store.enable_schedule(context.engine, number, True, clock.at)
    assert worked(context) is None
    clock.at += timedelta(days=1)
    assert worked(context) == "done"


def test_the_slot_of_a_dead_owner_is_taken_over_after_its_lease(
    context: SchedulerContext, clock: Clock, done: list[Job]
) -> None:
    schedule(context.engine)
    clock.at += timedelta(days=1)
    dead = take_slot(context._replace(owner="dead"), row_of(context))
    assert dead
    clock.at += timedelta(minutes=4)
    assert worked(context) is None
    clock.at += timedelta(minutes=2)
    assert worked(context) == "done"
    (slot,) = slots(context)
    assert (slot["owner"], slot["attempts"], slot["state"]) == ("a", 2, "done")
    assert run_job(context, row_of(context), dead) == "lost"
    assert slots(context) == [slot]


def test_a_slot_that_kills_its_owner_is_given_up(context: SchedulerContext, clock: Clock, done: list[Job]) -> None:
    schedule(context.engine)
    clock.at += timedelta(days=1)
    for _ in range(4):
        assert take_slot(context, row_of(context))
        clock.at += timedelta(minutes=6)
    assert worked(context) == "failed"
    assert done == []
    assert "ended 4 times before" in slots(context)[0]["message"]
    assert worked(context) is None


def test_what_may_pass_is_tried_again_and_the_rest_is_not(context, clock, done, monkeypatch) -> None:
    schedule(context.engine)
    clock.at += timedelta(days=1)
    errors: list[Exception] = [ServiceError("away")] * 4

    def fails(job: Job) -> str:
        done.append(job)
        raise errors.pop(0)

    monkeypatch.setitem(kinds.KINDS, "note", kinds.KINDS["note"]._replace(work=fails))
    for wait in execution.RETRY_DELAYS:
        assert worked(context) == "waiting"
        assert slots(context)[0]["message"] == "away"
        clock.at += wait
        assert worked(context) is None  # not before its time
        clock.at += timedelta(seconds=1)
    assert worked(context) == "failed"
    assert (len(done), slots(context)[0]["attempts"]) == (4, 4)
    for error, said in ((UsageError("wrong"), "wrong"), (ValueError("x"), "internal error: ValueError: x")):
        clock.at += timedelta(days=1)
        errors.append(error)
        assert worked(context) == "failed"
        assert slots(context)[-1]["message"] == said


def test_the_heart_beats_while_the_work_goes_on(context, clock, done, monkeypatch) -> None:
    schedule(context.engine)
    clock.at += timedelta(days=1)
    quick = context._replace(heartbeat_s=0.01)
    seen, others = [], set(threading.enumerate())  # tests before this one may have left some that wait for work

    def waits(job: Job) -> str:
        clock.at += timedelta(minutes=4)
        before, until = slots(context)[0]["lease_until"], time.monotonic() + 10
        while slots(context)[0]["lease_until"] == before and time.monotonic() < until:
            time.sleep(0.01)
        seen.append(slots(context)[0]["lease_until"] > before)
        return "late"

    monkeypatch.setitem(kinds.KINDS, "note", kinds.KINDS["note"]._replace(work=waits))
    assert worked(quick) == "done"
    assert seen == [True]
    assert set(threading.enumerate()) <= others


def test_who_lost_the_slot_sends_nothing_more(context, clock, done, monkeypatch) -> None:
    schedule(context.engine)
    clock.at += timedelta(days=1)

    def slow(job: Job) -> str:
        clock.at += timedelta(minutes=6)
        assert store.take_over_slot(context.engine, 1, "b", clock.at, clock.at + execution.LEASE)
        number = nightly.report_of_night(context.engine)["report_id"]
        job.note({"team": "delivered"}, store.Delivery(number, "team", "smtp", True, None, "a", "2026-03-29T12:06:00Z"))
        return "not reached"

    monkeypatch.setitem(kinds.KINDS, "note", kinds.KINDS["note"]._replace(work=slow))
    assert worked(context) == "lost"
    (slot,) = slots(context)
    assert (slot["owner"], slot["ended_at"], slot["deliveries"]) == ("b", None, "{}")


def test_a_schedule_is_run_when_somebody_asks(context, done) -> None:
    number = schedule(context.engine)
    files = store.blob_store_of(context.engine)
    for _ in range(2):
        slot = scheduler.run_now(context.engine, files, {}, number)
        assert (slot["state"], slot["message"]) == ("done", "done for all")
    assert len(slots(context)) == len(done) == 2
    assert row_of(context)["last_due_at"] is None  # its own times are still to come
    with pytest.raises(NotFoundError, match="no schedule has the number 9"):
        scheduler.run_now(context.engine, files, {}, 9)
