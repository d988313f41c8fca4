"""Criteria C, D and E: how evenly the work is spread over lanes, warps and SMs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.criteria.result import Criterion, _consistent, _published
from profsvc.formulas.numerics.arrays import (
    RELATIVE_TOLERANCE,
    Array,
    Bools,
    Groups,
    Mask,
    Share,
    clip_to_unit,
    flat_floats,
    floats,
    is_implausible,
    known_share,
    mask,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

WARP = 32


class Divergence(NamedTuple):
    """As Criterion; and the filled part of the block's warps, the criterion over it, and the kernel ids."""

    raw: Array
    value: Array
    share: Array
    speedup: Array
    flags: Mask
    fill: Array
    value_over_fill: Array
    group: NDArray[np.int64]


def divergence(
    thread_insts: ArrayLike,
    potential: ArrayLike,
    F: ArrayLike = 1.0,
    p: ArrayLike | None = None,
    group: ArrayLike | None = None,
    form: str = CONSISTENT,
    *,
    block_size: ArrayLike | None = None,
) -> Divergence:
    r"""Divergence (C): share of the lanes that work when a warp executes an instruction.

    .. math:: c = \frac{\sum_w \mathrm{ExeInstructions}_w}{\sum_w \mathrm{PotExeInstructions}_w}
              \cdot F_{Divergence} \qquad S = \frac{1}{1 - p + p\,c}

    Source: [FineGrained2016] section IV-C and V.

    Args:
        thread_insts: Instructions executed, one a lane [count].
        potential: Instructions that could have been: 32 a warp instruction [count].
        F: F_Divergence at the kernel's share of control statements [1].
        p: Arithmetic share of the time [1]; None or NaN is unknown.
        group: Kernel of each row, if the rows are warps; then F, p and ``block_size`` have one entry per kernel.
            Without it each row is a kernel with its totals.
        form: ``consistent`` or ``as_published``.
        block_size: Threads a block; a last warp that is partly filled raises TAIL_EFFECT.

    Returns: Divergence; ``fill`` is block_size / (32 ceil(block_size/32)), NaN if unknown.

    Range: criterion in [0, 1], speedup in [1, inf]. No instruction: NaN, ZERO_DENOM. More executed than potential,
    or F > 1: INPUT_SUSPECT. Warps without instructions are left out.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit or an unknown form.

    Defect of the print: a mean of the warps' ratios, in which short warps count as much as long ones, and a speedup
    1/c, as if the whole time were affected; default consistent, the ratio of sums and p.

    >>> float(divergence([32, 8], [32, 32], group=[0, 0]).value.item())
    0.625
    >>> float(divergence(48, 64, p=0.5).speedup)
    1.1428571428571428
    """
    check_form(form)
    if group is None:
        exe, pot = floats(thread_insts=thread_insts, potential=potential)
        ids = np.arange(exe.size)
        bad, over = is_implausible(exe, pot), exe > pot
        with np.errstate(all="ignore"):
            mean = exe / pot
    else:
        n, of = flat_floats(thread_insts=thread_insts, potential=potential)
        g = Groups(group, n.size)
        ids = g.ids
        bad, over = g.any(is_implausible(n, of)), g.any(n > of)
        with np.errstate(all="ignore"):
            ran = of != 0
            exe, pot = g.reduce(np.add, n), g.reduce(np.add, of)
            mean = g.reduce(np.add, np.where(ran, n / of, 0.0)) / g.reduce(np.add, ran.astype(np.float64))
    exe, pot, mean, F, p, block = floats(thread_insts=exe, potential=pot, mean=mean, F=F, p=p, block_size=block_size)
    bad = bad | is_implausible(F)
    with np.errstate(all="ignore"):
        raw = (mean if form == AS_PUBLISHED else exe / pot) * F
        fill = block / (WARP * np.ceil(block / WARP))
        flags = mask(
            (Flag.INPUT_SUSPECT, bad | over | (F > 1)), (Flag.ZERO_DENOM, pot == 0), (Flag.TAIL_EFFECT, fill < 1)
        )
        if form == AS_PUBLISHED:
            result = _published(raw, p, 1 / raw, flags)
        else:
            result = _consistent(np.where(bad | (pot == 0), np.nan, raw), known_share(p), flags)
        over_fill = clip_to_unit(result.value / fill)
    return Divergence(*result, np.asarray(fill), over_fill, ids)


