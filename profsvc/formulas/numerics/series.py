"""Many series in one flat array: the vectorised helpers of the change formulas."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Bools, Groups, flat_floats

Index = NDArray[np.intp]

MAD_TO_SD = 1.482602218505602  # 1 / the 0.75 quantile of the standard normal
DIFFERENCE_TO_SD = MAD_TO_SD / np.sqrt(2)  # differences of adjacent values have twice the variance
MEAN_DEVIATION_TO_SD = np.sqrt(np.pi / 2)
LEVEL_SD = 2.0  # values as near to each other are at one level
SPIKE_SD = 4.0  # a value this many sd above, or below, both adjacent values is a spike
MAX_MAGNITUDE = 1e150  # its square is still a number
MAX_DEVIATION_SD = 1e3  # farther than this is as good as infinitely far
AUTOCORRELATION_PRIOR_VALUES = 6.0  # weight of the prior of no autocorrelation, in values
MAX_AUTOCORRELATION = 0.95
MAX_PADDED_RATIO = 2  # room of series padded to one length, over their values


class Series(NamedTuple):
    """Values of series one after the other; ``place`` is where each stood in the argument."""

    x: Array
    error: Array  # standard error of each value, 0 where unknown
    place: Index
    start: Index  # first value of each series
    stop: Index  # one behind the last


def gather(value: Array, error: Array, groups: Groups, keep: Bools) -> Series:
    """Put the kept values of each group together, in their order. An empty group starts where it stops."""
    place = groups.order if keep.all() else groups.order[keep[groups.order]]
    codes = groups.codes[place]
    edges = np.searchsorted(codes, np.arange(groups.ids.size + 1))
    return Series(value[place], error[place], place, edges[:-1], edges[1:])


def read_series(
    value: ArrayLike, group: ArrayLike | None, standard_error: ArrayLike | None
) -> tuple[Array, Array, Groups]:
    """Return values, their standard errors (NaN or None: unknown, 0) and groups; what is as good as infinite is NaN."""
    x, error = flat_floats(value=value, standard_error=standard_error)
    error = np.where((error > 0) & (error < MAX_MAGNITUDE), error, 0.0)
    return np.where(np.abs(x) < MAX_MAGNITUDE, x, np.nan), error, Groups(group, x.size)


def lengths(series: Series) -> Index:
    """Return the number of values of each series."""
    return series.stop - series.start


def subseries(series: Series, start: Index, stop: Index) -> Series:
    """Return stretches of the flat values as series of their own; they may overlap."""
    n = stop - start
    until = np.cumsum(n)
    take = np.arange(n.sum()) + np.repeat(start - (until - n), n)
    return Series(series.x[take], series.error[take], series.place[take], until - n, until)


def codes_of(series: Series) -> Index:
    """Return the series of each value."""
    return np.repeat(np.arange(series.start.size), lengths(series))


def narrow_sort_keys(codes: Index, n: int) -> NDArray[Any]:
    """Return codes below n as keys to sort by, and for nothing else: narrow ones sort faster, but sums of them wrap."""
    return codes.astype(np.min_scalar_type(n))


def medians(x: Array, codes: Index, n: int) -> Array:
    """Median of each of n series; NaN where it is empty."""
    count = np.bincount(codes, minlength=n)
    first = np.cumsum(count) - count
    filled = count > 0
    out = np.full(n, np.nan)
    width = int(count.max(initial=0))
    if n * width <= MAX_PADDED_RATIO * x.size and (codes[1:] >= codes[:-1]).all():
        # Rows that are sorted each by itself take a fifth of the time.
        padded = np.full((n, width), np.nan)
        padded[codes, np.arange(x.size) - first[codes]] = x
        padded.sort(axis=1)
        ordered, first = padded.ravel(), np.arange(n) * width
    else:
        ordered = x[np.lexsort((x, narrow_sort_keys(codes, n)))]
    low, high = (first + (count - 1) // 2)[filled], (first + count // 2)[filled]
    out[filled] = (ordered[low] + ordered[high]) / 2
    return out


def difference_sd(series: Series) -> Array:
    """Return the sd of each series that differences of adjacent values imply: a step changes only one of them."""
    codes = codes_of(series)
    same = codes[1:] == codes[:-1]
    return np.asarray(DIFFERENCE_TO_SD * medians(np.abs(np.diff(series.x))[same], codes[1:][same], series.start.size))


def without_spikes(series: Series) -> Series:
    """Leave out values far above, or far below, both adjacent values; the first and the last have only one.

    So the first value of a high step waits for the next one. Where most adjacent values are equal, the unit is 0 and
    nothing is left out: a rare second value of a quantised series is not a spike. Nor is a value with two others of
    its series beside it, however far apart in time: a level that returns is a level.
    """
    sd = difference_sd(series)
    for ends in (False, True):  # a spike next to an end would make the end look like one
        series = _without_spikes_at(series, sd, ends)
    return series


def _without_spikes_at(series: Series, sd: Array, ends: bool) -> Series:
    x, codes = series.x, codes_of(series)
    rise = np.where(codes[1:] == codes[:-1], np.diff(x), np.nan)  # NaN between two series: no adjacent value
    left, right = (np.full(x.size, np.nan) for _ in range(2))
    left[1:], right[:-1] = rise, -rise
    alone = np.isnan(left) | np.isnan(right)
    nearer = np.where(np.fmin(left, right) > 0, np.fmin(left, right), -np.fmax(left, right))
    spike = (nearer > SPIKE_SD * sd[codes]) & (sd[codes] > 0) & (alone == ends)
    keep = ~spike | (spike.any() and _recurs(series, spike, sd))
    before = np.concatenate(([0], np.cumsum(keep)))
    return Series(x[keep], series.error[keep], series.place[keep], before[series.start], before[series.stop])


def _recurs(series: Series, asked: Bools, sd: Array) -> Bools:
    """Return which values have two others of their series within `LEVEL_SD`, of the series with one that is asked."""
    codes = codes_of(series)
    own = np.flatnonzero(np.bincount(codes, asked, sd.size)[codes] > 0)
    own = own[np.lexsort((series.x[own], codes[own]))]
    code, near = codes[own], LEVEL_SD * sd[codes[own]]
    out = np.zeros(own.size, dtype=np.bool_)
    for first in (-2, -1, 0):  # of three values in order of size the place of the lowest, from the one that is asked
        low, high = np.arange(own.size) + first, np.arange(own.size) + first + 2
        inside = (low >= 0) & (high < own.size)
        low, high = np.where(inside, low, 0), np.where(inside, high, 0)
        x = series.x[own]
        close = (x - x[low] <= near) & (x[high] - x <= near)
        out |= inside & close & (code[low] == code) & (code[high] == code)
    recurs = np.zeros(series.x.size, dtype=np.bool_)
    recurs[own] = out
    return recurs


def sd_units(series: Series) -> Array:
    """Return the sd of each series by its adjacent values; by other deviations where that is 0."""
    n, codes = series.start.size, codes_of(series)
    away = np.abs(series.x - medians(series.x, codes, n)[codes])
    largest = np.zeros(n)
    np.maximum.at(largest, codes, away)
    sd = difference_sd(series)
    for other in (MAD_TO_SD * medians(away, codes, n), largest, np.ones(n)):
        sd = np.where(sd > 0, sd, other)
    return sd


def in_units_of_sd(series: Series) -> Series:
    """Centre each series on its median and divide by its sd, so that one running sum serves them all."""
    n, codes, sd = series.start.size, codes_of(series), sd_units(series)
    x = series.x - medians(series.x, codes, n)[codes]
    with np.errstate(over="ignore"):
        return series._replace(
            x=np.clip(x / sd[codes], -MAX_DEVIATION_SD, MAX_DEVIATION_SD), error=series.error / sd[codes]
        )


class Sums(NamedTuple):
    """Running sums of values and of products of adjacent values, from which two look-ups give those of any stretch."""

    x: Array
    total: Array
    square: Array
    product: Array


def running_sums(x: Array) -> Sums:
    """Sum up the values, their squares and the products of adjacent values."""
    zero = np.zeros(1)
    product = x[:-1] * x[1:] if x.size else x
    return Sums(x, *(np.concatenate((zero, np.cumsum(part))) for part in (x, x * x, product)))


def moments_between(sums: Sums, a: Index, b: Index) -> tuple[Array, Array, Array]:
    """Mean, sum of squares about it and of products of adjacent values about it, of the values a to b - 1; b > a."""
    n = b - a
    total = sums.total[b] - sums.total[a]
    mean = total / n
    square = np.maximum(sums.square[b] - sums.square[a] - n * mean**2, 0.0)
    ends = 2 * total - sums.x[a] - sums.x[b - 1]
    return mean, square, sums.product[b - 1] - sums.product[a] - mean * ends + (n - 1) * mean**2


def autocorrelation(product: Array, square: Array, n: Array, means: int) -> Array:
    """Correlation of adjacent values from sums about fitted means, repaired for the bias that each mean brings.

    The raw estimate expects rho - means (1 + 3 rho) / n. Negative ones count as 0: they would narrow the tests.
    """
    with np.errstate(all="ignore"):
        raw = product / square
        repaired = (n * raw + means) / (n - 3 * means + AUTOCORRELATION_PRIOR_VALUES)
    return np.clip(np.nan_to_num(repaired), 0.0, MAX_AUTOCORRELATION)


def mean_variance(rho: Array, n: Array) -> Array:
    """Variance of the mean of n consecutive values of an autoregressive series of variance 1."""
    q = 1.0 - rho
    return np.asarray(((1.0 + rho) / q - 2.0 * rho * (1.0 - rho**n) / (n * q**2)) / n)


def difference_variance_ratio(rho: Array, m: Array, n: Array) -> Array:
    """Variance of the difference of two adjoining means over the one without autocorrelation."""
    q = 1.0 - rho
    shared = rho * (1.0 - rho**m) * (1.0 - rho**n) / (q**2 * m * n)
    return np.asarray((mean_variance(rho, m) + mean_variance(rho, n) - 2.0 * shared) / (1.0 / m + 1.0 / n))
