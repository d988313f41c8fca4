r"""The joint bound: the time that the useful part of a kernel's work needs on the unit that limits it.

The criteria of `profsvc.formulas.criteria` look at one mechanism each, and their speedups may not be multiplied.
This module answers for the whole launch at once. Every unit u of the device has done some work; a part of it is
useful, the rest is waste that a better version of the same algorithm would not do:

* DRAM and L2 move bytes that no thread asked for (`useful_bytes`);
* lanes are switched off by divergence or predication, and instructions are overhead (`payload_instructions`);
* shared memory replays on bank conflicts, and on-chip memory is read more often than there is arithmetic to
  feed (`operand_limited`).

Waste on different units overlaps in time, so savings do not add. What remains when all of it is gone is the
largest of the useful times, each at the attainable rate of its unit, plus the time in which no SM works:

.. math:: T_{ideal} = \min\Bigl(T, T_{ramp} + \max_u \frac{t_u}{a_u}\Bigr), \qquad S = T / T_{ideal} \ge 1

Versions of the same work do the same useful work, so they imply the same ideal time. That is how the bound is
tested: on families of kernels that compute the same thing in different ways.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, floats


class JointBound(NamedTuple):
    """Result of `joint_bound`; ``unit`` is the place of the limiting unit, -1 where unknown."""

    ideal: Array
    speedup: Array
    saving: Array
    unit: NDArray[np.int8]


def useful_bytes(moved: ArrayLike, requested: ArrayLike) -> Array:
    r"""Bytes of a memory level that some thread requested.

    .. math:: B_{useful} = \min(B_{moved}, B_{requested})

    A level that moved more than was requested fetched adjacent data that no thread used (strided or misaligned access,
    or a fetch granularity above the sector); a level that moved less was relieved by a cache above it.

    Source: own model; the excess is the reciprocal of criterion F of [FineGrained2016].

    Args:
        moved: Bytes the level moved [bytes].
        requested: Bytes that threads asked for [bytes]; NaN where unknown, then all that was moved counts as useful.

    Returns: bytes, of the common shape.

    Range: [0, moved]; NaN where ``moved`` is NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A stride of 8 floats: every 4 bytes asked for cost a 32-byte sector.

    >>> useful_bytes([536.0, 536.0], [67.0, float("nan")]).tolist()
    [67.0, 536.0]
    """
    B, R = floats(moved=moved, requested=requested)
    return np.where(np.isnan(R), B, np.minimum(B, R))


def operand_limited(
    accesses: ArrayLike,
    operations: ArrayLike,
    arrived: ArrayLike,
    repeated: ArrayLike = 0.0,
    in_registers: ArrayLike = 0.5,
) -> Array:
    r"""On-chip memory accesses that a version of the kernel with the same arithmetic cannot do without.

    .. math:: A_{useful} = \min\Bigl(A, \max\bigl(O (1 - r \tfrac{A_{repeated}}{A}), A_{arrived}\bigr)\Bigr)

    Each arithmetic instruction takes at most one operand from, and leaves at most one result in, on-chip memory;
    further ones can stay in registers. Of operands that L1 delivered again a share r can stay there as well: a product
    of matrices needs eight operands for a tile of four by four outputs, which is half, and 16 for one of eight by
    eight, which is a quarter. Data that arrives from beyond the L1
    cache has to pass it in any case. Without arithmetic moving data is the work itself, and all accesses are useful.

    Source: own model; register tiling as in the matrix multiplication study of [Ryoo2008].

    Args:
        accesses: Conflict-free wavefronts of loads, or of stores, at L1 and shared memory [count].
        operations: Arithmetic warp instructions with all lanes active, weighted by operand size over 4 bytes [count];
            0 or NaN where there is none.
        arrived: Wavefronts of 128 bytes that came from, or went to, L2 [count]; NaN counts as 0.
        repeated: Wavefronts of values that L1 had delivered before [count]; NaN counts as 0.
        in_registers: Share r of these that registers can hold, in [0, 1] [1].

    Returns: useful wavefronts, of the common shape.

    Range: [0, accesses].

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Two loads for each FMA, of which one can stay in a register; the same from L1; a copy, which has no arithmetic:

    >>> limited = operand_limited([200.0, 200.0, 200.0], [90.0, 90.0, 0.0], [10.0, 10.0, 200.0], [0.0, 200.0, 0.0])
    >>> limited.round(9).tolist()
    [90.0, 45.0, 200.0]
    """
    A, O, M, R, r = floats(
        accesses=accesses, operations=operations, arrived=arrived, repeated=repeated, in_registers=in_registers
    )
    with np.errstate(all="ignore"):
        again = np.clip(np.nan_to_num(R / A), 0, 1)
        needed = np.fmax(np.where(again > 0, O * (1 - r * again), O), np.nan_to_num(M))
    return np.where(np.nan_to_num(O) > 0, np.minimum(A, needed), A)


def payload_instructions(
    instructions: ArrayLike,
    lane_efficiency: ArrayLike,
    arithmetic: ArrayLike,
    accesses: ArrayLike,
    overhead: float = 0.0,
) -> Array:
    r"""Warp instructions that carry the kernel's payload, counted with all lanes active.

    .. math:: N_{useful} = \min\bigl(e N, (1 + k) (O + A)\bigr) \text{ if } O > 0, \qquad e N \text{ otherwise}

    In a kernel that does floating-point or tensor arithmetic, integer, control, conversion and barrier
    instructions are overhead, of which k for each useful instruction cannot be avoided. In a kernel without, no
    counter tells address arithmetic from payload, and every lane that was on counts as useful: the cautious reading.

    Source: own model; lane efficiency is criterion C of [FineGrained2016].

    Args:
        instructions: Warp instructions executed, N [count].
        lane_efficiency: Predicated-on lanes over 32 an instruction, e [1]; NaN counts as 1.
        arithmetic: Arithmetic warp instructions with all lanes active, O [count]; 0 or NaN where unknown.
        accesses: Useful memory warp instructions, A [count]; NaN counts as 0.
        overhead: Overhead instructions k that a well-tuned kernel executes for each useful one [1].

    Returns: useful warp instructions, of the common shape.

    Range: [0, e N].

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> payload_instructions([1000.0, 1000.0], [0.5, 0.5], [100.0, 0.0], [50.0, 50.0], 0.3).tolist()
    [195.0, 500.0]
    """
    N, e, O, A = floats(
        instructions=instructions, lane_efficiency=lane_efficiency, arithmetic=arithmetic, accesses=accesses
    )
    on = N * np.where(np.isnan(e), 1.0, e)
    payload = (1 + overhead) * (O + np.nan_to_num(A))
    return np.where(np.nan_to_num(O) > 0, np.fmin(on, payload), on)


def matrix_time(operations: ArrayLike, sparse: ArrayLike, peak: ArrayLike, factor: ArrayLike = 2.0) -> Array:
    r"""Least time of the operations of a tensor pipe that multiplies operands of several types.

    .. math:: t = \sum_k \frac{W_k - (1 - 1/f)\, W_k^{sparse}}{P_k}

    The types k follow each other on one pipe. The time in which the pipe was busy does not measure the work: on Hopper
    ``mma.sync`` keeps it busy 1.5 times as long as ``wgmma`` for the same operations.

    Source: own model; a roofline a type, [Williams2009].

    Args:
        operations: Operations of each type, a multiply-add counting as 2, those that sparsity spares among them, a type
            a place on the last axis; NaN counts as 0 [count].
        sparse: How many of them belong to instructions with 2:4 sparsity; NaN counts as 0 [count].
        peak: Peak rate of the type without sparsity [1/s].
        factor: How many times as fast the pipe is with sparsity, without the axis of types [1].

    Returns: seconds, without the last axis.

    Range: 0 or more; NaN where no type was counted, or the peak of one that was used is not known or 0.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or have no axis.

    A product of two matrices of 4096 rows and columns in BF16 on an H200 at 1.57 GHz, dense and sparse:

    >>> matrix_time([[2 * 4096.0**3], [2 * 4096.0**3]], [[0.0], [2 * 4096.0**3]], 849e12).round(6).tolist()
    [0.000162, 8.1e-05]
    """
    W, S, P = floats(operations=operations, sparse=sparse, peak=peak)
    if W.ndim == 0:
        raise ValueError("operations, sparse and peak have no axis; allowed: the types on the last axis")
    (f,) = floats(factor=np.asarray(factor)[..., np.newaxis])
    none = np.isnan(W).all(axis=-1)
    with np.errstate(all="ignore"):
        work = np.nan_to_num(W) - (1 - 1 / f) * np.minimum(np.nan_to_num(S), np.nan_to_num(W))
        times = np.where(work == 0, 0.0, work / np.where(P > 0, P, np.nan))
    return np.where(none, np.nan, times.sum(axis=-1))


def joint_bound(duration: ArrayLike, ramp: ArrayLike, unit_times: ArrayLike, attainable: ArrayLike) -> JointBound:
    r"""Ideal time, speedup and limiting unit of a launch from the useful times of its units.

    .. math:: T_{ideal} = \min\Bigl(T, T_{ramp} + \max_u \frac{t_u}{a_u}\Bigr)

    Source: own model; with one memory and one arithmetic unit, no ramp and t = achieved work at peak rate it is the
    potential speedup of [FineGrained2016] section V in the repaired form 1/max(MEMTHR, ARITHTHR).

    Args:
        duration: Measured time T, of shape (...) [any unit of time].
        ramp: Time in which no SM worked, or in which SMs fill and drain, likewise; NaN counts as 0.
        unit_times: Time of the useful work of each unit at its peak rate, likewise, of shape (..., U); NaN where
            unknown.
        attainable: Share of its peak rate that each unit sustains, of shape (U,) or (..., U) [1].

    Returns: JointBound.

    Range: ideal in (0, T], speedup in [1, 1e9], saving = 1 - 1/speedup in [0, 1): whatever the inputs, no launch is
    promised more than its time. No unit known, or T not positive: NaN, and unit -1.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    DRAM needs 56 of 300 us, the FP32 pipe 2, at 80 % of peak each, and 2 us pass before the first SM works:

    >>> bound = joint_bound(300.0, 2.0, [56.0, 2.0], [0.8, 0.8])
    >>> float(bound.ideal), round(float(bound.speedup), 2), int(bound.unit)
    (72.0, 4.17, 0)
    """
    T, R = floats(duration=duration, ramp=ramp)
    t, a = floats(unit_times=unit_times, attainable=attainable)
    with np.errstate(all="ignore"):
        t = np.where(t >= 0, t / a, np.nan)
        known = ~np.isnan(t).all(axis=-1)
        filled = np.where(np.isnan(t), -np.inf, t)
        limit = np.where(known, filled.max(axis=-1), np.nan)
        R = np.clip(np.nan_to_num(R), 0.0, np.where(np.isnan(T), 0.0, T))
        # A launch without any useful work still takes its ramp; below one part in 1e9 of T nothing is measurable.
        valid = known & (T > 0) & np.isfinite(T)
        ideal = np.where(valid, np.clip(R + limit, 1e-9 * T, T), np.nan)
        speedup = T / ideal
    unit = np.where(valid, filled.argmax(axis=-1), -1).astype(np.int8)
    return JointBound(ideal, speedup, 1.0 - 1.0 / speedup, unit)
