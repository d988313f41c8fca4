"""Runs with logs of thermocouples on a die, made up: a spacer with nine of them, warm in one corner."""

import io

import numpy as np
from sqlalchemy import Engine

from profsvc import pipeline, store

PLACES = {f"T{k}": (3.0 + 9.0 * (k % 3), 3.0 + 9.0 * (k // 3)) for k in range(9)}
HOT = "T5"  # at (21, 12)
BASE_C, RISE_C = 50.0, 8.0
SECONDS = 240
NOISE_C = 0.02
TURNED = {f"T{k}": f"T{3 * (k % 3) + 2 - k // 3}" for k in range(9)}
"""Where a sensor comes to stand when the spacer is turned by 90 degrees counter-clockwise: on the place of which."""


def field(rise_c: float = RISE_C) -> dict[str, float]:
    """What each place reads once it has settled [degC]."""
    hot_x, hot_y = PLACES[HOT]
    return {
        name: BASE_C + rise_c * float(np.exp(-((x - hot_x) ** 2 + (y - hot_y) ** 2) / 150))
        for name, (x, y) in PLACES.items()
    }


def log(values: dict[str, float], seconds: int = SECONDS, drift_c_per_s: float = 0.0, seed: int = 1) -> bytes:
    """A log of one channel a thermocouple, a reading a second."""
    noise = np.random.default_rng(seed).normal(0, NOISE_C, (seconds, len(values)))
    rows = [",".join(["t", *values])]
    for second in range(seconds):
        read = [value + drift_c_per_s * second + noise[second, k] for k, value in enumerate(values.values())]
        rows.append(",".join([str(second), *(f"{one:.3f}" for one in read)]))
    return ("\n".join(rows) + "\n").encode()


def how(placed: bool = True) -> pipeline.ReadOptions:
    """What a user says of such a log."""
    columns = ("t=time:s", *(f"{name}=temperature:degC" for name in PLACES))
    places = tuple(f"{name}={x:g},{y:g}" for name, (x, y) in PLACES.items()) if placed else ()
    return pipeline.ReadOptions(columns=columns, positions=places)


def fill(engine: Engine, run: str, data: bytes, placed: bool = True) -> int:
    """Upload a log as a run; return its number."""
    verdict = pipeline.ingest(engine, io.BytesIO(data), f"{run}.csv", store.RunInfo(name=run), how(placed))
    assert verdict.run_id is not None
    return verdict.run_id


def fill_all(engine: Engine) -> None:
    """Upload a run under load, an idle one, a calibration, one turned, and one that has not settled."""
    warm = field()
    bias = {name: 0.1 * (k - 4) for k, name in enumerate(PLACES)}
    fill(engine, "spacer", log(warm))
    fill(engine, "idle", log(dict.fromkeys(PLACES, 40.0), seed=2))
    fill(engine, "plates", log({name: 25 + bias[name] for name in PLACES}, seed=3), placed=False)
    fill(engine, "turned", log({name: warm[TURNED[name]] for name in PLACES}, seed=4))
    fill(engine, "drifting", log(warm, drift_c_per_s=0.02, seed=5))
    fill(engine, "nowhere", log(warm, seed=6), placed=False)
