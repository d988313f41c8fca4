"""Values of before the noise of a series became another one: constant ones, and ones that were louder."""

import numpy as np

from profsvc.formulas.change.levels.series_length import MIN_HISTORY
from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.distributions import student_tail
from profsvc.formulas.numerics.series import Index, Series, codes_of, lengths, medians

MAX_CHANCE = 1e-3  # of equal values as many as at the begin, in a series that varies as it does since
MIN_DIFFERENCES = 8  # of adjacent values, on each side of a change of the noise
MIN_MEANS = 8  # that older values are put together in: of 8 + 3 values the largest come last by chance in 0.006
GROWTH = 1.25  # of the numbers of newest values that are tried
MAX_QUIETER_P = 1e-3  # of the surest of all numbers that are tried, in a series whose noise stays
LOWER_END = 1.645  # standard errors from a logarithm to the lower end of its interval of 95 %
MAX_APART = 4.0  # so that no jump outweighs the others, in units of the usual difference
OVERLAP = 1.45  # variance of a mean of differences of adjacent normal values, over that of independent ones


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


def equivalent_values(series: Series) -> tuple[Array, Index]:
    r"""Return how many values of before a series became quieter say as much as one of its newest, and since when.

    .. math:: u_t = \min\left(\frac{|x_t - x_{t-1}|}{m}, 4\right), \qquad
              t_k = \frac{\ln \bar u_{<k} - \ln \bar u_{\ge k}}{s_k}, \qquad
              b = \lfloor e^{2 (\ln \bar u_{<k} - \ln \bar u_{\ge k} - 1.645\, s_k)} \rfloor

    A board that is replaced, or whose clock is fixed, has quieter kernels, but the noise of before would hide small
    steps for as long as it makes up most of the history. m is the usual difference of adjacent values, so that a step
    is one difference and no noise; s is the standard error of the difference of both logarithms, by the scatter of the
    u on each side. The surest k counts, if its p is at most 0.001 over the number of those that are tried. b is the
    lower end of the interval of the ratio of both variances: the mean of so many values is no more sure than one of the
    newest.

    Source: own model; Welch's test of the logarithms of mean differences.

    Args:
        series: Values [any].

    Returns: b of each series [1], at least 1; the position of its first quieter value, its start where b is 1.

    Range: b is 1 where nothing is surely quieter, or with fewer than 17 values.

    Forty values, then forty that scatter a fifth as much; and eighty that scatter alike:

    >>> x = np.random.default_rng(1).standard_normal((2, 80))
    >>> x[0, 40:] /= 5.0
    >>> two = Series(x.ravel(), x.ravel() * 0, np.arange(160), np.array([0, 80]), np.array([80, 160]))
    >>> equivalent, since = equivalent_values(two)
    >>> equivalent.tolist(), (since - two.start).tolist()
    ([6.0, 1.0], [41, 0])
    """
    N, codes = lengths(series), codes_of(series)
    surest, ratio, since = np.zeros(N.size), np.zeros(N.size), series.start.copy()
    widths = _widths(int(N.max(initial=0)))
    if not widths:
        return np.ones(N.size), since
    apart = np.abs(np.diff(series.x, prepend=0.0))
    apart[series.start[N > 0]] = 0.0  # the first value of a series has none before it
    varies = apart > 0
    with np.errstate(all="ignore"):
        u = np.minimum(apart / medians(apart[varies], codes[varies], N.size)[codes], MAX_APART)
    total, square = (np.concatenate(([0.0], np.cumsum(np.nan_to_num(part)))) for part in (u, u * u))
    tried = np.zeros(N.size)
    for m in widths:
        fits = np.flatnonzero(N - 1 - m >= MIN_DIFFERENCES)
        a, k, b = series.start[fits] + 1, series.stop[fits] - m, series.stop[fits]
        tried[fits] += 1
        sides = [_logarithm(total[to] - total[of], square[to] - square[of], to - of) for of, to in ((a, k), (k, b))]
        with np.errstate(all="ignore"):
            error = np.sqrt(OVERLAP * (sides[0][1] + sides[1][1]))
            t = np.nan_to_num((sides[0][0] - sides[1][0]) / error)
            freedom = error**4 / (OVERLAP**2 * (sides[0][1] ** 2 / (k - a - 1) + sides[1][1] ** 2 / (m - 1)))
            lower = sides[0][0] - sides[1][0] - LOWER_END * error
        sure = -np.log(np.maximum(student_tail(np.maximum(t, 0.0), np.fmax(freedom, 1.0)), 1e-300))
        better = sure > surest[fits]
        surest[fits] = np.where(better, sure, surest[fits])
        ratio[fits] = np.where(better, lower, ratio[fits])
        since[fits] = np.where(better, k - 1, since[fits])  # the difference is that of two quiet values
    decided = surest >= -np.log(MAX_QUIETER_P / np.maximum(tried, 1.0))
    equivalent = np.where(decided, np.floor(np.exp(2.0 * np.maximum(ratio, 0.0))), 1.0)
    return equivalent, np.where(equivalent > 1, since, series.start)


