"""Whether a series stays, follows a trend or steps, as it and its siblings say."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.change.noise.siblings import flat_prior, sibling_prior
from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.distributions import student_tail
from profsvc.formulas.numerics.series import (
    MAX_AUTOCORRELATION,
    Index,
    Series,
    codes_of,
    lengths,
    running_sums,
)

MIN_BEFORE, MIN_AFTER = 5, 3  # values on both sides of a step
MIN_BENT = 40  # values from which a trend may be bent
NEWEST = 5  # values that may have a level of their own, and say nothing of a drift before them
SHAPES = ("flat", "line", "bent", "step")


class Shape(NamedTuple):
    """Probability of each shape, of shape (series,)."""

    trend: Array  # a line, or a parabola
    step: Array


def shapes(series: Series, family: Index) -> Shape:
    r"""Probability that each series follows a trend, and that it steps.

    .. math:: \ln B_m = -\frac{n}{2} \ln \frac{S_m}{S_0} - \frac{k_m}{2} \ln n

    S is the sum of squares about the shape, k the number of its parameters beside the mean; of a step the mean of B
    over all places counts. How usual each shape is, the siblings say: where all drift, a series that may drift does.

    Source: own model; Bayes factors by [Schwarz1978].

    Args:
        series: Values.
        family: Number of the family of each series.

    Returns: Shape.

    Range: from 0 to 1; 1/2 and 1/4 for fewer than 8 values.

    >>> x = np.linspace(0, 2, 30) + np.tile([0.1, -0.1, 0.0], 10)
    >>> one = Series(x, x * 0, np.arange(30), np.array([0]), np.array([30]))
    >>> shapes(one, np.zeros(1, dtype=np.intp)).trend.round(3).tolist()
    [1.0]
    """
    evidence = _evidence(series)
    prior = sibling_prior(evidence, family)
    evidence = np.where(np.isfinite(evidence), evidence, 0.0)
    share = prior * np.exp(evidence - evidence.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return Shape(share[:, 1] + share[:, 2], share[:, 3])


def _evidence(series: Series) -> Array:
    """Logarithm of the evidence for each of `SHAPES` against the first; NaN where nothing can be said."""
    n, codes, size = lengths(series), codes_of(series), series.start.size
    out = np.log(flat_prior(size, len(SHAPES))) * np.nan
    if not series.x.size:
        return out
    count = np.maximum(n, 1)
    x = series.x - (np.bincount(codes, series.x, size) / count)[codes]
    place = np.arange(x.size) - series.start[codes]
    t = 2.0 * (place + 0.5) / count[codes] - 1.0
    square = np.bincount(codes, x**2, size)
    bend = t**2 - (np.bincount(codes, t**2, size) / count)[codes]
    by_line, by_bend = (
        np.bincount(codes, part * x, size) ** 2 / np.maximum(np.bincount(codes, part**2, size), 1e-300)
        for part in (t, bend)
    )
    total = running_sums(x).total
    m = np.maximum(place, 1)
    rest = np.maximum(count[codes] - m, 1)
    by_step = (total[:-1] - total[series.start[codes]]) ** 2 * (1 / m + 1 / rest)
    inside = (place >= MIN_BEFORE) & (n[codes] - place >= MIN_AFTER)
    with np.errstate(all="ignore"):
        half, logs = n / 2.0, np.log(n)

        def gain(explained: Array, of: Index | slice = slice(None)) -> Array:
            return -half[of] * np.log(np.maximum(1.0 - explained / square[of], 1e-12))

        each = np.where(inside, gain(by_step, codes), -np.inf)
        filled = n > 0
        top = np.zeros(size)
        top[filled] = np.maximum.reduceat(each, series.start[filled])
        of_step = top + np.log(np.bincount(codes, np.exp(each - top[codes]), size) / np.bincount(codes, inside, size))
        bent = np.where(n >= MIN_BENT, gain(by_line + by_bend) - logs, -np.inf)
        found = np.stack((np.zeros(size), gain(by_line) - logs / 2, bent, of_step - logs / 2), axis=1)
    said = (n >= MIN_BEFORE + MIN_AFTER) & (square > 0)
    return np.where(said[:, np.newaxis], np.where(np.isfinite(found), found, -1e9), np.nan)


class SteppedTrend(NamedTuple):
    """A trend with a step on it."""

    trend: Array  # without the step, of shape (n,)
    p: float  # probability of so large a step, or a larger one, where there is the trend alone


def stepped_trend(x: Array, split: int) -> SteppedTrend:
    r"""Return the trend of a series that may have a step, both fitted together.

    .. math:: t = \frac{\hat\delta}{s(\hat\delta)} \sqrt{\frac{1 - \rho}{1 + \rho}}

    A trend that is fitted alone bends to a step at its end, and hides it.

    Source: least squares; rho is the autocorrelation of the residuals at lag 1, from 0.

    Args:
        x: Values, of shape (n,), equally far apart.
        split: Place of the first value after the step, from 1 to n - 1.

    Returns: SteppedTrend.

    Range: p in [0, 1], two-sided; 1 for fewer values than the fit needs.

    >>> fit = stepped_trend(np.array([1.0, 1.1, 1.2, 1.31, 1.4, 1.5, 1.6, 1.7, 2.8, 2.9, 3.01]), 8)
    >>> fit.trend.round(1).tolist()[-3:], fit.p < 1e-6
    ([1.8, 1.9, 2.0], True)
    """
    place = np.linspace(-1.0, 1.0, x.size)
    degree = 2 if x.size >= MIN_BENT else 1
    step = (np.arange(x.size) >= split).astype(np.float64)
    design: Array = np.stack([*(place**power for power in range(degree + 1)), step], axis=1).astype(np.float64)
    free = x.size - design.shape[1]
    coefficients: Array = np.asarray(np.linalg.lstsq(design, x, rcond=None)[0], dtype=np.float64)
    trend = design[:, :-1] @ coefficients[:-1]
    left = x - design @ coefficients
    square = float(left @ left)
    if free < 1 or not square > 0:
        return SteppedTrend(trend, 1.0 if free < 1 else 0.0)
    rho = float(np.clip(left[1:] @ left[:-1] / square, 0.0, MAX_AUTOCORRELATION))
    error = np.sqrt(square / free * np.linalg.pinv(design.T @ design)[-1, -1])
    t = abs(coefficients[-1]) / error * np.sqrt((1.0 - rho) / (1.0 + rho))
    return SteppedTrend(trend, float(2.0 * student_tail(t, np.array(float(free)))))


def fitted_trend(x: Array) -> Array:
    """Return the line through a series, or the parabola of a long one.

    Source: definition, least squares.

    Args:
        x: Values, of shape (n,), equally far apart; n is 2 or more.

    Returns: the fitted value at each place, of shape (n,), in the unit of ``x``.

    Range: a parabola from `MIN_BENT` values on.

    >>> fitted_trend(np.array([1.0, 3.0, 2.0, 4.0])).round(2).tolist()
    [1.3, 2.1, 2.9, 3.7]
    """
    place = np.linspace(-1.0, 1.0, x.size)
    degree = 2 if x.size >= MIN_BENT else 1
    fit = np.polynomial.polynomial.polyfit(place, x, degree)
    return np.asarray(np.polynomial.polynomial.polyval(place, fit))


def end_of_drift(x: Array) -> int:
    r"""Return the place since which a series stays where a drift had brought it.

    .. math:: x_i = a + b \min(i, k), \qquad \ln B = -\tfrac{n}{2} \ln \frac{S_k}{S} - \tfrac{1}{2} \ln n \,
              (p_k - p)

    A drift that ended is in the way of later steps: with it the values seem to depend on each other.

    Source: own model; Bayes factors by [Schwarz1978] against no trend, a line, a parabola and a step.

    Args:
        x: Values, of shape (n,), equally far apart; the newest five do not count.

    Returns: the place k, from 0.

    Range: 0 where it is more probable that the series never drifted, still does, or stepped.

    >>> rng = np.random.default_rng(1)
    >>> drift = np.minimum(np.arange(60), 30) / 5 + rng.standard_normal(60) / 2
    >>> 25 <= end_of_drift(drift) <= 35, end_of_drift(drift[:30]), end_of_drift(rng.standard_normal(60))
    (True, 0, 0)
    """
    n = x.size - min(x.size // 2, NEWEST)
    knots = np.arange(MIN_BEFORE, n - MIN_BEFORE)
    if not knots.size:
        return 0
    y, place = x[:n] - x[:n].mean(), np.arange(n, dtype=np.float64)
    total = float(y @ y)
    if not total > 0:
        return 0
    line = place - place.mean()
    bend = line**2 - np.mean(line**2)
    rows = [np.minimum(place, knots[:, np.newaxis]), line[np.newaxis], (place >= knots[:, np.newaxis]) + 0.0]
    ended, straight, stepped = (_explained(row, y).max() for row in rows)
    parabola = straight + _explained(bend[np.newaxis], y).max()
    gains = [0.0, straight, parabola, stepped]
    costs = np.array([0, 1, 2, 2]) * np.log(n) / 2
    evidence = -n / 2 * np.log(np.maximum(1 - np.array(gains) / total, 1e-12)) - costs
    own = -n / 2 * np.log(max(1 - ended / total, 1e-12)) - np.log(n)
    return int(knots[_explained(rows[0], y).argmax()]) if own > evidence.max() else 0


def _explained(rows: Array, y: Array) -> Array:
    """Sum of squares of ``y``, which has a mean of 0, that each row explains."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray((rows @ y) ** 2 / np.maximum((rows**2).sum(axis=1), 1e-300))
