"""Tails of the normal and of Student's distribution, and scores of ranks, in plain NumPy."""

import math

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas._arrays import Array

TERMS = 200  # of the continued fraction, which needs some 5 sqrt(df) of them; it stops when nothing changes

_erfc = np.frompyfunc(math.erfc, 1, 1)
_lgamma = np.frompyfunc(math.lgamma, 1, 1)


def normal_tail(z: ArrayLike) -> Array:
    """Probability that a standard normal number exceeds z."""
    return np.asarray(_erfc(np.asarray(z, dtype=np.float64) / math.sqrt(2)), dtype=np.float64) / 2


def student_tail(t: ArrayLike, df: ArrayLike) -> Array:
    """Probability that a number of Student's distribution exceeds t; NaN where df is not positive."""
    t, df = np.broadcast_arrays(np.asarray(t, dtype=np.float64), np.asarray(df, dtype=np.float64))
    known = ~np.isnan(t) & (df > 0)
    nu = np.where(known, df, 1.0)
    with np.errstate(over="ignore"):
        square = np.where(known, t, 0.0) ** 2
        x, rest = nu / (nu + square), 1.0 / (1.0 + nu / np.where(square > 0, square, np.nan))
    half = _incomplete_beta(x, np.where(np.isnan(rest), 0.0, rest), nu / 2) / 2
    return np.where(known, np.where(t >= 0, half, 1.0 - half), np.nan)


def _incomplete_beta(x: Array, rest: Array, a: Array) -> Array:
    """Regularized incomplete beta function I_x(a, 1/2), with rest = 1 - x given exactly."""
    swap = x > (a + 1) / (a + 2.5)  # there the fraction converges slowly, that of the mirrored function fast
    p, q = np.where(swap, 0.5, a), np.where(swap, a, 0.5)
    y, y_rest = np.where(swap, rest, x), np.where(swap, x, rest)
    log_beta = _of(_lgamma, p) + _of(_lgamma, q) - _of(_lgamma, p + q)
    with np.errstate(divide="ignore", under="ignore"):
        front = np.exp(p * np.log(y) + q * np.log(y_rest) - log_beta) / p
    value = front * _lentz(y, p, q)
    return np.asarray(np.where(swap, 1.0 - value, value))


def _lentz(y: Array, p: Array, q: Array) -> Array:
    """Continued fraction of the incomplete beta function, by Lentz's recurrence."""
    tiny = 1e-300
    c = np.ones_like(y)
    d = 1.0 - (p + q) * y / (p + 1)
    d = 1.0 / np.where(np.abs(d) < tiny, tiny, d)
    h = d.copy()
    for m in range(1, TERMS):
        even = m * (q - m) * y / ((p + 2 * m - 1) * (p + 2 * m))
        odd = -(p + m) * (p + q + m) * y / ((p + 2 * m) * (p + 2 * m + 1))
        before = h
        for term in (even, odd):
            d = 1.0 + term * d
            c = 1.0 + term / c
            d = 1.0 / np.where(np.abs(d) < tiny, tiny, d)
            c = np.where(np.abs(c) < tiny, tiny, c)
            h = h * d * c
        if np.array_equal(before, h):
            break
    return h


def _of(function: np.ufunc, x: Array) -> Array:
    return np.asarray(function(x), dtype=np.float64)


def normal_scores(u: Array) -> Array:
    """Normal quantiles of probabilities inside (0, 1), by Tukey's lambda with exponent 0.14: within 0.04 for |z| < 3.

    A score is a choice, no estimate: any increasing function of the ranks makes a valid test.
    """
    return np.asarray(4.91 * (u**0.14 - (1.0 - u) ** 0.14))
