"""Means over the launches of a kernel, analysed as a launch is."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from profsvc import analysis, specs
from profsvc.analysis.kernel_means import TRACED_SOURCE, analyze_kernel_means, combine_means, counters_of_means
from profsvc.analysis.launches import criteria

NOTHING = pd.DataFrame(columns=["device", "quantity", "x", "y", "unit", "method"])
SHAPE = {"grid_x": 64, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1,
         "registers_per_thread": 11, "shared_mem_static_bytes": 1088, "shared_mem_dynamic_bytes": 0}  # fmt: skip
K40 = "Tesla K40c (0)"


def rows(*cells: tuple[Any, ...]) -> pd.DataFrame:
    table = pd.DataFrame(cells, columns=["kernel_id", "kernel", "section", "metric", "invocations", "value"])
    return table.assign(upload_id=1, kernel_short=table["kernel"], statistic="avg")


def times(**of_kernel: tuple[int, float]) -> pd.DataFrame:
    cells = [(name, n, mean, n * mean) for name, (n, mean) in of_kernel.items()]
    return pd.DataFrame(cells, columns=["kernel", "launches", "mean_ns", "total_ns"])


def shapes(*kernel_ids: int) -> pd.DataFrame:
    return pd.DataFrame([SHAPE] * len(kernel_ids), index=pd.Index(kernel_ids, name="kernel_id"), dtype="float64")


def test_boards_of_one_kind_weigh_by_their_launches() -> None:
    metrics = rows((7, "f", K40, "inst_executed", 1, 100.0), (7, "f", "Tesla K40c (1)", "inst_executed", 3, 200.0))
    means = combine_means(metrics, times(), shapes(7))
    assert means.metrics["value"].tolist() == [175.0]
    assert means.kernels[["device", "launches", "compute_capability"]].iloc[0].tolist() == ["Tesla K40c", 4, "3.5"]
    assert np.isnan(means.kernels["duration_ns"].iloc[0])


def test_the_first_file_with_a_metric_counts() -> None:
    metrics = rows((7, "f", K40, "inst_executed", 1, 100.0), (7, "f", K40, "inst_executed", 1, 300.0))
    metrics["upload_id"] = [2, 5]
    assert combine_means(metrics, times(), shapes(7)).metrics["value"].tolist() == [100.0]


def test_several_kinds_of_device_are_refused_with_the_reason() -> None:
    metrics = rows((7, "f", K40, "sm_efficiency", 1, 0.5), (7, "f", "GeForce GTX 760 (1)", "sm_efficiency", 1, 0.9))
    means = combine_means(metrics, times(f=(1, 1e4)), shapes(7))
    found = list(analyze_kernel_means(means, NOTHING, specs.criteria(), analysis.OtherLaunches()))
    assert len(found) == 1
    row = found[0]["potential"].iloc[0]
    assert (row["kernel_id"], row["speedup"]) == (7, None)
    assert row["reason"].startswith("its averages cover several device models: GeForce GTX 760, Tesla K40c;")


def test_the_time_of_a_trace_is_that_of_the_program() -> None:
    """Throughputs give the time of the replay: 32 bytes times 1000 transactions at 3.2 GB/s are 10 us."""
    cells = [(7, "f", K40, "l2_read_transactions", 1, 1000.0), (7, "f", K40, "l2_read_throughput", 1, 3.2e9)]
    replayed = combine_means(rows(*cells), times(), shapes(7))
    (_, table, sources), *_ = counters_of_means(replayed)
    assert table["duration_ns"].tolist() == pytest.approx([10_000.0], rel=1e-12)
    assert "l2_read_throughput" in sources["duration_ns"][0]
    (_, table, sources), *_ = counters_of_means(combine_means(rows(*cells), times(f=(2, 9e3)), shapes(7)))
    assert table["duration_ns"].tolist() == [9000.0]
    assert sources["duration_ns"].tolist() == [TRACED_SOURCE]


def test_the_catalogue_and_the_shape_give_the_occupancy() -> None:
    means = combine_means(rows((7, "f", K40, "achieved_occupancy", 1, 0.9)), times(f=(1, 1e4)), shapes(7))
    (_, table, _), *_ = counters_of_means(means)
    # 256 threads, 11 registers and 1088 bytes: warps allow 8 blocks of an SM of the K40, and 8 x 8 warps fill it.
    assert table["theoretical_occupancy_fraction"].tolist() == [1.0]


def test_a_run_sums_up_by_the_launches_of_each_kernel() -> None:
    cells = [(k, name, K40, metric, 1, value)
             for k, name in ((7, "f"), (8, "g"))
             for metric, value in (("warp_nonpred_execution_efficiency", 0.5 if name == "f" else 1.0),
                                   ("issue_slot_utilization", 0.4), ("sm_efficiency", 1.0),
                                   ("dram_utilization", 0.1), ("l2_utilization", 0.1))]  # fmt: skip
    means = combine_means(rows(*cells), times(f=(3, 1e4), g=(1, 1e4)), shapes(7, 8))
    parts = list(
        analyze_kernel_means(means, NOTHING, specs.criteria(), analysis.OtherLaunches(launches=2, duration_ns=4e4))
    )
    whole = parts[-1]["potential"].iloc[0]
    assert whole["launch_id"] is None
    assert whole["duration_ns"] == pytest.approx(8e4)
    of_f = parts[0]["criteria"].query("kernel_id == 7 and criterion == 'divergence'").iloc[0]
    assert of_f["value"] == 0.5
    assert of_f["launch_id"] is None
    run = parts[-1]["criteria"].set_index("criterion")["value"]
    # Three quarters of the time at 0.5, one quarter at 1: 1 over the mean of the reciprocals.
    assert run["divergence"] == pytest.approx(criteria.run_criteria(
        pd.DataFrame({"launch_id": [7, 8], "criterion": "divergence", "value": [0.5, 1.0], "share": [1.0, 1.0],
                      "speedup": [of_f["speedup"], 1.0], "value_conditional": np.nan}),
        pd.Series({7: 3e4, 8: 1e4}))["value"].iloc[0])  # fmt: skip
