"""The roofline: the rate that peaks and bandwidths leave to a kernel of a given intensity, and what a series of kernels
reached.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    Array,
    Bools,
    Flagged,
    Mask,
    arrays,
    flagged,
    floats,
    is_implausible,
    mask,
    smallest_with_index,
)
from profsvc.formulas.numerics.flags import Flag

COMPUTE, MEMORY = 0, 1


class Roofline(NamedTuple):
    """Result of `roofline`; ``bound`` is COMPUTE or MEMORY, ``ceiling`` the place of the binding one; -1 if unknown."""

    attainable: Array
    ridge: Array
    bound: NDArray[np.int8]
    ceiling: NDArray[np.int8]
    flags: Mask


class PixelRoofline(NamedTuple):
    """Result of `pixel_roofline`, in elements per second; ``intensity`` in operations per byte."""

    rate: Array
    memory: Array
    compute: Array
    intensity: Array
    flags: Mask


class Chain(NamedTuple):
    """Speedup of each version over the one before, and over the first."""

    step: Array
    total: Array
    flags: Mask


def peak_rate(units: ArrayLike, clock: ArrayLike, operations: ArrayLike = 2.0) -> Flagged:
    r"""Operations a second of a device whose units never pause.

    .. math:: P = units \cdot operations \cdot clock

    Source: [Lemeire2017], performance; [Ryoo2008] sections 1 and 3.2; [Hong2012] table 2. The sources count 2 or 3
    operations a clock for the same device (624 and 933 GFLOP/s of a GTX 280): name them, never a bare peak.

    Args:
        units: Lanes of the device, multiprocessors times lanes of each [count].
        clock: Clock of the lanes [Hz].
        operations: Operations of a lane and clock, 2 with a multiply-add [count].

    Returns: Valued [operations/s].

    Range: 0 or more. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    GeForce 8800 GTX, with multiply-adds:

    >>> float(peak_rate(128, 1.35e9).value)
    345600000000.0
    """
    n, f, k = floats(units=units, clock=clock, operations=operations)
    return flagged(n * f * k, is_implausible(n, f, k))


def intensity(operations: ArrayLike, moved: ArrayLike) -> Flagged:
    r"""Operations a byte.

    .. math:: I = operations / bytes

    Source: [Williams2009]; [Kim2012] section 2.3.

    Args:
        operations: Operations done [count].
        moved: Bytes that crossed the memory interface the bandwidth is of; for DRAM what is left after the caches, not
            what threads asked for [bytes].

    Returns: Valued [operations/byte].

    Range: 0 or more; inf where nothing was moved. Neither operations nor bytes: NaN, NOT_APPLICABLE. A number that is
    negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    The inner loop of the fast multipole method, 11 operations on 16 bytes:

    >>> float(intensity(11, 16).value)
    0.6875
    """
    W, Q = floats(operations=operations, moved=moved)
    with np.errstate(all="ignore"):
        value = W / Q
    return flagged(value, is_implausible(W, Q), (Flag.NOT_APPLICABLE, (W == 0) & (Q == 0)))


def roofline(intensity: ArrayLike, peaks: ArrayLike, bandwidths: ArrayLike) -> Roofline:
    r"""Rate a kernel can attain below several ceilings of arithmetic and of bandwidth.

    .. math:: \min\bigl(\min_k P_k,\; I \min_j B_j\bigr), \qquad ridge = \frac{\min_k P_k}{\min_j B_j}

    Source: [Kim2012] equation 4.31 and figure 3.4; [Williams2009]. A ceiling below the peak is the rate without some
    feature, such as multiply-adds. Bandwidths are attained ones: the model takes what a stream reaches.

    Args:
        intensity: Operations a byte, see `intensity`; inf where no byte is moved [operations/byte].
        peaks: Ceilings of arithmetic, on the last axis; inf for one that is not there [operations/s].
        bandwidths: Ceilings of bandwidth, likewise [bytes/s].

    Returns: Roofline, without the axis of the ceilings; ``ceiling`` is the place in ``peaks`` where ``bound`` is
    COMPUTE, in ``bandwidths`` where it is MEMORY, the first of equals. At the ridge the bound is COMPUTE.

    Range: attainable in [0, lowest peak], increasing with intensity and every ceiling. Measured code may pass it (the
    sources have 1.08): never clip an efficiency. A negative number, NaN, or no finite ceiling: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or for no ceiling.

    Baseline of the fast multipole method; the source measured 70 Gflop/s:

    >>> base = roofline(11 / 16, [1000e9, 500e9], [100e9])
    >>> float(base.attainable), float(base.ridge), int(base.bound) == MEMORY
    (68750000000.0, 5.0, True)
    """
    P, compute, no_peak = _lowest("peaks", peaks)
    B, memory, no_band = _lowest("bandwidths", bandwidths)
    I, P, B = floats(intensity=intensity, peaks=P, bandwidths=B)
    bad = np.isnan(I) | (I < 0) | no_peak | no_band | (np.isinf(P) & (np.isinf(B) | np.isinf(I)))
    with np.errstate(all="ignore"):
        below = np.where(np.isinf(I), np.inf, np.where(I == 0, 0.0, I * B))
        bound = np.where(below < P, MEMORY, COMPUTE)
        ridge = np.where(bad, np.nan, P / B)
    ceiling = np.where(bound == MEMORY, memory, compute)
    value = flagged(np.minimum(below, P), bad)
    places = (np.where(bad, -1, x).astype(np.int8) for x in (bound, ceiling))
    return Roofline(*arrays(value.value, ridge, *places, value.flags))


def _lowest(name: str, ceilings: ArrayLike) -> tuple[Array, NDArray[np.intp], Bools]:
    """Lowest ceiling, its place, and where one is no rate."""
    (c,) = floats(**{name: np.atleast_1d(ceilings)})
    if c.shape[-1] == 0:
        raise ValueError(f"{name} has shape {c.shape}; allowed: at least one ceiling on the last axis")
    least, place = smallest_with_index(c)
    return least, place, np.asarray(np.isnan(least) | (least < 0))


def pixel_roofline(operations: ArrayLike, moved: ArrayLike, op_rate: ArrayLike, bandwidth: ArrayLike) -> PixelRoofline:
    r"""The roofline in elements per second, such as pixels.

    .. math:: \min\Bigl(\frac{B}{bytes}, \frac{P}{operations}\Bigr), \qquad CI = operations / bytes

    Source: [Lemeire2017], fixed pattern noise. The slide labels the row of the memory P CI; what it prints, and what
    this gives, is the bandwidth over the bytes of a pixel.

    Args:
        operations: Operations of one element [count].
        moved: Bytes moved for one element [bytes].
        op_rate: Rate of these operations [1/s].
        bandwidth: Bandwidth [bytes/s].

    Returns: PixelRoofline; ``rate`` is the lower of ``memory`` and ``compute`` [elements/s].

    Range: 0 or more. An element without operations, or without bytes, has no bound by them (inf); without either:
    NaN, NOT_APPLICABLE. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    One pixel a thread, 9 operations on 5 bytes; both variants of the source are bound by memory:

    >>> fpn = pixel_roofline([9, 6], 5, 500e9, 115e9)
    >>> fpn.rate.tolist(), fpn.compute.round(-9).tolist()
    ([23000000000.0, 23000000000.0], [56000000000.0, 83000000000.0])
    """
    W, Q, P, B = floats(operations=operations, moved=moved, op_rate=op_rate, bandwidth=bandwidth)
    bad, none = is_implausible(W, Q, P, B), (W == 0) & (Q == 0)
    with np.errstate(all="ignore"):
        memory, compute = np.where(Q == 0, np.inf, B / Q), np.where(W == 0, np.inf, P / W)
        results = (np.minimum(memory, compute), memory, compute, W / Q)
    known = (np.where(bad | none, np.nan, x) for x in results)
    return PixelRoofline(*arrays(*known, mask((Flag.INPUT_SUSPECT, bad), (Flag.NOT_APPLICABLE, none & ~bad))))


def effective_bandwidth(moved: ArrayLike, time_s: ArrayLike) -> Flagged:
    r"""Bandwidth a kernel reached on the bytes that its problem has to move.

    .. math:: B = bytes / t

    Source: [Lemeire2017], parallel reduction.

    Args:
        moved: Bytes the problem has to move, each once [bytes].
        time_s: Run time [s].

    Returns: Valued [bytes/s].

    Range: 0 or more. No time: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    First version of the reduction, 4 Mi integers; the source prints 2.083 GB/s:

    >>> float(effective_bandwidth(4 * 2**22, 8.054e-3).value.round(-6))
    2083000000.0
    """
    b, t = floats(moved=moved, time_s=time_s)
    with np.errstate(all="ignore"):
        value = np.where(t == 0, np.nan, b / t)
    return flagged(value, is_implausible(b, t), (Flag.ZERO_DENOM, t == 0))


def speedup_chain(time_s: ArrayLike) -> Chain:
    r"""Speedups along a series of versions of one program.

    .. math:: step_k = t_{k-1} / t_k, \qquad total_k = t_0 / t_k = \prod_{i \le k} step_i

    Source: [Lemeire2017], parallel reduction.

    Args:
        time_s: Run time of each version, in order, on the last axis [s].

    Returns: Chain, of the same shape; 1 for the first version.

    Range: above 0; below 1 where a version is slower. A time of 0: NaN, ZERO_DENOM. A time that is negative, NaN or inf
    makes NaN, INPUT_SUSPECT, of the two steps it is in.

    Errors: TypeError for a wrong dtype, ValueError for times without an axis.

    >>> speedup_chain([8.054, 3.456, 1.722]).total.round(2).tolist()
    [1.0, 2.33, 4.68]
    """
    (t,) = floats(time_s=time_s)
    if t.ndim == 0:
        raise ValueError("time_s has no axis; allowed: the versions on the last axis")
    before, first = np.concatenate([t[..., :1], t[..., :-1]], axis=-1), t[..., :1]
    zero = [(t == 0) | (x == 0) for x in (before, first)]
    bad = [is_implausible(t, x) for x in (before, first)]
    with np.errstate(all="ignore"):
        ratios = [np.where(b | z, np.nan, x / t) for b, z, x in zip(bad, zero, (before, first), strict=True)]
    either = bad[0] | bad[1]
    flags = mask((Flag.INPUT_SUSPECT, either), (Flag.ZERO_DENOM, (zero[0] | zero[1]) & ~either))
    return Chain(*arrays(*ratios, flags))
