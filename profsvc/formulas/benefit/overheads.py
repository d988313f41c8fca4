"""Cost of barriers, special functions, divergence and bank conflicts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag


class Overheads(NamedTuple):
    """Cycles an SM loses to barriers and to special functions, and the factors of both."""

    O_sync: Array
    O_SFU: Array
    F_sync: Array
    F_SFU: Array
    flags: Mask


def serial_overheads(
    insts: ArrayLike,
    mem_insts: ArrayLike,
    sync_insts: ArrayLike,
    sfu_insts: ArrayLike,
    warps_per_sm: ArrayLike,
    avg_DRAM_lat: ArrayLike,
    SIMD_width: ArrayLike,
    SFU_width: ArrayLike,
    warp_size: ArrayLike = 32.0,
    Gamma: ArrayLike = 64.0,
) -> Overheads:
    r"""Cycles that an SM loses to barriers, and to special functions that its few units must take one after another.

    .. math:: O_{sync} = w\, n_{sync} F_{sync}, \quad F_{sync} = \Gamma\, lat \frac{n_{mem}}{n}, \qquad
              O_{SFU} = w\, n_{SFU} \frac{warp}{width_{SFU}} F_{SFU}, \quad
              F_{SFU} = \min\Bigl(\max\Bigl(\frac{n_{SFU}}{n} - \frac{width_{SFU}}{width_{SIMD}}, 0\Bigr), 1\Bigr)

    with w warps per SM over the whole kernel.

    Source: [Kim2012] equations 4.7 to 4.10; [Sim2012].

    Args:
        insts: Instructions of a warp, n, special functions not counted [count].
        mem_insts: Memory instructions of a warp [count].
        sync_insts: Barriers of a warp [count].
        sfu_insts: Special functions of a warp [count].
        warps_per_sm: Warps of the kernel over the SMs that work, w [count].
        avg_DRAM_lat: Mean latency of a request to DRAM [cycles].
        SIMD_width: Lanes of an SM [count].
        SFU_width: Special function units of an SM [count].
        warp_size: Threads of a warp [count].
        Gamma: Cost of a barrier; 64 in the source, to be fitted, see `fit_gamma` [1].

    Returns: Overheads [cycles].

    Range: 0 or more; special functions cost nothing while they are rarer than their units among the lanes. Without
    instructions a ratio is 0, or 1 where something is divided by none. Special functions without a unit for them, or no
    lanes: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    The print multiplies a barrier's cost by all warps as if they never waited together; it is left so.

    >>> lost = serial_overheads(100, 10, 2, 60, 48, 500, 32, 4)
    >>> float(lost.O_sync), round(float(lost.F_SFU), 3), round(float(lost.O_SFU), 1)
    (307200.0, 0.475, 10944.0)
    """
    n, m, s, f, w, lat, simd, sfu, warp, g = floats(
        insts=insts, mem_insts=mem_insts, sync_insts=sync_insts, sfu_insts=sfu_insts, warps_per_sm=warps_per_sm,
        avg_DRAM_lat=avg_DRAM_lat, SIMD_width=SIMD_width, SFU_width=SFU_width, warp_size=warp_size, Gamma=Gamma,
    )  # fmt: skip
    bad = is_implausible(n, m, s, f, w, lat, simd, sfu, warp, g)
    zero = (((sfu == 0) & (f > 0)) | (simd == 0)) & ~bad
    with np.errstate(all="ignore"):
        F_sync = g * lat * _ratio(m, n)
        F_SFU = np.clip(_ratio(f, n) - sfu / simd, 0.0, 1.0)
        O_SFU = np.where(f == 0, 0.0, w * f * (warp / sfu) * F_SFU)
        O_sync = np.where(s == 0, 0.0, w * s * F_sync)
    O_SFU, F_SFU = (np.where(zero, np.nan, x) for x in (O_SFU, F_SFU))
    known = (np.where(bad, np.nan, x) for x in (O_sync, O_SFU, F_sync, F_SFU))
    return Overheads(*arrays(*known, mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero))))


def _ratio(part: Array, whole: Array) -> Array:
    """Part over whole; of nothing 0, and 1 where a part of nothing is there."""
    with np.errstate(all="ignore"):
        return np.where(whole == 0, np.where(part == 0, 0.0, 1.0), part / whole)
