"""Probability that chance alone gives a level: the largest values come last, or a known level returns."""

import numpy as np

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.series import Index, Series, codes_of, difference_sd, lengths, medians

MAX_VISIT_DISTANCE_SD = 1.0  # a visit comes as near to the level as this many sd
EDGE_VALUES = 3  # values on both sides of the begin or end of a visit that tell a jump from a drift
MIN_JUMP_SHARE = 0.5  # of the distance of both levels, which a visit begins or ends with


def largest_last_probability(m: Array, n: Array) -> Array:
    """Probability that the m largest of m + n values come last, in any order that is as probable as any other."""
    from scipy.special import gammaln

    return np.asarray(np.exp(gammaln(m + 1.0) + gammaln(n + 1.0) - gammaln(m + n + 1.0)))


def visit_probability(series: Series, split: Index, apart: float) -> Array:
    """Probability of values as long at the level after ``split`` in a series that goes there and comes back.

    The values before the split are taken for a chain of two states: near the new level they stay for as long as they
    stayed so far, by a probability that is integrated over (Jeffreys' prior). 0 where the level was never visited, or
    where the levels lie less than ``apart`` from each other, so that noise alone goes from one to the other. What began
    and ended without a jump is no visit: a series that drifted away from a level was not on two.
    """
    from scipy.special import betaln

    codes, place, size = codes_of(series), np.arange(series.x.size), series.start.size
    later = place >= split[codes]
    levels = medians(series.x, 2 * codes + later, 2 * size).reshape(-1, 2)
    rise = levels[:, 1] - levels[:, 0]
    short = np.abs(rise)[codes] - np.sign(rise)[codes] * (series.x - levels[:, 0][codes])  # of the new level
    there = (short < np.abs(rise)[codes] / 2) & ~later
    begins = there & np.r_[True, ~there[:-1] | (codes[1:] != codes[:-1])]
    visit = np.cumsum(begins)
    reached = np.zeros(int(begins.sum()) + 1, dtype=np.bool_)
    sd = difference_sd(series)
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
