"""The tail of a step in a series, from all of its values and without each of them in turn."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.noise.siblings import NoisePrior, flat_noise
from profsvc.formulas.change.noise.unknown_dependence import counts_of_law
from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.distributions import normal_quantiles, normal_tail, student_tail
from profsvc.formulas.numerics.series import (
    Index,
    Series,
    Sums,
    autocorrelation,
    codes_of,
    difference_variance_ratio,
    lengths,
    mean_variance,
    moments_between,
    narrow_sort_keys,
)

GOLDEN_RATIO = (np.sqrt(5.0) - 1.0) / 2.0  # its multiples, modulo 1, are spread most evenly
NEGLIGIBLE = 1e-7  # weight of a law beside the most probable one
LEAST = -1e300  # of a logarithm, below that of every probability
MIN_RELATIVE_SQUARES = 1e-9  # sum of squares about the mean over that about 0; below it all values are equal


class Side(NamedTuple):
    """The values before a step, or those after it."""

    n: Array
    mean: Array
    square: Array  # sum of squares about the mean
    product: Array  # sum of products of adjacent values about it
    first: Array  # first value about it
    last: Array


Tail = Callable[..., Array]


class Fit(NamedTuple):
    """A step between two levels in noise of one autocorrelation."""

    difference: Array
    variance: Array  # of the difference, over that of the innovations
    left: Array  # sum of squares of the innovations
    constant: Array  # logarithm of the likelihood but for the innovations


class _Scored(NamedTuple):
    """Values of series by rank, for sums that know what is left out.

    Ranks above the one left out move down by one, so each value has two scores. Of measured values both are the value.
    """

    series: Series
    rank: Index  # from 0
    low: Array  # score of a value that ranks below the one left out
    high: Array  # of one above

    def beside(self, other: Index, one: Index) -> Array:
        """Return the score of other values when one is left out."""
        return np.where(self.rank[other] < self.rank[one], self.low[other], self.high[other])


def ranks(series: Series) -> Index:
    """Rank, from 0, of each value in its series; equal values are ranked by a key that only their place decides.

    Such a key keeps the test valid, which ties in common ranks would not: two of three nights with a value that one in
    twenty has would pass for a change.
    """
    place = np.arange(series.x.size) - np.repeat(series.start, lengths(series))
    keys = narrow_sort_keys(codes_of(series), series.start.size)
    order = np.lexsort((place * GOLDEN_RATIO % 1.0, series.x, keys))
    rank = np.empty(order.size, dtype=np.intp)
    rank[order] = place
    return rank


def student_t(before: Side, after: Side) -> tuple[Array, Array]:
    """t of the difference of two adjoining means, and its degrees of freedom; both allow for autocorrelation."""
    m, n = after.n, before.n
    square = before.square + after.square
    rho = autocorrelation(before.product + after.product, square, m + n, 2)
    # Of n values about their own mean the sum of squares expects n minus n times the variance of the mean.
    free = m + n - m * mean_variance(rho, m) - n * mean_variance(rho, n)
    with np.errstate(all="ignore"):
        t = (after.mean - before.mean) / np.sqrt(square / free * (1 / m + 1 / n) * difference_variance_ratio(rho, m, n))
    return t, np.maximum((m + n) * (1 - rho) / (1 + rho) - 2, 1.0)


def plain_tail(before: Side, after: Side, prior: NoisePrior | None = None) -> Array:
    """One-sided tails of a step up and of one down, by the autocorrelation that is estimated as if known."""
    t, df = student_t(before, after)
    return _both_ways(t, df)


def step_tail(before: Side, after: Side, prior: NoisePrior | None = None) -> Array:
    """One-sided tails of a step up and of one down between two adjoining levels with autoregressive noise.

    Of each law of the noise the tail is Student's, of the difference of the levels by generalised least squares. They
    are weighted by how probable the residuals make each law: the likelihood after levels and variance are integrated
    out, times its ``prior``, whose rows have the shape of the sides but for axes of length 1. Where no siblings say
    what the noise is, laws count as `counts_of_law` has it, and a tail may exceed 1.
    """
    shape = np.shape(before.square)
    best, total, tail = np.full(shape, LEAST), np.zeros(shape), np.zeros((2, *shape))
    if prior is None:
        prior = flat_noise(1)
    free = before.n + after.n - 2.0
    for law, fit in _laws(before, after, prior):
        known, square = prior.df[law], prior.square[..., law]
        with np.errstate(all="ignore"):
            beforehand, more = counts_of_law(float(prior.rho[law]), before.n + after.n)
            beforehand, more = np.where(prior.known, 0.0, beforehand), np.where(prior.known, 1.0, more)
            beforehand = beforehand + np.log(prior.weight[..., law])
            likelihood = fit.constant + _evidence(fit.left, free, known, square) + beforehand
            t = fit.difference / np.sqrt(np.where(fit.left > 0, fit.left + square, 0.0) / (free + known) * fit.variance)
            higher = np.maximum(best, likelihood)
            shrink, weight = np.exp(best - higher), np.exp(likelihood - higher)
            total = total * shrink + weight
            tail *= shrink
            told = more * weight
            counts = told > NEGLIGIBLE
            tail[:, counts] += told[counts] * _both_ways(t[counts], (free + known)[counts])
            best = higher
    with np.errstate(all="ignore"):
        return np.asarray(tail / total)


def _both_ways(t: Array, df: Array) -> Array:
    """Student's tail of t and of -t."""
    beyond = student_tail(np.abs(t), df)
    return np.where(np.stack((t, -t)) >= 0, beyond, 1.0 - beyond)


