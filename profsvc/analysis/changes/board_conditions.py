"""Clock and temperature of one board: series that change together, since one state of the board moves both."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.changes.series.night_values import night_numbers
from profsvc.formulas.change.findings import FIXED

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
CONDITIONS = ("clock", "temperature")  # kinds of series; of two that changed in one night the first one is the finding
NEAR_NIGHTS = 2  # by which noise moves the begin of a step
BOARD = ("project", "device", "branch", "sensor")
SIDE_VALUES = 5  # that say the level of the other condition before a change


def of_other_conditions(
    points: pd.DataFrame, heads: pd.DataFrame, value: Floats, known: Sequence[Mapping[str, Any]]
) -> list[Row]:
    """Return the findings of conditions as they are of the other conditions of the same board.

    A board that stays at its power limit has a lower clock and is warmer. What one of them was found for begins a new
    baseline of the other one too, else it would be a finding once more as soon as it is sure.

    ``points``: of all series, those of one together; ``heads``: the first of each; ``value``: their values; ``known``:
    the findings.
    """
    found = [one for one in known if one["kind"] in CONDITIONS]
    if not found:
        return []
    at, group, rows = points["at"].to_numpy(object), points["group"].to_numpy(np.int64), list[Row]()
    series = heads.loc[heads["kind"].isin(CONDITIONS), ["series", "group", *BOARD]].to_dict("records")
    for one in found:
        for other in series:
            if _board(other) != _board(one) or other["series"] == one["series"]:
                continue
            own = np.flatnonzero((group == other["group"]) & ~np.isnan(value))
            before = own[at[own] < one["changed_at"]][-SIDE_VALUES:]
            until = one["said_at"] if one["state"] == FIXED and one["said_at"] else max(at[own], default="")
            since = own[(at[own] >= one["changed_at"]) & (at[own] <= until)]
            levels = {name: float(np.median(value[side])) if side.size else np.nan
                      for name, side in (("before", before), ("after", since))}  # fmt: skip
            rows.append(dict(one) | levels | {"series": str(other["series"])})
    return rows


def without_other_conditions(found: Sequence[Row], points: pd.DataFrame) -> list[Row]:
    """Return new findings without those of a condition of a board of which another one changed in the same nights.

    ``points``: of all series, with the time and the night of each run.
    """
    of_time = dict(zip(points["at"], night_numbers(points), strict=True))
    told: list[Row] = []
    for row in sorted(found, key=_rank):
        same = [
            one for one in told
            if row["kind"] in CONDITIONS and one["kind"] in CONDITIONS and _board(one) == _board(row)
            and abs(of_time[one["changed_at"]] - of_time[row["changed_at"]]) <= NEAR_NIGHTS
        ]  # fmt: skip
        if not same:
            told.append(row)
    return [row for row in found if any(row is one for one in told)]


def _rank(row: Mapping[str, Any]) -> int:
    return CONDITIONS.index(row["kind"]) if row["kind"] in CONDITIONS else -1


def _board(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return what names the board of a series: without its sensor, but for the number of the GPU."""
    *names, sensor = ("" if pd.isna(row[name]) else str(row[name]) for name in BOARD)
    return *names, sensor.partition(" of GPU ")[2]
