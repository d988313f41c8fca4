"""Steps that may be excursions: to a level that the series was on before, or such as its siblings make."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.changes.explanations.families import families
from profsvc.formulas.change.levels.carried_levels import carried_visit_probability
from profsvc.formulas.change.levels.level_habits import excursion_probability
from profsvc.formulas.change.levels.level_visits import alternation_probability, visit_probability
from profsvc.formulas.change.nightly_test import NightlyVerdict
from profsvc.formulas.change.noise.siblings import MIN_SIBLINGS
from profsvc.formulas.change.steps.newest_step import VALUE_COMPARISON_SD
from profsvc.formulas.numerics.series import (
    Series,
    codes_of,
    gather,
    in_units_of_sd,
    medians,
    read_series,
    without_spikes,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def excursion_rates(
    points: pd.DataFrame,
    whole: Floats,
    asked: npt.NDArray[np.intp],
    verdict: NightlyVerdict,
    least: tuple[Floats, Floats],
    fresh: Ints,
) -> Floats:
    """How often an excursion is as long and as far as the step of each series, of those that a look sees first."""
    group = points["group"].to_numpy(np.int64)
    family = families(points.drop_duplicates("group"))
    x, error, groups = read_series(whole, group, None)
    night = np.asarray(pd.factorize(points["at"], sort=True)[0], dtype=np.intp)
    out = np.zeros(asked.size)
    for number in np.unique(family[asked]).tolist():
        members = np.flatnonzero(family == number)
        if members.size < MIN_SIBLINGS:
            continue
        inside = np.isin(group, members) & ~np.isnan(x)
        series = gather(x, error, groups, inside)
        series = series._replace(start=series.start[members], stop=series.stop[members])
        center = np.nan_to_num(medians(series.x, codes_of(series), members.size))
        smallest = np.maximum(least[0][members] * np.abs(center), least[1][members])
        mine = np.flatnonzero(np.isin(asked, members))
        place = np.searchsorted(members, asked[mine])
        split = np.array([a + np.searchsorted(series.place[a:b], step) for a, b, step in zip(
            series.start[place], series.stop[place], verdict.at[asked[mine]], strict=True)])  # fmt: skip
        rates = excursion_probability(series, place, split, smallest, night, fresh[asked[mine]])
        out[mine] = np.maximum(rates, _rates_of_first_values(series, place, split, smallest, night))
    return out


def _rates_of_first_values(
    series: Series, asked: npt.NDArray[np.intp], split: npt.NDArray[np.intp], smallest: Floats, night: Ints
) -> Floats:
    """How often a record begins in an excursion as long and as far as the values before a step, where these are fewer
    than those since: backwards in time an excursion is one too, and no night is nearer to its end than another.
    """
    start, stop = series.start[asked], series.stop[asked]
    out, some = np.zeros(asked.size), np.flatnonzero(split - start < stop - split)
    if some.size:
        codes = codes_of(series)
        order = series.start[codes] + series.stop[codes] - 1 - np.arange(series.x.size)
        backwards = series._replace(x=series.x[order], error=series.error[order], place=series.place[order])
        out[some] = excursion_probability(
            backwards, asked[some], (start + stop - split)[some], smallest, night.max() - night, (stop - start)[some]
        )
    return out


def visit_probabilities(whole: Floats, group: Ints, asked: npt.NDArray[np.intp], at: Ints) -> Floats:
    """Probability that each series is only back where it was before, by all the values since its last baseline."""
    series = in_units_of_sd(without_spikes(_asked_series(whole, group, asked)))
    return np.asarray(visit_probability(series, _splits(series, asked, at), VALUE_COMPARISON_SD))


def alternation_probabilities(whole: Floats, group: Ints, asked: npt.NDArray[np.intp], at: Ints) -> Floats:
    """Probability that each series, which is on both levels since its step, stays at the new one for as long."""
    series = in_units_of_sd(_asked_series(whole, group, asked))
    return np.asarray(alternation_probability(series, _splits(series, asked, at), VALUE_COMPARISON_SD))


def carried_probabilities(
    whole: Floats, group: Ints, asked: npt.NDArray[np.intp], at: Ints, earlier: Mapping[int, list[Floats]]
) -> Floats:
    """Probability that each series visits a level as it did before a change; ``earlier``: its values of before."""
    out, some = np.zeros(asked.size), np.flatnonzero(np.isin(asked, list(earlier)))
    if some.size:
        series = without_spikes(_asked_series(whole, group, asked[some]))
        split = _splits(series, asked[some], at) - series.start
        for number, a, b, step in zip(some.tolist(), series.start, series.stop, split.tolist(), strict=True):
            out[number] = max(
                carried_visit_probability(part, series.x[a:b], step, VALUE_COMPARISON_SD)
                for part in earlier[int(asked[number])]
            )
    return out


def _asked_series(whole: Floats, group: Ints, asked: npt.NDArray[np.intp]) -> Series:
    x, error, groups = read_series(whole, group, None)
    series = gather(x, error, groups, np.isin(group, asked) & ~np.isnan(x))
    some = np.searchsorted(groups.ids, asked)
    return series._replace(start=series.start[some], stop=series.stop[some])


def _splits(series: Series, asked: npt.NDArray[np.intp], at: Ints) -> npt.NDArray[np.intp]:
    """Return the position of the first value after the step of each series; ``at``: the steps of all, by place."""
    return np.array([np.searchsorted(series.place[a:b], at[one]) + a
                     for a, b, one in zip(series.start, series.stop, asked, strict=True)], dtype=np.intp)  # fmt: skip
