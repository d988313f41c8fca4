"""Totals over the launches of a kernel, beside the same of the views, on both databases."""

import csv
import gzip
import io
from collections import defaultdict
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.store.connection.transactions import reading
from profsvc.store.maintenance import backfill, migrations
from tests.conftest import DEMO, ROOT
from tests.store.conftest import COUNTERS, Filled
from tests.store.maintenance.test_backfill import lower

FILES = {
    "demo": DEMO,
    "three": ROOT / "fixtures/ncu_raw/h200_three_launches.csv.gz",
    "trace": ROOT / "fixtures/nvprof/gpu_trace.csv",
}
QUERIES = {
    "causes": "SELECT t.run_id, k.kernel, q.cause, t.launches, t.saving_ns FROM cause_totals t"
    " JOIN kernels k ON k.kernel_id = t.kernel_id JOIN cause_names q ON q.cause_id = t.cause_id",
    "criteria": "SELECT t.run_id, k.kernel, x.text, t.value FROM criterion_totals t"
    " JOIN kernels k ON k.kernel_id = t.kernel_id JOIN texts x ON x.text_id = t.criterion_id",
}  # fmt: skip


@pytest.fixture
def full(engine: Engine, filled: Filled) -> Engine:
    def fill() -> None:
        for name, path in FILES.items():
            with path.open("rb") as stream:
                pipeline.ingest(engine, stream, path.name, store.RunInfo(name=name))

    return filled(fill)


def part(rows: list[list[str]]) -> io.BytesIO:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    return io.BytesIO(out.getvalue().encode())


def totals(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    with reading(engine) as connection:
        return {name: sorted(map(tuple, connection.execute(text(query)))) for name, query in QUERIES.items()}


def of_views(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Return the same from the rows of the launches."""
    launches = {row["launch_id"]: row for row in store.select(engine, "v1_launches")}
    causes, criteria = defaultdict(list), defaultdict(list)
    for row in store.select(engine, "v1_causes"):
        if row["launch_id"] is not None:
            causes[row["run_id"], row["kernel"], row["cause"]].append(row["saving_ns"])
    for row in store.select(engine, "v1_criteria"):
        duration = row["launch_id"] and launches[row["launch_id"]]["duration_ns"]
        if duration and row["value"] is not None:
            criteria[row["run_id"], row["kernel"], row["criterion"]].append((row["value"], duration))

    def total(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return pytest.approx(sum(known), rel=1e-12) if known else None

    def mean(pairs: list[tuple[float, float]]) -> float:
        return pytest.approx(sum(a * b for a, b in pairs) / sum(b for _, b in pairs), rel=1e-12)

    return {
        "causes": [(*key, len(values), total(values)) for key, values in sorted(causes.items())],
        "criteria": [(*key, mean(pairs)) for key, pairs in sorted(criteria.items())],
    }


def test_totals_are_those_of_the_launches(full: Engine) -> None:
    found = totals(full)
    assert {row[0] for row in found["causes"]} == {1, 2}
    assert len(found["causes"]) > 100
    assert len(found["criteria"]) > 100
    assert found == of_views(full)


def test_totals_follow_the_files_of_a_run(full: Engine) -> None:
    rows = list(csv.reader(io.StringIO(gzip.decompress(DEMO.read_bytes()).decode())))
    head, body = rows[:2], rows[2:]
    parts = [
        pipeline.ingest(full, part(head + some), f"{number}.csv", store.RunInfo(name="parts"))
        for number, some in enumerate((body[:20], body[20:]))
    ]
    with_both = totals(full)
    assert with_both == of_views(full)
    store.delete_upload(full, int(parts[1].upload_id or 0), partial(pipeline.analyze, full))
    found = totals(full)
    assert found == of_views(full)
    assert 100 < len(found["causes"]) < len(with_both["causes"])
    store.delete_run(full, store.find_run(full, "demo"))
    assert {row[0] for row in totals(full)["causes"]} == {2, int(parts[0].run_id or 0)}


def test_stored_runs_are_full_in(full: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "ROWS_AT_ONCE", 4)
    wanted = totals(full)
    lower(full, "0035")
    migrations.upgrade(full, COUNTERS)
    assert totals(full) == wanted
