"""One value per night where the runs of a night resemble each other more than those of different nights.

Runs of a night share what the night brings: temperature, other programs, clocks. Where the values of nights scatter
more than the runs of a night explain, five runs are not five times the evidence: their mean is one value. Elsewhere
every run counts for itself.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.timezones import time_zone

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
MAX_P = 0.01  # probability of the scatter of the nights, if runs of a night do not resemble each other
MAD_EFFICIENCY = 0.37  # a median absolute deviation knows as much as a standard deviation of 0.37 times the values
MEDIAN_CHI_SQUARE = 0.454936423119572  # of one degree of freedom
MIN_SIBLING_REPEATS = 20  # degrees of freedom within nights of all series together, which say what is usual
MAX_VARIANCE_RATIO = 2.0  # of all series together, above which runs of a night count as one value
DATE = len("2026-01-31")


def with_nights(points: pd.DataFrame, zone: str) -> pd.DataFrame:
    """Return the points with ``night``: the date of each run in a time zone, in days since 1970.

    Dates in UTC would divide a night in two, and summer time would move it to another day of the week.
    """
    of_time, times = pd.factorize(points["at"])
    return points.assign(night=night_dates(times, zone).astype(np.int32)[of_time])


def night_dates(times: Iterable[Any], zone: str) -> npt.NDArray[np.datetime64]:
    """Return the dates of times in a time zone; a bare date is one in any zone.

    >>> night_dates(["2026-01-31T23:30:00Z", "2026-01-31"], "Europe/Berlin").astype(str).tolist()
    ['2026-02-01', '2026-01-31']
    """
    texts = np.array([str(at) for at in times], dtype=object)
    dates = np.array([at[:DATE] for at in texts], dtype="datetime64[D]")
    clocks = np.array([len(at) > DATE for at in texts], dtype=np.bool_)
    if zone != "UTC" and clocks.any():
        local = pd.to_datetime(texts[clocks], utc=True, format="ISO8601").tz_convert(time_zone(zone))
        dates[clocks] = local.tz_localize(None).to_numpy().astype("datetime64[D]")
    return dates


def night_numbers(points: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the number of the night of each point, in order of time; nights without a run have none."""
    return np.asarray(pd.factorize(points["night"], sort=True)[0], dtype=np.intp)


def night_values(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points with one row per night where runs of a night resemble each other; ``until`` is its last run.

    Runs of several builds in one ``night`` stay apart. A row of a night stands at its first run and has the mean of its
    runs.
    """
    points = points.assign(until=points["at"])
    night = _nights(points)
    if not len(points) or night[-1] + 1 == len(points):
        return points
    value, group = points["value"].to_numpy(np.float64), points["group"].to_numpy(np.int64)
    merged = _share_their_night(value, group, night)[group]
    code = np.where(merged, night, -1 - np.arange(len(points)))
    if len(np.unique(code)) == len(points):
        return points
    of_night = points.groupby(code, sort=False)
    first = ~of_night.cumcount().astype(bool)
    means = {name: of_night[name].transform("mean") for name in ("value", "raw", "low", "high", "error")}
    out = points.assign(**means, until=of_night["at"].transform("last"))[first.to_numpy()]
    return out.reset_index(drop=True)


def _nights(points: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Return the number of the night of each point, which ascends."""
    day, (build, _) = points["night"].to_numpy(), pd.factorize(points["build"])
    group = points["group"].to_numpy(np.int64)
    begins = np.r_[True, (group[1:] != group[:-1]) | (day[1:] != day[:-1]) | (build[1:] != build[:-1])]
    return np.asarray(np.cumsum(begins[: len(points)]) - 1, dtype=np.int64)


def _share_their_night(value: Floats, group: npt.NDArray[np.int64], night: npt.NDArray[np.int64]) -> Bools:
    """Return of which series the values of nights scatter more than runs of a night do, by an F test.

    The scatter of the nights is that of their median deviation, which no few nights after a change enlarge. A series
    that says neither that they do nor that they do less than those of its siblings is taken for one of these. Nights of
    one run say less of it than those of several: where these are new, what they share is in the scatter of the others.
    """
    from scipy.special import fdtr, fdtrc

    size = int(group[-1]) + 1
    known = ~np.isnan(value)
    count = np.bincount(night, known)
    with np.errstate(all="ignore"):
        mean = np.bincount(night, np.where(known, value, 0.0)) / count
        within = np.bincount(group, np.where(known, value - mean[night], 0.0) ** 2, size)
        of_night = np.zeros(len(count), dtype=np.int64)
        of_night[night] = group
        filled = count > 0
        repeats = np.bincount(group, known, size) - np.bincount(of_night[filled], minlength=size)
        runs, mean, of_night = count[filled], mean[filled], of_night[filled]
        table = pd.DataFrame({"group": of_night, "mean": mean})
        center = table.groupby("group")["mean"].transform("median").to_numpy(np.float64)
        between = pd.Series((mean - center) ** 2).groupby(of_night).median().reindex(range(size))
        share = np.bincount(of_night, 1.0 / runs, size) / np.bincount(of_night, minlength=size)
        ratio = between.to_numpy(np.float64) / MEDIAN_CHI_SQUARE / (within / repeats * share)
        several = runs > 1
        most = np.bincount(of_night[several], runs[several], size) / np.bincount(of_night[several], minlength=size)
        df = np.maximum(MAD_EFFICIENCY * (np.bincount(of_night, minlength=size) - 1.0), 1.0)
        p = fdtrc(df, np.maximum(repeats, 1.0), ratio)
    judged = (repeats > 0) & ~np.isnan(ratio)
    all_repeats = repeats[judged].sum()
    with np.errstate(all="ignore"):
        usual = all_repeats / (repeats[judged] / ratio[judged]).sum() if all_repeats >= MIN_SIBLING_REPEATS else 0.0
        as_siblings = 1.0 + (usual - 1.0) * most * share > MAX_VARIANCE_RATIO
        less = fdtr(df, np.maximum(repeats, 1.0), ratio / usual) <= MAX_P if usual > 0 else judged
    return np.asarray(judged & ((p <= MAX_P) | (as_siblings & ~less)))
