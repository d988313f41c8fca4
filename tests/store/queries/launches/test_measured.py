"""Launches by the million: which have metrics, and the timeline of a run, against the formula over all its launches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from profsvc import store
from profsvc.analysis.launches import criteria
from profsvc.formulas.criteria import host_sync
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.writers import running_timeline
from profsvc.store.queries.traces import timelines
from profsvc.tables import Batch, frame
from tests.store.conftest import batches, info

RUN = store.RunInfo(name="r")
Times = Sequence[tuple[int | None, float | None]]


def trace(times: Times, per_batch: int = 3, **columns: Any) -> list[Batch]:
    """Return an upload of launches with these starts and durations."""
    found = []
    for begin in range(0, len(times), per_batch):
        some = times[begin : begin + per_batch]
        rows = {
            "launch_index": range(begin, begin + len(some)),
            "kernel": ["k"] * len(some),
            "start_ns": [start for start, _ in some],
            "duration_ns": [duration for _, duration in some],
            "line": range(begin + 1, begin + len(some) + 1),
            **{name: [value] * len(some) for name, value in columns.items()},
        }
        found.append(Batch({"launches": frame("launches", rows)}, lines_stored=len(some)))
    return found


def put(engine: Engine, name: str, batches: Any, run: store.RunInfo = RUN) -> store.StoredUpload:
    return store.write_upload(engine, info(name, form="nvprof"), run, batches)


def expected(*uploads: Times) -> dict[str, Any]:
    timed = [(s, d) for times in uploads for s, d in times if s is not None and d is not None]
    start, duration = (np.array(column) for column in zip(*timed, strict=True))
    ours, printed = host_sync(start, duration), host_sync(start, duration, form="as_published")
    return {"value": ours.value, "value_as_published": printed.raw, "flags": ours.flags}


def assert_like(engine: Engine, run_id: int, *uploads: Times) -> None:
    row = criteria.host_sync(store.timeline(engine, run_id))
    for name, value in expected(*uploads).items():
        assert row[name] == pytest.approx(float(value), rel=1e-12, nan_ok=True), name


ORDERED: Times = [(0, 10.0), (5, 3.5), (5, 20.0), (None, 4.0), (40, None), (50, 0.25), (51, 1e3)]
MIXED: Times = [(50, 10.0), (5, 3.5), (None, 4.0), (0, 20.25), (51, 1.0)]


@pytest.mark.parametrize(
    "times", [ORDERED, MIXED, [(7, 3.0)], [(7, 0.0), (7, 0.0)], [(7, 5e-324), (8, 5e-324), (9, 3.0)]]
)
def test_the_timeline_of_a_file(engine: Engine, times: Times) -> None:
    assert_like(engine, put(engine, "a", trace(times)).run_id, times)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 60), st.floats(0, 20)), min_size=1, max_size=12),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
    st.integers(1, 9),
)
def test_the_timeline_of_any_files(engine: Engine, files: list[Times], in_order: bool, per_batch: int) -> None:
    files = [sorted(times) if in_order else times for times in files]
    run = store.RunInfo(name=repr((files, in_order, per_batch)))
    for number, times in enumerate(files):
        stored = put(engine, f"{run.name}{number}", trace(times, per_batch, kernel=f"k{number}"), run)
    assert_like(engine, stored.run_id, *files)
    store.delete_run(engine, stored.run_id)


def test_several_files_share_one_clock(engine: Engine) -> None:
    put(engine, "a", trace(ORDERED))
    run_id = put(engine, "b", trace(MIXED)).run_id
    assert_like(engine, run_id, ORDERED, MIXED)


def test_pages_of_one_report_count_once(engine: Engine) -> None:
    same = {"correlation_id": 1, "process_id": 1} | {
        f"{part}_{axis}": 1 for part in ("grid", "block") for axis in "xyz"
    }
    times = [(0, 10.0), (20, 5.0)]
    put(engine, "a", trace(times, **same))
    second = put(engine, "b", trace(times, **same))
    assert store.upload(engine, second.upload_id)["same_as"] == 1
    assert_like(engine, second.run_id, times)


def test_a_page_without_times_does_not_hide_the_times_of_another(engine: Engine) -> None:
    put(engine, "a", trace([(None, 5.0), (3, None)]))
    assert store.timeline(engine, 1) is None
    put(engine, "b", trace(MIXED))
    assert_like(engine, 1, MIXED)


def test_a_run_without_launches_has_no_timeline(engine: Engine) -> None:
    assert store.timeline(engine, put(engine, "a", []).run_id) is None


def test_rows_come_in_pieces(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "ROWS_PER_FETCH", 2)
    run_id = put(engine, "a", trace(MIXED)).run_id
    assert [len(rows) for rows in timelines.chunks(engine, "SELECT launch_id FROM v1_launches")] == [2, 2, 1]
    assert_like(engine, run_id, MIXED)
    first = store.launches(engine, run_id)["launch_id"].tolist()
    assert store.time_without_metrics(engine, 1, first[:2]) == 4.0 + 20.25 + 1.0
    assert store.time_without_metrics(engine, 1, []) == 10.0 + 3.5 + 4.0 + 20.25 + 1.0


def test_launches_with_metrics_are_told_from_those_without(engine: Engine, stored: store.StoredUpload) -> None:
    bare = put(engine, "b", trace(ORDERED))
    half = [*batches(4)]
    half[1].tables.pop("metrics")
    part = put(engine, "c", half)
    uploads = [stored.upload_id, bare.upload_id, part.upload_id]
    launches = store.table(engine, "v1_launches").sort_values("launch_id").reset_index(drop=True)
    has = launches["launch_id"].isin(store.table(engine, "v1_metrics")["launch_id"])
    assert has.sum() == 6
    for measured in (True, False):
        found = store.measured_launches(engine, uploads, measured=measured)
        assert found.equals(launches[has == measured].reset_index(drop=True))
    nothing = store.measured_launches(engine, [])
    assert nothing.dtypes.equals(launches.dtypes)
    assert nothing.empty


def kept(engine: Engine) -> list[tuple[Any, ...]]:
    with reading(engine) as connection:
        return [tuple(row) for row in connection.exec_driver_sql("SELECT * FROM timelines ORDER BY upload_id")]


def test_sums_are_made_while_a_file_is_loaded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "_computed_timeline", None)  # no launch is read again
    assert_like(engine, put(engine, "a", trace(ORDERED)).run_id, ORDERED)
    put(engine, "b", trace([(None, 5.0)]))
    assert_like(engine, 1, ORDERED)
    assert [row[1:3] for row in kept(engine)] == [(0, 1051.0), (None, None)]
    shown = store.upload(engine, 1)
    assert (shown["first_start_ns"], shown["span_ns"], shown["busy_ns"]) == (0, 1051.0, 1025.25)
    assert store.upload(engine, 2)["span_ns"] is None


def test_sums_of_launches_out_of_order_are_kept_once_made(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    put(engine, "a", trace(MIXED))
    assert kept(engine) == []
    assert_like(engine, 1, MIXED)
    monkeypatch.setattr(timelines, "_computed_timeline", None)
    assert_like(engine, 1, MIXED)
    assert store.upload(engine, 1)["busy_ns"] == 20.25 + 10.0 + 1.0 - 0.0 - (60.0 - 51.0 - 1.0) + 8.0 - 1.0


def test_sums_go_with_their_file(engine: Engine) -> None:
    put(engine, "a", trace(ORDERED))
    store.delete_upload(engine, 1)
    assert kept(engine) == []


def test_a_duration_that_no_database_holds_is_not_kept(engine: Engine) -> None:
    stored = put(engine, "a", [])
    running = running_timeline.RunningTimeline()
    for batch in trace([(0, 1.0), (5, float("inf"))]):
        running.add(batch.tables["launches"])
    with writing(engine) as connection:
        connection.exec_driver_sql("DELETE FROM timelines")
        running.save(connection, stored.upload_id)
    assert kept(engine) == []
    assert np.isnan(criteria.host_sync(running.line)["value"])
