import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import scheduler, store
from profsvc.channels import Message, load
from profsvc.errors import NotFoundError, ServiceError, UsageError
from profsvc.pipeline import delivery, night
from profsvc.scheduler import kinds, work
from profsvc.scheduler.cron import times_of
from profsvc.scheduler.kinds import Argument, Job, Kind
from profsvc.scheduler.work import House, perform, take, wanted
from profsvc.store.engine import writing
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
def house(engine: Engine, clock: Clock) -> House:
    return House(engine, store.files_of(engine), {}, "a", clock, timedelta(minutes=5), 60.0)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs of a kind ``note`` that were worked."""
    jobs: list[Job] = []

    def worked(job: Job) -> str:
        jobs.append(job)
        return f"done for {job.arguments['who']}"

    kind = Kind("Notes.", worked, {"who": Argument("all", kinds._name, "a name")}, takes_project=True)
    monkeypatch.setattr(kinds, "KINDS", {**kinds.KINDS, "note": kind})
    return jobs


def schedule(engine: Engine, cron: str = "30 2 * * *", kind: str = "note") -> int:
    times = times_of(cron, "Europe/Berlin")
    arguments = kinds.checked(kind, None, [])
    return store.add_schedule(engine, kind, cron, "Europe/Berlin", arguments, next_at=times.after(BEGIN), now=BEGIN)


def row_of(house: House) -> dict:
    (row,) = store.list_schedules(house.engine)
    return row


def worked(house: House) -> str | None:
    slot = take(house, row_of(house))
    return perform(house, row_of(house), slot) if slot else None


def slots(house: House) -> list[dict]:
    return store.select(house.engine, "v1_slots")


def test_a_slot_is_worked_once_when_it_is_due(house: House, clock: Clock, done: list[Job]) -> None:
    schedule(house.engine)
    assert not wanted(house, row_of(house))
    assert worked(house) is None
    clock.at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert wanted(house, row_of(house))
    assert worked(house) == "done"
    assert not wanted(house, row_of(house))
    assert worked(house) is None
    (slot,) = slots(house)
    assert (slot["state"], slot["message"], slot["due_at"]) == ("done", "done for all", "2026-03-29T01:30:00Z")
    assert (done[0].due_at, done[0].zone, done[0].attempts) == (clock.at, "Europe/Berlin", 1)


def test_the_second_half_past_two_is_the_same_slot(house: House, clock: Clock, done: list[Job]) -> None:
    clock.at = datetime(2026, 10, 24, 12, tzinfo=UTC)
    schedule(house.engine)
    with_begin = row_of(house) | {"since": "2026-10-24T12:00:00Z"}
    for hour in (0, 1):
        clock.at = datetime(2026, 10, 25, hour, 30, tzinfo=UTC)
        slot = take(house, with_begin)
        assert (slot is not None) is (hour == 0)
        if slot:
            assert perform(house, with_begin, slot) == "done"
    assert len(done) == 1


def test_of_what_was_missed_the_newest_is_made_up_for(house: House, clock: Clock, done: list[Job]) -> None:
    schedule(house.engine)
    clock.at = BEGIN + timedelta(days=10)
    assert worked(house) == "done"
    assert worked(house) is None
    assert [slot["slot_key"] for slot in slots(house)] == ["2026-04-07T02:30"]


def test_what_rests_is_not_worked_and_not_made_up_for(house: House, clock: Clock, done: list[Job]) -> None:
    number = schedule(house.engine)
    store.enable_schedule(house.engine, number, False, clock.at)
    clock.at += timedelta(days=2)
    assert not wanted(house, row_of(house))
    store.enable_schedule(house.engine, number, True, clock.at)
    assert worked(house) is None
    clock.at += timedelta(days=1)
    assert worked(house) == "done"


def test_the_slot_of_a_dead_owner_is_taken_over_after_its_lease(house: House, clock: Clock, done: list[Job]) -> None:
    schedule(house.engine)
    clock.at += timedelta(days=1)
    dead = take(house._replace(owner="dead"), row_of(house))
    assert dead
    clock.at += timedelta(minutes=4)
    assert worked(house) is None
    clock.at += timedelta(minutes=2)
    assert worked(house) == "done"
    (slot,) = slots(house)
    assert (slot["owner"], slot["attempts"], slot["state"]) == ("a", 2, "done")
    assert perform(house, row_of(house), dead) == "lost"
    assert slots(house) == [slot]


def test_a_slot_that_kills_its_owner_is_given_up(house: House, clock: Clock, done: list[Job]) -> None:
    schedule(house.engine)
    clock.at += timedelta(days=1)
    for _ in range(4):
        assert take(house, row_of(house))
        clock.at += timedelta(minutes=6)
    assert worked(house) == "failed"
    assert done == []
    assert "ended 4 times before" in slots(house)[0]["message"]
    assert worked(house) is None


def test_what_may_pass_is_tried_again_and_the_rest_is_not(house, clock, done, monkeypatch) -> None:
    schedule(house.engine)
    clock.at += timedelta(days=1)
    errors: list[Exception] = [ServiceError("away")] * 4

    def fails(job: Job) -> str:
        done.append(job)
        raise errors.pop(0)

    monkeypatch.setitem(kinds.KINDS, "note", kinds.KINDS["note"]._replace(work=fails))
    for wait in work.WAITS:
        assert worked(house) == "waiting"
        assert slots(house)[0]["message"] == "away"
        clock.at += wait
        assert worked(house) is None  # not before its time
        clock.at += timedelta(seconds=1)
    assert worked(house) == "failed"
    assert (len(done), slots(house)[0]["attempts"]) == (4, 4)
    for error, said in ((UsageError("wrong"), "wrong"), (ValueError("x"), "a defect of profsvc: ValueError: x")):
        clock.at += timedelta(days=1)
        errors.append(error)
        assert worked(house) == "failed"
        assert slots(house)[-1]["message"] == said


def test_the_heart_beats_while_the_work_goes_on(house, clock, done, monkeypatch) -> None:
    schedule(house.engine)
    clock.at += timedelta(days=1)
    quick = house._replace(beat_s=0.01)
    seen = []

    def waits(job: Job) -> str:
        clock.at += timedelta(minutes=4)
        before, until = slots(house)[0]["lease_until"], time.monotonic() + 10
        while slots(house)[0]["lease_until"] == before and time.monotonic() < until:
            time.sleep(0.01)
        seen.append(slots(house)[0]["lease_until"] > before)
        return "late"

    monkeypatch.setitem(kinds.KINDS, "note", kinds.KINDS["note"]._replace(work=waits))
    assert worked(quick) == "done"
    assert seen == [True]
    assert threading.active_count() < 10


def test_who_lost_the_slot_sends_nothing_more(house, clock, done, monkeypatch) -> None:
    schedule(house.engine)
    clock.at += timedelta(days=1)

    def slow(job: Job) -> str:
        clock.at += timedelta(minutes=6)
        assert store.take_over_slot(house.engine, 1, "b", clock.at, clock.at + work.LEASE)
        job.note({"team": "delivered"})
        return "not reached"

    monkeypatch.setitem(kinds.KINDS, "note", kinds.KINDS["note"]._replace(work=slow))
    assert worked(house) == "lost"
    (slot,) = slots(house)
    assert (slot["owner"], slot["ended_at"], slot["deliveries"]) == ("b", None, "{}")


def test_a_schedule_is_run_when_somebody_asks(house, done) -> None:
    number = schedule(house.engine)
    files = store.files_of(house.engine)
    for _ in range(2):
        slot = scheduler.run(house.engine, files, {}, number)
        assert (slot["state"], slot["message"]) == ("done", "done for all")
    assert len(slots(house)) == len(done) == 2
    assert row_of(house)["last_due_at"] is None  # its own times are still to come
    with pytest.raises(NotFoundError, match="no schedule has the number 9"):
        scheduler.run(house.engine, files, {}, 9)


def test_the_timer_follows_the_rows(house, done) -> None:
    timer = scheduler.Timer(house._replace(now=lambda: datetime.now(UTC)), look_s=0.05)
    timer.start()
    try:
        number = scheduler.add(house.engine, "note", "0 0 1 1 *", "UTC", [("who", "lab")], "p")
        assert store.list_schedules(house.engine)[0]["next_at"].endswith("-01-01T00:00:00Z")
        until(lambda: timer._timer.get_job(f"schedule {number}"))
        with writing(house.engine) as connection:
            connection.exec_driver_sql("UPDATE schedules SET since = '2020-01-01T00:00:00Z'")
        until(lambda: done)
        assert (done[0].arguments, done[0].project) == ({"who": "lab"}, "p")
        store.enable_schedule(house.engine, number, False, datetime.now(UTC))
        until(lambda: timer._timer.get_job(f"schedule {number}") is None)
        until(lambda: store.list_schedules(house.engine)[0]["next_at"] is None)
        scheduler.resume(house.engine, number)
        until(lambda: timer._timer.get_job(f"schedule {number}"))
    finally:
        timer.stop()
    assert len(done) == 1


def test_the_triggers_themselves_begin_the_work(house, done) -> None:
    with scheduler.running(house.engine, store.files_of(house.engine), {}, lambda _: None) as timer:
        number = schedule(house.engine)
        timer.look()
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
    assert kinds.checked("prune", "lab", said) == {"older_than": "90d", "keep_tagged": ["a", "b=c"]}
    assert kinds.checked("backup", None, [("folder", "/b"), ("keep", "3")])["with_files"] is False
    for name, project, wrong, words in (
        ("prune", None, [], "prune needs older_than"),
        ("prune", None, [("older_than", "old")], "must be a number and h, d or w"),
        ("vacuum", "lab", [], "vacuum is about every project"),
        ("vacuum", None, [("x", "1")], "vacuum takes no 'x'; it takes nothing"),
        ("backup", None, [("folder", "b"), ("keep", "0")], "keep='0' must be how many copies"),
        ("backup", None, [("folder", "b"), ("with_files", "1")], "must be yes or no"),
    ):
        with pytest.raises(UsageError, match=words):
            kinds.checked(name, project, wrong)
    with pytest.raises(NotFoundError, match="did you mean 'nightly'"):
        kinds.checked("nightl", None, [])


def test_backups_are_made_and_the_oldest_go(house: House, clock: Clock, tmp_path: Path) -> None:
    arguments = kinds.checked("backup", None, [("folder", str(tmp_path / "b")), ("keep", "2"), ("with_files", "yes")])
    store.add_schedule(house.engine, "backup", "0 6 * * *", "UTC", arguments, next_at=None, now=BEGIN)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "profsvc-mine.sqlite").write_text("")
    for _ in range(3):
        clock.at += timedelta(days=1)
        assert worked(house) == "done"
    names = sorted(path.name for path in (tmp_path / "b").iterdir() if path.suffix == ".sqlite")
    assert names == ["profsvc-2026-03-30T0600Z.sqlite", "profsvc-2026-03-31T0600Z.sqlite", "profsvc-mine.sqlite"]
    assert slots(house)[-1]["message"].endswith("1 older copy removed")
    assert store.state(store.connect(str(tmp_path / "b" / names[0]))) == "current"


def test_old_runs_are_pruned_and_vacuumed(house: House, clock: Clock, stored) -> None:
    for kind, said in (("prune", [("older_than", "1h")]), ("vacuum", [])):
        arguments = kinds.checked(kind, None, said)
        store.add_schedule(house.engine, kind, "0 6 * * *", "UTC", arguments, next_at=None, now=BEGIN)
    with writing(house.engine) as connection:
        connection.exec_driver_sql("UPDATE uploads SET received_at = '2020-01-01T00:00:00Z'")
    clock.at += timedelta(days=1)
    for row in store.list_schedules(house.engine):
        slot = take(house, row)
        assert slot
        assert perform(house, row, slot) == "done"
    assert slots(house)[0]["message"].startswith("1 run deleted, ")
    assert len(store.runs(house.engine)) == 0
    assert store.deleted_uploads(house.engine) == []


def test_a_night_is_reported_and_sent_once(house, clock, monkeypatch, tmp_path) -> None:
    asked = []

    def report(engine, project, date, zone):
        asked.append((project, str(date), zone))
        return {"one_line": "nothing changed", "report_id": number}

    forms = {"txt": "t", "md": "m", "html": "h", "json": "{}"}
    number = night.report_of_night(house.engine)["report_id"]
    monkeypatch.setattr(night, "report_of_night", report)
    monkeypatch.setattr(delivery, "message_of", lambda _: Message("s", [], forms, "all-2026-03-29", "k"))
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    toml = f'[good]\nkind="file"\nfolder="{tmp_path}/good"\n[bad]\nkind="file"\nfolder="{blocked}"\n'
    (tmp_path / "c.toml").write_text(toml)
    house = house._replace(channels=load(tmp_path / "c.toml"))
    arguments = kinds.checked("nightly", "lab", [("channel", "bad"), ("channel", "good")])
    store.add_schedule(
        house.engine, "nightly", "30 2 * * *", "Europe/Berlin", arguments, project="lab", next_at=None, now=BEGIN
    )
    clock.at = datetime(2026, 3, 29, 2, tzinfo=UTC)
    assert worked(house) == "waiting"
    assert asked == [("lab", "2026-03-29", "Europe/Berlin")]
    assert "was not delivered to bad:" in slots(house)[0]["message"]
    stamp = (tmp_path / "good" / "all-2026-03-29.html").stat().st_mtime_ns
    blocked.unlink()
    clock.at += timedelta(minutes=3)
    assert worked(house) == "done"
    (slot,) = slots(house)
    assert (slot["message"], slot["deliveries"].count("delivered 20")) == ("nothing changed", 2)
    sent = [(row["channel"], row["delivered"], row["sent_by"]) for row in store.select(house.engine, "v1_deliveries")]
    by = f"schedule {slot['schedule_id']}"
    assert sent == [("bad", 0, by), ("good", 1, by), ("bad", 1, by)]
    assert (blocked / "all-2026-03-29.md").exists()
    assert (tmp_path / "good" / "all-2026-03-29.html").stat().st_mtime_ns == stamp