def load_balance_warp(
    tot_active_warps: ArrayLike,
    tot_active_cycles: ArrayLike,
    block_size: ArrayLike,
    blocks_per_sm: ArrayLike,
    p: ArrayLike | None = None,
    form: str = CONSISTENT,
    *,
    grid_blocks: ArrayLike | None = None,
    sms: ArrayLike | None = None,
) -> Criterion:
    r"""LoadBalance_Warp (D): warps that were active over warps that fit.

    .. math:: c = \frac{\sum_{SM} \mathrm{TotActiveWarps} / \sum_{SM} \mathrm{TotActiveCycles}}
              {\lceil \mathrm{BLOCKSIZE}/32 \rceil \cdot \mathrm{Blocks\_per\_SM}} \qquad S = \frac{1}{1 - p + p\,c}

    Source: [FineGrained2016] section IV-D and V.

    Args:
        tot_active_warps: Active warps, summed over the active cycles; one SM a place on the last axis [warp cycles].
        tot_active_cycles: Cycles in which the SM was not idle; likewise [cycles].
        block_size: Threads a block.
        blocks_per_sm: Blocks that can be resident on one SM.
        p: Idle share of the cycles [1], because a warp more can only fill slots that are idle; None or NaN is unknown.
        form: ``consistent`` or ``as_published``.
        grid_blocks: Blocks of the grid; with ``sms`` it holds the resident blocks under ceil(grid / SMs).
        sms: SMs of the device.

    Returns: Criterion, without the axis of SMs. ``load_balance_warp_printed`` takes aggregates.

    Range: criterion in [0, 1], speedup in [1, inf]. Above 1 (concurrent kernels): RAW_OUT_OF_RANGE, CLIPPED. No
    active cycle, or no block: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype; ValueError for an unknown form, for shapes that do not broadcast, or when
    the launch arguments have as many axes as the counters, whose last axis is the SM.

    Defect of the print: BLOCKSIZE/32 is not rounded up, although a partly filled warp is a whole one, and the speedup
    1/c takes the whole time as affected; default consistent.

    >>> result = load_balance_warp([2400, 800], [100, 100], 256, 4, p=0.5)
    >>> float(result.value), round(float(result.speedup), 3)
    (0.5, 1.333)
    """
    check_form(form)
    warps, cycles = floats(tot_active_warps=tot_active_warps, tot_active_cycles=tot_active_cycles)
    launch = {"block_size": block_size, "blocks_per_sm": blocks_per_sm, "p": p, "grid_blocks": grid_blocks, "sms": sms}
    axes = max(1, warps.ndim) - 1
    for name, value in launch.items():
        shape = np.shape(0 if value is None else value)
        if len(shape) > axes:
            raise ValueError(
                f"{name} has shape {shape}, the counters {warps.shape}; allowed: theirs without the last axis, the SM"
            )
    warps, cycles = _by_sm(warps), _by_sm(cycles)
    bad = np.asarray(is_implausible(warps, cycles).any(axis=-1))
    return _load_balance_warp(warps.sum(axis=-1), cycles.sum(axis=-1), bad, form, launch)


def load_balance_warp_printed(
    active_warps: ArrayLike,
    active_cycles: ArrayLike,
    block_size: ArrayLike,
    blocks_per_sm: ArrayLike,
    p: ArrayLike | None = None,
    form: str = CONSISTENT,
    *,
    grid_blocks: ArrayLike | None = None,
    sms: ArrayLike | None = None,
) -> Criterion:
    r"""LoadBalance_Warp (D) from one number per kernel, as a profiler prints it: sums or averages over the SMs.

    .. math:: c = \frac{\mathrm{avg}\,\mathrm{TotActiveWarps} / \mathrm{avg}\,\mathrm{TotActiveCycles}}
              {\lceil \mathrm{BLOCKSIZE}/32 \rceil \cdot \mathrm{Blocks\_per\_SM}}

    Source: [FineGrained2016] section IV-D and V.

    Args:
        active_warps: Sum or average over the SMs of the active warps [warp cycles].
        active_cycles: The same aggregate of the active cycles [cycles]; 1 if ``active_warps`` is a cycle's already.
        block_size: Threads a block.
        blocks_per_sm: Blocks that can be resident on one SM.
        p: Idle share of the cycles [1]; None or NaN is unknown.
        form: ``consistent`` or ``as_published``.
        grid_blocks: Blocks of the grid.
        sms: SMs of the device.

    Returns: Criterion.

    Range: as `load_balance_warp`.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print and default: as `load_balance_warp`.

    >>> float(load_balance_warp_printed(1600.0, 100.0, 256, 4).value)
    0.5
    """
    check_form(form)
    warps, cycles = floats(active_warps=active_warps, active_cycles=active_cycles)
    launch = {"block_size": block_size, "blocks_per_sm": blocks_per_sm, "p": p, "grid_blocks": grid_blocks, "sms": sms}
    return _load_balance_warp(warps, cycles, is_implausible(warps, cycles), form, launch)


