"""Two logs on one clock: the reading of one at the stamps of the other."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, floats, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors import logs

HOLD_S = 2.0


class Interpolated(NamedTuple):
    """Values of a log at the requested stamps."""

    value: Array
    flags: Mask


def interpolate_at(
    at_s: ArrayLike, time_s: ArrayLike, value: ArrayLike, *, hold_s: float = HOLD_S, gap_s: float | None = None
) -> Interpolated:
    r"""Reading of a log at the stamps of another one on the same clock.

    .. math:: v(t) = v_i + (v_{i+1} - v_i) \frac{t - t_i}{t_{i+1} - t_i}, \qquad t_i \le t \le t_{i+1}

    Source: [Hong2012] chapter III as repaired: linear in between, the value at an end held for 2 s, nothing over gaps.

    Args:
        at_s: Where to read, any shape [s].
        time_s: Stamps of the log, flat [s].
        value: Its readings [any].
        hold_s: How long the first and the last reading hold beyond the log [s].
        gap_s: Longest interval to draw a line over [s]; None: 3 s, or three of the log's usual intervals if it is
            slower.

    Returns: Interpolated, in the shape of ``at_s``.

    Range: within the values of the two readings around each stamp. Outside the log: EXTRAPOLATED, and NaN beyond
    ``hold_s``. Inside a gap: NaN, EXTRAPOLATED; a stamp on a reading has its value. A stamp that is NaN or inf: NaN,
    INPUT_SUSPECT. Readings that are NaN or out of order are left out.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> found = interpolate_at([-3.0, -1.0, 0.5, 5.0], [0.0, 1.0, 2.0, 9.0], [30.0, 31.0, 32.0, 40.0])
    >>> found.value.tolist(), found.flags.tolist()
    ([nan, 30.0, 30.5, nan], [16, 16, 0, 16])
    """
    (x,) = floats(at_s=at_s)
    t, v, _ = logs.readings(time_s=time_s, value=value)
    bad = ~np.isfinite(x)
    if t.size == 0:
        return Interpolated(np.full(x.shape, np.nan), mask((Flag.INPUT_SUSPECT, bad), (Flag.EXTRAPOLATED, ~bad)))
    inside = np.where(bad, t[0], x)
    outside = (inside < t[0]) | (inside > t[-1])
    after = np.clip(np.searchsorted(t, inside), 0, t.size - 1)
    before = np.maximum(after - 1, 0)
    gap = ~outside & (t[after] - t[before] > logs.gap_limit(t, gap_s)) & (t[after] != inside)
    far = (inside < t[0] - hold_s) | (inside > t[-1] + hold_s)
    read = np.where(bad | gap | far, np.nan, np.interp(inside, t, v))
    return Interpolated(np.asarray(read), mask((Flag.INPUT_SUSPECT, bad), (Flag.EXTRAPOLATED, (outside | gap) & ~bad)))
