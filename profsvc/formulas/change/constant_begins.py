"""Series that were constant: how long they were, and what a step says after it."""

import numpy as np

from profsvc.formulas.change.surest_step import MIN_HISTORY
from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.distributions import student_tail
from profsvc.formulas.numerics.series import Index, Series, codes_of, lengths

MAX_CHANCE = 1e-3  # of equal values as many as at the begin, in a series that varies as it does since


def constant_begins(series: Series) -> Bools:
    r"""Return which values are the constant begin of a series that scatters since about the same level.

    .. math:: \left(1 - \frac{d + 1/2}{m + 1}\right)^k \le 10^{-3}

    k values were equal, and d of the m since differ from them. What was constant says nothing of the noise that there
    is now: held against it, each value would be a change.

    Source: own model; the chance of k equal values with Jeffreys' prior for their share.

    Args:
        series: Values [any].

    Returns: which values, of the shape of the flat array.

    Range: none of fewer than five equal values, nor where all since lie on one side of them: that is a step.

    Eight nights at 64, then scatter:

    >>> x = np.array([64.0] * 8 + [65.0, 63.5, 64.2, 63.9])
    >>> one = Series(x, x * 0, np.arange(12), np.array([0]), np.array([12]))
    >>> int(constant_begins(one).sum()), int(constant_begins(one._replace(x=np.maximum(x, 64.5))).sum())
    (8, 0)
    """
    n, codes = lengths(series), codes_of(series)
    out = np.zeros(series.x.size, dtype=np.bool_)
    if not series.x.size:
        return out
    place = np.arange(series.x.size) - series.start[codes]
    first = series.x[np.minimum(series.start, series.x.size - 1)][codes]
    differs = series.x != first
    k = n.copy()
    np.minimum.at(k, codes[differs], place[differs])
    later = place >= k[codes]
    above, below = (np.bincount(codes, later & own, n.size) for own in (series.x >= first, series.x <= first))
    since = n - k
    share = (np.bincount(codes, differs, n.size) + 0.5) / (since + 1.0)
    chance = (1.0 - np.minimum(share, 1.0)) ** k
    begins = (k >= MIN_HISTORY) & (above > 0) & (below > 0) & (chance <= MAX_CHANCE)
    return np.asarray(begins[codes] & ~later)


def scatter_probability(series: Series, split: Index) -> Array:
    r"""Probability of a step after a constant level, by the scatter of the values since alone.

    .. math:: p = 2\, T_{m-1}\!\left(\frac{|\bar x - x_0|}{s / \sqrt m}\right)

    Source: Student's test of one sample.

    Args:
        series: Values [any].
        split: Position of the first value after the step of each series.

    Returns: the probability of each series [1].

    Range: 0 where the level before was not constant, or the one since is.

    A series of equal values, then three that scatter, and three that do not:

    >>> x = np.array([5.0] * 6 + [6.0, 8.0, 7.0] + [5.0] * 6 + [7.0, 7.0, 7.0])
    >>> two = Series(x, x * 0, np.arange(18), np.array([0, 9]), np.array([9, 18]))
    >>> scatter_probability(two, np.array([6, 15])).round(2).tolist()
    [0.07, 0.0]
    """
    codes, size = codes_of(series), series.start.size
    later = np.arange(series.x.size) >= split[codes]
    first = series.x[np.minimum(series.start, max(series.x.size - 1, 0))] if series.x.size else np.zeros(size)
    constant = np.bincount(codes, ~later & (series.x != first[codes]), size) == 0
    m = np.bincount(codes, later, size)
    with np.errstate(all="ignore"):
        rise = np.bincount(codes, np.where(later, series.x - first[codes], 0.0), size) / m
        square = np.bincount(codes, np.where(later, (series.x - first[codes] - rise[codes]) ** 2, 0.0), size)
        t = np.abs(rise) / np.sqrt(square / (m - 1.0) / m)
        p = 2.0 * student_tail(t, np.maximum(m - 1.0, 1.0))
    return np.where(constant & (square > 0) & (m > 1), p, 0.0)
