"""Nights of runs, made up and put into a store as rows: kernels with durations, a load with its power and temperature.

The load draws `LOAD_W` at `BASE_C` and `PER_C` more for every degree, as silicon that leaks does. Every run knows that
coefficient within `COEFFICIENT_SE`, and is corrected to a temperature of its own.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
from sqlalchemy import Engine

from profsvc import store
from profsvc.pipeline.nightly import report_of_night
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.tables import Batch, frame

FIRST = date(2026, 1, 1)
KERNELS = ("void gemm<16>(const float *, float *)", "saxpy(int, float *)")
MICROSECONDS = (800.0, 25.0)
NOISE = 0.004
BASE_C, LOAD_W, PER_C, SECONDS = 40.0, 300.0, 1.5, 10.0
COEFFICIENT_SE, POWER_SE_W = 0.04, 0.5
DEVICE = "NVIDIA H200"


def day(night: int) -> date:
    return FIRST + timedelta(days=night)


def put(
    engine: Engine,
    night: int,
    rng: np.random.Generator,
    *,
    temperature_c: float | None = BASE_C,
    more_w: float = 0.0,
    slower: Sequence[float] = (1.0, 1.0),
    rejected: int = 0,
    project: str = "lab",
    hour: int = 2,
    commit: str | None = None,
    name: str = "",
    branch: str = "",
    kernels: Sequence[str] = KERNELS,
) -> int:
    """Put the run of a night into the store; without a temperature it has no log of power. Return its number."""
    time = datetime.combine(day(night), datetime.min.time(), UTC) + timedelta(hours=hour)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ")
    run = store.RunInfo(
        name=name or f"night {night} {hour} {branch}".strip(),
        project=project,
        commit_id=commit,
        started_at=stamp,
        tags={"branch": branch} if branch else {},
    )
    content = f"{project} {night} {hour} {name} {branch}"
    info = store.UploadInfo(
        "profile.csv", hashlib.sha256(content.encode()).hexdigest(), len(content), "ncu-raw", received_at=stamp
    )
    stored = store.write_upload(
        engine, info, run, iter([_batch(rng, slower, rejected, temperature_c is not None, kernels)])
    )
    if temperature_c is not None:
        frames = {"power_windows": _windows(rng, stored.upload_id, temperature_c, more_w)}
        store.save_power(engine, stored.run_id, frames, "1")
    return stored.run_id


def _batch(
    rng: np.random.Generator, slower: Sequence[float], rejected: int, has_power: bool, kernels: Sequence[str]
) -> Batch:
    noise = 1 + NOISE * rng.standard_normal(len(KERNELS))
    index = list(range(len(KERNELS)))
    tables = {
        "launches": frame(
            "launches",
            {
                "launch_index": index,
                "kernel": list(kernels),
                "device": [DEVICE] * len(index),
                "compute_capability": ["9.0"] * len(index),
                "duration_ns": [1e3 * us * n * s for us, n, s in zip(MICROSECONDS, noise, slower, strict=True)],
                "line": [2 + i for i in index],
            },
        )
    }
    sensors = {
        "sensor_index": [0, 1],
        "quantity": ["power", "temperature"],
        "name": ["power.draw.instant", "temperature.gpu"],
        "unit": ["W", "degC"],
        "gpu_index": [0, 0],
    }
    if has_power:
        tables["sensors"] = frame("sensors", sensors)
    if rejected:
        lines = list(range(1, rejected + 1))
        words = {"reason": ["no launch"] * rejected, "text": ["?"] * rejected}
        tables["rejects"] = frame("rejects", {"line": lines, "lines": [1] * rejected} | words)
    facts = {"tool": "ncu", "tool_version": "2025.1"}
    return Batch(tables, lines_stored=40, lines_rejected=rejected, facts=facts)


def _windows(rng: np.random.Generator, upload_id: int, temperature_c: float, more_w: float) -> pd.DataFrame:
    raw = LOAD_W + more_w + PER_C * (temperature_c - BASE_C) + POWER_SE_W * rng.standard_normal()
    per_c = PER_C + COEFFICIENT_SE * rng.standard_normal()
    first = upload_id * IDS_PER_UPLOAD + 1
    whole = {
        "window": "run", "kind": "run", "source": "log", "sensor_id": first, "temperature_sensor_id": first + 1,
        "begin_ns": 0, "end_ns": 10**10, "duration_s": SECONDS, "readings": 100, "mean_power_w": raw,
        "mean_temperature_c": temperature_c + 0.2 * rng.standard_normal(), "reason": "a whole run has several loads",
    }  # fmt: skip
    at = {"reference_temperature_c": temperature_c, "coefficient_w_per_c": per_c, "reason": None}
    at |= {"coefficient_low": per_c - 1.96 * COEFFICIENT_SE, "coefficient_high": per_c + 1.96 * COEFFICIENT_SE}
    for quantity, unit, times in (("power", "w", 1.0), ("energy", "j", SECONDS)):
        at[f"corrected_{quantity}_{unit}"] = raw * times
        at[f"corrected_{quantity}_low_{unit}"] = (raw - 1.96 * POWER_SE_W) * times
        at[f"corrected_{quantity}_high_{unit}"] = (raw + 1.96 * POWER_SE_W) * times
    load = whole | {"window": "gemm", "kind": "load", "source": "marks", "launches": 100, "energy_j": raw * SECONDS}
    return pd.DataFrame([whole, load | at]).astype(object).where(lambda table: table.notna(), None)


def report(engine: Engine, night: int, **options: object) -> dict:
    """Report a night that is already over."""
    return report_of_night(engine, night=day(night), **options)


def quantities(rows: Sequence[dict]) -> list[tuple[str, str]]:
    return [(row["subject"], row["quantity"]) for row in rows]
