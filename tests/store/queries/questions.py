"""A store that answers the example queries: profiles of before and after, a trace, logs, files with faults."""

from pathlib import Path

from sqlalchemy import Engine

from profsvc import store
from tests.inputs.uploads import ingest_all
from tests.views import power_logs

FIXTURES = Path(__file__).parents[3] / "fixtures"
RUNS = {
    "before": ("ncu_raw/h200_three_launches.csv.gz", "ncu_details/h200_three_launches.csv.gz"),
    "after": ("ncu_raw/h200_live_stdout.csv", "demo/ncu_raw.csv.gz"),
    "trace": (
        "nvprof/gpu_trace.csv",
        "nvprof/api_trace.csv",
        "nvprof/summary.csv",
        "nsys_sqlite/two_devices.sqlite",
        "nsys_stats/several_reports.csv",
        "kineto/cuda.json",
    ),
    "power": ("nvidia_smi/units.csv", "nvidia_smi/no_header.csv", "nvml_energy/plain.csv", "hioki/pw3335.csv"),
    "faults": ("nsys_stats/rejects.csv", "ncu_raw/truncated_row.csv", "ncu_raw/not_numbers.csv"),
    "bench": ("characterization/plain.csv",),
}
# Runs with made-up logs of power, and how much more a load draws in them.
SWEEPS = {"cool": 0.0, "hot": 20.0}
COMMITS = {"before": "1f2e3d", "after": "4c5b6a"}


def fill(engine: Engine) -> None:
    """Upload the files of every run."""
    for number, (run, files) in enumerate(RUNS.items()):
        # A time of its own for each, for two that are stored within a second have no order.
        at = f"2026-11-01T{number:02}:00:00Z"
        given = store.RunInfo(name=run, project="examples", commit_id=COMMITS.get(run), tags={"branch": "main"}, at=at)
        ingest_all(engine, [((FIXTURES / name).read_bytes(), Path(name).name) for name in files], given)
    for number, (run, more_w) in enumerate(SWEEPS.items()):
        power_logs.fill(engine, run, more_w, f"2026-11-02T{number:02}:00:00Z")


PAIR = {"before": "before", "after": "after"}
TRACE, POWER, BEFORE = {"run": "trace"}, {"run": "power"}, {"run": "before"}
# The values with which an example has rows on this store.
PARAMS: dict[str, dict[str, str]] = {
    "kernel_ratio": PAIR,
    "new_kernels": PAIR,
    "nvidia_came_true": PAIR,
    "top_kernels": BEFORE,
    "criterion_means": BEFORE,
    "unknown_criteria": {"run": "faults"},
    "potential": BEFORE,
    "model_times": BEFORE,
    "models_without_answer": {"run": "after"},
    "slowest_launch": BEFORE,
    "occupancy": BEFORE,
    "launch_shapes": BEFORE,
    "streams": TRACE,
    "idle_gaps": TRACE,
    "transfers": TRACE,
    "api_calls": TRACE,
    "launch_latency": TRACE,
    "ranges": TRACE,
    "summaries": TRACE,
    "mean_power": POWER,
    "sensor_ranges": POWER,
    "power_windows": {"run": "cool"},
    "power_change": {"before": "cool", "after": "hot"},
    "power_warnings": POWER,
}
EMPTY = {"versions_apart"}
"""Examples without rows here: there is one version of the analysis."""
