import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, scheduler, store
from profsvc.channels import Message, load
from profsvc.errors import NotFoundError, ServiceError, UsageError
from profsvc.pipeline import delivery, nightly
from profsvc.scheduler import execution
from profsvc.scheduler import jobs as kinds
from profsvc.scheduler.cron import parse_cron
from profsvc.scheduler.execution import SchedulerContext, is_due, run_job, take_slot
from profsvc.scheduler.jobs import Argument, Job, JobKind
from profsvc.store.connection.transactions import writing
from tests.store import conftest

engine, sqlite_template, stored = (getattr(conftest, name) for name in ("engine", "sqlite_template", "stored"))
BEGIN = datetime(2026, 3, 28, 12, tzinfo=UTC)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


class Clock:
    def __init__(self) -> None:
        self.at = BEGIN

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def context(engine: Engine, clock: Clock) -> SchedulerContext:
    return SchedulerContext(engine, store.blob_store_of(engine), {}, "a", clock, timedelta(minutes=5), 60.0)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs of a kind ``note`` that were worked."""
    jobs: list[Job] = []

    def worked(job: Job) -> str:
        jobs.append(job)
        return f"done for {job.arguments['who']}"

    kind = JobKind("Notes.", worked, {"who": Argument("all", kinds._parse_text, "a name")}, takes_project=True)
    monkeypatch.setattr(kinds, "KINDS", {**kinds.KINDS, "note": kind})
    return jobs


def schedule(engine: Engine, cron: str = "30 2 * * *", kind: str = "note") -> int:
    times = parse_cron(cron, "Europe/Berlin")
    arguments = kinds.parse_arguments(kind, None, [])
    return store.add_schedule(engine, kind, cron, "Europe/Berlin", arguments, next_at=times.after(BEGIN), now=BEGIN)


def row_of(context: SchedulerContext) -> dict:
    (row,) = store.list_schedules(context.engine)
    return row


def worked(context: SchedulerContext) -> str | None:
    slot = take_slot(context, row_of(context))
    return run_job(context, row_of(context), slot) if slot else None


def slots(context: SchedulerContext) -> list[dict]:
    return store.select(context.engine, "v1_slots")


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
    seen = []

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
    assert threading.active_count() < 10


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


def test_arguments_are_checked() -> None:
    said = [("older_than", "90d"), ("keep_tagged", "a"), ("keep_tagged", "b=c")]
    assert kinds.parse_arguments("prune", "lab", said) == {"older_than": "90d", "keep_tagged": ["a", "b=c"]}
    assert kinds.parse_arguments("backup", None, [("folder", "/b"), ("keep", "3")])["with_files"] is False
    for name, project, wrong, words in (
        ("prune", None, [], "prune needs older_than"),
        ("prune", None, [("older_than", "old")], "older_than='old' must be at least 1h, in h, d or w"),
        ("prune", None, [("older_than", "0d")], "older_than='0d' must be at least 1h"),
        ("vacuum", "lab", [], "vacuum always covers every project"),
        ("vacuum", None, [("x", "1")], "vacuum takes no 'x'; it takes nothing"),
        ("backup", None, [("folder", "b"), ("keep", "0")], "keep='0' must be how many copies"),
        ("backup", None, [("folder", "b"), ("with_files", "1")], "must be yes or no"),
    ):
        with pytest.raises(UsageError, match=words):
            kinds.parse_arguments(name, project, wrong)
    with pytest.raises(NotFoundError, match="did you mean 'nightly'"):
        kinds.parse_arguments("nightl", None, [])


def test_backups_are_made_and_the_oldest_go(context: SchedulerContext, clock: Clock, tmp_path: Path) -> None:
    arguments = kinds.parse_arguments(
        "backup", None, [("folder", str(tmp_path / "b")), ("keep", "2"), ("with_files", "yes")]
    )
    store.add_schedule(context.engine, "backup", "0 6 * * *", "UTC", arguments, next_at=None, now=BEGIN)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "profsvc-mine.sqlite").write_text("")
    for _ in range(3):
        clock.at += timedelta(days=1)
        assert worked(context) == "done"
    names = sorted(path.name for path in (tmp_path / "b").iterdir() if path.suffix == ".sqlite")
    assert names == ["profsvc-2026-03-30T0600Z.sqlite", "profsvc-2026-03-31T0600Z.sqlite", "profsvc-mine.sqlite"]
    assert slots(context)[-1]["message"].endswith("1 older copy removed")
    assert store.schema_state(store.connect(str(tmp_path / "b" / names[0]))) == "current"


def test_old_runs_are_pruned_and_vacuumed(context: SchedulerContext, clock: Clock, stored) -> None:
    for kind, said in (("prune", [("older_than", "1h")]), ("vacuum", [])):
        arguments = kinds.parse_arguments(kind, None, said)
        store.add_schedule(context.engine, kind, "0 6 * * *", "UTC", arguments, next_at=None, now=BEGIN)
    with writing(context.engine) as connection:
        connection.exec_driver_sql("UPDATE uploads SET received_at = '2020-01-01T00:00:00Z'")
        connection.exec_driver_sql("UPDATE runs SET created_at = '2020-01-01T00:00:00Z'")
    clock.at += timedelta(days=1)
    for row in store.list_schedules(context.engine):
        slot = take_slot(context, row)
        assert slot
        assert run_job(context, row, slot) == "done"
    assert slots(context)[0]["message"].startswith("1 run deleted, ")
    assert len(store.runs(context.engine)) == 0
    assert store.deleted_uploads(context.engine) == []


def test_a_night_is_reported_and_sent_once(context, clock, monkeypatch, tmp_path) -> None:
    asked = []

    def report(engine, project, date, zone):
        asked.append((project, str(date), zone))
        return {"one_line": "nothing changed", "report_id": number}

    forms = {"txt": "t", "md": "m", "html": "h", "json": "{}"}
    number = nightly.report_of_night(context.engine)["report_id"]
    monkeypatch.setattr(nightly, "report_of_night", report)
    monkeypatch.setattr(delivery, "message_of", lambda _: Message("s", [], forms, "all-2026-03-29", "k"))
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    toml = f'[good]\nkind="file"\nfolder="{tmp_path}/good"\n[bad]\nkind="file"\nfolder="{blocked}"\n'
    (tmp_path / "c.toml").write_text(toml)
    context = context._replace(channels=load(tmp_path / "c.toml"))
    arguments = kinds.parse_arguments("nightly", "lab", [("channel", "bad"), ("channel", "good")])
    store.add_schedule(
        context.engine, "nightly", "30 2 * * *", "Europe/Berlin", arguments, project="lab", next_at=None, now=BEGIN
    )
    clock.at = datetime(2026, 3, 29, 2, tzinfo=UTC)
    assert worked(context) == "waiting"
    assert asked == [("lab", "2026-03-29", "Europe/Berlin")]
    assert "was not delivered to bad:" in slots(context)[0]["message"]
    stamp = (tmp_path / "good" / "all-2026-03-29.html").stat().st_mtime_ns
    blocked.unlink()
    clock.at += timedelta(minutes=3)
    assert worked(context) == "done"
    (slot,) = slots(context)
    assert (slot["message"], slot["deliveries"].count("delivered 20")) == ("nothing changed", 2)
    sent = [(row["channel"], row["delivered"], row["sent_by"]) for row in store.select(context.engine, "v1_deliveries")]
    by = f"schedule {slot['schedule_id']}"
    assert sent == [("bad", 0, by), ("good", 1, by), ("bad", 1, by)]
    assert (blocked / "all-2026-03-29.md").exists()
    assert (tmp_path / "good" / "all-2026-03-29.html").stat().st_mtime_ns == stamp


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
