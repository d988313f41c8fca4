"""The verdict of a night without the steps that have another explanation: the report says which.

The explanations are a drift, a level that the series or its siblings visit, too close dependence, and nights that all
siblings share.
"""

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
from profsvc.analysis.changes.explanations.shared_nights import shared_noise_probabilities
from profsvc.analysis.changes.explanations.wandering_levels import wandering_probabilities
from profsvc.analysis.changes.series.night_series import NightSeries
from profsvc.analysis.changes.series.night_values import night_numbers
from profsvc.formulas.change.nightly_test import (
    MAX_FALSE_DISCOVERY_RATE,
    MIN_TESTS,
    NewestValue,
    NightlyVerdict,
    effect,
    false_discovery,
)
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step
from profsvc.formulas.change.trends import fitted_trend, shapes, stepped_trend
from profsvc.formulas.numerics.series import in_units_of_sd

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
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


def explained(night: NightSeries, verdict: NightlyVerdict, before: NewestValue) -> Explained:
    """Return the verdict on series once more, for those that may have a finding.

    ``before``: the values before each step.
    """
    group = night.points["group"].to_numpy(np.int64)
    shape = shapes(in_units_of_sd(without_spikes_of(night.value, group)[0]), night.family)
    trending = np.flatnonzero((verdict.p > ALPHA) & (shape.trend >= SURE_TREND))
    told = drifts(night.points, night.value, _places(night, trending), night.least)
    asked = np.flatnonzero((verdict.p <= ALPHA) & effect(verdict.before, verdict.after, *night.least).material)
    if not asked.size:
        return Explained(verdict, told)
    drifted = shape.trend[asked] > shape.step[asked]
    verdict, only_drifting = _beside_their_trends(night, verdict, asked[drifted])
    told |= only_drifting
    chances = _chances(night, verdict, asked, ~drifted)
    near = np.abs(verdict.after - verdict.before)[asked] < FAR_SD * before.sd[asked]
    dependent = ~drifted & (before.autocorrelation[asked] >= MIN_DEPENDENCE) & near
    p = verdict.p.copy()
    for number, one in enumerate(asked.tolist()):
        if one not in told:
            p[one], explanation = _weighed(chances.of(number), float(p[one]), bool(dependent[number]))
            if explanation:
                told[one] = _step_row(explanation, verdict, one, night.points)
    return _among_all(night, verdict._replace(p=p), asked, chances.excursion_rate, told)


def _places(night: NightSeries, some: npt.NDArray[np.intp]) -> dict[int, npt.NDArray[np.intp]]:
    """Return the places of the values of some series."""
    edges = np.searchsorted(night.points["group"].to_numpy(np.int64), np.arange(len(night.heads) + 1))
    return {
        one: np.asarray(edges[one] + np.flatnonzero(~np.isnan(night.value[edges[one] : edges[one + 1]])))
        for one in some.tolist()
    }


class _Chances(NamedTuple):
    """How probable each other explanation of a step is, one entry per series that is asked."""

    visited: Floats
    wandering: Floats
    shared: Floats
    excursion_rate: Floats

    def of(self, number: int) -> "_Chances":
        """Return those of one series."""
        return _Chances(*(each[number] for each in self))


def _chances(
    night: NightSeries, verdict: NightlyVerdict, asked: npt.NDArray[np.intp], steady: npt.NDArray[np.bool_]
) -> _Chances:
    """Return how probable other explanations of the steps of some series are; ``steady``: those that do not drift."""
    group, number = night.points["group"].to_numpy(np.int64), night_numbers(night.points)
    chances = _Chances(
        visited=np.fmax(
            alternation_probabilities(night.whole, group, asked, verdict.at),
            carried_probabilities(night.whole, group, asked, verdict.at, night.earlier),
        ),
        wandering=np.zeros(asked.size),
        shared=shared_noise_probabilities(night.value, group, night.family, asked, number),
        excursion_rate=excursion_rates(night.points, night.whole, asked, verdict, night.least, night.fresh),
    )
    if steady.any():
        some = asked[steady]
        visited = visit_probabilities(night.whole, group, some, verdict.at)
        chances.visited[steady] = np.fmax(chances.visited[steady], visited)
        chances.wandering[steady] = wandering_probabilities(
            night.value, group, night.family, some, verdict.at, verdict.p, number
        )
    return chances


def _beside_their_trends(
    night: NightSeries, verdict: NightlyVerdict, drifting: npt.NDArray[np.intp]
) -> tuple[NightlyVerdict, dict[int, Row]]:
    """Return the verdict with the steps that drifting series have beside their trends, and those that have none."""
    told = dict[int, Row]()
    p, at, nights = verdict.p.copy(), verdict.at.copy(), verdict.points_after.copy()
    levels = verdict.before.copy(), verdict.after.copy()
    for one, own in _places(night, drifting).items():
        fitted, p_step = stepped_trend(night.value[own], int(np.searchsorted(own, at[one])))
        step = newest_step(night.value[own] - fitted, None, night.error[own], night.prior.of(np.array([one])))
        p[one] = max(float(step.p), p_step)
        if p[one] > ALPHA:
            p[one] = 1.0
            told[one] = drift_row(night.points, own, fitted_trend(night.value[own]))
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
    night: NightSeries, verdict: NightlyVerdict, asked: npt.NDArray[np.intp], rates: Floats, told: dict[int, Row]
) -> Explained:
    """Return what is found among all series of the night; ``rates``: of excursions, which are as rare in each night."""
    p = verdict.p
    began = np.asarray(pd.factorize(night.points["at"], sort=True)[0], dtype=np.intp)[verdict.at[asked]]
    tests, adjusted = max(int(np.isfinite(p).sum()), MIN_TESTS), p.copy()
    as_excursions = _adjusted(rates, began, tests, 0)
    adjusted[asked] = np.fmax(_adjusted(p[asked], began, tests, NEAR_NIGHTS), as_excursions)
    enough = effect(verdict.before, verdict.after, *night.least).material
    found = (p <= ALPHA) & (adjusted <= MAX_FALSE_DISCOVERY_RATE) & enough
    for number, one in enumerate(asked.tolist()):
        may_be_excursion = p[one] == rates[number] or as_excursions[number] > MAX_FALSE_DISCOVERY_RATE
        if one not in told and may_be_excursion and not found[one]:
            told[one] = _step_row(LEVELS, verdict, one, night.points)
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
