r"""Least squares when the noise remembers: readings of a sensor wander, so that neighbours do not count twice.

The noise of block i is taken as white noise of the share 1 - w (less in blocks of many readings) and a wander of the
share w that forgets after tau seconds:

.. math:: V_{ij} \propto (1 - w)\,\frac{\bar n}{n_i}\,\delta_{ij} + w\,e^{-|t_i - t_j|/\tau}

Neither w nor tau is known. Every pair of a grid is tried and weighed by its restricted likelihood, and the interval
is that of the mixture: where the readings cannot tell a wander from a trend, the interval says so.
"""

from typing import NamedTuple

import numpy as np

from profsvc.formulas._arrays import Array
from profsvc.formulas._student import quantile

SHARES = (0.15, 0.35, 0.6, 0.85, 0.98)
SPANS = tuple(0.75 * 2.0**k for k in range(6))  # tau, in typical distances of two blocks


class Wander(NamedTuple):
    """Estimates under every noise model, the last axis the columns of the design; and how likely each model is."""

    estimate: Array  # (models, columns)
    covariance: Array  # (models, columns, columns)
    weight: Array  # (models,)
    likelihood: Array  # (models,) logarithm, profiled over the size of the noise, not restricted
    freedom: int

    def best(self) -> int:
        """The likeliest noise model."""
        return int(np.argmax(self.weight))


class Models(NamedTuple):
    """The noise models of rows at given times: what makes rows of each white, and the logarithm of its determinant."""

    whiten: Array  # (models, rows, rows)
    determinant: Array  # (models,)


def models(time: Array, size: Array, span: float) -> Models:
    """Noise models for rows at `time`, each the mean of `size` readings; `span` is the typical distance of two."""
    distance = np.abs(time[:, np.newaxis] - time) / span
    white = np.diag(size.mean() / size)
    pairs = [(0.0, 1.0), *((w, tau) for w in SHARES for tau in SPANS)]
    L = np.linalg.cholesky(np.stack([(1 - w) * white + w * np.exp(-distance / tau) for w, tau in pairs]))
    return Models(
        np.asarray(np.linalg.inv(L), dtype=np.float64), 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    )


def fit(noise: Models, y: Array, X: Array) -> Wander:
    """Fit the columns of X to y under each noise model."""
    A, b = noise.whiten @ X, noise.whiten @ y
    normal = A.transpose(0, 2, 1) @ A
    inverse = np.linalg.inv(normal)
    estimate = (inverse @ (A.transpose(0, 2, 1) @ b[:, :, np.newaxis]))[:, :, 0]
    rest = b - (A @ estimate[:, :, np.newaxis])[:, :, 0]
    squares = np.maximum((rest**2).sum(axis=1), np.finfo(float).tiny)
    freedom = y.size - X.shape[1]
    restricted = -0.5 * (noise.determinant + np.linalg.slogdet(normal)[1] + freedom * np.log(squares))
    weight = np.exp(restricted - restricted.max())
    return Wander(
        estimate,
        inverse * (squares / freedom)[:, np.newaxis, np.newaxis],
        weight / weight.sum(),
        -0.5 * (noise.determinant + y.size * np.log(squares / y.size)),
        freedom,
    )


def interval(found: Wander, column: int, extra: Array | float = 0.0, level: float = 0.95) -> tuple[float, float, float]:
    """Estimate of one column and the ends of its interval; `extra` is a variance that the residuals do not show."""
    estimate = found.estimate[:, column]
    scale = np.sqrt(found.covariance[:, column, column] + extra)
    low, high = (
        quantile(p, estimate, scale, float(found.freedom), found.weight) for p in ((1 - level) / 2, (1 + level) / 2)
    )
    return float(found.weight @ estimate), low, high


def along(found: Wander, direction: Array) -> Wander:
    """The same fit, seen as one column: a sum of its columns."""
    covariance = np.einsum("i,kij,j->k", direction, found.covariance, direction)
    return found._replace(
        estimate=(found.estimate @ direction)[:, np.newaxis], covariance=covariance[:, np.newaxis, np.newaxis]
    )
