"""Tails and quantiles of the normal, Student's t, F and chi-squared distributions, by ``scipy.special``.

SciPy is imported inside the functions, since its import costs more than the start of a command.
"""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array

NORMAL_975 = 1.959963984540054  # quantile of the standard normal
MIN_WEIGHT_RATIO = 1e-6  # components of a mixture with less weight, relative to the largest, are left out
MIN_SCALE = 1e-150  # rows that a model follows exactly have a scale of 0
BRACKET_SCALES = 60.0  # quantiles of a mixture are searched within so many scales of its locations
BISECTIONS = 44


def normal_tail(z: ArrayLike) -> Array:
    """Return the probability that a standard normal number exceeds z."""
    from scipy.special import ndtr

    return np.asarray(ndtr(-np.asarray(z, dtype=np.float64)))


def normal_quantiles(probability: ArrayLike) -> Array:
    """Return the standard normal quantiles of probabilities inside (0, 1)."""
    from scipy.special import ndtri

    return np.asarray(ndtri(probability))


def student_tail(t: ArrayLike, freedom: ArrayLike) -> Array:
    """Return the probability that Student's t exceeds t; NaN where the degrees of freedom are not positive."""
    from scipy.special import stdtr

    return np.asarray(stdtr(freedom, -np.asarray(t, dtype=np.float64)))


def student_quantile(probability: float, freedom: float) -> float:
    """Return a quantile of Student's t; NaN for less than one degree of freedom, and at probabilities 0 and 1."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability)) if freedom >= 1 and 0 < probability < 1 else np.nan


def f_tail(f: ArrayLike, numerator: ArrayLike, denominator: ArrayLike) -> Array:
    """Return the probability that F exceeds f, with the degrees of freedom of its numerator and denominator."""
    from scipy.special import fdtrc

    return np.asarray(fdtrc(numerator, denominator, f))


def chi_squared_tail(x: ArrayLike, freedom: ArrayLike) -> Array:
    """Return the probability that chi-squared exceeds x."""
    from scipy.special import chdtrc

    return np.asarray(chdtrc(freedom, x))


def student_mixture_quantiles(
    probability: Array, location: Array, scale: Array, freedom: float, weight: Array
) -> Array:
    """Return quantiles of a mixture of Student's t distributions, by bisection."""
    from scipy.special import stdtr

    counts = weight > MIN_WEIGHT_RATIO * weight.max()
    location, weight = location[counts], weight[counts] / weight[counts].sum()
    scale = np.maximum(scale[counts], MIN_SCALE)
    reach = BRACKET_SCALES * scale.max()
    low, high = (np.full(probability.size, end) for end in (location.min() - reach, location.max() + reach))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        less = stdtr(freedom, (middle[:, np.newaxis] - location) / scale) @ weight < probability
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray((low + high) / 2)
