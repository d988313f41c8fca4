"""The part of the values of nights that the day of the week explains."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.formulas.change.weekly_cycles import DAYS, MIN_OF_WEEK, weekly_cycles

Floats = npt.NDArray[np.float64]


def weekly_parts(points: pd.DataFrame, family: npt.NDArray[np.intp]) -> Floats:
    """Return what the day of the week adds to the value of each point; 0 where no cycle is sure.

    ``family``: number of the family of each series; the days of its siblings are judged together.
    """
    value, group = points["value"].to_numpy(np.float64), points["group"].to_numpy(np.int64)
    date = points["night"].to_numpy(np.int64)
    out = np.zeros(len(points))
    for number in np.unique(family).tolist():
        own = np.flatnonzero((family == number)[group])
        groups, row = np.unique(group[own], return_inverse=True)
        first = int(date[own].min())
        shape = groups.size, int(date[own].max()) - first + 1
        if np.unique(date[own]).size * DAYS < shape[1] * MIN_OF_WEEK:
            continue  # too few days of a week are known
        place = np.ravel_multi_index((row, date[own] - first), shape)
        count = np.bincount(place, minlength=shape[0] * shape[1])
        with np.errstate(invalid="ignore"):
            table = (np.bincount(place, value[own], count.size) / count).reshape(shape)
        weekday = (np.arange(shape[1]) + first) % DAYS
        out[own] = weekly_cycles(table, weekday).ravel()[place]
    return out
