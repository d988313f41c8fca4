r"""Least squares under autocorrelated noise: adjacent readings of a drifting sensor are not independent.

The noise of block i is taken as white noise of the share 1 - w (less in blocks of many readings) and a wander of the
share w that forgets after tau seconds:

.. math:: V_{ij} \propto (1 - w)\,\frac{\bar n}{n_i}\,\delta_{ij} + w\,e^{-|t_i - t_j|/\tau}

Neither w nor tau is known. Every pair of a grid is tried and weighed by its restricted likelihood, and the interval
is that of the mixture: where the readings cannot tell a wander from a trend, the interval says so.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.distributions import student_mixture_quantiles

AUTOCORRELATED_SHARES = (0.15, 0.35, 0.6, 0.85, 0.98)
CORRELATION_TIMES = tuple(0.75 * 2.0**k for k in range(6))  # tau, in typical distances of two blocks
MIN_RESIDUAL_SQUARE = 1e-12  # of the square of a column: what is left of it beside others that say the same


class AutocorrelatedFit(NamedTuple):
    """Estimates under every noise model, the last axis the columns of the design; and how likely each model is."""

    estimate: Array  # (models, columns)
    covariance: Array  # (models, columns, columns)
    weight: Array  # (models,)
    likelihood: Array  # (models,) logarithm, profiled over the size of the noise, not restricted
    freedom: int

    def best(self) -> int:
        """The likeliest noise model."""
        return int(np.argmax(self.weight))


class NoiseModels(NamedTuple):
    """The noise models as Kalman filters in time, one column per model: memory, gain and innovation sd."""

    order: NDArray[np.intp]
    keeps: Array  # (rows, models)
    learns: Array
    spread: Array
    determinant: Array  # (models,) logarithm


def noise_models(time: Array, size: Array, span: float) -> NoiseModels:
    """Noise models for rows at `time`, each the mean of `size` readings; `span` is the typical distance of two.

    White noise and a wander that forgets have a Kalman filter of one state, which whitens n rows in n steps.
    """
    w, tau = np.array([(0.0, 1.0), *((w, tau) for w in AUTOCORRELATED_SHARES for tau in CORRELATION_TIMES)]).T
    order = np.argsort(time, kind="stable")
    distance = np.diff(time[order], prepend=-np.inf) / span
    white = size.mean() / size[order]
    keeps, learns, spread = (np.empty((time.size, w.size)) for _ in range(3))
    known = np.zeros_like(w)
    for k in range(time.size):
        keeps[k] = np.exp(-distance[k] / tau)
        before = keeps[k] ** 2 * known + w * (1 - keeps[k] ** 2)
        total = before + (1 - w) * white[k]
        learns[k], spread[k] = before / total, np.sqrt(total)
        known = before * (1 - learns[k])
    return NoiseModels(order, keeps, learns, spread, 2 * np.log(spread).sum(axis=0))


def _whitened(noise: NoiseModels, X: Array) -> Array:
    """Return the rows less their prediction from the rows before: (models, rows, columns)."""
    out = np.empty((X.shape[0], noise.determinant.size, X.shape[1]))
    state = np.zeros(out.shape[1:])
    keeps, learns = noise.keeps[:, :, np.newaxis], noise.learns[:, :, np.newaxis]
    for row, keep, learn, error in zip(X[noise.order], keeps, learns, out, strict=True):
        state *= keep
        np.subtract(row, state, out=error)
        state += learn * error
    return np.asarray((out / noise.spread[:, :, np.newaxis]).transpose(1, 0, 2))


def fit(noise: NoiseModels, y: Array, X: Array) -> AutocorrelatedFit:
    """Fit the columns of X to y under each noise model."""
    A, b, norm = _whitened_unit_columns(noise, X, y[:, np.newaxis])
    b = b[:, :, 0]
    # Columns that say the same leave their estimates open: a variance that is huge, and positive.
    normal = A.transpose(0, 2, 1) @ A + MIN_RESIDUAL_SQUARE * np.eye(X.shape[1])
    inverse = np.linalg.inv(normal)
    estimate = (inverse @ (A.transpose(0, 2, 1) @ b[:, :, np.newaxis]))[:, :, 0]
    rest = b - (A @ estimate[:, :, np.newaxis])[:, :, 0]
    squares = np.maximum((rest**2).sum(axis=1), np.finfo(float).tiny)
    freedom = y.size - X.shape[1]
    size = np.linalg.slogdet(normal)[1] + 2 * np.log(norm).sum(axis=1)
    restricted = -0.5 * (noise.determinant + size + freedom * np.log(squares))
    weight = np.exp(restricted - restricted.max())
    error = (squares / freedom)[:, np.newaxis, np.newaxis] / (norm[:, :, np.newaxis] * norm[:, np.newaxis, :])
    return AutocorrelatedFit(
        estimate / norm,
        inverse * error,
        weight / weight.sum(),
        -0.5 * (noise.determinant + y.size * np.log(squares / y.size)),
        freedom,
    )


def influence(noise: NoiseModels, errors: Array, X: Array) -> Array:
    """Return the change of the estimates by each error of the rows: (models, columns of X, errors)."""
    A, b, norm = _whitened_unit_columns(noise, X, errors)
    normal = A.transpose(0, 2, 1) @ A + MIN_RESIDUAL_SQUARE * np.eye(X.shape[1])
    return np.asarray(np.linalg.solve(normal, A.transpose(0, 2, 1) @ b) / norm[:, :, np.newaxis])


def _whitened_unit_columns(noise: NoiseModels, X: Array, y: Array) -> tuple[Array, Array, Array]:
    """Whitened columns of X, of length one, and of y; and what the lengths were."""
    both = _whitened(noise, np.column_stack([X, y]))
    A, b = both[:, :, : X.shape[1]], both[:, :, X.shape[1] :]
    norm = np.sqrt((A**2).sum(axis=1))
    norm = np.where(norm > 1e-100, norm, 1.0)
    return A / norm[:, np.newaxis], b, norm


def interval(
    found: AutocorrelatedFit, column: int, extra: Array | float = 0.0, level: float = 0.95
) -> tuple[float, float, float]:
    """Estimate of one column and the ends of its interval; `extra` is a variance that the residuals do not show."""
    estimate = found.estimate[:, column]
    scale = np.sqrt(found.covariance[:, column, column] + extra)
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = student_mixture_quantiles(ends, estimate, scale, float(found.freedom), found.weight)
    return float(found.weight @ estimate), float(low), float(high)


def quantiles(found: AutocorrelatedFit, column: int, extra: Array | float = 0.0) -> tuple[float, float, float]:
    """Return the median of one column, and the ends of its 95 % interval."""
    estimate, freedom = found.estimate[:, column], float(found.freedom)
    scale = np.sqrt(found.covariance[:, column, column] + extra)
    middle, low, high = student_mixture_quantiles(np.array([0.5, 0.025, 0.975]), estimate, scale, freedom, found.weight)
    return float(middle), float(low), float(high)


def fit_along_direction(found: AutocorrelatedFit, direction: Array) -> AutocorrelatedFit:
    """The same fit, seen as one column: a sum of its columns."""
    covariance = np.einsum("i,kij,j->k", direction, found.covariance, direction)
    return found._replace(
        estimate=(found.estimate @ direction)[:, np.newaxis], covariance=covariance[:, np.newaxis, np.newaxis]
    )
