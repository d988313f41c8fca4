"""A store with schedules, a clock that a test sets, and jobs that only note that they were worked."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.scheduler import jobs as kinds
from profsvc.scheduler.cron import parse_cron
from profsvc.scheduler.execution import SchedulerContext, run_job, take_slot
from profsvc.scheduler.jobs import Argument, Job, JobKind
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