def _laws(before: Side, after: Side, prior: NoisePrior) -> Iterator[tuple[int, Fit]]:
    """Yield the laws that a series may have, with the step of each; those of one autocorrelation share it."""
    possible = np.flatnonzero((prior.weight > 0).reshape(-1, prior.rho.size).any(axis=0))
    for rho in np.unique(prior.rho[possible]).tolist():
        fit = fitted(before, after, rho)
        for law in possible[prior.rho[possible] == rho].tolist():
            yield law, fit


def _evidence(left: Array, free: Array, known: float, square: Array) -> Array:
    """Logarithm of the probability of the residuals; ``square`` is the sum of squares that siblings add."""
    from scipy.special import gammaln

    if not known:
        return -0.5 * free * np.log(np.where(left > 0, left, 1.0))
    both = 0.5 * (free + known)
    scale = gammaln(both) - gammaln(0.5 * known) + 0.5 * known * np.log(square)
    return np.asarray(scale - both * np.log(left + square))


def fitted(before: Side, after: Side, rho: float) -> Fit:
    """Return the step by generalised least squares."""
    n, m = before.n, after.n
    square = before.square + after.square
    product = before.product + after.product + before.last * after.first
    ends = before.first**2 + after.last**2
    q = 1.0 - rho
    of_before, of_after = 1.0 + (n - 1.0) * q**2, 1.0 + (m - 1.0) * q**2
    shared = of_before * of_after - rho**2
    jump = after.first - before.last
    low, high = rho * (q * before.first - jump), rho * (jump + q * after.last)
    with np.errstate(all="ignore"):
        level = (of_after * low + rho * high) / shared
        raised = (rho * low + of_before * high) / shared
        left = square - 2.0 * rho * product + rho**2 * (square - ends) - level * low - raised * high
        left = np.where(square > 0, np.maximum(left, 0.0), 0.0)
        difference = after.mean - before.mean + raised - level
        variance = (of_before + of_after - 2.0 * rho) / shared
        return Fit(difference, variance, left, 0.5 * (np.log1p(-(rho**2)) - np.log(shared)))


def side(sums: Sums, a: Index, b: Index) -> Side:
    """Return the values a to b - 1 as a side of a step."""
    mean, square, product = moments_between(sums, a, b)
    square = _zero_if_rounding(square, sums.square[b] - sums.square[a])
    return Side((b - a).astype(np.float64), mean, square, product, sums.x[a] - mean, sums.x[b - 1] - mean)


def _zero_if_rounding(square: Array, about_zero: Array) -> Array:
    return np.where(square > MIN_RELATIVE_SQUARES * about_zero, square, 0.0)


def noise_tail(before: Side, after: Side, before_error: Array, after_error: Array) -> Array:
    """Tail that errors of measurement alone have, from the sums of their squares; 0 where they are unknown."""
    variance = after_error / after.n**2 + before_error / before.n**2
    with np.errstate(all="ignore"):
        z = np.where(variance > 0, np.abs(after.mean - before.mean) / np.sqrt(variance), np.inf)
    return normal_tail(z)


def some_tails(tail_of: Tail, sides: tuple[Side, Side], asked: Bools, prior: NoisePrior | None, series: Index) -> Array:
    """Return the tails up and down of some entries of both sides, and 1 of the others; ``series``: that of each."""
    out = np.ones((2, *np.shape(sides[0].square)))
    if asked.any():
        before, after = (Side(*(part[asked] for part in np.broadcast_arrays(*one))) for one in sides)
        out[:, asked] = tail_of(before, after, prior=None if prior is None else prior.of(series[asked]))
    return out


