"""Steps that are no more than what a night brought to all series of a family."""

import numpy as np
import numpy.typing as npt

from profsvc.formulas.change.nightly_test import MAX_FALSE_DISCOVERY_RATE, MIN_TESTS
from profsvc.formulas.change.noise.shared_noise import shared_noise
from profsvc.formulas.change.noise.siblings import MIN_SIBLINGS
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step, noise_prior
from profsvc.formulas.numerics.distributions import normal_tail
from profsvc.formulas.numerics.series import medians

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NEWEST = 5  # nights that may have a level of their own, and say nothing of the shares


def shared_noise_probabilities(
    value: Floats,
    group: Ints,
    family: npt.NDArray[np.intp],
    asked: npt.NDArray[np.intp],
    night: npt.NDArray[np.intp],
) -> Floats:
    """Probability of each step by the noise that its siblings share; 0 where they share none, or all stepped at once.

    Without its part of the shared noise a series has a step of its own, or none, or no more than the doubt about its
    part explains. What is left of the others is the
    shared noise itself, which is one series: a step of it is one change with as many findings as series, and has to be
    as much surer.
    """
    out = np.zeros(asked.size)
    for number in np.unique(family[asked]).tolist():
        members = np.flatnonzero(family == number)
        mine = np.flatnonzero(family[asked] == number)
        own = np.flatnonzero(np.isin(group, members) & np.isfinite(value))
        if members.size < MIN_SIBLINGS or not own.size:
            continue
        row = np.searchsorted(members, group[own])
        nights, column = np.unique(night[own], return_inverse=True)
        table = np.full((members.size, nights.size), np.nan)
        table[row, column] = value[own]
        shared = shared_noise(table, -NEWEST)
        if shared is None:
            continue
        left = value[own] - shared.share[row] * np.nan_to_num(shared.night[column])
        prior = noise_prior(left, row, np.zeros(members.size, dtype=np.intp), night[own])
        place = np.searchsorted(members, asked[mine])
        inside = np.isin(row, place)
        step = newest_step(left[inside], row[inside], None, prior.of(place))
        doubt = shared.error[place] * np.abs(_moved(shared.night[column[inside]], row[inside], step.at))
        with np.errstate(all="ignore"):
            by_share = 2.0 * normal_tail(np.abs(step.after - step.before) / doubt)
        known = np.isfinite(shared.night)
        common = float(newest_step(shared.night[known]).p)
        enough = common <= MAX_FALSE_DISCOVERY_RATE / max(members.size, MIN_TESTS)
        out[mine] = 0.0 if enough else np.fmax(np.where(np.isnan(step.p), ALPHA, step.p), by_share)
    return out


def _moved(night: Floats, row: npt.NDArray[np.intp], at: Ints) -> Floats:
    """Return how far the shared noise moved at the step of each series, whose values stand together."""
    codes = np.unique(row, return_inverse=True)[1]
    later = np.arange(row.size) >= at[codes]
    sides = medians(np.nan_to_num(night), 2 * codes + later, 2 * at.size).reshape(-1, 2)
    return np.asarray(sides[:, 1] - sides[:, 0])
