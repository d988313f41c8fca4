"""Least squares: ordinary with its covariance, nonnegative, and the corrected AIC."""

import math
from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.distributions import student_quantile

MAX_NNLS_ROUNDS = 10  # changes of the active set per column
MIN_PAIRS = 3
CONFIDENCE = 0.95


class LinearFit(NamedTuple):
    """Coefficients of a linear fit, their covariance, the residuals and the degrees of freedom left."""

    coefficients: Array
    covariance: Array
    residuals: Array
    dof: int


def ordinary_least_squares(X: Array, y: Array) -> LinearFit:
    """Return the least squares of y on the columns of X.

    Without degrees of freedom the covariance is NaN; where an input is not finite, everything is.
    """
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        k = X.shape[1]
        return LinearFit(np.full(k, np.nan), np.full((k, k), np.nan), np.full(y.size, np.nan), 0)
    solved, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
    coefficients = np.asarray(solved, dtype=np.float64)
    residuals = np.asarray(y - X @ coefficients)
    dof = y.size - X.shape[1]
    if dof < 1 or rank < X.shape[1]:
        return LinearFit(coefficients, np.full((X.shape[1],) * 2, np.nan), residuals, max(dof, 0))
    _, R = np.linalg.qr(X)
    inverse = np.linalg.inv(R)
    return LinearFit(coefficients, inverse @ inverse.T * (residuals @ residuals / dof), residuals, dof)


def nonnegative_least_squares(A: Array, b: Array) -> Array:
    """Return the least squares of b on the columns of A with no coefficient below 0; a column of zeros gets 0.

    Source: [LawsonHanson1974] chapter 23, the active-set method, by ``scipy.optimize.nnls``. The columns are scaled to
    one size first, since its tolerance is absolute.
    """
    from scipy.optimize import nnls

    if not A.size:  # scipy 1.17 frees memory twice
        return np.zeros(A.shape[1])
    size = np.abs(A).max(axis=0, initial=0.0) * np.sqrt(max(A.shape[0], 1))
    size = np.where(size > 0, size, 1.0)
    return np.asarray(nnls(A / size, b, maxiter=MAX_NNLS_ROUNDS * A.shape[1])[0] / size)


def corrected_aic(rss: float, n: int, parameters: int) -> float:
    """Akaike's criterion with the correction for few observations; the variance counts as a parameter.

    Source: [HurvichTsai1989]. Infinite where there are too few observations for it.
    """
    k = parameters + 1
    if n - k - 1 <= 0:
        return math.inf
    return n * math.log(max(rss, 1e-300) / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


@np.errstate(all="ignore")
def is_better_than_constant(errors: Array, guesses: Array) -> bool:
    """Return whether errors are smaller than those of a guess by more than chance: one-sided paired t, 95 %.

    Fewer than `MIN_PAIRS` errors, or one that is not finite, prove nothing.

    >>> is_better_than_constant(np.array([1.0, -1.0, 2.0]), np.array([9.0, -11.0, 10.0]))
    True
    """
    if errors.size < MIN_PAIRS or not (np.isfinite(errors).all() and np.isfinite(guesses).all()):
        return False
    gain = np.abs(guesses) - np.abs(errors)
    half = student_quantile(CONFIDENCE, gain.size - 1) * gain.std(ddof=1) / np.sqrt(gain.size)
    return bool(np.mean(errors * errors) < np.mean(guesses * guesses) and gain.mean() > half)
