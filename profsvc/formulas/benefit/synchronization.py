"""The cost of a barrier from measured times."""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.benefit.result import GammaFit
from profsvc.formulas.numerics.arrays import arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag


def fit_gamma(T_exec: ArrayLike, sync_insts: ArrayLike, barrier: ArrayLike) -> GammaFit:
    r"""Cost of a barrier, by least squares of measured times of a kernel against the number of its barriers.

    .. math:: T_{exec} = T_0 + \Gamma\, b\, n_{sync}, \qquad b = \frac{w\, lat\, n_{mem}}{n}

    with b the cycles of one barrier of each warp at Gamma 1, see `serial_overheads`. In kernels that computation bounds
    each cycle of a barrier is a cycle of the time; where memory bounds, part of it is hidden and Gamma comes out too
    low.

    Source: [Kim2012] equations 4.7 and 4.8, whose Gamma is a parameter; the fit is ours.

    Args:
        T_exec: Measured times of versions that differ in their barriers, on the last axis [cycles].
        sync_insts: Barriers of a warp in each, likewise [count].
        barrier: Cycles of one barrier at Gamma 1, likewise [cycles].

    Returns: GammaFit, without the last axis; ``se`` is NaN for two versions.

    Range: any; a cost below 0 means that barriers are not what changed the time: RAW_OUT_OF_RANGE. Versions that are
    negative, NaN or inf are left out, INPUT_SUSPECT. Fewer than two, or all with one cost: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or have no axis.

    >>> fit = fit_gamma([1000.0, 1640.0, 2280.0], [0, 1, 2], 10.0)
    >>> float(fit.Gamma), float(fit.base), float(fit.se)
    (64.0, 1000.0, 0.0)
    """
    T, s, b = floats(T_exec=T_exec, sync_insts=sync_insts, barrier=barrier)
    if T.ndim == 0:
        raise ValueError("T_exec has no axis; allowed: the versions on the last axis")
    bad = is_implausible(T, s, b)
    n = (~bad).sum(axis=-1).astype(np.float64)
    x, y = (np.where(bad, 0.0, v) for v in (s * b, T))
    with np.errstate(all="ignore"):
        mean_x, mean_y = x.sum(axis=-1) / n, y.sum(axis=-1) / n
        dx, dy = (np.where(bad, 0.0, v - m[..., np.newaxis]) for v, m in ((x, mean_x), (y, mean_y)))
        sxx, sxy, syy = ((u * v).sum(axis=-1) for u, v in ((dx, dx), (dx, dy), (dy, dy)))
        zero = (n < 2) | ~(sxx > 0)
        gamma = np.where(zero, np.nan, sxy / sxx)
        rest = np.maximum(0.0, syy - gamma * sxy)
        se = np.where(n > 2, np.sqrt(rest / (n - 2) / sxx), np.nan)
        results = (gamma, se, mean_y - gamma * mean_x, np.where(zero | (syy == 0), np.nan, 1 - rest / syy))
    raised = (
        (Flag.INPUT_SUSPECT, bad.any(axis=-1)),
        (Flag.ZERO_DENOM, zero),
        (Flag.RAW_OUT_OF_RANGE, gamma < 0),
    )
    return GammaFit(*arrays(*results, mask(*raised)))
