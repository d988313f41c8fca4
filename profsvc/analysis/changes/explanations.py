"""What explains a step without a change: a trend, levels that the series or its siblings visit, too close dependence.

A series for which one of these holds has no finding. The report says which holds.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.changes.calm_nights import night_numbers
from profsvc.formulas.change.level_habits import excursion_probability
from profsvc.formulas.change.level_visits import visit_probability
from profsvc.formulas.change.nightly_test import (
    MAX_FALSE_DISCOVERY_RATE,
    MIN_TESTS,
    NewestValue,
    NightlyVerdict,
    effect,
    false_discovery,
)
from profsvc.formulas.change.siblings import MIN_SIBLINGS, NoisePrior
from profsvc.formulas.change.steps import ALPHA, VALUE_COMPARISON_SD, newest_step
from profsvc.formulas.change.trends import end_of_drift, fitted_trend, shapes, stepped_trend
from profsvc.formulas.change.wandering import wandering
from profsvc.formulas.numerics.series import (
    Series,
    codes_of,
    gather,
    in_units_of_sd,
    medians,
    read_series,
    subseries,
    without_spikes,
)

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
DRIFT, LEVELS, DEPENDENT = SHAPES = ("drift", "levels", "too dependent")
MAX_EXCURSION_RATE = 0.002  # of excursions as long as a step in a night of a series: no more than two false in 1000
NEAR_NIGHTS = 2  # by which noise moves the begin of a step
MIN_DEPENDENCE = 0.75  # autocorrelation from which only a step far beyond the noise is one
FAR_SD = 6.0
MIN_TREND = 0.5  # probability from which a drift may have ended
SURE_TREND = 0.95  # probability from which the report says that a series drifts, without a step


class Explained(NamedTuple):
    """The verdict without what has an explanation, and what explains it."""

    verdict: NightlyVerdict
    told: dict[int, Row]  # by group: shape, and what belongs to it


def families(heads: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the number of the family of each series: those of one kind, in one project and on one device."""
    names = ["project", "device", "kind"]
    named = heads[names].astype(object).where(heads[names].notna(), "")
    return np.asarray(named.groupby(names, sort=False).ngroup(), dtype=np.intp)


def after_drifts(value: Floats, group: Ints, siblings: npt.NDArray[np.intp]) -> Bools:
    """Return which values are not before the end of a drift of their series: there it begins."""
    series, ids = _without_spikes(value, group)
    shape, kept = shapes(in_units_of_sd(series), siblings), np.ones(value.size, dtype=np.bool_)
    for one in np.flatnonzero(shape.trend > MIN_TREND).tolist():
        own = slice(series.start[one], series.stop[one])
        if since := end_of_drift(series.x[own]):
            kept[np.searchsorted(group, ids[one]) : series.place[own][since]] = False
    return kept


def _without_spikes(value: Floats, group: Ints) -> tuple[Series, Ints]:
    """Return the series of values, and the number of each."""
    x, error, groups = read_series(value, group, None)
    return without_spikes(gather(x, error, groups, ~np.isnan(x))), groups.ids


