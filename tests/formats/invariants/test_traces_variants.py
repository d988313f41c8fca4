"""Traces of other years and other tools than most: what they hold is found, and what is not taken is named."""

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from profsvc import formats
from profsvc.formats.nsys import database as nsys_database
from profsvc.formats.pytorch import trace as pytorch_trace
from profsvc.formats.rocm import rocprof_v1_database

FIXTURES = Path(__file__).parents[3] / "fixtures"


def all_of(batches):
    found = list(batches)
    tables = {}
    for batch in found:
        for name, table in batch.tables.items():
            tables.setdefault(name, []).extend(table.to_dict("records"))
    return (
        tables,
        "; ".join(batch.message for batch in found if batch.message),
        {name: fact for batch in found for name, fact in (batch.facts or {}).items()},
    )


@pytest.mark.parametrize("meta", ["META_DATA_EXPORT", "EXPORT_META_DATA"])
@pytest.mark.parametrize("version", ["1.4.2", "2.4.0", "2.9.4", "3.1.7", "3.25.0"])
def test_versions_are_found_under_both_names_of_their_table(meta, version):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"create table {meta}(name text, value text)")
        connection.execute(f"insert into {meta} values('EXPORT_SCHEMA_VERSION', ?)", (version,))
        connection.commit()
        data = connection.serialize()
    reader, batches = formats.read(io.BytesIO(data))
    assert (reader.NAME, all_of(batches)[2]["schema_version"]) == (nsys_database.NAME, version)


def test_the_json_and_the_database_of_rocprof_say_the_same():
    seen = []
    for module, path in (
        (pytorch_trace, "kineto/rocprof_v1.json"),
        (rocprof_v1_database, "rocprof_results/sys_trace.db"),
    ):
        tables, message, _ = all_of(module.read(io.BytesIO((FIXTURES / path).read_bytes())))
        times = {
            name: sorted((row["start_ns"], row["duration_ns"]) for row in tables[name])
            for name in ("launches", "transfers", "api_calls", "ranges")
        }
        metrics = [(row["metric"], row["value"]) for row in tables["metrics"]]
        seen.append((times, metrics, message))
    assert seen[0] == seen[1]
    assert seen[0][0]["launches"] == [(502117002000, 3500.0)]


def test_kernels_that_rocprof_wrote_twice_count_once():
    tables, message, _ = all_of(
        rocprof_v1_database.read(io.BytesIO((FIXTURES / "rocprof_results/sys_trace.db").read_bytes()))
    )
    assert len(tables["launches"]) == 1
    assert message.startswith("the file holds its kernels twice")


def trace(*events):
    body = ",".join(json.dumps({"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "name": "x", **e}) for e in events)
    return io.BytesIO(f'{{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{body}]}}'.encode())


def test_what_cupti_counted_is_stored_without_the_times_that_the_tool_made_up():
    tables, message, _ = all_of(
        pytorch_trace.read(trace({"cat": "cuda_profiler_range", "args": {"sm__cycles.avg": 7}}))
    )
    assert [(row["kernel"], row["duration_ns"] == row["duration_ns"]) for row in tables["launches"]] == [("x", False)]
    assert [(row["metric"], row["value"]) for row in tables["metrics"]] == [("sm__cycles.avg", 7.0)]
    assert "no times" in message


@pytest.mark.parametrize("many", [1, 500])
def test_categories_that_are_not_known_are_named(many):
    message = all_of(pytorch_trace.read(trace(*[{"cat": "gcu_kernel"}] * many, {"cat": "cuda_sync"})))[1]
    assert f"skipped: gcu_kernel ({many})" in message
    assert "cuda_sync" not in message


def test_what_ran_on_mtia_is_a_launch():
    assert len(all_of(pytorch_trace.read(trace({"cat": "mtia_ccp_events"})))[0]["launches"]) == 1
