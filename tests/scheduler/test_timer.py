"""The timer follows the rows of the schedules, and finishes the results that uploads left."""

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine

from profsvc import pipeline, scheduler, store
from profsvc.errors import ServiceError
from profsvc.store.connection.transactions import writing
from tests.scheduler.conftest import schedule


def test_the_timer_follows_the_rows(context, done) -> None:
    timer = scheduler.Timer(context._replace(now=lambda: datetime.now(UTC)), poll_s=0.05)
    timer.start()
    try:
        number = scheduler.add(context.engine, "note", "0 0 1 1 *", "UTC", [("who", "lab")], "p")
        assert store.list_schedules(context.engine)[0]["next_at"].endswith("-01-01T00:00:00Z")
        until(lambda: timer._timer.get_job(f"schedule {number}"))
        with writing(context.engine) as connection:
            connection.exec_driver_sql("UPDATE schedules SET since = '2020-01-01T00:00:00Z'")
        until(lambda: done)
        assert (done[0].arguments, done[0].project) == ({"who": "lab"}, "p")
        store.enable_schedule(context.engine, number, False, datetime.now(UTC))
        until(lambda: timer._timer.get_job(f"schedule {number}") is None)
        until(lambda: store.list_schedules(context.engine)[0]["next_at"] is None)
        scheduler.resume(context.engine, number)
        until(lambda: timer._timer.get_job(f"schedule {number}"))
    finally:
        timer.stop()
    assert len(done) == 1


def test_the_triggers_themselves_begin_the_work(context, done) -> None:
    with scheduler.running(context.engine, store.blob_store_of(context.engine), {}, lambda _: None) as timer:
        number = schedule(context.engine)
        timer.poll()
        job = timer._timer.get_job(f"schedule {number}")
        assert (job.misfire_grace_time, job.coalesce, job.max_instances) == (None, True, 1)
        until(lambda: done)  # the slot that was missed since
        job.modify(next_run_time=datetime.now(UTC))
        until(lambda: timer._timer.get_job(f"schedule {number}").next_run_time > datetime.now(UTC))
    assert len(done) == 1


def until(is_so) -> None:
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_timer_that_is_stopped_during_a_poll_stops(context, done, monkeypatch):
    schedule(context.engine)
    timer = scheduler.Timer(context)
    began, goes_on, update = threading.Event(), threading.Event(), timer._update_triggers

    def slow_update(rows: dict) -> None:
        began.set()
        assert goes_on.wait(20)
        update(rows)

    monkeypatch.setattr(timer, "_update_triggers", slow_update)
    timer.start()
    assert began.wait(20)
    stopping = threading.Thread(target=timer.stop, daemon=True)
    stopping.start()
    stopping.join(0.2)  # it waits for the poll
    goes_on.set()
    stopping.join(20)
    assert not stopping.is_alive()


def test_results_that_are_still_lacking_at_the_second_poll_are_computed(context, monkeypatch):
    """The first poll may find an upload that is still at work."""
    raw = Path(__file__).parents[2] / "fixtures" / "ncu_raw" / "plain.csv"
    for name in ("first", "second"):
        with raw.open("rb") as stream:
            pipeline.ingest(context.engine, stream, "raw.csv", store.RunInfo(name=name), results_later=True)
    timer, analyze = scheduler.Timer(context), pipeline.analyze_stored

    def failing(engine: Engine, files: store.BlobStore, run_id: int) -> None:
        if run_id == 1:
            raise ServiceError("the store is locked")
        analyze(engine, files, run_id)

    monkeypatch.setattr(pipeline, "analyze_stored", failing)
    timer.finish_results()
    assert set(store.unfinished(context.engine)) == {1, 2}
    timer.finish_results()
    assert set(store.unfinished(context.engine)) == {1}
    monkeypatch.undo()
    timer.finish_results()
    assert store.unfinished(context.engine) == {}