def explained(
    points: pd.DataFrame,
    value: Floats,
    whole: Floats,
    error: Floats,
    verdict: NightlyVerdict,
    before: NewestValue,
    least: tuple[Floats, Floats],
    prior: NoisePrior,
    fresh: Ints,
) -> Explained:
    """Return the verdict on series once more, for those that may have a finding.

    ``value``: those of the baselines; ``whole``: with the excursions that findings ended with; ``before``: the values
    before each step; ``least``: the reporting thresholds; ``prior``: the probability of each autocorrelation;
    ``fresh``: how many values of each series no report has looked at yet.
    """
    group = points["group"].to_numpy(np.int64)
    edges = np.searchsorted(group, np.arange(verdict.p.size + 1))

    def places(one: int) -> npt.NDArray[np.intp]:
        return np.asarray(edges[one] + np.flatnonzero(~np.isnan(value[edges[one] : edges[one + 1]])))

    p, told = verdict.p.copy(), dict[int, Row]()
    at, levels, nights = verdict.at.copy(), [verdict.before.copy(), verdict.after.copy()], verdict.points_after.copy()
    material = effect(levels[0], levels[1], least[0], least[1]).material
    asked = np.flatnonzero((p <= ALPHA) & material)
    siblings = families(points.drop_duplicates("group"))
    shape = shapes(in_units_of_sd(_without_spikes(value, group)[0]), siblings)
    trending = np.flatnonzero((p > ALPHA) & (shape.trend >= SURE_TREND))
    told |= _drifts(points, value, {one: places(one) for one in trending.tolist()}, least)
    if not asked.size:
        return Explained(verdict, told)
    drifted = shape.trend[asked] > shape.step[asked]
    for one in asked[drifted].tolist():
        own = places(one)
        fitted, p_step = stepped_trend(value[own], int(np.searchsorted(own, at[one])))
        step = newest_step(value[own] - fitted, None, error[own], prior.of(np.array([one])))
        p[one] = max(float(step.p), p_step)
        if p[one] > ALPHA:
            p[one] = 1.0
            told[one] = _drift_told(points, own, fitted_trend(value[own]))
            continue
        split = int(step.at)
        at[one], nights[one] = own[split], step.points_after
        for side, own_level in zip(levels, (step.before, step.after), strict=True):
            side[one] = float(own_level) + fitted[split]
    verdict = verdict._replace(at=at, before=levels[0], after=levels[1], points_after=nights)
    rates = _excursions_of_siblings(points, whole, asked, verdict, least, fresh)
    visits, wanders = np.zeros(asked.size), np.zeros(asked.size)
    steady = ~drifted
    if steady.any():
        visits[steady] = _visits(whole, group, asked[steady], at)
        night = night_numbers(points["at"])
        wanders[steady] = _wanders(value, group, siblings, asked[steady], at, p, night)
    for number, one in enumerate(asked.tolist()):
        if one in told:
            continue
        if visits[number] > ALPHA or rates[number] > MAX_EXCURSION_RATE:
            told[one] = _step_told(LEVELS, verdict, one, points)
        elif (
            steady[number]
            and before.autocorrelation[one] >= MIN_DEPENDENCE
            and (abs(levels[1][one] - levels[0][one]) < FAR_SD * before.sd[one])
        ):
            told[one] = _step_told(DEPENDENT, verdict, one, points)
        else:
            p[one] = max(p[one], wanders[number], rates[number], visits[number])
            if p[one] > ALPHA:
                told[one] = _step_told(DEPENDENT, verdict, one, points)
            continue
        p[one] = 1.0
    night = np.asarray(pd.factorize(points["at"], sort=True)[0], dtype=np.intp)[at[asked]]
    tests, adjusted = max(int(np.isfinite(p).sum()), MIN_TESTS), p.copy()
    as_excursions = _adjusted(rates, night, tests, 0)
    adjusted[asked] = np.fmax(_adjusted(p[asked], night, tests, NEAR_NIGHTS), as_excursions)
    enough = effect(levels[0], levels[1], least[0], least[1]).material
    found = (p <= ALPHA) & (adjusted <= MAX_FALSE_DISCOVERY_RATE) & enough
    for number, one in enumerate(asked.tolist()):
        may_be_excursion = p[one] == rates[number] or as_excursions[number] > MAX_FALSE_DISCOVERY_RATE
        if one not in told and may_be_excursion and not found[one]:
            told[one] = _step_told(LEVELS, verdict, one, points)
    changed = verdict._replace(found=found, p=p, adjusted=adjusted)
    return Explained(changed._replace(rerun_wanted=verdict.rerun_wanted & ~found), told)


