"""DuckDB answers from the Parquet files what the store answered before."""

from pathlib import Path
from typing import Any

import duckdb
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import reading
from profsvc.store.maintenance.archive.contents import VIEWS
from tests.store.maintenance.archive.stores import close

QUESTIONS = (
    "SELECT kernel_short, count(*), sum(duration_ns), max(grid_x * block_x) FROM v1_launches WHERE run_id IN (1, 2)"
    " GROUP BY kernel_short ORDER BY 1",
    "SELECT r.name, l.launch_index, c.counter, c.value FROM v1_runs r JOIN v1_launches l ON l.run_id = r.run_id"
    " JOIN v1_counter_values c ON c.launch_id = l.launch_id WHERE r.name = 'march-1' AND c.value IS NOT NULL"
    " ORDER BY l.launch_id, 3",
    "SELECT metric, unit, count(*), min(value), max(value) FROM v1_metrics WHERE run_id IN (1, 2)"
    " GROUP BY metric, unit ORDER BY 1, 2 NULLS LAST",
    "SELECT quantity, name, count(value), min(value), max(value), max(elapsed_ns) FROM v1_samples"
    " WHERE run_id IN (1, 2) GROUP BY quantity, name ORDER BY 1, 2",
    "SELECT l.kernel, c.criterion, min(c.value), max(c.speedup) FROM v1_criteria c JOIN v1_launches l"
    " ON l.launch_id = c.launch_id WHERE c.run_id IN (1, 2) GROUP BY l.kernel, c.criterion ORDER BY 1, 2",
    "SELECT p.bound, count(*), max(p.speedup) FROM v1_potential p WHERE p.run_id IN (1, 2) AND p.launch_id IS NOT NULL"
    " GROUP BY p.bound ORDER BY 1 NULLS LAST",
    "SELECT kind, count(*), sum(bytes) FROM v1_transfers WHERE run_id IN (1, 2) GROUP BY kind ORDER BY 1",
    "SELECT name, count(*) FROM v1_api_calls WHERE run_id IN (1, 2) GROUP BY name ORDER BY 1",
    "SELECT source_line, sum(samples) FROM v1_source_lines WHERE run_id IN (1, 2) GROUP BY source_line"
    " ORDER BY 1 NULLS LAST",
    "SELECT run_id, upload_id, kernel, launches, p95_ns FROM v1_kernel_totals WHERE run_id IN (1, 2) ORDER BY 1, 2, 3",
)  # fmt: skip


def answered(engine: Engine, question: str) -> list[tuple[Any, ...]]:
    with reading(engine) as connection:
        return [tuple(row) for row in connection.execute(text(question))]


def test_duckdb_answers_as_the_store_did(year: Engine, march: store.Month, place: str) -> None:
    asked = [answered(year, question) for question in QUESTIONS]
    assert all(asked)
    rows = {view: [row for row in store.select(year, view) if row["run_id"] in {1, 2}] for view in VIEWS}
    store.archive_month(year, march, place)
    with duckdb.connect() as session:
        session.execute(Path(place, "views.sql").read_text())
        for question, answer in zip(QUESTIONS, asked, strict=True):
            assert session.execute(question).fetchall() == close(answer)
        for view, wanted in rows.items():
            found = session.execute(f"SELECT * EXCLUDE (month) FROM {view}")
            names = [column[0] for column in found.description]
            given = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
            assert sorted(given, key=repr) == sorted(wanted, key=repr), view
        assert session.execute("SELECT DISTINCT month FROM v1_launches").fetchall() == [("2025-03",)]