def without_each(
    series: Series,
    split: Index,
    tail_of: Tail = step_tail,
    prior: NoisePrior | None = None,
) -> tuple[Array, Array]:
    """One-sided tail of the step up at ``split`` of each series without each of its values: one entry per value.

    It is what the series would give if that value had never come, at the cost of one pass for all of them together.
    Beside it, how far that value lies from the mean of the others on its side, over sqrt(1 + 1/n) of these n others.
    """
    rank, n = ranks(series), np.repeat(lengths(series), lengths(series))
    with np.errstate(all="ignore"):
        low, high = (np.nan_to_num(normal_quantiles((rank + up) / n), posinf=0.0, neginf=0.0) for up in (1.0, 0.0))
    codes, error = codes_of(series), series.error**2
    sides = _leave_one_out_sides(_Scored(series, rank, series.x, series.x), split)
    by_value = _is_separated(series, rank, split)
    if prior is not None:
        by_value = by_value | prior.by_value[codes]
    tail = some_tails(tail_of, sides, by_value, prior, codes)[0]
    if not by_value.all():
        of_ranks = _leave_one_out_sides(_Scored(series, rank, low, high), split)
        tail = np.where(by_value, tail, some_tails(tail_of, of_ranks, ~by_value, prior, codes)[0])
    later = np.arange(error.size) >= split[codes]
    errors = (np.bincount(codes, error * own, split.size)[codes] - error * own for own in (~later, later))
    n, mean = (np.where(later, after, before) for before, after in zip(*(side[:2] for side in sides), strict=True))
    return np.fmax(tail, noise_tail(*sides, *errors)), np.abs(series.x - mean) / np.sqrt(1 + 1 / n)


def _leave_one_out_sides(scored: _Scored, split: Index) -> tuple[Side, Side]:
    """Both sides of each step when one value is left out, one entry per value."""
    series = scored.series
    codes = codes_of(series)
    return (
        _leave_one_out_side(scored, series.start[codes], split[codes]),
        _leave_one_out_side(scored, split[codes], series.stop[codes]),
    )


def _leave_one_out_side(scored: _Scored, a: Index, b: Index) -> Side:
    """Return the side from a to b - 1, which are given for each value of each series, when that value is left out."""
    rank, low, high = scored.rank, scored.low, scored.high
    one = np.arange(rank.size)
    own = (a <= one) & (one < b)
    count = (b - a - own).astype(np.float64)
    left = np.where(own & (one > a), scored.beside(np.maximum(one - 1, 0), one), 0.0)
    right = np.where(own & (one < b - 1), scored.beside(np.minimum(one + 1, rank.size - 1), one), 0.0)
    total = _leave_one_out_sum(scored, low * own, high * own) - high * own
    square = _leave_one_out_sum(scored, low**2 * own, high**2 * own) - high**2 * own
    product = _leave_one_out_products(scored, own & (one < b - 1)) - high * (left + right) + left * right
    mean = total / count
    about = _zero_if_rounding(square - count * mean**2, square)
    first, last = scored.beside(a + (one == a), one), scored.beside(b - 1 - (one == b - 1), one)
    product = product - mean * (2 * total - first - last) + (count - 1) * mean**2
    return Side(count, mean, about, product, first - mean, last - mean)


def _leave_one_out_sum(scored: _Scored, low: Array, high: Array) -> Array:
    """Sum over a series of the low of values that rank below each value, and the high of it and of those above."""
    series = scored.series
    codes = codes_of(series)
    at = series.start[codes] + scored.rank
    return np.asarray(np.bincount(codes, high, series.start.size)[codes] + _sum_of_lower_ranks(scored, at, low - high))


def _leave_one_out_products(scored: _Scored, pair: Bools) -> Array:
    """Sum of the products of each value of ``pair`` and the next one, as `_leave_one_out_sum` sums."""
    series, low, high = scored.series, scored.low, scored.high
    codes = codes_of(series)
    one = np.flatnonzero(pair)
    rank, start = scored.rank, series.start[codes[one]]
    lower = np.where(rank[one] < rank[one + 1], one, one + 1)
    upper = 2 * one + 1 - lower
    none, half, both = high[lower] * high[upper], low[lower] * high[upper], low[lower] * low[upper]
    at = np.concatenate((start + rank[lower], start + rank[upper]))
    passed = _sum_of_lower_ranks(scored, at, np.concatenate((half - none, both - half)))
    return np.asarray(np.bincount(codes[one], none, series.start.size)[codes] + passed)


def _sum_of_lower_ranks(scored: _Scored, at: Index, weight: Array) -> Array:
    """Return the sum of the weights below the rank of each value, in its series; ``at`` counts ranks through."""
    start = scored.series.start[codes_of(scored.series)]
    total = np.concatenate(([0.0], np.cumsum(np.bincount(at, weight, start.size))))
    return np.asarray(total[start + scored.rank] - total[start])


def _is_separated(series: Series, rank: Index, split: Index) -> Bools:
    """Return whether all values after the split lie above all before it, when one is left out."""
    codes = codes_of(series)
    later = np.arange(rank.size) >= split[codes]
    by_rank = np.empty(rank.size)
    by_rank[series.start[codes] + rank] = series.x
    ends = []
    for own, outermost, far in ((~later, np.maximum, -1), (later, np.minimum, rank.size)):
        inside = np.where(own, rank, far)
        first = outermost.reduceat(inside, series.start)[codes]
        second = outermost.reduceat(np.where(inside == first, far, inside), series.start)[codes]
        ends.append(by_rank[series.start[codes] + np.where(rank == first, second, first)])
    return np.asarray(ends[1] > ends[0])
