"""Criteria A and B: the time between kernels, and the time at barriers inside them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.criteria.result import Criterion, _consistent, _published, _range_flags
from profsvc.formulas.numerics.arrays import (
    MAX_SHARE_NOT_PERCENT,
    RELATIVE_TOLERANCE,
    Array,
    Bools,
    Groups,
    Mask,
    Share,
    arrays,
    broadcast,
    clip_to_unit,
    floats,
    is_implausible,
    mask,
    numbers,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, FORMS, Flag, check_form


class _Timeline(NamedTuple):
    order: NDArray[np.intp]
    gaps: Array
    alone: Array
    ends: Array
    overlaps: Bools
    bad: Bools


class HostSync(NamedTuple):
    """One entry per group; ``gaps`` has one per row, the idle time right before it."""

    raw: Array
    value: Array
    busy: Array
    span: Array
    concurrency: Array
    speedup: Array
    gaps: Array
    group: NDArray[np.int64]
    flags: Mask


def host_sync(
    start: ArrayLike,
    duration: ArrayLike,
    group: ArrayLike | None = None,
    form: str = CONSISTENT,
    *,
    is_copy: ArrayLike | None = None,
    busy: str = "kernels",
) -> HostSync:
    r"""HostSync (A): share of an application's time on the device in which something runs.

    .. math:: c = \frac{B}{S} \qquad
              B = \Bigl|\bigcup_i [start_i, start_i + dur_i)\Bigr| \qquad
              S = \max_i(start_i + dur_i) - \min_i start_i

    Source: [FineGrained2016] section IV-A; speedup 1/c, section V.

    Args:
        start: Device time at which the kernel begins, flat [ns or s]; integers are subtracted exactly.
        duration: Execution time on the device, in the unit of ``start``.
        group: Application run of the kernel; none means that all are of one.
        form: ``consistent`` or ``as_published``.
        is_copy: Where a row is a transfer and not a kernel.
        busy: ``kernels`` counts transfers as gaps, ``kernels+copies`` as busy.

    Returns: HostSync; ``concurrency`` is the sum of the durations over their union.

    Range: (0, 1]; the speedup is exact for "all gaps removed, kernels unchanged". No kernel: NaN, NOT_APPLICABLE.
    No span (S = 0): 1, ZERO_DENOM. Overlap raises OVERLAP in both forms. One suspect row makes its group NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit, an unknown form or ``busy``.

    Defect of the print, sum of durations over (start_N + dur_N - start_1): above 1 when kernels run at the same time,
    and the last to start need not be the last to end; default consistent.

    >>> result = host_sync([0, 5, 30], [10, 15, 10])
    >>> float(result.value), float(result.concurrency), result.gaps.tolist()
    (0.75, 1.1666666666666667, [0.0, 0.0, 10.0])
    """
    check_form(form)
    s, d = broadcast(start=numbers("start", start), duration=floats(duration=duration)[0])
    s, d = np.atleast_1d(s), np.atleast_1d(d)
    if s.ndim > 1:
        raise ValueError(f"start and duration have shape {s.shape}; allowed: flat arrays, with group ids")
    keep = np.broadcast_to(_counted_rows(is_copy, busy), s.shape)
    g = Groups(group, s.size, keep)
    gaps = np.zeros(s.size)
    with np.errstate(all="ignore"):
        line = _timeline(s[keep], d[keep], g)
        gaps[keep] = line.gaps
        bad = g.any(line.bad)
        # Summed in the order of time, so that the order of the rows does not change a bit.
        total = g.reduce(np.add, d[keep], line.order)
        S = g.reduce(np.maximum, line.ends)
        B = np.minimum(g.reduce(np.add, line.alone, line.order), S)  # a union is longer than its span by rounding only
        concurrency = np.where(B > 0, np.maximum(total / B, 1.0), 1.0)
        if form == AS_PUBLISHED:
            last = line.order[g.starts + g.counts[g.filled] - 1]
            S[g.filled] = line.ends[last]
            B = total
        else:
            B, S, concurrency = (np.where(bad | ~g.filled, np.nan, x) for x in (B, S, concurrency))
    raw, value, speedup, flags = _criterion(B, S, form, bad, g.filled, g.any(line.overlaps))
    raw, value, B, S, concurrency, speedup, ids, flags = g.shaped(raw, value, B, S, concurrency, speedup, g.ids, flags)
    return HostSync(raw, value, B, S, concurrency, speedup, gaps, ids, flags)


def host_sync_of_sums(
    busy: ArrayLike,
    span: ArrayLike,
    form: str = CONSISTENT,
    *,
    overlaps: ArrayLike = False,
    suspected: ArrayLike = False,
) -> Criterion:
    r"""HostSync (A) where the sums over the kernels are known, as of a trace that was added up while it was read.

    .. math:: c = \frac{B}{S} \qquad \mathrm{speedup} = \frac{1}{c}

    Source: [FineGrained2016] section IV-A; speedup 1/c, section V.

    Args:
        busy: B of `host_sync`: length of the union of all kernels; as published the sum of their durations [ns or s].
        span: S of `host_sync`: from the first start to the last end, as published to the end of the kernel that begins
            last, in the unit of ``busy``.
        form: ``consistent`` or ``as_published``.
        overlaps: Whether kernels ran at the same time.
        suspected: Whether a duration was no time.

    Returns: Criterion; ``share`` is 1 - value, the share of the time in which nothing runs.

    Range: (0, 1]; no span (S = 0): 1, ZERO_DENOM. Suspected, negative or infinite sums: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    >>> result = host_sync_of_sums(30.0, 40.0)
    >>> float(result.value), float(result.share)
    (0.75, 0.25)
    """
    check_form(form)
    B, S = floats(busy=busy, span=span)
    bad = np.asarray(suspected, dtype=np.bool_) | is_implausible(B, S)
    if form == CONSISTENT:
        B, S = np.where(bad, np.nan, np.minimum(B, S)), np.where(bad, np.nan, S)
    raw, value, speedup, flags = _criterion(B, S, form, bad, np.ones_like(bad), np.asarray(overlaps, dtype=np.bool_))
    return Criterion(*arrays(raw, value, 1.0 - value, speedup, flags))


def _criterion(B: Array, S: Array, form: str, bad: Bools, filled: Bools, overlaps: Bools) -> tuple[Any, ...]:
    """Return raw and clipped criterion, speedup and flags."""
    with np.errstate(all="ignore"):
        raw = np.asarray(B / S if form == AS_PUBLISHED else np.where(S == 0, 1.0, B / S))
        value = raw if form == AS_PUBLISHED else clip_to_unit(raw)
        speedup = np.asarray(1 / value)
    flags = mask(
        (Flag.INPUT_SUSPECT, bad),
        (Flag.NOT_APPLICABLE, ~filled),
        (Flag.ZERO_DENOM, filled & ((S == 0) | (value == 0))),
        (Flag.OVERLAP, overlaps),
    ) | _range_flags(raw, value)
    return raw, value, speedup, flags


def _counted_rows(is_copy: ArrayLike | None, busy: str) -> Bools:
    if busy not in ("kernels", "kernels+copies"):
        raise ValueError(f"busy is {busy!r}; allowed: 'kernels', 'kernels+copies'")
    copies = np.zeros((), dtype=np.bool_) if is_copy is None else np.asarray(is_copy)
    if copies.dtype.kind != "b" and copies.size:
        raise TypeError(f"is_copy has dtype {copies.dtype}; allowed: bool")
    return np.asarray((busy == "kernels+copies") | ~copies.astype(np.bool_))


def _timeline(s: NDArray[Any], d: Array, g: Groups) -> _Timeline:
    """Order the rows by group, start and end; find the gap before each and the time that it alone adds."""
    first = g.reduce(np.minimum, s)[g.codes]
    if s.dtype.kind in "iu":
        # Modulo 2**64 the difference to the earliest is exact for all pairs of 64-bit integers.
        t = (s.astype(np.uint64) - first.astype(np.uint64)).astype(np.float64)
        size = t + d
    else:
        t = np.asarray(s - first, dtype=np.float64)
        size = np.abs(s) + d
    e = t + d
    blur = 4 * np.spacing(size)  # a row's end and the next start, both rounded; far below 1 for integers
    order = np.lexsort((e, t, g.codes))
    by_end = np.lexsort((e, g.codes))
    rank = np.empty_like(by_end)
    rank[by_end] = np.arange(by_end.size)
    # Ranks grow from group to group, so that their running maximum restarts with each group.
    latest = e[by_end[np.maximum.accumulate(rank[order])]]
    before = np.concatenate(([-np.inf], latest[:-1]))[: latest.size]
    before[g.starts] = -np.inf
    ends_before = np.empty_like(e)
    ends_before[order] = before
    gaps = np.where(np.isneginf(ends_before), 0.0, np.maximum(0.0, t - ends_before))
    alone = np.maximum(0.0, e - np.maximum(t, ends_before))
    overlaps = np.minimum(e, ends_before) - t > blur
    return _Timeline(order, gaps, alone, e, overlaps, is_implausible(d) | ~np.isfinite(s.astype(np.float64)))


def device_sync(
    stall_sync: ArrayLike,
    tot_active_warps: ArrayLike,
    max_warps_device: ArrayLike,
    clk_cycles: ArrayLike,
    form: str = CONSISTENT,
    *,
    issue_utilization: ArrayLike | None = None,
    barriers: ArrayLike | None = None,
) -> Criterion:
    r"""DeviceSync (B): share of the stalls that are no barrier stalls.

    .. math:: c = 1 - \mathrm{StallSync} \qquad
              p = 1 - \frac{\mathrm{TotActiveWarps}}{|\mathrm{Warps}| \cdot \mathrm{CLK}} \qquad
              S = \frac{1}{1 - p \cdot \mathrm{StallSync}}

    Source: [FineGrained2016] section IV-B and V.

    Args:
        stall_sync: Barrier stalls / all stalls [1].
        tot_active_warps: Active warps, summed over cycles and SMs [warp cycles].
        max_warps_device: SMs x maximum of warps per SM [warps].
        clk_cycles: Elapsed cycles of the kernel [cycles].
        form: ``consistent``, ``as_published``, or ``issue``: consistent, with p = 1 - ``issue_utilization``, because
            active warps are resident and need not issue.
        issue_utilization: Share of the issue slots in use, for the form ``issue`` [1].
        barriers: Barrier instructions executed, if known; 0 makes the criterion not applicable.

    Returns: Criterion; ``share`` is p.

    Range: criterion in [0, 1], speedup in [1, inf]. p < 0 (a sum over kernels, or one SM's counter against the
    device's maximum): 0, INPUT_SUSPECT. No cycles or warps: share and speedup NaN, ZERO_DENOM. No barriers: 1,
    NOT_APPLICABLE.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: its speedup p * StallSync is the share of time that would disappear, never above 1, and 0
    for an ideal kernel; default consistent.

    >>> result = device_sync(0.5, 3600, 60, 100)
    >>> float(result.value), round(float(result.speedup), 3)
    (0.5, 1.25)
    """
    check_form(form, (*FORMS, "issue"))
    stall, active, warps, clk, issue, bars = floats(
        stall_sync=stall_sync,
        tot_active_warps=tot_active_warps,
        max_warps_device=max_warps_device,
        clk_cycles=clk_cycles,
        issue_utilization=issue_utilization,
        barriers=barriers,
    )
    bad, bad_share = is_implausible(stall), is_implausible(active, warps, clk)
    zero = (warps == 0) | (clk == 0)
    with np.errstate(all="ignore"):
        raw = 1 - stall
        p = 1 - (active / warps) / clk
        if form == "issue":
            p = 1 - issue
            bad_share, zero = np.isinf(issue) | (issue < 0), np.zeros_like(zero)
    unknown = np.isnan(issue) & (form == "issue")
    flags = mask(
        (Flag.INPUT_SUSPECT, bad | bad_share | (stall > MAX_SHARE_NOT_PERCENT) | (~zero & (p < -RELATIVE_TOLERANCE))),
        (Flag.ZERO_DENOM, zero),
    )
    if form == AS_PUBLISHED:
        return _published(raw, p, p * stall, flags)
    p = np.where(unknown, 1.0, np.where(bad_share | zero, np.nan, clip_to_unit(p)))
    return _consistent(np.where(bad, np.nan, raw), Share(p, mask((Flag.UPPER_BOUND, unknown))), flags, bars == 0)
