"""What earlier runs of a board tell of its temperature coefficient at one clock."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.power.workloads import repeats_slope, window_workloads

CLOCK_TOLERANCE = 0.01
COEFFICIENT_COLUMNS = (
    "run_id", "sensor", "clock_hz", "load", "coefficient_w_per_c", "coefficient_low", "coefficient_high",
    "temperature_low_c", "temperature_high_c",
)  # fmt: skip
WINDOW_COLUMNS = ("run_id", "sensor", "kind", "source", "load", "active_sms", "launches", "duration_s", "mean_clock_hz",
           "settled_power_w", "mean_temperature_c")  # fmt: skip


class EarlierRuns(NamedTuple):
    """Sound coefficients and windows of one sensor from earlier runs of the same board."""

    coefficients: pd.DataFrame
    windows: pd.DataFrame


NO_EARLIER_RUNS = EarlierRuns(
    pd.DataFrame(columns=list(COEFFICIENT_COLUMNS)), pd.DataFrame(columns=list(WINDOW_COLUMNS))
)


def earlier_estimates(
    known: EarlierRuns, clock: float, load: str | None, means: pd.DataFrame
) -> tuple[list[int], list[tuple[float, float, float]]]:
    """What earlier runs of the board tell at this clock: their coefficients, and one load across the runs."""
    told = known.coefficients
    told = told[_at_clock(told["clock_hz"], clock) & (told["load"].isna() if load is None else told["load"] == load)]
    columns = ("coefficient_w_per_c", "coefficient_low", "coefficient_high")
    found = [tuple(row) for row in told[list(columns)].to_numpy(np.float64).tolist()]
    runs = told["run_id"].tolist()
    past = known.windows[_at_clock(known.windows["mean_clock_hz"], clock)]
    if load is not None:
        past = past[past["load"] == load]
    if past.empty:  # one run has no load twice
        return sorted(set(map(int, runs))), [(a, b, c) for a, b, c in found]
    points = pd.DataFrame(
        {"run": past["run_id"].to_numpy(), "load": window_workloads(past), "power": past["settled_power_w"],
         "temperature": past["mean_temperature_c"]},
    )  # fmt: skip
    both = pd.concat([points, means[["load", "power", "temperature"]].assign(run=-1)], ignore_index=True)
    both = both.dropna(subset=["load", "power", "temperature"])
    if len(both):
        # One point a load and run: what differs within a run is counted in its own coefficient.
        each = both.astype({"power": float, "temperature": float}).groupby(["load", "run"], dropna=False, sort=False)
        across = each[["power", "temperature"]].mean().reset_index().assign(error=0.0)
        slope = repeats_slope(across)
        if np.isfinite(slope[0]):
            found.append(slope)
            runs += [int(run) for run in across["run"] if run >= 0]
    return sorted(set(map(int, runs))), [(a, b, c) for a, b, c in found]


def _at_clock(clocks: pd.Series, clock: float) -> npt.NDArray[np.bool_]:
    """Which clocks are this one; for an unknown clock, those that are also unknown."""
    values = clocks.to_numpy(np.float64)
    if not np.isfinite(clock):
        return np.asarray(np.isnan(values), np.bool_)
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(values / clock - 1) < CLOCK_TOLERANCE, np.bool_)
