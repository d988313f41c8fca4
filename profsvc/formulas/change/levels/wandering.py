"""Noise about a level that wanders from night to night: how probable it is, and what it leaves of a step."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.noise.siblings import AUTOCORRELATIONS, MIN_SIBLINGS, VARIANCE_DF, laws_of_siblings
from profsvc.formulas.change.steps.newest_values import newest_splits
from profsvc.formulas.change.steps.surest_step import rank_scores
from profsvc.formulas.change.steps.two_level_test import Fit, fitted, side
from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.distributions import student_tail
from profsvc.formulas.numerics.series import (
    Index,
    Series,
    codes_of,
    in_units_of_sd,
    lengths,
    medians,
    running_sums,
    sd_units,
    subseries,
)

# Variance of the nightly moves of the level, over that of a value about it.
WANDERS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
MIN_VALUES = 8  # 5 before a step, 3 after it
MAX_SIBLINGS = 200  # that say how usual a level is that wanders


class Wandering(NamedTuple):
    """What a level that wanders says of a step, of shape (series,)."""

    share: Array  # probability that the level wanders
    p: Array  # probability of so large a step, or a larger one, if it does


def wandering(series: Series, asked: Index, split: Index, night: Index | None = None) -> Wandering:
    r"""Probability that levels wander, and of the steps of some series if theirs do.

    .. math:: x_i = \mu_i + \delta [i \ge k] + e_i, \quad \mu_{i+1} = \mu_i + u_i, \quad
              \mathrm{var}(u) = q\, \mathrm{var}(e)

    A level that wanders goes away from where it was, and its newest values resemble each other: a step of stationary
    noise is nothing of note there. How usual each q is, each autocorrelation of a level that stays, and how far values
    scatter, siblings say by their older values. The step is that of generalised least squares, its tail Student's,
    averaged over q.

    Source: local level model of [Harvey1990]; own model for the siblings, by `laws_of_siblings`.

    Args:
        series: Values of a series and its siblings [any].
        asked: Which of them may have stepped.
        split: First value after the step of each of these, in the flat array.
        night: Number of the night of each value by its ``place``; None: its place from the end of its series.

    Returns: Wandering, with an entry for each that is asked.

    Range: share from 0 to 1; 0 for fewer than ten siblings with 8 values beside the newest. p in [0, 1], two-sided.

    >>> rng = np.random.default_rng(1)
    >>> noise, walk = rng.standard_normal((2, 20, 30))
    >>> of = lambda x: Series(x.ravel(), x.ravel() * 0, np.arange(600), np.arange(0, 600, 30), np.arange(30, 630, 30))
    >>> asked, split = np.arange(20), np.arange(0, 600, 30) + 25
    >>> for x in noise, noise + 0.5 * walk.cumsum(axis=1):
    ...     print(wandering(of(x), asked, split).share.mean().round(1))
    0.3
    0.9
    """
    some = np.flatnonzero(lengths(series) >= MIN_VALUES)
    some = some[:: max(1, -(-some.size // MAX_SIBLINGS))]
    unknown = Wandering(np.zeros(asked.size), np.ones(asked.size))
    if some.size < MIN_SIBLINGS:
        return unknown
    unit, scaled = sd_units(series), in_units_of_sd(series)
    level = np.abs(np.nan_to_num(medians(series.x, codes_of(series), unit.size)))
    scales = [np.ones(unit.size)] + [level] * bool((level > 0).all())
    of_siblings = subseries(scaled, series.start[some], series.stop[some])
    newest = newest_splits(
        of_siblings, np.zeros(some.size, dtype=np.intp), None if night is None else night[of_siblings.place]
    )
    fits = _fits(of_siblings, newest)
    free: Array = np.asarray(lengths(of_siblings) - 2.0, dtype=np.float64)
    left = fits.left * unit[some, np.newaxis] ** 2
    said = (left > 0).all(axis=1)
    if said.sum() < MIN_SIBLINGS:
        return unknown
    tried = [laws_of_siblings(left[said], fits.constant[said], free[said], scale[some][said]) for scale in scales]
    best = max(range(len(tried)), key=lambda number: tried[number][0])
    _, weight, square = tried[best]
    own = subseries(scaled, series.start[asked], series.stop[asked])
    split = own.start + split - series.start[asked]
    df = np.tile(VARIANCE_DF[1:], fits.left.shape[1])
    by_value = (weight @ df >= lengths(own) - 2.0)[:, np.newaxis]
    squares = square * (scales[best][asked] / unit[asked])[:, np.newaxis] ** 2
    known, squares = np.where(by_value, df, 0.0), np.where(by_value, squares, 0.0)
    of_values = _averaged(own, split, known, squares, weight)
    if by_value.all():
        return of_values
    clear = by_value[:, 0] | _is_beyond(own, split)
    of_ranks = _averaged(own._replace(x=rank_scores(own)), split, known, squares, weight)
    return Wandering(*(np.where(clear, *both) for both in zip(of_values, of_ranks, strict=True)))


def _is_beyond(series: Series, split: Index) -> Bools:
    """Return whether all values after the split lie beyond all before it."""
    edges = np.stack((series.start, split), axis=1).ravel()
    low, high = (extreme.reduceat(series.x, edges).reshape(-1, 2) for extreme in (np.minimum, np.maximum))
    return np.asarray((low[:, 1] > high[:, 0]) | (high[:, 1] < low[:, 0]))


def _averaged(series: Series, split: Index, df: Array, square: Array, weight: Array) -> Wandering:
    """Average over the laws, of which each has a column of ``df``, ``square`` and ``weight``."""
    from scipy.special import gammaln

    ways = _fits(series, split)
    difference, variance, left, constant = (np.repeat(part, len(VARIANCE_DF) - 1, axis=1) for part in ways)
    free = (lengths(series) - 2.0)[:, np.newaxis] + df
    with np.errstate(all="ignore"):
        scale = gammaln(free / 2) - gammaln(df / 2) + df / 2 * np.log(square)
        left = np.maximum(left + square, 1e-300)
        evidence = constant + np.where(df > 0, scale, 0.0) - free / 2 * np.log(left) + np.log(weight)
        share = np.exp(evidence - evidence.max(axis=1, keepdims=True))
        share = (share / share.sum(axis=1, keepdims=True))[:, -len(WANDERS) * (len(VARIANCE_DF) - 1) :]
        tail = 2.0 * student_tail(np.abs(difference) / np.sqrt(left / free * variance), free)
        total = share.sum(axis=1)
        tail = (share * tail[:, -share.shape[1] :]).sum(axis=1) / total
        return Wandering(total, np.where(total > 0, tail, 1.0))


def _fits(series: Series, split: Index) -> Fit:
    """Fit a step to each series in noise of each of `AUTOCORRELATIONS`, then of `WANDERS`: shape (series, ways)."""
    sums = running_sums(series.x)
    sides = side(sums, series.start, split), side(sums, split, series.stop)
    stays = zip(*(fitted(*sides, rho) for rho in AUTOCORRELATIONS), strict=True)
    return Fit(
        *(
            np.concatenate((np.stack(np.broadcast_arrays(*stay), axis=1), wander), axis=1)
            for stay, wander in zip(stays, _wandering_fits(series, split), strict=True)
        )
    )


def _wandering_fits(series: Series, split: Index) -> Fit:
    """Fit a step to each series by a Kalman filter whose level at the begin is unknown, all series at once."""
    n, q = lengths(series), np.array(WANDERS)
    inside = np.arange(n.max()) < n[:, np.newaxis]
    both = np.zeros((2, *inside.shape))  # the values, and a step in their place
    both[0, inside] = series.x
    both[1] = np.arange(inside.shape[1]) >= (split - series.start)[:, np.newaxis]
    level, variance = np.repeat(both[:, :, :1], q.size, axis=2), np.ones(q.size)
    products, logs = np.zeros((3, n.size, q.size)), np.zeros((n.size, q.size))
    for place in range(1, inside.shape[1]):
        seen, variance = inside[:, place, np.newaxis], variance + q
        error, of_error = both[:, :, place, np.newaxis] - level, variance + 1.0
        products += seen * np.stack((error[0] ** 2, error[0] * error[1], error[1] ** 2)) / of_error
        logs += seen * np.log(of_error)
        level += variance / of_error * error
        variance = variance / of_error
    with np.errstate(all="ignore"):
        step = products[1] / products[2]
        left = np.maximum(products[0] - step * products[1], 0.0)
        return Fit(step, 1.0 / products[2], left, -0.5 * (logs + np.log(products[2])))
