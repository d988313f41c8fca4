"""The benefit chart: a kernel as a point of memory cost and computation cost, and how far each benefit moves it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.benefit.result import Benefit
from profsvc.formulas.numerics.arrays import Array, Mask, arrays, smallest_with_index

COMPUTE, MEMORY = 0, 1
BENEFITS = ("itilp", "memlp", "fp", "serial")
"""The order of the benefits on the last axis."""


class BenefitChart(NamedTuple):
    """Points (memory, computation) before and after overlap, their zone, and the benefits on the last axis."""

    A: Array
    A_overlapped: Array
    zone: NDArray[np.int8]
    share: Array
    time: Array
    best: NDArray[np.int8]
    flags: Mask


def benefit_chart(result: Benefit) -> BenefitChart:
    r"""Points of kernels in the benefit chart, the zone they lie in, and the benefits as shares of the time.

    .. math:: A = (T_{mem}, T_{comp}), \qquad A' = (T_{mem} - T_{overlap}, T_{comp}), \qquad
              share_k = \frac{B_k}{T_{exec}}, \qquad time_k = T_{exec} - B_k

    Above the diagonal y = x computation bounds the kernel, below it memory does.

    Source: [Kim2012] section 4.1.3 and figure 4.3; ``time`` is our reading: when one cost goes, the overlap may change
    too.

    Args:
        result: What `benefit` returned [cycles].

    Returns: BenefitChart; ``A`` and ``A_overlapped`` have (memory, computation) on a last axis, ``share`` and ``time``
    the benefits in the order of BENEFITS. ``best`` is the place of the largest benefit, the first of equals.

    Range: shares of 1 or less, below 0 only for ``fp``. The zone is COMPUTE or MEMORY; zone and best are -1 where the
    times are not known.

    Errors: none of its own.

    Baseline of the source, whose chart has B_itilp 6068 and B_fp 9691; a cost of 20000 is made up here:

    >>> from profsvc.formulas.benefit import Benefit
    >>> zero = dict.fromkeys(Benefit._fields, np.asarray(0.0))
    >>> costs = {"T_exec": 20000.0, "T_comp": 20000.0, "B_itilp": 6068.0, "B_fp": 9691.0}
    >>> chart = benefit_chart(Benefit(**{**zero, **{name: np.asarray(x) for name, x in costs.items()}}))
    >>> BENEFITS[chart.best], int(chart.zone) == COMPUTE, chart.time.tolist()
    ('fp', True, [13932.0, 20000.0, 10309.0, 20000.0])
    """
    T_comp, T_mem = result.T_comp, result.T_mem
    B = np.stack([result.B_itilp, result.B_memlp, result.B_fp, result.B_serial], axis=-1)
    T = np.asarray(result.T_exec)[..., np.newaxis]
    unknown = np.isnan(B).any(axis=-1) | np.isnan(T[..., 0])
    with np.errstate(all="ignore"):
        share = np.where((T == 0) & (B == 0), 0.0, B / T)
    zone = np.where(np.isnan(T_comp + T_mem), -1, np.where(T_mem > T_comp, MEMORY, COMPUTE)).astype(np.int8)
    best = np.where(unknown, -1, smallest_with_index(-B)[1]).astype(np.int8)
    points = (np.stack([x, T_comp], axis=-1) for x in (T_mem, T_mem - result.T_overlap))
    return BenefitChart(*arrays(*points, zone, share, T - B, best, np.asarray(result.flags, dtype=np.uint32)))
