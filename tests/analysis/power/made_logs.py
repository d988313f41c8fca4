"""Made-up logs of power, and launches beside them."""

from dataclasses import replace

import numpy as np
import pandas as pd

from profsvc.analysis.power.logs import UTC, Log

S = 10**9
ORIGIN = 1_795_180_576 * S
NO_MARKS = pd.DataFrame(
    {n: [] for n in ("name", "domain", "start_ns", "duration_ns", "active_sms", "launches", "upload_id", "clock")}
)
NO_LAUNCHES = pd.DataFrame(
    {n: [] for n in ("kernel", "start_ns", "duration_ns", "device_index", "host", "upload_id", "clock")}
)


def made(
    quantity: str, name: str, time_s, value, *, number: int, upload: int = 1, unit: str = "W", clock: str = UTC
) -> Log:
    time_ns = ORIGIN + np.round(np.asarray(time_s) * 1e9).astype(np.int64)
    return Log(number, upload, quantity, name, unit, 0, "NVIDIA H200", clock, time_ns, np.asarray(value, dtype=float))


def launches_at(start_ns: np.ndarray, duration_s: float, device: int = 0, host: str = "") -> pd.DataFrame:
    columns = {"kernel": "void k<1>(int)", "start_ns": start_ns, "duration_ns": duration_s * S}
    return pd.DataFrame({**columns, "device_index": device, "host": host, "clock": UTC, "upload_id": 1})


def flat(gpu: int | None, power_w: float, number: int, seconds: tuple[float, float] = (0.0, 60.0)) -> Log:
    """A log of one GPU with ten readings a second, whose last digit moves."""
    time_s = np.arange(*seconds, 0.1)
    own = made("power", "power.draw.instant", time_s, power_w + 0.25 * (np.arange(time_s.size) % 3), number=number)
    return replace(own, gpu_index=gpu)


KERNELS = ORIGIN + np.arange(10, 30) * S
"""Twenty launches of a second each."""
