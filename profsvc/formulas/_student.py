"""Student's t and Snedecor's F, by quadrature: NumPy has neither."""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas._arrays import Array

NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
ALMOST_NORMAL = 1e4  # degrees of freedom beyond which t and F no longer change in the sixth digit
LIGHT = 1e-6  # share of the weight below which a part of a mixture does not count
HALVINGS = 44
FAR = 1e8  # scales; no t lies beyond


def t_cdf(t: ArrayLike, freedom: ArrayLike) -> Array:
    """Probability that Student's t lies below."""
    t, freedom = np.asarray(t, dtype=np.float64), np.asarray(freedom, dtype=np.float64)
    return np.asarray(0.5 + 0.5 * np.sign(t) * f_cdf(t * t, 1.0, freedom))


def f_cdf(f: ArrayLike, over: ArrayLike, under: ArrayLike) -> Array:
    r"""Probability that F lies below, as the ratio of two integrals of sin^(over-1) cos^(under-1) over an angle.

    Both are cut where the integrand has died away, so that the nodes stand where it lives.
    """
    f, over, under = (np.asarray(x, dtype=np.float64) for x in (f, over, under))
    under = np.minimum(under, ALMOST_NORMAL)
    end = np.minimum(np.pi / 2, np.sqrt((over + 12 * np.sqrt(over) + 40) / under))
    angle = np.minimum(np.arctan(np.sqrt(f * over / under)), end)
    return np.asarray(_integral(0 * angle, angle, over, under) / _integral(0 * end, end, over, under))


def _integral(start: Array, end: Array, over: Array, under: Array) -> Array:
    half = (end - start)[..., np.newaxis] / 2
    theta = start[..., np.newaxis] + half * (NODES + 1)
    shape = np.sin(theta) ** (over - 1)[..., np.newaxis] * np.cos(theta) ** (under - 1)[..., np.newaxis]
    return np.asarray((half * shape * WEIGHTS).sum(axis=-1))


def quantile(probability: float, location: Array, scale: Array, freedom: ArrayLike, weight: Array) -> float:
    """Quantile of a mixture of t distributions."""
    return float(quantiles(np.array([probability]), location, scale, freedom, weight)[0])


def quantiles(probability: Array, location: Array, scale: Array, freedom: ArrayLike, weight: Array) -> Array:
    """Quantiles of a mixture of t distributions, by bisection."""
    counts = weight > LIGHT * weight.max()
    location, weight = location[counts], weight[counts] / weight[counts].sum()
    scale = np.maximum(scale[counts], 1e-150)  # rows that a model follows exactly leave none
    reach = 60 * scale.max()
    low, high = (np.full(probability.size, end) for end in (location.min() - reach, location.max() + reach))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        t = np.clip((middle[:, np.newaxis] - location) / scale, -FAR, FAR)
        less = t_cdf(t, freedom) @ weight < probability
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray((low + high) / 2)
