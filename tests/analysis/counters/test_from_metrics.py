"""Metrics to counters."""

import numpy as np
import pandas as pd

from profsvc.analysis.counters.from_metrics import launch_counters, metric_values

LAUNCHES = pd.DataFrame(
    {
        "launch_id": [7, 8], "duration_ns": [5.0, 6.0], "grid_x": pd.array([2, 2], "Int64"),
        "grid_y": pd.array([1, 1], "Int64"), "grid_z": pd.array([1, 1], "Int64"),
        "block_x": pd.array([32, None], "Int64"),
        "block_y": pd.array([1, 1], "Int64"), "block_z": pd.array([1, 1], "Int64"),
        "registers_per_thread": pd.array([None, None], "Int64"),
        "shared_mem_static_bytes": pd.array([None, None], "Int64"),
        "shared_mem_dynamic_bytes": pd.array([48, None], "Int64"),
    }
)  # fmt: skip


def metrics(*rows: tuple[int, str | None, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["launch_id", "section", "metric", "value"])


def test_a_label_means_the_metric_of_its_section() -> None:
    table = metrics(
        (7, "GPU Speed Of Light Throughput", "Memory Throughput", 0.5),
        (7, "Memory Workload Analysis", "Memory Throughput", 9e9),
    )
    values = metric_values(table, [7, 8], "ncu", "9.0")
    assert values["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"][0] == 0.5
    assert values["dram__bytes.sum.per_second"][0] == 9e9
    assert np.isnan(values["dram__bytes.sum.per_second"][1])


def test_the_launch_itself_fills_what_no_metric_says() -> None:
    table, sources = launch_counters(LAUNCHES, metrics((7, None, "gpu__time_duration.sum", 1e-6)), "ncu", "9.0")
    assert table["duration_ns"].tolist() == [1000.0, 6.0]
    assert table["grid_x"].tolist() == [2.0, 2.0]
    assert sources["grid_x"][0] == "col:'grid_x'"


def test_no_metrics_at_all_is_no_error() -> None:
    table, _ = launch_counters(LAUNCHES, metrics(), "ncu", None)
    assert table["duration_ns"].tolist() == [5.0, 6.0]
