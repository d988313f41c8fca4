"""Probability that chance alone gives a level: the largest values come last, or a known level returns."""

import numpy as np

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import Index, Series, codes_of, difference_sd, lengths, medians

MAX_VISIT_DISTANCE_SD = 1.0  # a visit comes as near to the level as this many sd


def largest_last_probability(m: Array, n: Array) -> Array:
    """Probability that the m largest of m + n values come last, in any order that is as probable as any other."""
    from scipy.special import gammaln

    return np.asarray(np.exp(gammaln(m + 1.0) + gammaln(n + 1.0) - gammaln(m + n + 1.0)))


def visit_probability(series: Series, split: Index, apart: float) -> Array:
    """Probability of values as long at the level after ``split`` in a series that goes there and comes back.

    The values before the split are taken for a chain of two states: near the new level they stay for as long as they
    stayed so far, by a probability that is integrated over (Jeffreys' prior). 0 where the level was never visited, or
    where the levels lie less than ``apart`` from each other, so that noise alone goes from one to the other.
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
    visited = there & reached[visit]
    v, k = (np.bincount(codes, own, size) for own in (visited, visited & begins))
    n, m = split - series.start, lengths(series) - (split - series.start)
    stay, leave = v - k + 0.5, k + 0.5
    long = np.exp(betaln(stay + m - 1.0, leave) - betaln(stay, leave))
    return np.asarray(np.where((v > 0) & (np.abs(rise) >= apart * sd), (v + 0.5) / (n + 1.0) * long, 0.0))
