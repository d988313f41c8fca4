"""What fits share: ordinary least squares with its covariance, quantiles of Student's t, and the corrected AIC."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas._arrays import Array

BISECTIONS = 80
ROUNDS = 10  # changes of the active set allowed a column
NORMAL_FROM = 1000  # degrees of freedom from which the expansion is exact to 1e-9


class Line(NamedTuple):
    """Coefficients of a linear fit, their covariance, the residuals and the degrees of freedom left."""

    coefficients: Array
    covariance: Array
    residuals: Array
    dof: int


def ordinary(X: Array, y: Array) -> Line:
    """Least squares of y on the columns of X; without degrees of freedom the covariance is NaN, and of inf all is."""
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        k = X.shape[1]
        return Line(np.full(k, np.nan), np.full((k, k), np.nan), np.full(y.size, np.nan), 0)
    solved, _, rank, _ = np.linalg.lstsq(X, y, rcond=None)
    coefficients = np.asarray(solved, dtype=np.float64)
    residuals = np.asarray(y - X @ coefficients)
    dof = y.size - X.shape[1]
    if dof < 1 or rank < X.shape[1]:
        return Line(coefficients, np.full((X.shape[1],) * 2, np.nan), residuals, max(dof, 0))
    _, R = np.linalg.qr(X)
    inverse = np.linalg.inv(R)
    return Line(coefficients, inverse @ inverse.T * (residuals @ residuals / dof), residuals, dof)


def nonnegative(A: Array, b: Array) -> Array:
    """Least squares of b on the columns of A with no coefficient below 0; a column of zeros gets 0.

    Source: [LawsonHanson1974] chapter 23, the active-set method.
    """
    size = np.abs(A).max(axis=0, initial=0.0) * np.sqrt(max(A.shape[0], 1))
    size = np.where(size > 0, size, 1.0)
    A = A / size
    x, free = np.zeros(A.shape[1]), np.zeros(A.shape[1], dtype=np.bool_)
    enough = 1e-12 * max(float(np.linalg.norm(b)), 1e-300)
    for _ in range(ROUNDS * A.shape[1]):
        pull = np.where(free, -np.inf, A.T @ (b - A @ x))
        if pull.max(initial=-np.inf) <= enough:
            break
        free[pull.argmax()] = True
        x = _feasible(A, b, x, free)
    return np.asarray(x / size)


def _feasible(A: Array, b: Array, x: Array, free: NDArray[np.bool_]) -> Array:
    """Solve for the free coefficients; those that would turn negative are bound again, in place."""
    while True:
        s = np.zeros_like(x)
        s[free] = np.linalg.lstsq(A[:, free], b, rcond=None)[0]
        down = free & (s <= 0)
        if not down.any():
            return s
        step = (x[down] / (x[down] - s[down])).min() if (x[down] > 0).all() else 0.0
        x = np.where(free, x + step * (s - x), 0.0)
        free &= ~(down & (x <= 1e-15 * max(float(x.max(initial=0.0)), 1.0)))


@functools.cache
def t_quantile(probability: float, dof: float) -> float:
    """Quantile of Student's t above the median; whole degrees of freedom, or inf for the normal distribution.

    Source: [AbramowitzStegun1964] 26.7.3, 26.7.4 (closed sums of the distribution) and 26.7.5 (many degrees).
    """
    if not 0.5 <= probability < 1 or dof < 1:
        return math.nan
    if dof > NORMAL_FROM:
        z = _bisect(lambda x: math.erf(x / math.sqrt(2)), 2 * probability - 1, 40.0)
        return z + (z**3 + z) / (4 * dof) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * dof**2)
    angle = _bisect(lambda theta: _central(theta, int(dof)), 2 * probability - 1, math.pi / 2)
    return math.sqrt(int(dof)) * math.tan(angle)


def _central(theta: float, dof: int) -> float:
    """Probability that abs(t) stays below sqrt(dof) tan(theta)."""
    odd = dof % 2
    term = math.cos(theta) if odd else 1.0
    total = term if dof > 1 else 0.0
    for k in range(2 + odd, dof - 1, 2):
        term *= math.cos(theta) ** 2 * (k - 1) / k
        total += term
    return 2 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total


def _bisect(rising: Callable[[float], float], level: float, top: float) -> float:
    low, high = 0.0, top
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < level else (low, middle)
    return (low + high) / 2


def corrected_aic(rss: float, n: int, parameters: int) -> float:
    """Akaike's criterion with the correction for few observations; the variance counts as a parameter.

    Source: [HurvichTsai1989]. Infinite where there are too few observations for it.
    """
    k = parameters + 1
    if n - k - 1 <= 0:
        return math.inf
    return n * math.log(max(rss, 1e-300) / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)