def _adjusted(p: Floats, began: npt.NDArray[np.intp], tests: int, near: int) -> Floats:
    """Return the false share at which each step would just be found, by those that began in or near the same night.

    What began in other nights says nothing of it: a night of many changes would bring what is improbable of every age.
    """
    out = np.ones(p.size)
    for night in np.unique(began).tolist():
        beside = np.flatnonzero(np.abs(began - night) <= near)
        same = began[beside] == night
        out[beside[same]] = false_discovery(p[beside], least=tests).adjusted[same]
    return out


def _drifts(
    points: pd.DataFrame, value: Floats, places: Mapping[int, npt.NDArray[np.intp]], least: tuple[Floats, Floats]
) -> dict[int, Row]:
    """Series without a step that follow a trend by more than the reporting threshold; ``places``: of their values."""
    told = {}
    for one, own in places.items():
        fitted = fitted_trend(value[own])
        if effect(fitted[0], fitted[-1], least[0][one], least[1][one]).material:
            told[one] = _drift_told(points, own, fitted)
    return told


def _drift_told(points: pd.DataFrame, own: npt.NDArray[np.intp], fitted: Floats) -> Row:
    return {"shape": DRIFT, "before": float(fitted[0]), "after": float(fitted[-1]), "runs": int(own.size),
            "run_id": int(points["run_id"].iloc[own[0]]), "since": str(points["at"].iloc[own[0]])}  # fmt: skip


def _step_told(shape: str, verdict: NightlyVerdict, one: int, points: pd.DataFrame) -> Row:
    at = int(verdict.at[one])
    return {"shape": shape, "before": float(verdict.before[one]), "after": float(verdict.after[one]),
            "runs": int(verdict.points_after[one]), "run_id": int(points["run_id"].iloc[at]),
            "since": str(points["at"].iloc[at])}  # fmt: skip


def _visits(whole: Floats, group: Ints, asked: npt.NDArray[np.intp], at: Ints) -> Floats:
    """Probability that each series is only back where it was before, by all the values since its last baseline."""
    x, error, groups = read_series(whole, group, None)
    series = gather(x, error, groups, np.isin(group, asked) & ~np.isnan(x))
    some = np.searchsorted(groups.ids, asked)
    series = series._replace(start=series.start[some], stop=series.stop[some])
    series = in_units_of_sd(without_spikes(series))
    split = np.array([np.searchsorted(series.place[a:b], at[one]) + a
                      for a, b, one in zip(series.start, series.stop, asked, strict=True)])  # fmt: skip
    return np.asarray(visit_probability(series, split, VALUE_COMPARISON_SD))


def _wanders(
    value: Floats,
    group: Ints,
    family: npt.NDArray[np.intp],
    asked: npt.NDArray[np.intp],
    at: Ints,
    p: Floats,
    night: npt.NDArray[np.intp],
) -> Floats:
    """Probability of each step, by how probably its level wanders as those of its siblings do."""
    every, out = _without_spikes(value, group)[0], np.zeros(asked.size)
    for number in np.unique(family[asked]).tolist():
        mine, members = np.flatnonzero(family[asked] == number), np.flatnonzero(family == number)
        own = subseries(every, every.start[members], every.stop[members])
        one = np.searchsorted(members, asked[mine])
        split = [a + np.searchsorted(own.place[a:b], step)
                 for a, b, step in zip(own.start[one], own.stop[one], at[asked[mine]], strict=True)]  # fmt: skip
        wander = wandering(own, one, np.array(split, dtype=np.intp), night)
        out[mine] = wander.share * wander.p + (1.0 - wander.share) * p[asked[mine]]
    return out


def _excursions_of_siblings(
    points: pd.DataFrame,
    whole: Floats,
    asked: npt.NDArray[np.intp],
    verdict: NightlyVerdict,
    least: tuple[Floats, Floats],
    fresh: Ints,
) -> Floats:
    """How often a night begins an excursion that lasts as long as the step of each series, and how often by chance.

    A look at several fresh values may see excursions of as many ages: these probabilities add up.
    """
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
        out[mine] = excursion_probability(series, place, split, fresh[asked[mine]], smallest, night)
    return out
