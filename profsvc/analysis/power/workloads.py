"""What a window of a power log does, by which it repeats another, and how the power of repeats follows the heat."""

from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.power.windows import IDLE, KERNEL, LOAD
from profsvc.formulas.thermal.coefficient.repeated_loads import repeat_slope

# Windows whose launches take times so close are taken to do the same work.
SAME_PACE = 0.02
# Temperatures are read in whole degrees: the standard error of one that stands still.
ROUNDING_ERROR_C = 12**-0.5


def window_workloads(windows: pd.DataFrame) -> list[tuple[Any, ...] | None]:
    """What a window does, by which it repeats another: its load on so many SMs, at one pace; None where it is not told.

    Levels of the power have no name that means the same again.
    """
    told: list[tuple[Any, ...] | None] = []
    for row in windows.to_dict("records"):
        if row["source"] not in ("marks", "launches") or row["kind"] not in (LOAD, KERNEL, IDLE):
            told.append(None)
            continue
        each = row["duration_s"] / row["launches"] if row["launches"] and not pd.isna(row["launches"]) else None
        pace = None if each is None or not each > 0 else float(np.log(each))
        told.append((row["load"], None if pd.isna(row["active_sms"]) else int(row["active_sms"]), pace))
    paces: dict[tuple[Any, ...], list[float]] = {}
    for each in told:
        if each is not None and each[-1] is not None:
            paces.setdefault(each[:-1], []).append(each[-1])
    first = {key: _first_of_group(values) for key, values in paces.items()}
    return [one if one is None or one[-1] is None else (*one[:-1], first[one[:-1]][one[-1]]) for one in told]


def _first_of_group(values: list[float]) -> dict[float, float]:
    """Return the least value of the group of each: values that are closer than the same pace are of one group.

    >>> _first_of_group([0.03, 0.0, 0.015, 0.1])
    {0.0: 0.0, 0.015: 0.0, 0.03: 0.0, 0.1: 0.1}
    """
    groups: dict[float, float] = {}
    last = first = -np.inf
    for value in sorted(set(values)):
        first = value if value - last > SAME_PACE else first
        groups[value], last = first, value
    return groups


def repeats_slope(points: pd.DataFrame) -> tuple[float, float, float]:
    """Slope between repeats of one load and the ends of its interval."""
    points = points[points["load"].notna()]
    codes = pd.factorize(pd.Series(points["load"].tolist(), dtype=object))[0] if len(points) else np.zeros(0)
    power, warmth, error = (points[name].to_numpy(np.float64) for name in ("power", "temperature", "error"))
    found = repeat_slope(power, warmth, codes, power_error_w=np.nan_to_num(error), temperature_error_c=ROUNDING_ERROR_C)
    return found.slope_w_per_c, found.low_w_per_c, found.high_w_per_c
