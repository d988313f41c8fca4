"""Shares of a kernel's time by unit: DRAM%, L2%, L1%, ShMem%, arithmetic% beside the idle share."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    MAX_SHARE_NOT_PERCENT,
    Array,
    Mask,
    arrays,
    clip_to_unit,
    floats,
    is_implausible,
    mask,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, FORMS, Flag, check_form
from profsvc.formulas.performance.operations import OPERATIONS, UNITS

BOTTLENECK = "bottleneck"
_FIRST_OPERATION = (0, 2, 4, 6, 8)
_PRIVATE = np.array([False, False, True, True, True])  # to the SM; the others serve the whole device


class TimeShares(NamedTuple):
    """Per unit on the last axis, in the order of ``UNITS``; ``idle`` and ``bottleneck`` per kernel."""

    busy: Array
    utilization: Array
    other_utilization: Array
    share: Array
    idle: Array
    bottleneck: NDArray[np.int8]
    flags: Mask


def time_shares(
    counts: ArrayLike,
    cost: ArrayLike,
    cycles: ArrayLike,
    idle: ArrayLike,
    sms: ArrayLike,
    form: str = CONSISTENT,
) -> TimeShares:
    r"""Shares of a kernel's time from its operations and what each costs.

    .. math:: busy_X = \sum_{op} n_{X,op} k_{X,op} / m_X \qquad u_X = \frac{busy_X}{cycles} \qquad
              s_X = (1 - idle) \frac{busy_X}{\sum_Y busy_Y}

    with m = SMs for L1, shared memory and arithmetic, which each SM has, and 1 for L2 and DRAM.

    Source: [FineGrained2016] section V; the reciprocal throughputs and the normalisation are this project's.

    Args:
        counts: Operations of the kernel over the whole device, ``OPERATIONS`` on the last axis [count].
        cost: Cycles an operation, likewise: reciprocal throughput at saturation, for arithmetic 1 / peak warp
            instructions per cycle of an SM. In the published form latencies [cycles].
        cycles: Elapsed cycles of the kernel [cycles].
        idle: Idle share of the cycles [1]; the published form does not use it.
        sms: SMs of the device; likewise.
        form: ``consistent``, ``as_published``, or ``bottleneck``: only the busiest unit costs time, and has all that
            is not idle.

    Returns: TimeShares; ``bottleneck`` is the place of the busiest unit, -1 if none worked; ``other_utilization`` is
    the largest of the other units, for `speedup.bottleneck_speedup`.

    Range: share in [0, 1]; consistent shares and ``idle`` add up to 1. No operation at all: shares 0, NOT_APPLICABLE.
    Utilization above 1 (cost too large): INPUT_SUSPECT. No cycles, or no SMs: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for a last axis that is not 12, shapes that do not broadcast or an
    unknown form.

    Defect of the print, sum of n * latency / cycles: latencies overlap, and counts of the device stand over cycles of
    an SM, so that it can be far above 1; default consistent.

    >>> counts = [100, 0, 200, 0, 800, 0, 0, 0, 0, 1600, 0, 0]
    >>> cost = [2, 2, 1, 1, 1, 1, 1, 1, 0.5, 0.5, 2, 4]
    >>> result = time_shares(counts, cost, cycles=500, idle=0.2, sms=4)
    >>> result.share.tolist(), UNITS[result.bottleneck]
    ([0.2, 0.2, 0.2, 0.0, 0.2], 'dram')
    """
    check_form(form, (*FORMS, BOTTLENECK))
    n, k = floats(counts=counts, cost=cost)
    if n.shape[-1:] != (len(OPERATIONS),):
        raise ValueError(f"counts and cost have shape {n.shape}; allowed: the {len(OPERATIONS)} OPERATIONS last")
    cycles, idle, sms, _ = floats(cycles=cycles, idle=idle, sms=sms, counts=n[..., 0])
    shape = (*cycles.shape, len(UNITS))
    bad = np.logical_or.reduceat(is_implausible(n, k), _FIRST_OPERATION, axis=-1)
    bad = bad | (_PRIVATE & is_implausible(sms)[..., np.newaxis] & (form != AS_PUBLISHED))
    with np.errstate(all="ignore"):
        busy = np.broadcast_to(np.add.reduceat(n * k, _FIRST_OPERATION, axis=-1), shape)
        if form == AS_PUBLISHED:
            share = utilization = busy / cycles[..., np.newaxis]
        else:
            busy = np.where(_PRIVATE, busy / sms[..., np.newaxis], busy)
            busy = np.where(bad | (_PRIVATE & (sms == 0)[..., np.newaxis]), np.nan, busy)
            wrong = is_implausible(cycles) | (cycles == 0)
            utilization = np.where(wrong[..., np.newaxis], np.nan, busy / cycles[..., np.newaxis])
            share = _shares(busy, np.where(is_implausible(idle), np.nan, clip_to_unit(idle)), form)
    none = (busy == 0).all(axis=-1)
    most = np.where(none | np.isnan(busy).any(axis=-1), -1, busy.argmax(axis=-1)).astype(np.int8)
    by_kernel = mask(
        (Flag.INPUT_SUSPECT, is_implausible(cycles, idle) | (idle > MAX_SHARE_NOT_PERCENT)),
        (Flag.RAW_OUT_OF_RANGE, idle > 1),
        (Flag.ZERO_DENOM, cycles == 0),
        (Flag.NOT_APPLICABLE, none),
    )
    flags = by_kernel[..., np.newaxis] | mask(
        (Flag.INPUT_SUSPECT, bad | (utilization > 1)),
        (Flag.ZERO_DENOM, _PRIVATE & (sms == 0)[..., np.newaxis] & (form != AS_PUBLISHED)),
        (Flag.RAW_OUT_OF_RANGE, share > 1),
    )
    return TimeShares(*arrays(busy, utilization, _largest_other(utilization), share, idle, most, flags))


def _shares(busy: Array, idle: Array, form: str) -> Array:
    if form == BOTTLENECK:
        most = busy.max(axis=-1, keepdims=True)
        busy = np.where(np.isnan(most), np.nan, np.where(busy == most, busy, 0.0))
    total = busy.sum(axis=-1, keepdims=True)
    return np.where(total == 0, 0.0, (1 - idle)[..., np.newaxis] * (busy / total))


def _largest_other(utilization: Array) -> Array:
    """Largest of the other units, for each unit; NaN is unknown and spreads."""
    first = utilization.max(axis=-1, keepdims=True)
    second = np.sort(utilization, axis=-1)[..., -2:-1]
    alone = (utilization == first) & ((utilization == first).sum(axis=-1, keepdims=True) == 1)
    return np.where(alone, second, first)
