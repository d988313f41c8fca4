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


def fit(y: Array, X: Array, time: Array, count: Array, span: float) -> Wander:
    """Fit columns X to y, rows at `time` made of `count` readings each; `span` is the typical distance of two rows."""
    distance = np.abs(time[:, np.newaxis] - time) / span
    white = np.diag(count.mean() / count)
    models = [(0.0, 1.0), *((w, tau) for w in SHARES for tau in SPANS)]
    V = np.stack([(1 - w) * white + w * np.exp(-distance / tau) for w, tau in models])
    L = np.linalg.cholesky(V)
    both = np.linalg.solve(L, np.broadcast_to(np.column_stack([X, y]), (len(models), y.size, X.shape[1] + 1)))
    A, b = both[:, :, :-1], both[:, :, -1]
    normal = np.einsum("kni,knj->kij", A, A)
    inverse = np.linalg.inv(normal)
    estimate = np.einsum("kij,knj,kn->ki", inverse, A, b)
    rest = b - np.einsum("kni,ki->kn", A, estimate)
    squares = np.maximum((rest**2).sum(axis=1), np.finfo(float).tiny)
    freedom = y.size - X.shape[1]
    log_V = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    restricted = -0.5 * (log_V + np.linalg.slogdet(normal)[1] + freedom * np.log(squares))
    weight = np.exp(restricted - restricted.max())
    return Wander(
        estimate,
        inverse * (squares / freedom)[:, np.newaxis, np.newaxis],
        weight / weight.sum(),
        -0.5 * (log_V + y.size * np.log(squares / y.size)),
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
