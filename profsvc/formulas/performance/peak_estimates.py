"""Peaks that the instruction mix of a kernel allows, and the application speedup of a faster kernel."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag


class Estimate(NamedTuple):
    """A rate or a speedup."""

    value: Array
    flags: Mask


def potential_throughput(fraction: ArrayLike, flops: ArrayLike, issue_rate: ArrayLike) -> Estimate:
    r"""Arithmetic throughput of a kernel whose instructions issue without a pause.

    .. math:: P = R \sum_k f_k\, flops_k

    Source: [Ryoo2008] sections 4.1 and 4.3.

    Args:
        fraction: Share of the instructions in each class, one class per place on the last axis [1].
        flops: Operations of one instruction of the class, 2 for a multiply-add, likewise [count].
        issue_rate: Thread instructions the device issues a second, lanes times clock [1/s].

    Returns: Estimate [operations/s], without the last axis.

    Range: 0 or more. The instructions are counted in an intermediate language, so that measured code can pass it:
    the tiled kernel of the source reaches 1.08 of it; never clip an efficiency. Shares that add up to more than 1:
    INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    One instruction of eight is a multiply-add, on 128 lanes at 1.35 GHz:

    >>> float(potential_throughput([1 / 8], [2], 172.8e9).value)
    43200000000.0
    """
    f, n, R = floats(
        fraction=np.atleast_1d(fraction), flops=np.atleast_1d(flops), issue_rate=np.asarray(issue_rate)[..., np.newaxis]
    )
    bad = is_implausible(f, n, R).any(axis=-1)
    more = f.sum(axis=-1) > 1 + 1e-9
    value = np.where(bad, np.nan, (f * n * R).sum(axis=-1))
    return Estimate(*arrays(value, mask((Flag.INPUT_SUSPECT, bad | more))))


def bandwidth_demand(lanes: ArrayLike, load_fraction: ArrayLike, load_bytes: ArrayLike, clock: ArrayLike) -> Estimate:
    r"""Bandwidth that a kernel asks for when its instructions issue without a pause.

    .. math:: B = lanes \cdot f_{load} \cdot bytes \cdot clock

    Source: [Ryoo2008] section 4.1.

    Args:
        lanes: Lanes of the device [count].
        load_fraction: Share of the instructions that access global memory [1].
        load_bytes: Bytes of one such access of a thread [bytes].
        clock: Clock of the lanes [Hz].

    Returns: Estimate [bytes/s].

    Range: 0 or more. A share above 1: INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Matrix multiplication from global memory; the source prints 173 GB/s:

    >>> float(bandwidth_demand(128, 0.25, 4, 1.35e9).value)
    172800000000.0
    """
    n, f, b, c = floats(lanes=lanes, load_fraction=load_fraction, load_bytes=load_bytes, clock=clock)
    bad = is_implausible(n, f, b, c)
    return Estimate(*arrays(np.where(bad, np.nan, n * f * b * c), mask((Flag.INPUT_SUSPECT, bad | (f > 1)))))


def operand_bandwidth(lanes: ArrayLike, operands: ArrayLike, operand_bytes: ArrayLike, clock: ArrayLike) -> Estimate:
    r"""Bandwidth that lanes ask their registers for when each starts an operation per cycle.

    .. math:: B = lanes \cdot n \cdot bytes \cdot clock

    Source: [Kim2012] section 1.4.1, which takes the 32 bits of an operand for 32 bytes: 64 TB/s for 8.

    Args:
        lanes: Operations that start together [count].
        operands: Operands of each, n [count].
        operand_bytes: Bytes of an operand [bytes].
        clock: Their clock [Hz]; 1 gives the bytes of a cycle.

    Returns: Estimate [bytes/s].

    Range: 0 or more. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A warp reads one word per lane; a device of 10^12 operations per second reads two an operation:

    >>> operand_bandwidth([32, 1000], [1, 2], 4, [1, 1e9]).value.tolist()
    [128.0, 8000000000000.0]
    """
    w, n, b, f = floats(lanes=lanes, operands=operands, operand_bytes=operand_bytes, clock=clock)
    bad = is_implausible(w, n, b, f)
    with np.errstate(all="ignore"):
        value = np.where(bad, np.nan, w * n * b * f)
    return Estimate(*arrays(value, mask((Flag.INPUT_SUSPECT, bad))))


def bandwidth_limited(potential: ArrayLike, demand: ArrayLike, available: ArrayLike) -> Estimate:
    r"""Throughput of a kernel when the bandwidth it asks for is not there.

    .. math:: \min\bigl(P, P\, B_{available} / B\bigr)

    Source: [Ryoo2008] section 4.1 and 4.2, as a formula.

    Args:
        potential: Throughput without a pause, see `potential_throughput` [operations/s].
        demand: Bandwidth this takes, see `bandwidth_demand` [bytes/s].
        available: Bandwidth of the device [bytes/s].

    Returns: Estimate [operations/s].

    Range: [0, potential]. No demand: the potential.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Twice the bandwidth of the GeForce 8800 GTX; the source measured 10.58 GFLOPS:

    >>> float(bandwidth_limited(43.2e9, 172.8e9, 86.4e9).value)
    21600000000.0
    """
    P, B, A = floats(potential=potential, demand=demand, available=available)
    bad = is_implausible(P, B, A)
    with np.errstate(all="ignore"):
        value = np.where(bad, np.nan, np.where(A >= B, P, P * A / B))
    return Estimate(*arrays(value, mask((Flag.INPUT_SUSPECT, bad))))


def gpu_share_speedup(g: ArrayLike, s: ArrayLike, p: ArrayLike) -> Estimate:
    r"""Speedup of an application from the share of the time that its kernels take afterwards.

    .. math:: S = \frac{g\, s}{p}

    Source: the relation of the columns of tables 2 and 3 of [Ryoo2008]: the kernels took p T before and take p T / s
    now, which is g of the new time.

    Args:
        g: Share of the new run time in which kernels run [1].
        s: Speedup of the kernels [1].
        p: Share of the old run time in the code that became kernels [1].

    Returns: Estimate [1].

    Range: 0 or more. p of 0: NaN, ZERO_DENOM. A share above 1: INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    RPES of the source, which prints 79.4:

    >>> float(gpu_share_speedup(0.375, 210, 0.99).value.round(1))
    79.5
    """
    g_, s_, p_ = floats(g=g, s=s, p=p)
    bad = is_implausible(g_, s_, p_)
    zero = (p_ == 0) & ~bad
    with np.errstate(all="ignore"):
        value = np.where(bad | zero, np.nan, g_ * s_ / p_)
    flags = mask((Flag.INPUT_SUSPECT, bad | (g_ > 1) | (p_ > 1)), (Flag.ZERO_DENOM, zero))
    return Estimate(*arrays(value, flags))
