"""Means by kernel, out of both databases."""

from pathlib import Path

import pandas as pd
from sqlalchemy import Engine

from profsvc import store
from profsvc.pipeline.kernel_means import means_of_run
from tests.inputs.uploads import ingest_all

METRICS = """==1== NVPROF is profiling process 1, command: ./app
==1== Profiling result:
==1== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Tesla K40c (0)","scale(float*)",3,"sm_efficiency","Multiprocessor Activity",80.000000%,90.000000%,85.000000%
"Tesla K40c (0)","scale(float*)",3,"inst_executed","Instructions Executed",90,110,100
"""
TRACE = """==2== NVPROF is profiling process 2, command: ./app
==2== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","Device","Context","Stream","Name"
ms,us,,,,,,,,B,B,MB,GB/s,,,,
1.0,20.0,64,1,1,256,1,1,11,0,0,,,"Tesla K40c (0)","1","7","scale(float*) [1]"
2.0,40.0,64,2,1,256,1,1,11,0,0,,,"Tesla K40c (0)","1","7","scale(float*) [2]"
3.0,10.0,1,1,1,32,1,1,8,0,0,,,"Tesla K40c (0)","1","7","other(int) [3]"
"""  # noqa: E501  # lines as the tool writes them


def stored(engine: Engine, *texts: str) -> int:
    files = [(text.encode(), f"{number}.csv") for number, text in enumerate(texts)]
    return ingest_all(engine, files, store.RunInfo(name="means")).run_id or 0


def test_means_are_those_over_launches_and_nothing_else(engine: Engine) -> None:
    run_id = stored(engine, METRICS)
    assert store.has_kernel_metrics(engine, run_id)
    found = store.kernel_metrics(engine, run_id)
    assert found["kernel"].unique().tolist() == ["scale(float*)"]
    assert dict(zip(found["metric"], found["value"], strict=True)) == {"sm_efficiency": 0.85, "inst_executed": 100.0}
    assert found["section"].unique().tolist() == ["Tesla K40c (0)"]
    assert found["invocations"].tolist() == [3, 3]


def test_sections_of_nsight_computes_summaries_are_no_devices(engine: Engine) -> None:
    summary = Path(__file__).parents[4] / "fixtures" / "ncu_summary" / "per_kernel.csv"
    run_id = stored(engine, summary.read_text(encoding="utf-8"))
    assert store.kernel_metrics(engine, run_id).empty
    assert not store.has_kernel_metrics(engine, run_id)
    assert means_of_run(engine, run_id) is None
    both = stored(engine, METRICS)
    assert both == run_id
    assert means_of_run(engine, both).kernels["device"].tolist() == ["Tesla K40c"]


def test_a_trace_tells_times_and_what_launches_have_in_common(engine: Engine) -> None:
    run_id = stored(engine, METRICS, TRACE)
    times = store.kernel_times(engine, run_id).set_index("kernel")
    assert times.loc["scale(float*)"].tolist() == [2, 30_000.0, 60_000.0]
    assert times.loc["other(int)"].tolist() == [1, 10_000.0, 10_000.0]
    number = store.kernel_metrics(engine, run_id)["kernel_id"].iloc[0]
    shape = store.kernel_shapes(engine, run_id).loc[number]
    assert shape[["grid_x", "block_x", "registers_per_thread"]].tolist() == [64, 256, 11]
    assert pd.isna(shape["grid_y"])


def test_sums_tell_the_time_of_a_kernel_that_no_trace_has(engine: Engine) -> None:
    summed = """==3== NVPROF is profiling process 3, command: ./app
==3== Profiling result:
"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"
,%,us,,us,us,us,
"GPU activities",60.00,60.000,2,30.000,20.000,40.000,"scale(float*)"
"GPU activities",40.00,40.000,4,10.000,10.000,10.000,"third(int)"
"""
    times = store.kernel_times(engine, stored(engine, TRACE, summed)).set_index("kernel")
    assert times.loc["third(int)"].tolist() == [4, 10_000.0, 40_000.0]
    assert times.loc["scale(float*)", "launches"] == 2  # of the trace


def test_a_run_without_means_has_none(engine: Engine) -> None:
    run_id = stored(engine, TRACE)
    assert store.kernel_metrics(engine, run_id).empty
    assert not store.has_kernel_metrics(engine, run_id)
    assert means_of_run(engine, run_id) is None


def test_results_of_kernels_are_rows_without_a_launch(engine: Engine) -> None:
    run_id = stored(engine, METRICS, TRACE)
    rows = store.select(engine, "v1_potential", run_id=run_id, kernel="scale(float*)")
    assert [(row["launch_id"], row["duration_ns"]) for row in rows] == [(None, 30_000.0)]
    criteria = store.select(engine, "v1_criteria", run_id=run_id, kernel="scale(float*)")
    assert len(criteria) == 8
    assert {row["launch_id"] for row in criteria} == {None}
