"""The verdict of a night without the steps that have another explanation: the report says which.

The explanations are a drift, a level that the series or its siblings visit, too close dependence, and nights that all
siblings share.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.changes.explanations.drifts import drift_row, drifts, without_spikes_of
from profsvc.analysis.changes.explanations.excursions import (
    alternation_probabilities,
    carried_probabilities,
    excursion_rates,
    visit_probabilities,
)
from profsvc.analysis.changes.explanations.families import families
from profsvc.analysis.changes.explanations.shared_nights import shared_noise_probabilities
from profsvc.analysis.changes.explanations.wandering_levels import wandering_probabilities
from profsvc.analysis.changes.night_values import night_numbers
from profsvc.formulas.change.nightly_test import (
    MAX_FALSE_DISCOVERY_RATE,
    MIN_TESTS,
    NewestValue,
    NightlyVerdict,
    effect,
    false_discovery,
)
from profsvc.formulas.change.siblings import NoisePrior
from profsvc.formulas.change.steps import ALPHA, newest_step
from profsvc.formulas.change.trends import fitted_trend, shapes, stepped_trend
from profsvc.formulas.numerics.series import in_units_of_sd

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
LEVELS, DEPENDENT, SHARED = "levels", "too dependent", "shared"
MAX_EXCURSION_RATE = 0.002  # of excursions as long as a step in a night of a series: no more than two false in 1000
NEAR_NIGHTS = 2  # by which noise moves the begin of a step
MIN_DEPENDENCE = 0.75  # autocorrelation from which only a step far beyond the noise is one
FAR_SD = 6.0
SURE_TREND = 0.95  # probability from which the report says that a series drifts, without a step


class Explained(NamedTuple):
    """The verdict without what has an explanation, and what explains it."""

    verdict: NightlyVerdict
    told: dict[int, Row]  # by group: shape, and what belongs to it


def explained(
    points: pd.DataFrame,
    value: Floats,
    whole: Floats,
    earlier: Mapping[int, list[Floats]],
    error: Floats,
    verdict: NightlyVerdict,
    before: NewestValue,
    least: tuple[Floats, Floats],
    prior: NoisePrior,
    fresh: Ints,
) -> Explained:
    """Return the verdict on series once more, for those that may have a finding.

    ``value``: those of the baselines; ``whole``: with the excursions that findings ended with; ``earlier``: the values
    of before, by group, in parts between changes; ``before``: the values before each step; ``least``: the reporting
    thresholds; ``prior``: the probability of each autocorrelation; ``fresh``: how many values of each series no report
    has looked at yet.
    """
    group = points["group"].to_numpy(np.int64)
    edges = np.searchsorted(group, np.arange(verdict.p.size + 1))

    def places(some: npt.NDArray[np.intp]) -> dict[int, npt.NDArray[np.intp]]:
        return {
            one: np.asarray(edges[one] + np.flatnonzero(~np.isnan(value[edges[one] : edges[one + 1]])))
            for one in some.tolist()
        }

    siblings = families(points.drop_duplicates("group"))
    shape = shapes(in_units_of_sd(without_spikes_of(value, group)[0]), siblings)
    told = drifts(points, value, places(np.flatnonzero((verdict.p > ALPHA) & (shape.trend >= SURE_TREND))), least)
    asked = np.flatnonzero((verdict.p <= ALPHA) & effect(verdict.before, verdict.after, *least).material)
    if not asked.size:
        return Explained(verdict, told)
    drifted = shape.trend[asked] > shape.step[asked]
    verdict, only_drifting = _beside_their_trends(points, value, error, verdict, places(asked[drifted]), prior)
    told |= only_drifting
    chances = _Chances(
        visited=np.fmax(
            alternation_probabilities(whole, group, asked, verdict.at),
            carried_probabilities(whole, group, asked, verdict.at, earlier),
        ),
        wandering=np.zeros(asked.size),
        shared=shared_noise_probabilities(value, group, siblings, asked, night_numbers(points)),
        excursion_rate=excursion_rates(points, whole, asked, verdict, least, fresh),
    )
    if (steady := ~drifted).any():
        some = asked[steady]
        visited = visit_probabilities(whole, group, some, verdict.at)
        chances.visited[steady] = np.fmax(chances.visited[steady], visited)
        chances.wandering[steady] = wandering_probabilities(
            value, group, siblings, some, verdict.at, verdict.p, night_numbers(points)
        )
    near = np.abs(verdict.after - verdict.before)[asked] < FAR_SD * before.sd[asked]
    dependent = steady & (before.autocorrelation[asked] >= MIN_DEPENDENCE) & near
    p = verdict.p.copy()
    for number, one in enumerate(asked.tolist()):
        if one not in told:
            p[one], explanation = _weighed(chances.of(number), float(p[one]), bool(dependent[number]))
            if explanation:
                told[one] = _step_row(explanation, verdict, one, points)
    return _among_all(verdict._replace(p=p), asked, chances.excursion_rate, least, points, told)


class _Chances(NamedTuple):
    """How probable each other explanation of a step is, one entry per series that is asked."""

    visited: Floats
    wandering: Floats
    shared: Floats
    excursion_rate: Floats

    def of(self, number: int) -> "_Chances":
        """Return those of one series."""
        return _Chances(*(each[number] for each in self))


def _beside_their_trends(
    points: pd.DataFrame,
    value: Floats,
    error: Floats,
    verdict: NightlyVerdict,
    drifting: Mapping[int, npt.NDArray[np.intp]],
    prior: NoisePrior,
) -> tuple[NightlyVerdict, dict[int, Row]]:
    """Return the verdict with the steps that drifting series have beside their trends, and those that have none.

    ``drifting``: the places of the values of each series.
    """
    told = dict[int, Row]()
    p, at, nights = verdict.p.copy(), verdict.at.copy(), verdict.points_after.copy()
    levels = verdict.before.copy(), verdict.after.copy()
    for one, own in drifting.items():
        fitted, p_step = stepped_trend(value[own], int(np.searchsorted(own, at[one])))
        step = newest_step(value[own] - fitted, None, error[own], prior.of(np.array([one])))
        p[one] = max(float(step.p), p_step)
        if p[one] > ALPHA:
            p[one] = 1.0
            told[one] = drift_row(points, own, fitted_trend(value[own]))
            continue
        split = int(step.at)
        at[one], nights[one] = own[split], step.points_after
        for side, own_level in zip(levels, (step.before, step.after), strict=True):
            side[one] = float(own_level) + fitted[split]
    return verdict._replace(p=p, at=at, before=levels[0], after=levels[1], points_after=nights), told


def _weighed(chances: _Chances, p: float, dependent: bool) -> tuple[float, str]:
    """Return the probability of a step by chance, and what explains it; empty if nothing does."""
    if chances.visited > ALPHA or chances.excursion_rate > MAX_EXCURSION_RATE:
        return 1.0, LEVELS
    if dependent:
        return 1.0, DEPENDENT
    if chances.shared > ALPHA:
        return 1.0, SHARED
    p = max(p, *map(float, chances))
    return p, DEPENDENT if p > ALPHA else ""


def _among_all(
    verdict: NightlyVerdict,
    asked: npt.NDArray[np.intp],
    rates: Floats,
    least: tuple[Floats, Floats],
    points: pd.DataFrame,
    told: dict[int, Row],
) -> Explained:
    """Return what is found among all series of the night; ``rates``: of excursions, which are as rare in each night."""
    p = verdict.p
    night = np.asarray(pd.factorize(points["at"], sort=True)[0], dtype=np.intp)[verdict.at[asked]]
    tests, adjusted = max(int(np.isfinite(p).sum()), MIN_TESTS), p.copy()
    as_excursions = _adjusted(rates, night, tests, 0)
    adjusted[asked] = np.fmax(_adjusted(p[asked], night, tests, NEAR_NIGHTS), as_excursions)
    enough = effect(verdict.before, verdict.after, *least).material
    found = (p <= ALPHA) & (adjusted <= MAX_FALSE_DISCOVERY_RATE) & enough
    for number, one in enumerate(asked.tolist()):
        may_be_excursion = p[one] == rates[number] or as_excursions[number] > MAX_FALSE_DISCOVERY_RATE
        if one not in told and may_be_excursion and not found[one]:
            told[one] = _step_row(LEVELS, verdict, one, points)
    changed = verdict._replace(found=found, adjusted=adjusted)
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


def _step_row(shape: str, verdict: NightlyVerdict, one: int, points: pd.DataFrame) -> Row:
    at = int(verdict.at[one])
    return {"shape": shape, "before": float(verdict.before[one]), "after": float(verdict.after[one]),
            "runs": int(verdict.points_after[one]), "run_id": int(points["run_id"].iloc[at]),
            "since": str(points["at"].iloc[at])}  # fmt: skip
