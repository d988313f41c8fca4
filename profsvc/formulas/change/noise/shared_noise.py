"""Noise of a night that all siblings share: whether there is any, and what it leaves of each value."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.noise.siblings import MIN_SIBLINGS
from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.distributions import chi_squared_tail
from profsvc.formulas.numerics.series import DIFFERENCE_TO_SD, MAD_TO_SD

MIN_NIGHTS = 8  # 5 before a step, 3 after it
MAX_SHARED_P = 1e-3  # of differences of nights that vary so much, if each series has noise of its own
MAD_EFFICIENCY = 0.37  # a median absolute deviation knows as much as a standard deviation of 0.37 times the values
MAX_DEVIATION = 3.0  # so that no series, and no night, outweighs the others


class SharedNoise(NamedTuple):
    """What the nights bring to all series."""

    night: Array  # in units of the noise of a series; NaN: fewer than ten series have the night
    share: Array  # of it in each series, of shape (series,) [as the values]
    error: Array  # standard error of the share


def shared_noise(x: Array, since: int | None = None) -> SharedNoise | None:
    r"""Return the noise that all series have in common in each night, and how much of it is in each of them.

    .. math:: c_t = \mathrm{med}_s \frac{x_{st} - \mathrm{med}_t x_{st}}{s_s}, \qquad
              l_s = \frac{\sum_t \Delta x_{st}\, \Delta c_t}{\sum_t (\Delta c_t)^2}

    A host that is busy tonight, or a room that is warm, makes all kernels slower. Such nights follow each other by
    chance, or for days, and then all series seem to step. s is the noise of a series by its differences of adjacent
    nights. The mean of these differences over all series, in units of their noise, varies from night to night by no
    more than chance has it, unless the series share a part: by its median deviation, which no single night decides, and
    the chi-squared distribution. What chance has, the differences within a night say: the usual one is too small where
    tails are heavy, or levels several.

    Source: own model; one common factor, its loadings by least squares of differences.

    Args:
        x: Values, of shape (series, nights) [any]; NaN where one is missing.
        since: The newest nights, from this one on, say nothing of the shares: they may have a level of their own.

    Returns: SharedNoise; None where nothing is surely shared.

    Range: None for fewer than ten series that vary, or than eight nights.

    Twenty series of which the nights are half of the noise, and twenty without:

    >>> rng = np.random.default_rng(1)
    >>> own, night = rng.standard_normal((20, 40)), rng.standard_normal(40)
    >>> shared = shared_noise(own + night)
    >>> round(float(np.corrcoef(shared.night, night)[0, 1]), 2), round(float(np.median(shared.share)), 1)
    (0.96, 1.4)
    >>> shared_noise(own) is None
    True
    """
    apart = np.diff(x, axis=1)
    with np.errstate(all="ignore"):
        sd = DIFFERENCE_TO_SD * _median(np.abs(apart), axis=1)
    some = np.flatnonzero(sd > 0)
    if some.size < MIN_SIBLINGS or x.shape[1] < MIN_NIGHTS:
        return None
    unit = sd[some, np.newaxis]
    scaled = np.clip(apart[some] / (np.sqrt(2.0) * unit), -MAX_DEVIATION, MAX_DEVIATION)
    known = np.isfinite(scaled).sum(axis=0)
    with np.errstate(all="ignore"):
        mean = np.where(known >= MIN_SIBLINGS, np.nansum(scaled, axis=0) / np.sqrt(known), np.nan)
        within = np.nansum((scaled - mean / np.sqrt(known)) ** 2, axis=0) / (known - 1.0)
        mean /= np.sqrt(np.maximum(within, 1.0))
    nights = int(np.isfinite(mean).sum())
    if nights < MIN_NIGHTS - 1:
        return None
    varies = (MAD_TO_SD * float(np.nanmedian(np.abs(mean - np.nanmedian(mean))))) ** 2
    if chi_squared_tail(MAD_EFFICIENCY * nights * varies, MAD_EFFICIENCY * nights) > MAX_SHARED_P:
        return None
    with np.errstate(all="ignore"):
        level = _median(x[some], axis=1)[:, np.newaxis]
        enough = np.isfinite(x[some]).sum(axis=0) >= MIN_SIBLINGS
        night = np.where(enough, _median((x[some] - level) / unit, axis=0), np.nan)
    steps = np.diff(night[:since])
    most = MAX_DEVIATION**2 * sd[:, np.newaxis]
    moves = np.clip(apart[:, : steps.size], -most, most)
    both = np.isfinite(moves) & np.isfinite(steps)
    moves, steps = np.where(both, moves, 0.0), np.where(both, steps, 0.0)
    with np.errstate(all="ignore"):
        square = (steps**2).sum(axis=1)
        share = np.nan_to_num((moves * steps).sum(axis=1) / square)
        left = ((moves - share[:, np.newaxis] * steps) ** 2).sum(axis=1) / (both.sum(axis=1) - 1.0)
        return SharedNoise(night, share, np.nan_to_num(np.sqrt(left / square)))


def _median(x: Array, axis: int) -> Array:
    """Median of the values that there are; NaN where there is none."""
    filled = np.isfinite(x).any(axis=axis)
    some = np.where(np.expand_dims(filled, axis), x, 0.0)
    return np.asarray(np.where(filled, np.nanmedian(some, axis=axis), np.nan))
