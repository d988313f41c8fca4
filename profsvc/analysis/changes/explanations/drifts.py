"""Series that drift: where a drift ended, and drifts without a step."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.formulas.change.nightly_test import effect
from profsvc.formulas.change.trends import end_of_drift, fitted_trend, shapes
from profsvc.formulas.numerics.series import Series, gather, in_units_of_sd, read_series, without_spikes

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
DRIFT = "drift"
MIN_TREND = 0.5  # probability from which a drift may have ended


def after_drifts(value: Floats, group: Ints, siblings: npt.NDArray[np.intp]) -> Bools:
    """Return which values are not before the end of a drift of their series: there it begins."""
    series, ids = without_spikes_of(value, group)
    shape, kept = shapes(in_units_of_sd(series), siblings), np.ones(value.size, dtype=np.bool_)
    for one in np.flatnonzero(shape.trend > MIN_TREND).tolist():
        own = slice(series.start[one], series.stop[one])
        if since := end_of_drift(series.x[own]):
            kept[np.searchsorted(group, ids[one]) : series.place[own][since]] = False
    return kept


def without_spikes_of(value: Floats, group: Ints) -> tuple[Series, Ints]:
    """Return the series of values, and the number of each."""
    x, error, groups = read_series(value, group, None)
    return without_spikes(gather(x, error, groups, ~np.isnan(x))), groups.ids


def drifts(
    points: pd.DataFrame, value: Floats, places: Mapping[int, npt.NDArray[np.intp]], least: tuple[Floats, Floats]
) -> dict[int, Row]:
    """Series without a step that follow a trend by more than the reporting threshold; ``places``: of their values."""
    told = {}
    for one, own in places.items():
        fitted = fitted_trend(value[own])
        if effect(fitted[0], fitted[-1], least[0][one], least[1][one]).material:
            told[one] = drift_row(points, own, fitted)
    return told


def drift_row(points: pd.DataFrame, own: npt.NDArray[np.intp], fitted: Floats) -> Row:
    """Return what the report says of a series that drifts; ``own``: places of its values, ``fitted``: its trend."""
    return {"shape": DRIFT, "before": float(fitted[0]), "after": float(fitted[-1]), "runs": int(own.size),
            "run_id": int(points["run_id"].iloc[own[0]]), "since": str(points["at"].iloc[own[0]])}  # fmt: skip
