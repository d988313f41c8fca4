"""Runs of two kernels whose durations are given, written as the pipeline writes them; and power at two temperatures."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import writing
from profsvc.store.schema.results.power import FRAMES
from profsvc.tables import Batch, frame

KERNEL, OTHER = "void saxpy<float>(int, float *)", "void other(int)"
W_PER_C, COLD_C = 0.8, 48.0


def put(engine: Engine, name: str, us: float | None, **about: Any) -> int:
    """Write a run with three launches of a kernel around so many microseconds, and one of another kernel."""
    durations = [None if us is None else 1e3 * us * share for share in (0.99, 1.0, 1.02)] + [5000.0]
    index = list(range(4))
    table = frame(
        "launches",
        {"launch_index": index, "kernel": [KERNEL] * 3 + [OTHER], "device": ["NVIDIA H200"] * 4, "line": index,
         "compute_capability": ["9.0"] * 4, "duration_ns": durations},
    )  # fmt: skip
    batch = Batch({"launches": table}, lines_stored=4, facts={"tool": "ncu"})
    told = store.UploadInfo(f"{name}.csv", hashlib.sha256(f"{name}{about}".encode()).hexdigest(), 10, "ncu-raw")
    return store.write_upload(engine, told, store.RunInfo(name=name, **about), iter([batch])).run_id


def fill(engine: Engine, us: Sequence[float | None], project: str = "nightly") -> list[int]:
    """Write a run a duration; commits are those of two runs each."""
    runs = []
    for number, duration in enumerate(us):
        about = {
            "project": project,
            "commit_id": f"{number // 2:07x}",
            "started_at": f"2026-11-{number + 1:02}T02:00:00Z",
        }
        runs.append(put(engine, f"night {number + 1}", duration, **about))
    return runs


def steady(count: int, level: float = 100.0, seed: int = 1) -> list[float]:
    """Return durations around a level."""
    return [float(x) for x in np.random.default_rng(seed).normal(level, 0.004 * level, count)]


def power(engine: Engine, run_id: int, watts: float, heat_c: float, load: str = "saxpy", **changes: Any) -> None:
    """Write a window of power of a load that draws so much at 50 degrees, measured at another temperature."""
    raw, seconds = watts + W_PER_C * (heat_c - 50.0), 10.0
    row: dict[str, Any] = dict.fromkeys(column.name for column in FRAMES["power_windows"])
    row |= {"window": load, "kind": "load", "source": "marks", "load": load, "begin_ns": 0, "end_ns": 10**10,
            "sensor_id": run_id * 10**9 + 1, "temperature_sensor_id": None, "duration_s": seconds, "readings": 100,
            "mean_power_w": raw, "mean_temperature_c": heat_c, "lowest_temperature_c": heat_c - 1,
            "highest_temperature_c": heat_c + 1, "mean_clock_hz": 1.98e9, "reference_temperature_c": heat_c,
            "coefficient_w_per_c": W_PER_C, "coefficient_low": W_PER_C - 0.1, "coefficient_high": W_PER_C + 0.1,
            "corrected_power_w": raw, "corrected_power_low_w": raw - 0.5, "corrected_power_high_w": raw + 0.5,
            "energy_j": raw * seconds, "corrected_energy_j": raw * seconds, "corrected_energy_low_j": raw * seconds - 5,
            "corrected_energy_high_j": raw * seconds + 5}  # fmt: skip
    with writing(engine) as connection:
        query = (
            "INSERT INTO sensors (sensor_id, quantity, name, unit, gpu_index, device, samples)"
            " VALUES (:key, 'power', 'power.draw', 'W', 0, 'NVIDIA H200', 0)"
        )
        connection.execute(text(query), {"key": run_id * 10**9 + 1})
    store.save_power(engine, run_id, {"power_windows": pd.DataFrame([row | changes])}, "1")
