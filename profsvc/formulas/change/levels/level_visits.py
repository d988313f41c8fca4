"""Probability that chance alone gives a level: the largest values come last, or a known level returns."""

import numpy as np

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.series import Index, Series, codes_of, difference_sd, lengths, medians

MAX_VISIT_DISTANCE_SD = 1.0  # a visit comes as near to the level as this many sd
EDGE_VALUES = 3  # values on both sides of the begin or end of a visit that tell a jump from a drift
MIN_JUMP_SHARE = 0.5  # of the distance of both levels, which a visit begins or ends with
BACK_SD = 2.5  # of a value from the new level, on the side of the one before, to be at that one
MIN_BACK = 2  # values at the level before, from which a series is on both levels since a step


def largest_last_probability(m: Array, n: Array) -> Array:
    """Probability that the m largest of m + n values come last, in any order that is as probable as any other."""
    from scipy.special import gammaln

    return np.asarray(np.exp(gammaln(m + 1.0) + gammaln(n + 1.0) - gammaln(m + n + 1.0)))


def visit_probability(
    series: Series, split: Index, apart: float, levels: Array | None = None, noise: Array | None = None
) -> Array:
    """Probability of values as long at the level after ``split`` in a series that goes there and comes back.

    The values before the split are taken for a chain of two states: near the new level they stay for as long as they
    stayed so far, by a probability that is integrated over (Jeffreys' prior). 0 where the level was never visited, or
    where the levels lie less than ``apart`` from each other, so that noise alone goes from one to the other. What began
    and ended without a jump is no visit: a series that drifted away from a level was not on two. ``levels``: those
    before and after the split, of shape (series, 2); None: the medians. ``noise``: sd of each series; None: that of the
    differences of adjacent values.
    """
    from scipy.special import betaln

    codes, place, size = codes_of(series), np.arange(series.x.size), series.start.size
    later = place >= split[codes]
    if levels is None:
        levels = medians(series.x, 2 * codes + later, 2 * size).reshape(-1, 2)
    rise = levels[:, 1] - levels[:, 0]
    short = np.abs(rise)[codes] - np.sign(rise)[codes] * (series.x - levels[:, 0][codes])  # of the new level
    there = (short < np.abs(rise)[codes] / 2) & ~later
    begins = there & np.r_[True, ~there[:-1] | (codes[1:] != codes[:-1])]
    visit = np.cumsum(begins)
    reached = np.zeros(int(begins.sum()) + 1, dtype=np.bool_)
    sd = difference_sd(series) if noise is None else noise
    reached[visit[there & (short <= MAX_VISIT_DISTANCE_SD * sd[codes])]] = True
    visited = there & reached[visit] & _has_jump(series, there, np.abs(rise))
    v, k = (np.bincount(codes, own, size) for own in (visited, visited & begins))
    n, m = split - series.start, lengths(series) - (split - series.start)
    stay, leave = v - k + 0.5, k + 0.5
    long = np.exp(betaln(stay + m - 1.0, leave) - betaln(stay, leave))
    return np.asarray(np.where((v > 0) & (np.abs(rise) >= apart * sd), (v + 0.5) / (n + 1.0) * long, 0.0))


def _has_jump(series: Series, there: Bools, rise: Array) -> Bools:
    """Return of each value whether its stretch, at the level or away from it, begins or ends with a jump."""
    codes = codes_of(series)
    if not series.x.size:
        return there
    begins = np.r_[True, (there[1:] != there[:-1]) | (codes[1:] != codes[:-1])]
    stretch, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    place, length = np.arange(series.x.size), np.diff(np.append(first, series.x.size))
    from_begin = place - first[stretch]
    near = from_begin < EDGE_VALUES, length[stretch] - 1 - from_begin < EDGE_VALUES
    ends = [np.bincount(stretch, series.x * edge) / np.bincount(stretch, edge) for edge in near]
    inside = codes[first][1:] == codes[first][:-1]
    jump = inside & (np.abs(ends[0][1:] - ends[1][:-1]) >= MIN_JUMP_SHARE * rise[codes[first]][1:])
    return np.asarray((np.r_[False, jump] | np.r_[jump, False])[stretch])


def alternation_probability(series: Series, split: Index, apart: float) -> Array:
    r"""Probability of the newest stretch at the level after a step, in a series that is on both levels since the step.

    .. math:: P = \frac{v + 1/2}{n + 1} \cdot \frac{B(v - k + 1/2 + m - 1,\; k + 1/2)}{B(v - k + 1/2,\; k + 1/2)}

    Two boards of one name that take turns put a series on two levels, night by night. Their values do not follow each
    other as those of one level do, and a step is never over: each turn would be one. So the step counts from the newest
    turn, as a visit of m values in a chain that was at that level for v of the n values before, in k visits.

    Source: own model; the chain of `visit_probability`.

    Args:
        series: Values; those that tower above both adjacent ones too [any].
        split: Position of the first value after the step of each series.
        apart: Least distance of the levels, in sd of each series.

    Returns: the probability of each series [1].

    Range: 1 where the newest value is at the level before; 0 with fewer than two values at it since the step.

    Thirty nights on one board, then another one in every second night; and a step with one night on the old board:

    >>> quiet = np.random.default_rng(1).standard_normal(37)
    >>> x = np.stack((quiet, quiet))
    >>> x[0, 30::2] += 9.0
    >>> x[1, 30:] += 9.0 * (np.arange(7) != 2)
    >>> two = Series(x.ravel(), x.ravel() * 0, np.arange(74), np.array([0, 37]), np.array([37, 74]))
    >>> alternation_probability(two, np.array([30, 67]), 3.0).round(2).tolist()
    [0.09, 0.0]
    """
    from scipy.special import betaln

    codes, place, size = codes_of(series), np.arange(series.x.size), series.start.size
    later, sd = place >= split[codes], difference_sd(series)
    levels = medians(series.x, 2 * codes + later, 2 * size).reshape(-1, 2)
    rise = (levels[:, 1] - levels[:, 0])[codes]
    high = np.sign(rise) * (series.x - levels[:, 0][codes])  # above the level before, in the direction of the step
    upper = later & (high >= np.abs(rise) / 2)
    step = medians(high[upper], codes[upper], size)
    with np.errstate(invalid="ignore"):
        there = high >= step[codes] / 2
        back = later & ~there & (step[codes] - high > BACK_SD * sd[codes])
    newest = split.copy()
    np.maximum.at(newest, codes[back], place[back] + 1)
    older = there & (place < newest[codes])
    begins = older & np.r_[True, ~there[:-1] | (codes[1:] != codes[:-1])]
    v, k = (np.bincount(codes, own, size) for own in (older, begins))
    n, m = newest - series.start, series.stop - newest
    stay, leave = v - k + 0.5, k + 0.5
    long = np.exp(betaln(stay + np.maximum(m, 1.0) - 1.0, leave) - betaln(stay, leave))
    p = np.where(m > 0, (v + 0.5) / (n + 1.0) * long, 1.0)
    with np.errstate(invalid="ignore"):
        return np.where((np.bincount(codes, back, size) >= MIN_BACK) & (step >= apart * sd), p, 0.0)
