"""Occupancy: resident blocks and warps per SM, the limiting resource, and the waves of a launch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Mask, arrays, floats, is_implausible, mask, smallest_with_index
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

RESOURCES = ("blocks", "warps", "registers", "shared")
SCOPES = ("block", "warp")


class Limits(NamedTuple):
    """Resources of an SM and their allocation granularity; the fields are named as those of a device."""

    max_warps_per_sm: float
    max_blocks_per_sm: float
    max_threads_per_block: float
    registers_per_sm: float
    shared_mem_per_sm_bytes: float
    warp_size: float = 32
    register_allocation_unit: float = 1
    register_allocation_scope: str = "block"
    warp_allocation_granularity: float = 1
    shared_mem_allocation_unit_bytes: float = 1
    shared_mem_reserved_per_block_bytes: float = 0


class Occupancy(NamedTuple):
    """Blocks and warps of an SM; ``limiter`` is a place in RESOURCES, or -1, and ``allowed`` what each allows."""

    blocks: Array
    active_threads: Array
    active_warps: Array
    occupancy: Array
    limiter: NDArray[np.int8]
    allowed: Array
    flags: Mask


class Demand(NamedTuple):
    """Resources that resident blocks take, and whether the SM has them."""

    amount: Array
    fits: NDArray[np.bool_]
    flags: Mask


class Staircase(NamedTuple):
    """Waves of blocks, and the share of the slots that were taken over all waves."""

    waves: Array
    utilization: Array
    flags: Mask


def occupancy(
    threads_per_block: ArrayLike,
    registers_per_thread: ArrayLike,
    shared_bytes_per_block: ArrayLike,
    limits: Limits | Sequence[Any],
    form: str = CONSISTENT,
) -> Occupancy:
    r"""Blocks that are resident on an SM, the warps they have, and the resource that keeps out the next one.

    .. math:: blocks = \min\Bigl(blocks_{max},
              \Bigl\lfloor\frac{warps_{max}}{\lceil T/32 \rceil}\Bigr\rfloor,
              \Bigl\lfloor\frac{R}{r\,T}\Bigr\rfloor, \Bigl\lfloor\frac{S}{s}\Bigr\rfloor\Bigr)
              \qquad occupancy = \frac{blocks \lceil T/32 \rceil}{warps_{max}}

    Source: [Ryoo2008] section 4.1 and 4.2, [Lemeire2017] for the ratio. The steps in which registers and shared
    memory are handed out are those of NVIDIA's cuda_occupancy.h; the defaults of `Limits` are none, as in the sources.

    Args:
        threads_per_block: Threads of a block, T [count].
        registers_per_thread: Registers of a thread, r [count]; 0 means unlimited.
        shared_bytes_per_block: Shared memory of a block, s [bytes]; 0 means unlimited.
        limits: What an SM has: `Limits`, whose fields are named as those of a device, or the fields in its order.
            Where shared memory shares its bytes with the L1 cache, ``shared_mem_per_sm_bytes`` is the part set aside.
        form: ``consistent`` or ``as_published``.

    Returns: Occupancy; ``allowed`` has the blocks that each of RESOURCES allows, on a last axis of its own, inf where
    the resource is not used. The limiter is the first of those that allow the fewest.

    Range: occupancy in [0, 1]. A block that does not fit at all: 0 blocks, occupancy 0, INPUT_SUSPECT. A warp partly
    filled: TAIL_EFFECT. No threads: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast, an unknown form or an unknown
    scope of registers.

    Defect of the print: it divides thread slots by threads, but a partly filled warp takes a whole slot, so that five
    blocks of 144 threads would need 25 of 24 warps; and no register is handed out alone. Default consistent.

    Matrix multiplication on the GeForce 8800 GTX: the eleventh register costs a block of 256 threads:

    >>> gtx = Limits(24, 8, 512, 8192, 16384)
    >>> result = occupancy(256, [10, 11], 0, gtx)
    >>> result.blocks.tolist(), [RESOURCES[k] for k in result.limiter]
    ([3.0, 2.0], ['warps', 'registers'])
    """
    check_form(form)
    limits = Limits(*limits)
    check_form(limits.register_allocation_scope, SCOPES)
    T, r, s = floats(
        threads_per_block=threads_per_block,
        registers_per_thread=registers_per_thread,
        shared_bytes_per_block=shared_bytes_per_block,
    )
    bad, none = is_implausible(T, r, s), T == 0
    with np.errstate(all="ignore"):
        warps = np.ceil(T / limits.warp_size)
        if form == AS_PUBLISHED:
            by_warps = np.floor(limits.max_warps_per_sm * limits.warp_size / T)
            by_registers = np.where(r == 0, np.inf, np.floor(limits.registers_per_sm / (r * T)))
            by_shared = np.where(s == 0, np.inf, np.floor(limits.shared_mem_per_sm_bytes / s))
        else:
            by_warps = np.floor(limits.max_warps_per_sm / warps)
            by_registers = _by_registers(r, warps, limits)
            taken = _up(s + limits.shared_mem_reserved_per_block_bytes, limits.shared_mem_allocation_unit_bytes)
            by_shared = np.where(taken == 0, np.inf, np.floor(limits.shared_mem_per_sm_bytes / taken))
        by_blocks = np.where(limits.max_threads_per_block < T, 0.0, limits.max_blocks_per_sm)
        allowed = np.stack(np.broadcast_arrays(by_blocks, by_warps, by_registers, by_shared), axis=-1)
        if form != AS_PUBLISHED:
            allowed = np.where((bad | none)[..., np.newaxis], np.nan, allowed)
        blocks, place = smallest_with_index(allowed)
        active = blocks * warps
    limiter = np.where(np.isnan(blocks), -1, place).astype(np.int8)
    flags = mask(
        (Flag.INPUT_SUSPECT, bad | (blocks == 0)),
        (Flag.ZERO_DENOM, none),
        (Flag.TAIL_EFFECT, T % limits.warp_size > 0),
    )
    return Occupancy(*arrays(blocks, blocks * T, active, active / limits.max_warps_per_sm, limiter, allowed, flags))


def _by_registers(r: Array, warps: Array, limits: Limits) -> Array:
    """Blocks that the registers allow, given out by block, or warp by warp in each part of the SM."""
    parts, unit = limits.warp_allocation_granularity, limits.register_allocation_unit
    if limits.register_allocation_scope == "block":
        blocks = np.floor(limits.registers_per_sm / _up(r * limits.warp_size * _up(warps, parts), unit))
    else:
        # A block may put its warps in any part: the warps that fit are rounded down by part, those of a block not up.
        of_a_part = np.floor(limits.registers_per_sm / parts / _up(r * limits.warp_size, unit))
        blocks = np.floor(of_a_part * parts / warps)
    return np.where(r == 0, np.inf, blocks)


def _up(x: Array, unit: float) -> Array:
    return np.asarray(np.ceil(x / unit) * unit)


def resource_demand(
    blocks: ArrayLike, threads_per_block: ArrayLike, per_thread: ArrayLike, capacity: ArrayLike
) -> Demand:
    r"""Registers, or bytes of shared memory, that the blocks resident on an SM take together.

    .. math:: amount = blocks \cdot T \cdot r \le capacity

    Source: [Ryoo2008] section 4.2 and table 3, whose numbers of threads, registers and bytes it holds against the SM.

    Args:
        blocks: Blocks resident on the SM [count].
        threads_per_block: Threads of a block, T [count].
        per_thread: What a thread takes, r [registers or bytes].
        capacity: What the SM has [registers or bytes].

    Returns: Demand.

    Range: 0 or more. A number that is negative, NaN or inf: NaN, does not fit, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Three blocks of 256 threads fit with 10 registers per thread and do not with 11; the source prints 8488 for 8448:

    >>> taken = resource_demand(3, 256, [10, 11], 8192)
    >>> taken.amount.tolist(), taken.fits.tolist()
    ([7680.0, 8448.0], [True, False])
    """
    n, T, r, most = floats(blocks=blocks, threads_per_block=threads_per_block, per_thread=per_thread, capacity=capacity)
    bad = is_implausible(n, T, r, most)
    with np.errstate(all="ignore"):
        amount = np.where(bad, np.nan, n * T * r)
        return Demand(*arrays(amount, amount <= most, mask((Flag.INPUT_SUSPECT, bad))))


def launch_occupancy(
    occ: ArrayLike, grid_blocks: ArrayLike, sms: ArrayLike, warps_per_block: ArrayLike, max_warps_per_sm: ArrayLike
) -> Array:
    r"""Occupancy of a launch: warps that fit on an SM, or those that the grid gives one where they are fewer.

    .. math:: occ_{launch} = \min\Bigl(occ,
              \frac{\lceil grid / SMs \rceil \cdot warps_{block}}{warps_{max}}\Bigr)

    Source: [FineGrained2016] section IV-H: the occupancy "depends on the kernel configuration (i.e., block size, grid
    size, and amount of shared memory)". The theoretical occupancy of profilers does not know the grid.

    Args:
        occ: Theoretical occupancy: warps of the blocks that fit on an SM over its warp slots [1].
        grid_blocks: Blocks of the grid [count].
        sms: SMs of the device [count].
        warps_per_block: Warps of a block [count].
        max_warps_per_sm: Warp slots of an SM [count].

    Returns: occupancy [1], of the common shape.

    Range: 0 to occ. Where one of the counts is no positive number (NaN is unknown), the occupancy stays as it is; an
    occupancy that is NaN or inf stays so.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    132 SMs that hold 8 blocks of 8 warps each have one block each of 100, and two of 200:

    >>> launch_occupancy(1.0, [100, 200, 5000], 132, 8, 64).tolist()
    [0.125, 0.25, 1.0]
    """
    o, grid, n, warps, most = floats(
        occ=occ, grid_blocks=grid_blocks, sms=sms, warps_per_block=warps_per_block, max_warps_per_sm=max_warps_per_sm
    )
    counted = np.isfinite(o) & (grid > 0) & (n > 0) & (warps > 0) & (most > 0)
    with np.errstate(all="ignore"):
        return np.where(counted, np.minimum(o, np.ceil(grid / n) * warps / most), o)


def warps_resident(groups: ArrayLike, items: ArrayLike, warp: ArrayLike = 32.0) -> Array:
    r"""Warps, or wavefronts, of a number of blocks.

    .. math:: groups \lceil items / warp \rceil

    Source: [Lemeire2017], work group execution; wavefronts of 64 in the profiler of AMD there.

    Args:
        groups: Blocks [count].
        items: Threads of a block [count].
        warp: Threads of a warp, 64 of a wavefront [count].

    Returns: warps [count], of the common shape.

    Range: 0 or more; NaN for a count that is negative, NaN or inf, and for warps of no threads.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(warps_resident(3, 256)), float(warps_resident(3, 144))
    (24.0, 15.0)
    """
    n, T, w = floats(groups=groups, items=items, warp=warp)
    with np.errstate(all="ignore"):
        return np.where(is_implausible(n, T, w) | (w == 0), np.nan, n * np.ceil(T / w))


def staircase(groups: ArrayLike, slots: ArrayLike) -> Staircase:
    r"""Waves in which the blocks of a grid run, and how full they are: time over size is a staircase.

    .. math:: waves = \lceil groups / slots \rceil \qquad utilization = \frac{groups}{waves \cdot slots}

    Source: [Lemeire2017], insufficient parallelism.

    Args:
        groups: Blocks of the grid [count].
        slots: Blocks the whole device holds at a time, SMs times blocks per SM [count].

    Returns: Staircase.

    Range: utilization in (0, 1]; 1 just before a step. Last wave not full: TAIL_EFFECT. No blocks: 0 waves,
    utilization 1, NOT_APPLICABLE. No slots: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    One block more than the 80 that fit:

    >>> result = staircase([80, 81], 80)
    >>> result.waves.tolist(), result.utilization.tolist()
    ([1.0, 2.0], [1.0, 0.50625])
    """
    n, slots_ = floats(groups=groups, slots=slots)
    bad = is_implausible(n, slots_)
    zero = (slots_ == 0) & ~bad
    none = (n == 0) & ~bad & ~zero
    with np.errstate(all="ignore"):
        waves = np.where(bad | zero, np.nan, np.ceil(n / slots_))
        used = np.where(none, 1.0, n / (waves * slots_))
    flags = mask(
        (Flag.INPUT_SUSPECT, bad),
        (Flag.ZERO_DENOM, zero),
        (Flag.NOT_APPLICABLE, none),
        (Flag.TAIL_EFFECT, used < 1),
    )
    return Staircase(*arrays(waves, used, flags))
