"""Criteria F, G and H: how well the caches, the shared memory and the DRAM are used."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.criteria.result import Criterion, _consistent, _published, _range_flags
from profsvc.formulas.numerics.arrays import (
    MAX_SHARE_NOT_PERCENT,
    Array,
    Bools,
    Mask,
    arrays,
    clip_to_unit,
    floats,
    is_implausible,
    known_share,
    mask,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, FORMS, Flag, check_form
from profsvc.formulas.performance.speedup import bottleneck_speedup

BOTTLENECK = "bottleneck"
MAX_CONFLICT = 32


class SharedEfficiency(NamedTuple):
    """As Criterion, and the conflict degree."""

    raw: Array
    value: Array
    share: Array
    speedup: Array
    flags: Mask
    degree: Array


class ThroughputOccupancy(NamedTuple):
    """The criterion, its speedup, and the inverse of the criterion."""

    raw: Array
    value: Array
    speedup: Array
    inverse: Array
    flags: Mask


def granularity(
    transactions: ArrayLike,
    requested_bytes: ArrayLike,
    line_bytes: ArrayLike,
    share: ArrayLike | None = None,
    form: str = CONSISTENT,
    *,
    l1_hit_ratio: ArrayLike | None = None,
    lane_insts: ArrayLike | None = None,
    warp_insts: ArrayLike | None = None,
    cached: ArrayLike = True,
    utilization: ArrayLike | None = None,
    other_utilization: ArrayLike | None = None,
) -> Criterion:
    r"""L1_Granularity and L2_Granularity (F): requested bytes over moved bytes.

    .. math:: c = \frac{\sum_T \mathrm{Mem\_instr}_T \cdot size_T}{\mathrm{transactions} \cdot \mathrm{line}}
              \qquad S = \frac{1}{1 - p + p\,c}

    Source: [FineGrained2016] section IV-F and V.

    Args:
        transactions: Loads and stores of the cache [count].
        requested_bytes: Global accesses of all lanes times their size [bytes].
        line_bytes: 128 for L1, 32 for L2 [bytes].
        share: Share of the time in this cache, L1% or L2% [1]; None or NaN is unknown.
        form: ``consistent``, ``as_published``, or ``bottleneck``: consistent, with the speedup of
            `speedup.bottleneck_speedup`.
        l1_hit_ratio: For L2: the part of the requests that L1 answers [1]; None or NaN takes none off.
        lane_insts: Global accesses as counted for ``requested_bytes``, to check the count.
        warp_insts: Warp instructions among them.
        cached: False where the cache does not serve global memory.
        utilization: For ``bottleneck``: utilization of this cache [1]; None or NaN is unknown.
        other_utilization: For ``bottleneck``: the largest utilization of the other units [1].

    Returns: Criterion.

    Range: criterion in [0, 1], speedup in [1, inf]. No request, or not cached: 1, NOT_APPLICABLE. Requests without a
    transaction: 1, ZERO_DENOM. Above 1 (L1 reuse, broadcast): RAW_OUT_OF_RANGE, CLIPPED. Fewer lane than warp
    instructions (counted per instruction, 32 times too few bytes), or transactions without a request: INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: the fraction is upside down and grows from 1 to 128 as accesses get worse, and the speedup
    (1/c) p falls below 1; default consistent, the reciprocal.

    >>> float(granularity(32, 128, 128).value), float(granularity(32, 128, 128, form="as_published").value)
    (0.03125, 32.0)
    """
    check_form(form, (*FORMS, BOTTLENECK))
    on = np.asarray(cached)
    if on.dtype.kind != "b":
        raise TypeError(f"cached has dtype {on.dtype}; allowed: bool")
    moved, asked, line, p, hit, lanes, warps, u, u_other, served = floats(
        transactions=transactions,
        requested_bytes=requested_bytes,
        line_bytes=line_bytes,
        p=share,
        l1_hit_ratio=l1_hit_ratio,
        lane_insts=lane_insts,
        warp_insts=warp_insts,
        utilization=utilization,
        other_utilization=other_utilization,
        cached=on.astype(np.int8),
    )
    bad = is_implausible(moved, asked, line)
    unused = ((asked == 0) & ~bad) | (served == 0)
    with np.errstate(all="ignore"):
        if form == AS_PUBLISHED:
            flags = mask((Flag.INPUT_SUSPECT, bad | (lanes < warps)), (Flag.ZERO_DENOM, asked == 0))
            return _published_by_share(moved * line / asked, p, flags)
        bad_hit = np.isinf(hit) | (hit < 0) | (hit > 1)
        asked = asked * (1 - np.where(np.isnan(hit), 0.0, hit))
        raw = np.where(moved == 0, 1.0, asked / (moved * line))
        raw = np.where(bad | bad_hit | (line == 0), np.nan, raw)
    flags = mask(
        (Flag.INPUT_SUSPECT, bad | bad_hit | (lanes < warps) | ((asked == 0) & (moved > 0))),
        (Flag.ZERO_DENOM, ~unused & ((moved == 0) | (line == 0))),
    )
    result = _consistent(raw, known_share(p), flags, unused)
    return _bottleneck(result, u, u_other, flags, unused) if form == BOTTLENECK else result


def shared_efficiency(
    ideal: ArrayLike,
    actual: ArrayLike,
    F: ArrayLike | None = None,
    share: ArrayLike | None = 0.0,
    form: str = CONSISTENT,
    *,
    utilization: ArrayLike | None = None,
    other_utilization: ArrayLike | None = None,
) -> SharedEfficiency:
    r"""SharedMemEfficiency (G): shared-memory transactions without over those with bank conflicts.

    .. math:: d = \frac{actual}{ideal} \qquad c = \frac{1}{d} \cdot F_{SHMEM}(d) \qquad
              S = \frac{1}{1 - p + p\,c}

    Source: [FineGrained2016] section IV-G and V; F_SHMEM(d) = d t(1)/t(d) is this project's reading, so that
    c = t(1)/t(d).

    Args:
        ideal: Fewest transactions possible: 1 a warp instruction of up to 4 bytes per lane, 2 for 8, 4 for 16 [count].
            In the words of the print, its transactions.
        actual: Transactions with replays [count]. In the words of the print, its accesses.
        F: F_SHMEM at d [1]; None where it was not measured, then 1.
        share: Share of the time in shared memory, ShMem% [1]; None or NaN is unknown.
        form: ``consistent``, ``as_published``, or ``bottleneck``: consistent, with the speedup of
            `speedup.bottleneck_speedup`.
        utilization: For ``bottleneck``: utilization of shared memory [1]; None or NaN is unknown.
        other_utilization: For ``bottleneck``: the largest utilization of the other units [1].

    Returns: SharedEfficiency; ``degree`` is d, between 1 and 32.

    Range: criterion in [0, 1], speedup in [1, inf]. No shared memory used: 1, NOT_APPLICABLE. d < 1: the counters
    are swapped; 1/d is used, with INPUT_SUSPECT. d > 32: INPUT_SUSPECT. One of them 0: NaN, ZERO_DENOM, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: its two words mean the reverse of what profilers call them, F counts the conflict a second
    time, and the speedup (1/c) p falls below 1; default consistent.

    >>> result = shared_efficiency(1000, 4000, share=0.5)
    >>> float(result.value), float(result.degree), float(result.speedup)
    (0.25, 4.0, 1.6)
    """
    check_form(form, (*FORMS, BOTTLENECK))
    ideal, actual, F, p, u, u_other = floats(
        ideal=ideal,
        actual=actual,
        F=1.0 if F is None else F,
        p=share,
        utilization=utilization,
        other_utilization=other_utilization,
    )
    bad = is_implausible(ideal, actual, F)
    with np.errstate(all="ignore"):
        d = actual / ideal
        if form == AS_PUBLISHED:
            flags = mask((Flag.INPUT_SUSPECT, bad | (d > MAX_CONFLICT)), (Flag.ZERO_DENOM, actual == 0))
            return SharedEfficiency(*_published_by_share(ideal / actual * F, p, flags), np.asarray(d))
        unused = (ideal == 0) & (actual == 0)
        half = ((ideal == 0) | (actual == 0)) & ~unused
        flags = mask((Flag.INPUT_SUSPECT, bad | half | (d < 1) | (d > MAX_CONFLICT)), (Flag.ZERO_DENOM, half))
        d = np.where(bad | half, np.nan, np.where(unused, 1.0, np.where(d < 1, 1 / d, d)))
        raw = 1 / d * F
    result = _consistent(raw, known_share(p), flags, unused & ~bad)
    if form == BOTTLENECK:
        result = _bottleneck(result, u, u_other, flags, unused & ~bad)
    return SharedEfficiency(*result, np.asarray(d))


def _published_by_share(raw: Array, p: Array, flags: Mask) -> Criterion:
    share = np.where(np.isnan(p), 1.0, p)
    return _published(raw, share, 1 / raw * share, np.asarray(flags | known_share(p).flags))


def _bottleneck(result: Criterion, u: Array, u_other: Array, flags: Mask, unused: Bools) -> Criterion:
    """Replace share and speedup by those of the busiest unit alone."""
    own = known_share(u)
    # Unknown others are taken as idle, which leaves the ceiling 1/c.
    others = known_share(np.where(np.isnan(u_other), 0.0, u_other))
    unknown = np.isnan(u) | np.isnan(u_other)
    used = flags | own.flags | others.flags | mask((Flag.UPPER_BOUND, unknown))
    speedup = np.where(unused, 1.0, bottleneck_speedup(own.value, others.value, result.value))
    flags = np.where(unused, flags | np.uint32(Flag.NOT_APPLICABLE), used) | _range_flags(result.raw, result.value)
    return Criterion(*arrays(result.raw, result.value, np.where(unused, 0.0, own.value), speedup, flags))


def throughput_occupancy(
    occ: ArrayLike,
    memthr: ArrayLike,
    tol: float = 0.05,
    form: str = CONSISTENT,
    *,
    ceiling: ArrayLike | None = None,
) -> ThroughputOccupancy:
    r"""Throughput/Occupancy (H): whether bandwidth or occupancy is exhausted.

    .. math:: c = 1 - (1 - occ)(1 - \mathrm{MEMTHR}) \qquad S = \min(1/occ, 1/\mathrm{MEMTHR})

    Source: [FineGrained2016] section IV-H and V; the range of "about 1", ``tol``, is this project's.

    Args:
        occ: Occupancy that the block, the grid and its resources allow (`occupancy.launch_occupancy`) [1].
        memthr: MEMTHR (`speedup.attained_ratio`) [1].
        tol: For ``as_published``: MEMTHR this near to 1 gives 1.
        form: ``consistent`` or ``as_published``.
        ceiling: Overall potential (`speedup.potential_speedup`) that caps the consistent speedup [1]; None or NaN for
            no cap.

    Returns: ThroughputOccupancy; ``inverse`` is 1/c.

    Range: criterion in [0, 1], speedup in [1, 1/occ]. No occupancy: NaN, ZERO_DENOM. A ratio above 1: clipped,
    RAW_OUT_OF_RANGE, above 1.5 INPUT_SUSPECT. No DRAM traffic: the criterion is the occupancy.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print, 1 - (1 - occ) MEMTHR: falls as the throughput grows, then jumps to 1; (0.1, 0.1), bad in both,
    scores 0.91; default consistent.

    >>> round(float(throughput_occupancy(0.1, 0.1).value), 2)
    0.19
    >>> round(float(throughput_occupancy(0.1, 0.1, form="as_published").value), 2)
    0.91
    """
    check_form(form)
    o, m, cap = floats(occ=occ, memthr=memthr, ceiling=ceiling)
    bad = is_implausible(o, m)
    with np.errstate(all="ignore"):
        flags = mask(
            (Flag.INPUT_SUSPECT, bad | (o > MAX_SHARE_NOT_PERCENT) | (m > MAX_SHARE_NOT_PERCENT)),
            (Flag.RAW_OUT_OF_RANGE, (o > 1) | (m > 1)),
            (Flag.ZERO_DENOM, o == 0),
        )
        if form == AS_PUBLISHED:
            raw = np.where(np.abs(m - 1) <= tol, 1.0, 1 - (1 - o) * m)
            return ThroughputOccupancy(*arrays(raw, raw, 1 / raw, 1 / raw, flags | _range_flags(raw, raw)))
        nothing = bad | (o == 0)
        # occ + MEMTHR (1 - occ) is the same, and keeps the digits of a small occupancy.
        raw = np.where(nothing, np.nan, o + m * (1 - o))
        o, m = clip_to_unit(o), clip_to_unit(m)
        value = np.where(nothing, np.nan, o + m * (1 - o))
        speedup = np.where(nothing, np.nan, np.minimum(1 / o, 1 / m))
        speedup = np.where(cap < speedup, cap, speedup)
        inverse = 1 / value
    return ThroughputOccupancy(*arrays(raw, value, speedup, inverse, flags | _range_flags(raw, value)))
