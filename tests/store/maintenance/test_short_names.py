"""Names of an older store get the short names that new files give them, and findings go on under them."""

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.analysis.changes.series.run_series import IDENTITY, series_digest
from profsvc.store.connection.sql import text
from profsvc.store.connection.transactions import writing
from tests.store.conftest import COUNTERS
from tests.store.maintenance.test_backfill import lower

NAMES = {"void ns::k(T *) [with T = float]": "float]", "[CUDA memset]": "memset]", "void gemm<32>(float *)": "gemm"}
FINDING = {
    "report_id": 1, "project": "p", "subject": "float] (2)", "kernel": next(iter(NAMES)), "device": None,
    "sensor": None, "quantity": "duration_ns", "kind": "slower", "unit": "ns", "before": 1.0, "after": 2.0,
    "points_before": 3, "points_after": 3, "run_id": 1, "changed_at": "a", "found_at": "a", "seen_at": "a",
    "branch": None,
}  # fmt: skip
REPORT = (
    "INSERT INTO reports (report_id, project, night, zone, made_at, newest_upload_id, newest_refusal_id, runs, series,"
    " findings_new, findings_open, reruns_wanted, uploads_failed, one_line, document)"
    " VALUES (1, 'p', 'a', 'UTC', 'a', 0, 0, 1, 1, 1, 1, 0, 0, '', '')"
)


@pytest.mark.usefixtures("stored")
def test_short_names_and_findings_are_renamed(engine: Engine) -> None:
    finding = FINDING | {"series": series_digest(tuple(FINDING[name] for name in IDENTITY))}
    with writing(engine) as connection:
        for kernel, short in NAMES.items():
            query = text("INSERT INTO kernels (kernel, kernel_short) VALUES (:kernel, :short)")
            connection.execute(query, {"kernel": kernel, "short": short})
        connection.execute(text(REPORT))
        names = ", ".join(finding)
        values = ", ".join(f":{name}" for name in finding)
        connection.execute(text(f"INSERT INTO findings ({names}) VALUES ({values})"), finding)
    lower(engine, "0044")
    assert store.upgrade(engine, COUNTERS) == store.latest_revision()
    with engine.connect() as connection:
        found = {row[0]: row[1] for row in connection.execute(text("SELECT kernel, kernel_short FROM kernels"))}
        row = connection.execute(text("SELECT * FROM findings")).mappings().one()
    assert [found[kernel] for kernel in NAMES] == ["k", "[CUDA memset]", "gemm"]
    assert row["subject"] == "k (2)"
    assert row["series"] == series_digest(tuple(row[name] for name in IDENTITY))