def as_sure_as_newest(series: Series, equivalent: Array, since: Index) -> Array:
    r"""Return the values with those of before a series became quieter put together, in means as sure as a newest one.

    .. math:: y_j = \frac{1}{b} \sum_{i=0}^{b-1} x_{j-i}, \qquad j = k - 1, k - 1 - b, k - 1 - 2b, \ldots

    A mean of b values with the variance b s^2 has the variance s^2 of the newest ones: the level before is known as
    well as it was, a step at the change of the noise is one still, and the noise is that of today.

    Source: definition.

    Args:
        series: Values [any].
        equivalent: b of each series [1], as `equivalent_values` has it.
        since: Position k of its first quieter value, likewise.

    Returns: the flat values; each mean stands at the last of its values, and the others are NaN.

    Range: the values as they are where b is 1. Eight means are left at least, so that the chance of their places does
    not hide a step of three values since then.

    The first sixteen of nineteen values count in twos, although three of them would be as sure as a newest one:

    >>> x = np.append(np.arange(16.0), [8.1, 8.0, 8.2])
    >>> one = Series(x, x * 0, np.arange(19), np.array([0]), np.array([19]))
    >>> y = as_sure_as_newest(one, np.array([3.0]), np.array([16]))
    >>> y[np.isfinite(y)].tolist()
    [0.5, 2.5, 4.5, 6.5, 8.5, 10.5, 12.5, 14.5, 8.1, 8.0, 8.2]
    """
    codes, place = codes_of(series), np.arange(series.x.size)
    equivalent = np.maximum(np.minimum(equivalent, (since - series.start) // MIN_MEANS), 1.0)
    older = (place < since[codes]) & (equivalent > 1)[codes]
    if not older.any():
        return series.x
    size, start = equivalent.astype(np.intp)[codes], series.start[codes]
    ends = np.flatnonzero(older & ((since[codes] - 1 - place) % size == 0) & (place - size + 1 >= start))
    level = series.x[start]
    total = np.concatenate(([0.0], np.cumsum(series.x - level)))
    out = np.where(older, np.nan, series.x)
    out[ends] = level[ends] + (total[ends + 1] - total[ends + 1 - size[ends]]) / size[ends]
    return out


def _widths(longest: int) -> list[int]:
    """Return the numbers of newest differences that are tried."""
    out, m = list[int](), float(MIN_DIFFERENCES)
    while round(m) <= longest - 1 - MIN_DIFFERENCES:
        out.append(round(m))
        m *= GROWTH
    return out


def _logarithm(total: Array, square: Array, n: Index) -> tuple[Array, Array]:
    """Return the logarithm of means, and its variance if the values were independent."""
    with np.errstate(all="ignore"):
        mean = total / n
        return np.log(mean), np.maximum(square / n - mean**2, 0.0) / (n - 1.0) / mean**2
