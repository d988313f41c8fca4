"""Steps that begin while the board is in another state, before two calm nights say so."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.changes.series.night_values import night_numbers
from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.formulas.change.levels.stretches import JUMP_SD
from profsvc.formulas.change.night_states import MIN_SERIES
from profsvc.formulas.change.nightly_test import MIN_TESTS, NightlyVerdict, effect, false_discovery
from profsvc.formulas.change.other_state import beyond_calm, beyond_probability, without_common
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step, noise_prior
from profsvc.formulas.numerics.series import DIFFERENCE_TO_SD

NEWEST = 5  # nights that may have a level of their own, and say nothing of the state
MIN_STRETCH_SHARE = 0.5  # of the reporting threshold: nearer values are at the same level
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]


class StateNights(NamedTuple):
    """Values of the siblings that a state of the board makes noisy, one row per series."""

    groups: Ints
    calm: list[Floats]  # values of calm nights of each
    other: list[Floats]  # of the other nights
    places: list[Ints]  # of these among all points
    run: Ints  # how many of these are newer than the newest calm one


class Beside(NamedTuple):
    """Values of the other state as `without_common` has them, those of all series after each other."""

    row: Ints  # of the series of each
    night: Ints
    z: Floats
    e: Floats
    shared: Floats  # logarithm of what siblings have in common in each night, as far as it moves the series


class StateStep(NamedTuple):
    """A step of one series between values of one state."""

    p: float
    at: int  # place of its first point
    ratio: float  # of the levels
    values: int  # since


def with_steps_in_other_state(
    points: pd.DataFrame,
    every: Floats,
    left_out: Bools,
    value: Floats,
    family: Ints,
    verdict: NightlyVerdict,
    least: tuple[Floats, Floats],
) -> tuple[NightlyVerdict, Floats]:
    """Return the verdict with steps since the newest calm night, and the values with those that show them.

    ``every``: the values of the baselines, with those that are ``left_out`` of ``value``; ``family``: number of the
    family of each series; ``least``: the reporting thresholds. The level after such a step is the calm one before it,
    changed as much as values in the other state did without what siblings have in common in each night.
    """
    p, at, points_after = verdict.p.copy(), verdict.at.copy(), verdict.points_after.copy()
    levels, out = (verdict.before.copy(), verdict.after.copy()), value.copy()
    stepped = np.zeros(p.size, dtype=np.bool_)
    for nights in _nights_of_families(points, every, left_out, family):
        for row, step in _steps(nights, night_numbers(points), least).items():
            one = int(nights.groups[row])
            if step.p > ALPHA or verdict.found[one] or p[one] <= step.p:
                continue
            calm, shown = float(np.median(nights.calm[row])), nights.places[row][-step.values :]
            stepped[one], out[shown] = True, every[shown]
            p[one], at[one], points_after[one] = step.p, step.at, step.values
            levels[0][one], levels[1][one] = calm, calm * step.ratio
    if not stepped.any():
        return verdict, value
    told = false_discovery(p, least=MIN_TESTS)
    enough = (p <= ALPHA) & told.found & effect(*levels, *least).material
    found = np.where(stepped, enough, verdict.found)
    changed = verdict._replace(
        found=found, p=p, adjusted=np.where(stepped, told.adjusted, verdict.adjusted), at=at, before=levels[0],
        after=levels[1], points_after=points_after, rerun_wanted=verdict.rerun_wanted & ~found,
    )  # fmt: skip
    return changed, out


def _nights_of_families(points: pd.DataFrame, every: Floats, left_out: Bools, family: Ints) -> list[StateNights]:
    """Return the values of each family of which the newest nights are left out of ten series or more."""
    group, known = points["group"].to_numpy(np.int64), np.isfinite(every) & (every > 0)
    edges = np.searchsorted(group, np.arange(family.size + 1))
    of_family = dict[int, list[int]]()
    for one in np.unique(group[left_out & known]).tolist():
        of_family.setdefault(int(family[one]), []).append(one)
    out = list[StateNights]()
    for groups in of_family.values():
        own = [edges[one] + np.flatnonzero(known[edges[one] : edges[one + 1]]) for one in groups]
        run = np.array([int(np.argmin(np.r_[left_out[part][::-1], False])) for part in own], dtype=np.intp)
        if len(groups) < MIN_SERIES or run.max(initial=0) < MIN_SEGMENT:
            continue
        calm, other = ([every[part[left_out[part] == state]] for part in own] for state in (False, True))
        places = [np.asarray(part[left_out[part]], dtype=np.intp) for part in own]
        out.append(StateNights(np.array(groups, dtype=np.intp), calm, other, places, run))
    return out


def _steps(nights: StateNights, number: Ints, least: tuple[Floats, Floats]) -> dict[int, StateStep]:
    """Return the step of each series that may have one, by row."""
    values = _beside_siblings(nights, number)
    beside = _steps_beside_siblings(nights, values)
    beyond = _steps_beyond_calm_nights(nights, least, values)
    out = dict[int, StateStep]()
    for row in {*beside, *beyond}:
        either = [one[row] for one in (beside, beyond) if row in one]
        best = min(either, key=lambda one: one.p)
        # Two ways to be found err twice, where the state goes to the other side.
        out[row] = best._replace(p=min(1.0, 2.0 * best.p)) if row in beyond else best
    return out


def _asked(nights: StateNights) -> list[int]:
    """Return the rows with enough values of both states before, and since."""
    return [
        row for row in range(nights.groups.size)
        if nights.run[row] >= MIN_SEGMENT and nights.calm[row].size >= MIN_HISTORY
        and nights.other[row].size >= MIN_HISTORY + MIN_SEGMENT
    ]  # fmt: skip


def _beside_siblings(nights: StateNights, number: Ints) -> Beside:
    row = np.repeat(np.arange(nights.groups.size), [part.size for part in nights.places])
    flat = np.concatenate(nights.places)
    columns, column = np.unique(number[flat], return_inverse=True)
    table = np.full((nights.groups.size, columns.size), np.nan)
    table[row, column] = np.concatenate(nights.other)
    z, e, sd = without_common(table, min(NEWEST, columns.size))
    own = z[row, column], e[row, column]
    with np.errstate(invalid="ignore"):
        shared = np.nan_to_num(sd[row] * (own[0] - own[1]))
    return Beside(row, number[flat], *own, shared)


def _steps_beside_siblings(nights: StateNights, values: Beside) -> dict[int, StateStep]:
    """Return the steps among values of the other state, which are steps without what siblings have in common too."""
    asked = _asked(nights)
    if not asked:
        return {}
    steps = []
    for x in (values.z, values.e):
        prior = noise_prior(x, values.row, np.zeros(nights.groups.size, dtype=np.intp), values.night)
        steps.append(newest_step(x, values.row, None, prior))
    out = dict[int, StateStep]()
    start = np.r_[0, np.cumsum([part.size for part in nights.places])]
    for one in asked:
        both = [(float(step.p[one]), float(step.after[one] - step.before[one])) for step in steps]
        since = int(start[one + 1] - steps[0].at[one])
        if both[0][1] * both[1][1] > 0 and 0 < since <= nights.run[one]:
            out[one] = _step(nights, one, max(p for p, _ in both), since, values)
    return out


def _steps_beyond_calm_nights(
    nights: StateNights, least: tuple[Floats, Floats], values: Beside
) -> dict[int, StateStep]:
    """Return the steps to where the other state never goes, beyond all values before."""
    bound = [_bound(calm, *(float(part[one]) for part in least))
             for one, calm in zip(nights.groups.tolist(), nights.calm, strict=True)]  # fmt: skip
    far = [beyond_calm(calm, other, min(NEWEST, int(run)), by).values if calm.size else np.zeros(other.size, np.bool_)
           for calm, other, run, by in zip(nights.calm, nights.other, nights.run, bound, strict=True)]  # fmt: skip
    begun = [int(np.sum(part & ~np.r_[False, part[:-1]])) for part in far]
    inside, size = [int(part.sum()) for part in far], sum(part.size for part in far)
    out = dict[int, StateStep]()
    for one in _asked(nights):
        run = min(int(np.argmin(np.r_[far[one][::-1], False])), int(nights.run[one]))
        older = np.concatenate((nights.calm[one], nights.other[one][: nights.other[one].size - run]))
        newest = nights.other[one][nights.other[one].size - run :]
        if run < MIN_SEGMENT or not (newest.max() < older.min() or newest.min() > older.max()):
            continue
        counts = size - run, sum(begun) - 1, sum(inside) - run - (sum(begun) - 1)
        out[one] = _step(nights, one, beyond_probability(run, older.size, counts), run, values)
    return out


def _bound(calm: Floats, relative: float, absolute: float) -> float:
    """Return how far from its calm level a value is at another one."""
    if calm.size < MIN_HISTORY:
        return np.inf
    sd = DIFFERENCE_TO_SD * float(np.median(np.abs(np.diff(calm))))
    return float(max(JUMP_SD * sd, MIN_STRETCH_SHARE * max(relative * abs(float(np.median(calm))), absolute)))


def _step(nights: StateNights, row: int, p: float, since: int, values: Beside) -> StateStep:
    own = np.log(nights.other[row]) - values.shared[values.row == row]
    ratio = float(np.exp(np.median(own[-since:]) - np.median(own[:-since])))
    return StateStep(p, int(nights.places[row][-since]), ratio, since)
