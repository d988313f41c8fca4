r"""Power against the number of SMs that work: four laws, and the best parameters of one.

A sweep is the same load on 1 to N SMs. Above the power at rest there is a step as soon as one SM works (activation);
what each further SM adds is the law:

============  ==============================================================================================
``linear``    :math:`a + s\,n`: each SM adds the same, because SMs at rest are switched off
``log``       :math:`P_0 + M \log_{10}(\alpha n + \beta)`, :math:`\alpha = (10-\beta)/N`: idle SMs consume power too
``channels``  :math:`a + d\,(1 - e^{-n/n_0})`: SMs send to shared channels at random, and busy ones cannot be busier
``queue``     :math:`a + d\,n / (n + n_0)`: requests wait for each other in turn, the longer the more SMs send
============  ==============================================================================================

The first two are those of [Hong2012]; the others are this project's, for loads that the memory limits.
"""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Array, arrays
from profsvc.formulas.numerics.regression import corrected_aic, ordinary_least_squares

LAWS = ("linear", "log", "channels", "queue")
BETA_GRID = np.linspace(0.02, 9.98, 250)
SHAPE_RANGES = np.geomspace(0.02, 20.0, 250)  # n_0 over the SMs of the device
GRID_ZOOMS = 6


class LawFit(NamedTuple):
    """A law fitted: base, amplitude and shape (beta, or n_0 over N) with their covariance, and how good it is."""

    law: str
    parameters: int
    dof: int
    base_w: Array
    amplitude_w: Array
    shape: Array
    covariance: Array
    residual_sd_w: Array
    aicc: Array
    left_out_rms_w: Array
    levels: Array
    left_out_worst_w: Array


def power_by_law(known: LawFit, n: Array, N: float) -> Array:
    """Power by a law."""
    return np.asarray(known.base_w + float(known.amplitude_w) * curve(known.law, n, N, float(known.shape)))


def curve(law: str, n: Array, N: float, shape: float | Array) -> Array:
    """The law without base and amplitude; shapes of (k, 1) give k curves."""
    if law == "log":
        return np.asarray(np.log10((10 - shape) / N * n + shape))
    if law == "channels":
        return np.asarray(-np.expm1(-n / (shape * N)))
    if law == "queue":
        return np.asarray(n / (n + shape * N))
    return np.asarray(n * np.ones_like(shape) if np.ndim(shape) else n)


def jacobian(law: str, n: Array, N: float, A: float, shape: float) -> Array:
    """Derivatives of the power by base, amplitude and shape."""
    h = 1e-5
    by_shape = A * (curve(law, n, N, shape * (1 + h)) - curve(law, n, N, shape * (1 - h))) / (2 * h * shape)
    return np.stack((np.ones_like(n), curve(law, n, N, shape), by_shape), axis=1)


def fitted_columns(law: str, parameters: int) -> list[int]:
    """Columns of the derivatives whose parameters were fitted."""
    if law == "linear":
        return [0, 1]
    return [0, 1, 2] if parameters == 3 else [1, 2]


def _linear_part(curves: Array, P: Array, base: float | None, amplitude: float | None) -> tuple[Array, Array, Array]:
    """Best base and amplitude of each curve, and the sum of squares that is left."""
    if amplitude is not None:
        A = np.full(curves.shape[0], amplitude)
        b = (P - amplitude * curves).mean(axis=1) if base is None else np.full(curves.shape[0], base)
    else:
        middle = curves.mean(axis=1, keepdims=True) if base is None else 0.0
        level = P.mean() if base is None else base
        around = curves - middle
        A = (around * (P - level)).sum(axis=1) / (around * around).sum(axis=1)
        b = level - A * np.ravel(middle)
    left = P - b[:, np.newaxis] - A[:, np.newaxis] * curves
    return b, A, (left * left).sum(axis=1)


def solve(
    law: str, n: Array, P: Array, N: float, base: float | None, amplitude: float | None = None
) -> tuple[float, float, float]:
    """Base, amplitude and shape with the least squares: a grid of shapes, and finer ones around the best."""
    if law == "linear":
        b, A, _ = _linear_part(n[np.newaxis], P, base, amplitude)
        return float(b[0]), float(A[0]), np.nan
    grid = BETA_GRID if law == "log" else SHAPE_RANGES
    for _ in range(GRID_ZOOMS):
        b, A, rss = _linear_part(curve(law, n, N, grid[:, np.newaxis]), P, base, amplitude)
        k = int(np.where(np.isnan(rss), np.inf, rss).argmin())
        found = float(b[k]), float(A[k]), float(grid[k])
        grid = np.linspace(grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)], 25)
    return found


def is_at_the_end(law: str, shape: float) -> bool:
    """Whether a shape lies at an end of what is searched."""
    grid = BETA_GRID if law == "log" else SHAPE_RANGES
    return law != "linear" and not grid[0] * 1.001 < shape < grid[-1] * 0.999


def fit_law(law: str, n: Array, P: Array, N: float, base: float | None) -> LawFit:
    """Fit a law to all levels, and to all but each in turn; ``base`` is fixed where it is given."""
    b, A, shape = solve(law, n, P, N, base)
    count = (2 if law == "linear" else 3) - (base is not None)
    J = jacobian(law, n, N, A, shape)[:, fitted_columns(law, count)]
    left = P - b - A * curve(law, n, N, shape)
    line = ordinary_least_squares(J, left)
    rss = float(left @ left)
    sd = np.sqrt(rss / line.dof) if line.dof else np.nan
    errors = []
    for level in np.unique(n):
        kept = n != level
        c, B, other = solve(law, n[kept], P[kept], N, base)
        errors.append(P[~kept] - c - B * curve(law, n[~kept], N, other))
    every = np.abs(np.concatenate(errors)) if np.unique(n).size > count else np.array([np.inf])
    rms = np.sqrt(np.mean(every**2))
    aicc = corrected_aic(rss, n.size, count)
    levels = float(np.unique(n).size)
    return LawFit(law, count, line.dof, *arrays(b, A, shape, line.covariance, sd, aicc, rms, levels, every.max()))
