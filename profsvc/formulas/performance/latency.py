"""Latency hiding: warps needed, latency exposed with fewer, and lanes of a warp that do work."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag


class Usage(NamedTuple):
    """A share of what was available, and its flags."""

    value: Array
    flags: Mask


def warps_for_hiding(M: ArrayLike, C: ArrayLike) -> Array:
    r"""Warps that hide a memory period completely behind the computation of the others.

    .. math:: w = \lceil M / C \rceil + 1

    Source: [Lemeire2017], latency hiding.

    Args:
        M: Memory period of a warp [cycles].
        C: Computation period of a warp [cycles].

    Returns: warps [count], of the common shape.

    Range: 1 or more; inf without computation. Periods that are negative, NaN or inf: NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A memory period of three computation periods, as drawn in the source:

    >>> float(warps_for_hiding(3.0, 1.0))
    4.0
    """
    m, c = floats(M=M, C=C)
    with np.errstate(all="ignore"):
        warps = np.where(m == 0, 1.0, np.ceil(m / c) + 1)
    return np.where(is_implausible(m, c), np.nan, warps)


def exposed(M: ArrayLike, C: ArrayLike, w: ArrayLike) -> Array:
    r"""Cycles of each memory period in which no warp computes.

    .. math:: \max(0, M - (w - 1) C)

    Source: [Lemeire2017], latency hiding. It takes memory to answer any number of warps at once; where it does not,
    see `mwp_cwp.case_cycles`.

    Args:
        M: Memory period of a warp [cycles].
        C: Computation period of a warp [cycles].
        w: Warps resident [count]; independent instructions of a warp count like further warps.

    Returns: cycles, of the common shape.

    Range: [0, M]; 0 from `warps_for_hiding` warps on. A negative number, NaN or inf, or no warp: NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> exposed(3.0, 1.0, [1, 2, 4]).tolist()
    [3.0, 2.0, 0.0]
    """
    m, c, n = floats(M=M, C=C, w=w)
    return np.where(is_implausible(m, c, n) | (n == 0), np.nan, np.maximum(0.0, m - (n - 1) * c))


def issue_cycles(lanes: ArrayLike, warp: ArrayLike = 32.0) -> Array:
    r"""Cycles in which one instruction of a warp enters the lanes.

    .. math:: warp / lanes

    Source: [Lemeire2017], warp execution; [Hong2012] table 1.

    Args:
        lanes: Lanes that take one warp's instruction together [count].
        warp: Threads of a warp [count].

    Returns: cycles, of the common shape.

    Range: above 0. No lanes, or a number that is negative, NaN or inf: NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Eight lanes:

    >>> float(issue_cycles(8))
    4.0
    """
    n, w = floats(lanes=lanes, warp=warp)
    with np.errstate(all="ignore"):
        return np.where(is_implausible(n, w) | (n == 0), np.nan, w / n)


def warps_for_pipeline(stages: ArrayLike, issue_cycles: ArrayLike) -> Array:
    r"""Warps that keep a pipeline full when each instruction of a warp needs the one before.

    .. math:: w = \lceil stages / issue \rceil

    Source: [Lemeire2017], warp execution: 192 threads on 24 stages. Independent instructions count like further warps.

    Args:
        stages: Depth of the pipeline, the latency of an instruction [cycles].
        issue_cycles: Cycles to issue one instruction of a warp [cycles].

    Returns: warps [count], of the common shape.

    Range: 0 or more. No cycles to issue, or a number that is negative, NaN or inf: NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(warps_for_pipeline(24, 4))
    6.0
    """
    s, c = floats(stages=stages, issue_cycles=issue_cycles)
    with np.errstate(all="ignore"):
        return np.where(is_implausible(s, c) | (c == 0), np.nan, np.ceil(s / c))


def simt_usage(active: ArrayLike, lanes: ArrayLike) -> Usage:
    r"""Share of the lanes' slots in which a thread was switched on.

    .. math:: \frac{\sum_t active_t}{n_t\, lanes}

    Source: [Lemeire2017], SIMT conditional processing.

    Args:
        active: Lanes switched on in each cycle, or each issue, on the last axis [count].
        lanes: Lanes there are [count].

    Returns: Usage, without the last axis; the slots lost are the rest.

    Range: [0, 1]. More active lanes than there are: INPUT_SUSPECT, RAW_OUT_OF_RANGE. No lanes or no cycles: NaN,
    ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A warp of 32 on 8 lanes: a condition, and a branch for each half, four cycles per instruction; the source prints
    66 %.

    >>> float(simt_usage([8, 8, 8, 8] + [8, 8, 0, 0] + [0, 0, 8, 8], 8).value.round(4))
    0.6667
    """
    on, n = floats(active=np.atleast_1d(active), lanes=np.asarray(lanes)[..., np.newaxis])
    bad = is_implausible(on, n).any(axis=-1)
    more = (on > n).any(axis=-1)
    slots = n.sum(axis=-1)
    with np.errstate(all="ignore"):
        share = np.where(bad | (slots == 0), np.nan, on.sum(axis=-1) / slots)
    flags = mask(
        (Flag.INPUT_SUSPECT, bad | more), (Flag.ZERO_DENOM, (slots == 0) & ~bad), (Flag.RAW_OUT_OF_RANGE, share > 1)
    )
    return Usage(*arrays(share, flags))


def trip_balance(trips: ArrayLike) -> Usage:
    r"""Share of a warp's loop iterations that its threads needed: the longest loop holds all of them.

    .. math:: \frac{\overline{trips}}{\max trips}

    Source: [Lemeire2017], traversal of trees of unequal depth.

    Args:
        trips: Iterations of each thread, the threads of a warp on the last axis [count].

    Returns: Usage, without the last axis.

    Range: (0, 1]; 1 if all are equal. No iterations at all: 1, NOT_APPLICABLE. No threads: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype.

    >>> float(trip_balance([1, 1, 1, 5]).value)
    0.4
    """
    (n,) = floats(trips=np.atleast_1d(trips))
    bad, empty = is_implausible(n).any(axis=-1), np.full(n.shape[:-1], n.shape[-1] == 0)
    most = n.max(axis=-1, initial=0.0)
    none = (most == 0) & ~bad & ~empty
    with np.errstate(all="ignore"):
        share = np.where(none, 1.0, n.sum(axis=-1) / (most * n.shape[-1]))
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.NOT_APPLICABLE, none), (Flag.ZERO_DENOM, empty))
    return Usage(*arrays(np.where(bad | empty, np.nan, share), flags))
