"""Two levels that are too far apart for noise that depends on the nights before."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import Index, Series, codes_of, lengths, subseries

# The tail of the largest odds in AR(1) noise with a coefficient of 0.9, which simulations do not exceed.
ODDS_SCALE = 63.0
MORE_VALUES = 10
MAX_SHARE = 1.0 - 1e-12  # two levels without any noise have finite odds


class DistantLevels(NamedTuple):
    """The two levels that leave the least scatter, of each series."""

    p: Array
    split: Index  # position in the flat series


def distant_levels(series: Series) -> DistantLevels:
    r"""How probable it is that dependent noise looks as much like two levels as each series does.

    .. math:: R^2 = \max_k \frac{N S_k^2}{k (N - k) \sum_i (x_i - \bar x)^2}, \quad
              p = \exp\left(-\frac{N + 10}{63} \frac{R^2}{1 - R^2}\right)

    :math:`S_k` is the sum of the first k deviations from the mean, and R\ :sup:`2` the share of the scatter that two
    levels explain. The largest of it has this tail, or a smaller one, in AR(1) noise with a coefficient of 0.9. A test
    that asks for the autocorrelation finds that of two levels, too, and calls them dependent noise. Here it is not
    asked for, so only levels count that are farther apart than all but the most dependent noise goes. A drift has two
    such levels, too.

    Source: own model; the tail was fitted to simulations of 8 to 1000 values, and errs upwards.

    Args:
        series: Values of the series [any].

    Returns: DistantLevels, with an entry for each series.

    Range: p in [0, 1]; NaN below 8 values, and for equal values.

    >>> x, place = np.repeat([1.0, 2.0], 10) + np.tile([0.1, -0.1], 10), np.arange(20)
    >>> found = distant_levels(Series(x, np.zeros(20), place, place[:1], place[:1] + 20))
    >>> found.split.tolist(), found.p.round(7).tolist()  # exp(-30 / 63 * 25)
    ([10], [6.8e-06])
    """
    p, split = np.full(series.start.size, np.nan), series.start.copy()
    asked = np.flatnonzero(lengths(series) >= MIN_HISTORY + MIN_SEGMENT)
    if not asked.size:
        return DistantLevels(p, split)
    part = subseries(series, series.start[asked], series.stop[asked])
    codes, N = codes_of(part), lengths(part)
    n, k = N[codes], np.arange(part.x.size) - part.start[codes]  # values of the series, and of those before each
    x = part.x - (np.add.reduceat(part.x, part.start) / N)[codes]
    unit = np.maximum.reduceat(np.abs(x), part.start)
    x /= np.where(unit > 0, unit, 1.0)[codes]
    before = np.cumsum(x) - x
    before -= before[part.start][codes]
    allowed = (k >= MIN_HISTORY) & (n - k >= MIN_SEGMENT)
    explained = np.where(allowed, n * before**2 / np.maximum(k * (n - k), 1), -1.0)
    most = np.maximum.reduceat(explained, part.start)
    best = np.flatnonzero(explained == most[codes])[::-1]
    total = np.add.reduceat(x**2, part.start)
    share = np.minimum(most / np.where(total > 0, total, np.nan), MAX_SHARE)
    p[asked] = np.exp(-(N + MORE_VALUES) / ODDS_SCALE * share / (1.0 - share))
    split[asked[codes[best]]] = (series.start[asked][codes] + k)[best]  # the first of equal ones is written last
    return DistantLevels(p, split)
