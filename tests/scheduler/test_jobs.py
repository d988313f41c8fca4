"""The kinds of jobs, and their arguments."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from profsvc import store
from profsvc.channels import Message, load
from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline import delivery, nightly
from profsvc.scheduler import jobs as kinds
from profsvc.scheduler.execution import SchedulerContext, run_job, take_slot
from profsvc.store.connection.transactions import writing
from tests.scheduler.conftest import BEGIN, Clock, slots, worked


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
