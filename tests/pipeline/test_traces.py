"""Runs of traces: no row of results a launch, and the same numbers as if there were."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import analysis, pipeline, specs, store
from profsvc.store.schema.contents.launch_views import OWN_COUNTERS
from profsvc.views.explain.numbers import explain
from tests.inputs.long_exports import KERNELS, gpu_trace, nsys_trace

FIXTURES = Path(__file__).parents[2] / "fixtures"
RAW = FIXTURES / "ncu_raw" / "h200_three_launches.csv.gz"


def kineto(rows: int) -> Iterator[str]:
    """A trace of PyTorch with nothing but kernels."""
    yield '{"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 0, "traceEvents": [\n'
    for row in range(rows):
        yield (
            f'{{"ph": "X", "cat": "kernel", "name": "{KERNELS[row * 7 % 60]}", "pid": 0, "tid": 7, '
            f'"ts": {10**9 + 1000 * row}.125, "dur": {row * 37 % 899 + 1}.5, '
            f'"args": {{"device": 0, "context": 1, "stream": 7, "correlation": {row}, '
            '"registers per thread": 32, "shared memory": 0, "grid": [80, 1, 1], "block": [256, 1, 1]}},\n'
        )
    yield '{"ph": "M", "name": "process_name", "pid": 0, "ts": 0, "args": {"name": "python"}}]}\n'


TRACES = {"nvprof": gpu_trace, "nsys": nsys_trace, "kineto": kineto}


def ingest(engine: Engine, content: bytes, name: str = "trace.csv", run: str = "r") -> pipeline.ImportResult:
    return pipeline.ingest(engine, io.BytesIO(content), name, store.RunInfo(name=run))


def trace(tool: str, rows: int = 60) -> bytes:
    return "".join(TRACES[tool](rows)).encode()


@pytest.mark.parametrize("tool", TRACES)
def test_a_trace_has_the_rows_of_the_run_alone(engine: Engine, tool: str) -> None:
    launches = ingest(engine, trace(tool)).launches
    assert pipeline.analyze(engine, 1) == launches > 40
    for view in ("v1_criteria", "v1_potential", "v1_models"):
        assert {row["launch_id"] for row in store.select(engine, view)} <= {None}
    assert store.select(engine, "v1_counter_values") == []
    rows = {row["criterion"]: row for row in store.select(engine, "v1_criteria")}
    assert set(rows) == {entry["name"] for entry in specs.criteria()["criterion"]}
    assert 0 < rows.pop("host_sync")["value"] <= 1
    (whole,) = store.select(engine, "v1_potential")
    option = "nvprof --print-gpu-trace --metrics all" if tool == "nvprof" else "ncu --set full"
    why = f"no launch of the run has the metrics that criteria need; to collect them, run: {option}"
    assert {row["reason"] for row in [*rows.values(), whole]} == {why}
    assert {row["value"] for row in rows.values()} == {whole["speedup"]} == {None}


def computed(engine: Engine, upload_id: int, tool: str) -> pd.DataFrame:
    """The counters that the analysis makes of the launches of an upload."""
    launches = store.table(engine, "v1_launches", upload_id=upload_id)
    return analysis.launch_counters(launches, store.metrics(engine, upload_id), tool, None)[0]


@pytest.mark.parametrize("tool", ["nvprof", "nsys"])
def test_columns_of_launches_are_the_counters_that_the_analysis_would_make(engine: Engine, tool: str) -> None:
    ingest(engine, trace(tool))
    shown = store.table(engine, "v1_counters").set_index("launch_id")
    made = computed(engine, 1, tool)
    assert set(made) - set(OWN_COUNTERS) <= {"duration_ns"}
    assert len(set(made) & set(OWN_COUNTERS)) >= len(OWN_COUNTERS) - (tool == "nsys")
    for name in set(made) & set(OWN_COUNTERS):
        np.testing.assert_allclose(shown[name], made[name], rtol=1e-15, err_msg=name)
    others = shown.drop(columns=[*OWN_COUNTERS, "run_id", "kernel_short"])
    assert others.isna().all(axis=None)


def test_products_stand_where_the_tool_does_not_know_them(engine: Engine) -> None:
    ingest(engine, trace("kineto", 3))
    (row, *_) = store.select(engine, "v1_counters")
    assert (row["grid_blocks"], row["block_threads"], row["grid_threads"]) == (80.0, 256.0, 80.0 * 256)
    assert row["registers_per_thread"] == 32.0
    assert (row["warp_size"], row["warps_per_block"]) == (None, None)  # it may be a device of another vendor


@pytest.mark.parametrize("threads", [1, 31, 32, 33, 63, 64, 65, 1023, 1024])
def test_warps_of_a_block_are_rounded_up(engine: Engine, threads: int) -> None:
    ingest(engine, trace("nvprof", 3).replace(b"256,1,1", b"%d,1,1" % threads))
    assert {row["warps_per_block"] for row in store.select(engine, "v1_counters")} == {-(-threads // 32)}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_trace_beside_metrics_changes_no_launch_and_keeps_its_time(engine: Engine, order: tuple[int, int]) -> None:
    files = [(RAW.read_bytes(), RAW.name), (trace("nvprof"), "trace.csv")]
    for place in order:
        ingest(engine, *files[place])
    whole = store.select(engine, "v1_potential", launch_id=None)[0]
    run = store.select(engine, "v1_runs")[0]
    assert whole["duration_ns"] == pytest.approx(run["gpu_time_ns"], rel=1e-12)
    assert whole["flags"] == "LOWER_BOUND"
    shown = {row["launch_id"]: row for row in store.select(engine, "v1_potential") if row["launch_id"] is not None}
    assert len(shown) == 3
    rest = run["gpu_time_ns"] - sum(row["duration_ns"] for row in shown.values())
    assert whole["ideal_ns"] == pytest.approx(rest + sum(row["ideal_ns"] for row in shown.values()), rel=1e-12)
    ceiling = sum(row["duration_ns"] / row["speedup_ceiling"] for row in shown.values())
    assert whole["speedup_ceiling"] == pytest.approx(run["gpu_time_ns"] / (rest + ceiling), rel=1e-12)
    (host,) = store.select(engine, "v1_criteria", criterion="host_sync")
    assert host["value"] > 0


def test_the_numbers_are_those_of_an_analysis_of_every_launch(engine: Engine) -> None:
    ingest(engine, RAW.read_bytes(), RAW.name)
    ingest(engine, trace("nvprof"))
    launches, counters = store.launches(engine, 1), []
    for upload_id, tool in ((1, "ncu"), (2, "nvprof")):
        some = launches[launches["upload_id"] == upload_id]
        capability = "9.0" if tool == "ncu" else None
        every = store.table(engine, "v1_metrics", upload_id=upload_id).dropna(subset=["launch_id"])
        device = None if tool == "ncu" else specs.figures(str(some["device"].iloc[0]), None)
        counters.append((*analysis.launch_counters(some, every, tool, capability, device=device), tool, ()))
    rest = analysis.OtherLaunches(store.timeline(engine, 1))
    parts = list(analysis.analyze_launches(launches, counters, store.characterizations(engine), specs.criteria(), rest))
    every = {name: pd.concat([part[name] for part in parts if name in part]) for name in ("potential", "criteria")}
    for name, value in (("potential", "speedup"), ("criteria", "value")):
        keys = ["launch_id", "criterion"][: 1 + (name == "criteria")]
        wanted = every[name].set_index(keys)[value].astype(float).dropna()
        found = store.table(engine, f"v1_{name}").astype({"launch_id": object}).set_index(keys)[value].dropna()
        assert len(wanted) == len(found)
        np.testing.assert_allclose(np.sort(found), np.sort(wanted), rtol=1e-12)


def test_a_launch_without_criteria_is_explained(engine: Engine) -> None:
    ingest(engine, trace("nsys", 5))
    (first, *_) = explain(engine, "divergence", "r", "0")["trace"]
    why = "the export lacks the metrics for the criteria of this launch; to collect them, run: ncu --set full"
    assert first["from"] == why
    steps = explain(engine, "grid_threads", "r", "0")["trace"]
    launch = store.select(engine, "v1_launches", launch_index=0)[0]
    assert steps[0]["value"] == launch["grid_x"] * 256
    assert {step["name"] for step in steps} >= {"grid_blocks", "block_threads", "grid_x", "block_x"}
    (value, cell) = explain(engine, "registers_per_thread", "r", "0")["trace"]
    registers = launch["registers_per_thread"]
    assert (value["value"], cell["raw_text"], cell["line"]) == (float(registers), str(registers), 2)


def test_a_launch_whose_run_was_not_analysed_is_explained(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline.analysis, "analyze", lambda *_, **__: 0)
    ingest(engine, RAW.read_bytes(), RAW.name)
    assert explain(engine, "divergence", "r", "0")["trace"][0]["from"].endswith("run: profsvc analyze id:1")
