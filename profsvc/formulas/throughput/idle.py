"""Cycles in which no warp computes because all wait for memory."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form


class IdleCycles(NamedTuple):
    """Memory cycles one after another and overlapped, the part that no computation hides, and its share."""

    Mem_SerialN: Array
    Mem_N: Array
    Idle: Array
    hidden_ratio: Array
    flags: Mask


def idle_cycles(
    eff_mem: ArrayLike, eff_comp: ArrayLike, N: ArrayLike, MWP: ArrayLike, form: str = CONSISTENT
) -> IdleCycles:
    r"""Cycles of one round of N warps in which none computes.

    .. math:: Mem_N = \frac{M N}{MWP} + C (MWP - 1), \qquad Idle = \max\bigl(0, Mem_N - C (N - 1)\bigr)

    Source: [Hong2012] equations 78 to 82.

    Args:
        eff_mem: Memory period of a warp, M [cycles].
        eff_comp: Computation of a warp before it, C [cycles].
        N: Warps resident on an SM [count].
        MWP: Warps whose memory periods overlap [warps].
        form: ``consistent`` or ``as_published``.

    Returns: IdleCycles; ``hidden_ratio`` is Idle over Mem_SerialN, small where memory is well hidden.

    Range: Idle in [0, Mem_N], hidden_ratio in [0, 1] for MWP of 1 to N with M at least C. No memory: ratio 0,
    NOT_APPLICABLE. No overlap at all (MWP 0) or no warps: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN,
    INPUT_SUSPECT; MWP above N: the flag alone.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: N computations hide memory, also the one before the first request, so that one warp would take
    max(C, M) in place of C + M; default consistent, where C N + Idle is the time of a round by `mwp_cwp.case_cycles`.

    Figure 103 of the source, six warps of which three overlap, M = 10 C:

    >>> float(idle_cycles(10, 1, 6, 3).Idle), float(idle_cycles(10, 1, 6, 3, "as_published").Idle)
    (17.0, 16.0)
    """
    check_form(form)
    M, C, n, W = floats(eff_mem=eff_mem, eff_comp=eff_comp, N=N, MWP=MWP)
    published = form == AS_PUBLISHED
    bad, zero = is_implausible(M, C, n, W), (W == 0) | (n == 0)
    with np.errstate(all="ignore"):
        serial = M * n
        memory = serial / W + C * (W - 1 if published else np.maximum(W - 1, 0.0))
        idle = np.maximum(0.0, memory - C * (n if published else n - 1))
        idle = idle if published else np.where(M == 0, 0.0, idle)
        results = (serial, memory, idle, np.where(serial == 0, 0.0, idle / serial))
    none = (bad | zero) & (not published)
    flags = mask(
        (Flag.INPUT_SUSPECT, bad | (n * (1 + 1e-9) < W)),
        (Flag.ZERO_DENOM, zero & ~bad),
        (Flag.NOT_APPLICABLE, (M == 0) & ~bad & ~zero),
    )
    return IdleCycles(*arrays(*(np.where(none, np.nan, x) for x in results), flags))
