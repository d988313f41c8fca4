"""Accuracy of predicted speedups, compared with the achieved ones and with the best constant guess."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, arrays, flat_floats, floats, mask
from profsvc.formulas.numerics.distributions import student_quantile
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.numerics.regression import ordinary_least_squares

WITHIN_SHARES = (0.10, 0.25, 0.50)
"""Relative differences from the achieved speedup that count as within."""
MIN_PAIRS = 8
"""Fewest pairs with meaningful scores."""
CONFIDENCE = 0.95
MIN_EXCEEDED_RATIO = 1.05  # above it, more than timing noise was achieved beyond what was called possible


class Accuracy(NamedTuple):
    """Scores of pairs of a predicted and an achieved speedup; ``within`` has one entry for each of `WITHIN_SHARES`."""

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
    r"""Scores of predicted speedups.

    .. math:: e = \operatorname{median} \left| \ln \frac{p}{a} \right|, \qquad
              b = \operatorname{median} \ln \frac{p}{a}, \qquad
              \ln a \approx slope \cdot \ln p + intercept, \qquad e_c = \operatorname{median} \left| \ln \frac{c}{a}
              \right|,\ c = \operatorname{median} a

    with p predicted and a achieved. Predictions are useful where e is below e_c, the error of a constant guess: the
    median of the achieved speedups, which is unknown beforehand.

    Source: [Spearman1904] for the correlation of ranks, equal values with the mean of their ranks; the others are
    definitions.

    Args:
        predicted: Predicted speedups, flat [1].
        achieved: Achieved speedups, one for each [1].

    Returns: Accuracy: ``n`` pairs; ``log_error`` e and ``bias`` b; ``slope`` and its 95 % interval, 1 where large
    predictions are as accurate as small ones; ``within`` the shares of the pairs whose prediction lies within 10, 25
    and 50 % of what was achieved; ``passed`` the share in which more than 1.05 times the prediction was achieved;
    ``constant`` c and ``constant_log_error`` e_c.

    Range: correlation in [-1, 1], errors 0 or more, shares in [0, 1]. The correlation is NaN where all predictions or
    all achievements are equal, the slope where all predictions are. Pairs of which one number is not above 0, or not
    finite, are left out, INPUT_SUSPECT; without a pair all is NaN. Fewer than `MIN_PAIRS` pairs: NOT_APPLICABLE.

    Errors: TypeError for a wrong dtype, ValueError for arrays that are not flat or do not fit.

    Of three predictions two were close:

    >>> score = accuracy([2.0, 4.0, 1.0], [1.9, 2.0, 1.0])
    >>> round(float(score.log_error), 3), score.within.round(2).tolist(), float(score.rank_correlation)
    (0.051, [0.67, 0.67, 0.67], 1.0)
    """
    given = flat_floats(predicted=predicted, achieved=achieved)
    fine = np.logical_and.reduce([np.isfinite(x) & (x > 0) for x in given])
    p, a = (x[fine] for x in given)
    error, far = np.log(p / a), np.abs(p / a - 1)
    constant = _median(a)
    line = _line(np.log(p), np.log(a))
    flags = mask((Flag.INPUT_SUSPECT, not fine.all()), (Flag.NOT_APPLICABLE, p.size < MIN_PAIRS))
    return Accuracy(*arrays(
        float(p.size), _spearman(p, a), _median(np.abs(error)), _median(error), *line,
        np.array([_mean(far <= share) for share in WITHIN_SHARES]), _mean(a > MIN_EXCEEDED_RATIO * p), constant,
        _median(np.abs(np.log(constant / a))), flags,
    ))  # fmt: skip


def saving_achieved(predicted: ArrayLike, achieved: ArrayLike) -> Array:
    r"""Share of the time that was to be saved which was saved.

    .. math:: \frac{1 - 1/a}{1 - 1/p}

    Source: definition. The ratio a / p credits what does nothing with 1 / p.

    Args:
        predicted: Predicted speedup, p [1].
        achieved: Speedup achieved, a [1].

    Returns: the share [1].

    Range: 1 or less where the prediction was not exceeded; 0 for a change that does nothing, negative for one that made
    it slower. NaN where no gain was predicted (p of 1 or less), or a number is not above 0 or not finite.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    From 100 us to 80 where 50 were predicted, then a change that does nothing, then one that made it slower:

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
    fit = ordinary_least_squares(np.stack([x, np.ones_like(x)], axis=1), y)
    slope, intercept = map(float, fit.coefficients)
    half = student_quantile((1 + CONFIDENCE) / 2, fit.dof) * float(np.sqrt(fit.covariance[0, 0]))
    return slope, slope - half, slope + half, intercept