def _load_balance_warp(
    warps: Array, cycles: Array, bad: Bools, form: str, launch: dict[str, ArrayLike | None]
) -> Criterion:
    warps, cycles, block, blocks, p, grid, sms = floats(active_warps=warps, active_cycles=cycles, **launch)
    bad = bad | is_implausible(block, blocks)
    with np.errstate(all="ignore"):
        if form == AS_PUBLISHED:
            most = (block / WARP) * blocks
            raw = (warps / cycles) / most
        else:
            dealt = np.ceil(grid / sms)
            most = np.ceil(block / WARP) * np.where(dealt > 0, np.minimum(blocks, dealt), blocks)
            bad = bad | (grid < 0) | (sms < 0)
            raw = np.where(bad | (cycles == 0) | (most == 0), np.nan, (warps / cycles) / most)
        flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, (cycles == 0) | (most == 0)))
        return _published(raw, p, 1 / raw, flags) if form == AS_PUBLISHED else _consistent(raw, known_share(p), flags)


def load_balance_sm(active_cycles: ArrayLike, clk_cycles: ArrayLike | None = None, form: str = CONSISTENT) -> Criterion:
    r"""LoadBalance_SM (E): average over maximum of the SMs' active cycles.

    .. math:: c = 1 - \frac{\max - \mathrm{avg}}{\max} = \frac{\mathrm{avg}}{\max} \qquad
              S = \frac{1}{1 - p + p\,c} \qquad p = \min(1, \max/\mathrm{CLK})

    Source: [FineGrained2016] section IV-E and V.

    Args:
        active_cycles: Cycles in which the SM was not idle, one SM a place on the last axis; an SM that never worked
            counts, with 0 [cycles].
        clk_cycles: Elapsed cycles of the kernel [cycles]; None or NaN is unknown.
        form: ``consistent`` or ``as_published``.

    Returns: Criterion, without the axis of SMs. ``load_balance_sm_printed`` takes average and maximum.

    Range: criterion in [1/|SM|, 1], speedup in [1, |SM|]. No active cycle: NaN, ZERO_DENOM. More active than elapsed:
    INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for no SM, shapes that do not broadcast or an unknown form.

    Defect of the print: the speedup 1/c takes the whole time as affected; default consistent.

    >>> float(load_balance_sm([100, 100, 100, 60]).value)
    0.9
    """
    cycles = _by_sm(floats(active_cycles=active_cycles)[0])
    with np.errstate(all="ignore"):
        most = cycles.max(axis=-1)
        avg = np.minimum(cycles.mean(axis=-1), most)  # above the maximum by rounding only
    return _load_balance_sm(avg, most, clk_cycles, form, np.asarray(is_implausible(cycles).any(axis=-1)))


def load_balance_sm_printed(
    avg_cycles: ArrayLike, max_cycles: ArrayLike, clk_cycles: ArrayLike | None = None, form: str = CONSISTENT
) -> Criterion:
    r"""LoadBalance_SM (E) from the average and the maximum that a profiler prints.

    .. math:: c = \frac{\mathrm{avg}}{\max}

    Source: [FineGrained2016] section IV-E and V.

    Args:
        avg_cycles: Average over the SMs of the active cycles [cycles].
        max_cycles: Their maximum [cycles].
        clk_cycles: Elapsed cycles of the kernel [cycles]; None or NaN is unknown.
        form: ``consistent`` or ``as_published``.

    Returns: Criterion.

    Range: as `load_balance_sm`; an average above the maximum: INPUT_SUSPECT, RAW_OUT_OF_RANGE, CLIPPED.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print and default: as `load_balance_sm`.

    >>> result = load_balance_sm_printed(90.0, 100.0, 200.0)
    >>> float(result.value), float(result.share), round(float(result.speedup), 4)
    (0.9, 0.5, 1.0526)
    """
    avg, most = floats(avg_cycles=avg_cycles, max_cycles=max_cycles)
    return _load_balance_sm(avg, most, clk_cycles, form, is_implausible(avg, most))


def _load_balance_sm(avg: Array, most: Array, clk_cycles: ArrayLike | None, form: str, bad: Bools) -> Criterion:
    check_form(form)
    avg, most, clk = floats(avg_cycles=avg, max_cycles=most, clk_cycles=clk_cycles)
    known = ~np.isnan(clk)
    with np.errstate(all="ignore"):
        p = most / clk
        flags = mask(
            (Flag.INPUT_SUSPECT, bad | (avg > most) | (p > 1 + RELATIVE_TOLERANCE) | (known & is_implausible(clk))),
            (Flag.ZERO_DENOM, (most == 0) | (clk == 0)),
        )
        if form == AS_PUBLISHED:
            raw = 1 - (most - avg) / most
            return _published(raw, p, 1 / raw, flags)
        raw = np.where(bad | (most == 0), np.nan, avg / most)
    p = np.where(known, np.where(bad | is_implausible(clk) | (clk == 0), np.nan, clip_to_unit(p)), 1.0)
    return _consistent(raw, Share(p, mask((Flag.UPPER_BOUND, ~known))), flags)


def _by_sm(counter: Array) -> Array:
    counter = np.atleast_1d(counter)
    if counter.shape[-1] == 0:
        raise ValueError(f"the counters have shape {counter.shape}; allowed: at least one SM on the last axis")
    return counter
