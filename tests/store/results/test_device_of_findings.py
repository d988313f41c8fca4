"""Findings of an older store, in which averages of nvprof had no device, go on under the device that is known now."""

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.analysis.changes.series.run_series import IDENTITY, series_digest
from profsvc.store.connection.sql import text
from profsvc.store.connection.transactions import writing
from profsvc.store.maintenance import migrations
from tests.pipeline.nightly.test_devices import BOARDS, averages, report, totals, upload
from tests.store.conftest import COUNTERS
from tests.store.maintenance.test_backfill import lower

NIGHTS, CHANGED = 11, 7
# Series of nights are of what the files say.
pytestmark = pytest.mark.usefixtures("unanalysed")


def forget_devices(engine: Engine) -> None:
    """Make the store one of before: only launches told a device."""
    with writing(engine) as connection:
        for table in ("runs", "findings"):
            column = "device_id" if table == "runs" else "device"
            connection.execute(text(f"UPDATE {table} SET {column} = NULL"))
        connection.execute(text("DELETE FROM upload_devices"))
        for row in connection.execute(text("SELECT * FROM findings")).mappings().all():
            series = series_digest(tuple(row[name] for name in IDENTITY))
            query = text("UPDATE findings SET series = :series WHERE finding_id = :finding_id")
            connection.execute(query, {"series": series, "finding_id": row["finding_id"]})
    lower(engine, "0041")


def test_an_open_finding_goes_on_under_the_device_that_its_files_name(engine: Engine) -> None:
    rng = np.random.default_rng(5)
    for night in range(NIGHTS):
        # The time comes from a file that names no device, in the same run.
        upload(engine, night, averages(BOARDS[:1], rng))
        upload(engine, night, totals(rng.normal(130.0 if night >= CHANGED else 100.0, 0.1)))
    made = report(engine, NIGHTS - 1)
    before = store.select(engine, "v1_findings")
    assert [row["device"] for row in before] == [BOARDS[0]] * len(made["findings"]) != []
    forget_devices(engine)
    assert migrations.upgrade(engine, COUNTERS) == store.latest_revision()
    assert store.select(engine, "v1_findings") == before
    assert {run["device"] for run in store.select(engine, "v1_runs")} == {BOARDS[0]}
    upload(engine, NIGHTS, averages(BOARDS[:1], rng))
    upload(engine, NIGHTS, totals(rng.normal(130.0, 0.1)))
    again = report(engine, NIGHTS)
    assert again["findings"] == []
    assert [row["finding_id"] for row in again["open"]] == [row["finding_id"] for row in before]
    assert all(row["seen_at"] > before[0]["seen_at"] for row in store.select(engine, "v1_findings"))


def test_findings_of_runs_that_still_name_no_device_stay_as_they_are(engine: Engine) -> None:
    rng = np.random.default_rng(6)
    for night in range(NIGHTS):
        upload(engine, night, totals(rng.normal(130.0 if night >= CHANGED else 100.0, 0.1)))
    assert len(report(engine, NIGHTS - 1)["findings"]) == 1
    before = store.select(engine, "v1_findings")
    forget_devices(engine)
    assert migrations.upgrade(engine, COUNTERS) == store.latest_revision()
    assert store.select(engine, "v1_findings") == before
