"""Values of nights on which the board was in its usual state."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.changes.series.night_values import night_numbers
from profsvc.formulas.change.levels.series_length import MIN_SEGMENT
from profsvc.formulas.change.night_states import MIN_SERIES, night_states, noise_ratios, quieter_since
from profsvc.formulas.change.noise.older_values import as_sure_as_newest, equivalent_values
from profsvc.formulas.numerics.series import Series, gather, medians, read_series

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
FEWEST_CALM = 2  # calm nights that make a level, where the board was not calm in one of three nights or more


class CalmNights(NamedTuple):
    """The values that tell a change."""

    value: Floats  # NaN where a night says less of its series than the calm ones alone
    shortest: Ints  # values that make a level, of each series
    left_out: npt.NDArray[np.bool_]  # of each point


def as_loud_as_newest(value: Floats, points: pd.DataFrame, family: Ints) -> Floats:
    """Return the values as far from the level of their series as they would be with the noise of the newest nights.

    ``family``: number of the family of each series, whose nights are judged together.
    """
    group, night, out = points["group"].to_numpy(np.int64), night_numbers(points), value.copy()
    known = np.isfinite(value)
    for number in np.unique(family).tolist():
        own = np.flatnonzero(known & (family == number)[group])
        groups, row = np.unique(group[own], return_inverse=True)
        if groups.size < MIN_SERIES:
            continue
        nights, column = np.unique(night[own], return_inverse=True)
        table = np.full((groups.size, nights.size), np.nan)
        table[row, column] = value[own]
        ratio = noise_ratios(table)[row, column]
        older = ratio > 1.0
        level = medians(value[own][older], row[older], groups.size)[row[older]]
        out[own[older]] = level + ratio[older] * (value[own][older] - level)
    return out


def with_noise_of_newest(value: Floats, points: pd.DataFrame, family: Ints) -> Floats:
    """Return the values with those of before a series became quieter in means, each as sure as a newest value.

    Siblings that became quieter together say so sooner than a series alone.
    """
    group, night = points["group"].to_numpy(np.int64), night_numbers(points)
    x, error, groups = read_series(value, group, None)
    series = gather(x, error, groups, ~np.isnan(x))
    equivalent, since = equivalent_values(series)
    for number in np.unique(family).tolist():
        members = np.flatnonzero(family == number)
        if members.size >= MIN_SERIES:
            _quieter_together(series, members, night[series.place], equivalent, since)
    out = np.full(value.size, np.nan)
    out[series.place] = as_sure_as_newest(series, equivalent, since)
    return out


def _quieter_together(series: Series, members: Ints, night: Ints, equivalent: Floats, since: Ints) -> None:
    """Set the numbers of equivalent values, and the first quieter ones, of siblings that became quieter together."""
    own = [np.arange(series.start[one], series.stop[one]) for one in members.tolist()]
    row, flat = np.repeat(np.arange(members.size), [part.size for part in own]), np.concatenate(own)
    if not flat.size:
        return
    nights, column = np.unique(night[flat], return_inverse=True)
    table = np.full((members.size, nights.size), np.nan)
    table[row, column] = series.x[flat]
    quieter = quieter_since(table)
    if quieter is None:
        return
    first = series.start[members] + np.bincount(row, column < quieter[0], members.size).astype(np.intp)
    surer = quieter[1] > equivalent[members]
    equivalent[members[surer]] = quieter[1][surer]
    since[members[surer]] = first[surer]


def calm_nights(points: pd.DataFrame, family: Ints) -> CalmNights:
    """Return the values of the points without those that the state of the board made noisy.

    ``family``: number of the family of each series; durations of one device are judged together.
    """
    value = points["value"].to_numpy(np.float64).copy()
    group = points["group"].to_numpy(np.int64)
    night = night_numbers(points)
    is_duration = (points["kind"] == "duration").to_numpy()
    left_out = np.zeros(len(points), dtype=np.bool_)
    for number in np.unique(family[group[is_duration]]).tolist():
        own = np.flatnonzero(is_duration & (family[group] == number))
        groups, row = np.unique(group[own], return_inverse=True)
        if groups.size < MIN_SERIES:
            continue
        _, column = np.unique(night[own], return_inverse=True)  # a night of none of them has no column
        table = np.full((groups.size, int(column.max()) + 1), np.nan)
        table[row, column] = value[own]
        states = night_states(table)
        left_out[own] = states.affected[row] & ~states.calm[column]
    value[left_out] = np.nan
    return CalmNights(value, _shortest(group, left_out), left_out)


def _shortest(group: npt.NDArray[np.int64], left_out: npt.NDArray[np.bool_]) -> Ints:
    """Return the values that make a level: with those left out among them, three nights or more."""
    out = np.full(int(group[-1]) + 1, MIN_SEGMENT, dtype=np.intp)
    stops = np.flatnonzero(np.r_[group[1:] != group[:-1], True]) + 1
    for one, stop in enumerate(stops.tolist()):
        newest = left_out[max(0, stop - MIN_SEGMENT) : stop]
        if newest.any() and group[max(0, stop - MIN_SEGMENT)] == one:
            out[one] = FEWEST_CALM
    return out


def left_out_counts(points: pd.DataFrame, left_out: npt.NDArray[np.bool_]) -> dict[str, int]:
    """Return how many nights are left out, of how many series, and of how many series the newest night is."""
    newest = ~points["group"].duplicated(keep="last").to_numpy()
    nights = len(np.unique(night_numbers(points)[left_out]))
    series = points["group"][left_out].nunique()
    return {"nights": int(nights), "series": int(series), "tonight": int((left_out & newest).sum())}
