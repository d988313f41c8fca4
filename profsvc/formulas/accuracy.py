"""How well speedups were foretold, held against those that were achieved, and against the best constant guess."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas._arrays import Array, Bools, Mask, arrays, floats, mask, rows
from profsvc.formulas._regression import ordinary, t_quantile
from profsvc.formulas.flags import Flag

SHARES = (0.10, 0.25, 0.50)
"""How far a prediction may lie from what was achieved, to be counted as within."""
LEAST = 8
"""Pairs from which on the scores say something."""
CONFIDENCE = 0.95
PASSED = 1.05  # above it, more than timing noise was achieved beyond what was called possible


class Accuracy(NamedTuple):
    """Scores of pairs of a prediction and what came of it; ``within`` has one entry for each of `SHARES`."""

    n: Array
    rank_correlation: Array
    log_error: Array
    bias: Array
    slope: Array
    slope_low: Array
    slope_high: Array
    intercept: Array
    within: Array
    passed: Array
    constant: Array
    constant_log_error: Array
    flags: Mask


@np.errstate(all="ignore")
def accuracy(predicted: ArrayLike, achieved: ArrayLike) -> Accuracy:
    r"""Scores of speedups that were foretold.

    .. math:: e = \operatorname{median} \left| \ln \frac{p}{a} \right|, \qquad
              b = \operatorname{median} \ln \frac{p}{a}, \qquad
              \ln a \approx slope \cdot \ln p + intercept, \qquad e_c = \operatorname{median} \left| \ln \frac{c}{a}
              \right|,\ c = \operatorname{median} a

    with p foretold and a achieved. A prediction is worth something where e is below e_c, the error of somebody who
    always says the median of what is achieved, which nobody knows beforehand.

    Source: [Spearman1904] for the correlation of ranks, equal values with the mean of their ranks; the others are
    definitions.

    Args:
        predicted: Speedups foretold, flat [1].
        achieved: Speedups achieved, one for each [1].

    Returns: Accuracy: ``n`` pairs; ``log_error`` e and ``bias`` b; ``slope`` and its 95 % interval, 1 where large
    predictions come true as well as small ones; ``within`` the shares of the pairs whose prediction lies within 10, 25
    and 50 % of what was achieved; ``passed`` the share in which more than 1.05 times the prediction was achieved;
    ``constant`` c and ``constant_log_error`` e_c.

    Range: correlation in [-1, 1], errors 0 or more, shares in [0, 1]. The correlation is NaN where all predictions or
    all achievements are equal, the slope where all predictions are. Pairs of which one number is not above 0, or not
    finite, are left out, INPUT_SUSPECT; without a pair all is NaN. Fewer than `LEAST` pairs: NOT_APPLICABLE, as they
    prove nothing.

    Errors: TypeError for a wrong dtype, ValueError for arrays that are not flat or do not fit.

    Of three predictions two were close:

    >>> score = accuracy([2.0, 4.0, 1.0], [1.9, 2.0, 1.0])
    >>> round(float(score.log_error), 3), score.within.round(2).tolist(), float(score.rank_correlation)
    (0.051, [0.67, 0.67, 0.67], 1.0)
    """
    given = rows(predicted=predicted, achieved=achieved)
    fine = np.logical_and.reduce([np.isfinite(x) & (x > 0) for x in given])
    p, a = (x[fine] for x in given)
    error, far = np.log(p / a), np.abs(p / a - 1)
    constant = _median(a)
    line = _line(np.log(p), np.log(a))
    flags = mask((Flag.INPUT_SUSPECT, not fine.all()), (Flag.NOT_APPLICABLE, p.size < LEAST))
    return Accuracy(*arrays(
        float(p.size), _spearman(p, a), _median(np.abs(error)), _median(error), *line,
        np.array([_mean(far <= share) for share in SHARES]), _mean(a > PASSED * p), constant,
        _median(np.abs(np.log(constant / a))), flags,
    ))  # fmt: skip


def saving_achieved(predicted: ArrayLike, achieved: ArrayLike) -> Array:
    r"""Share of the time that was to be saved which was saved.

    .. math:: \frac{1 - 1/a}{1 - 1/p}

    Source: definition. The ratio a / p credits what does nothing with 1 / p.

    Args:
        predicted: Speedup foretold, p [1].
        achieved: Speedup achieved, a [1].

    Returns: the share [1].

    Range: 1 or less where no more came than was foretold; 0 for a change that does nothing, negative for one that made
    it slower. NaN where nothing was foretold (p of 1 or less), or a number is not above 0 or not finite.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    From 100 us to 80 where 50 were foretold, then a change that does nothing, then one that made it slower:

    >>> saving_achieved(2.0, [1.25, 1.0, 0.8]).round(3).tolist()
    [0.4, 0.0, -0.5]
    """
    p, a = floats(predicted=predicted, achieved=achieved)
    with np.errstate(all="ignore"):
        share = (1 - 1 / a) / (1 - 1 / p)
    return np.where(np.isfinite(p) & np.isfinite(a) & (p > 1) & (a > 0), share, np.nan)


def _median(x: Array) -> float:
    return float(np.median(x)) if x.size else np.nan


def _mean(x: Bools) -> float:
    return float(np.mean(x)) if x.size else np.nan


def _ranks(x: Array) -> Array:
    """Ranks from 1; equal values have the mean of theirs."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def _spearman(p: Array, a: Array) -> float:
    if p.size < 2:
        return np.nan
    first, second = (ranks - ranks.mean() for ranks in (_ranks(p), _ranks(a)))
    spread = np.sqrt((first @ first) * (second @ second))
    return float(np.clip(first @ second / spread, -1, 1)) if spread > 0 else np.nan


def _line(x: Array, y: Array) -> tuple[float, float, float, float]:
    """Slope of y on x, the ends of its interval, and the intercept."""
    if x.size < 2 or np.ptp(x) == 0:
        return (np.nan,) * 4
    fit = ordinary(np.stack([x, np.ones_like(x)], axis=1), y)
    slope, intercept = map(float, fit.coefficients)
    half = t_quantile((1 + CONFIDENCE) / 2, fit.dof) * float(np.sqrt(fit.covariance[0, 0]))
    return slope, slope - half, slope + half, intercept
