"""Potential speedups: of one mechanism by its share of the time, of a kernel by its throughput, of an application."""

import enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    MAX_SHARE_NOT_PERCENT,
    RELATIVE_TOLERANCE,
    Array,
    Groups,
    Mask,
    arrays,
    broadcast,
    clip_to_unit,
    flat_floats,
    floats,
    is_implausible,
    mask,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form


class Bound(enum.IntEnum):
    """The resource that limits a kernel."""

    UNKNOWN = -1
    MEMORY = 0
    COMPUTE = 1


class AttainedRatio(NamedTuple):
    """MEMTHR or ARITHTHR."""

    raw: Array
    value: Array
    flags: Mask


class ApplicationSpeedup(NamedTuple):
    """A criterion and its speedup over the kernels of an application; one entry per group."""

    criterion: Array
    speedup: Array
    time: Array
    group: NDArray[np.int64]
    flags: Mask


class PotentialSpeedup(NamedTuple):
    """Overall potential: per kernel, and one entry per group in the fields ``application*`` and ``group``."""

    raw: Array
    speedup: Array
    case: NDArray[np.int8]
    flags: Mask
    application: Array
    application_with_host: Array
    application_flags: Mask
    group: NDArray[np.int64]


def amdahl(p: ArrayLike, c: ArrayLike) -> Array:
    r"""Speedup when a share of the time is brought to its ideal.

    .. math:: S = \frac{1}{1 - p + p\,c}

    Source: [Amdahl1967]; the repair of the speedups of [FineGrained2016] section V.

    Args:
        p: Share of the time that the mechanism accounts for [1].
        c: Quality of the mechanism, ideal time / actual time of that share [1].

    Returns: the speedup [1]; inf for p = 1, c = 0.

    Range: S >= 1 for p, c in [0, 1], and NaN outside. S = 1 for p = 0 or c = 1, S = 1/c for p = 1, S = 1/(1-p) for
    c = 0.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> round(float(amdahl(0.1, 0.5)), 6)
    1.052632
    """
    p, c = floats(p=p, c=c)
    with np.errstate(all="ignore"):
        # In this order the sum is exactly c at p = 1, and by rounding never above 1.
        s = 1 / ((1 - p) + p * c)
    return np.where(is_implausible(p, c) | (p > 1) | (c > 1), np.nan, s)


def disjoint_amdahl(p: ArrayLike, c: ArrayLike) -> Array:
    r"""Speedup when several mechanisms that share no time are all brought to their ideal.

    .. math:: S = \frac{1}{1 - \sum_k p_k (1 - c_k)}

    Source: [Amdahl1967]; the repair of the speedups of [FineGrained2016] section V.

    Args:
        p: Shares of the time, one mechanism k a place on the last axis [1]; they add up to at most 1.
        c: Their qualities [1].

    Returns: the speedup, without the last axis [1].

    Range: S >= 1; NaN where a share or quality leaves [0, 1] or the shares add up to more than 1.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or have no axis.

    >>> float(disjoint_amdahl([0.5, 0.25], [0.5, 0.0]))
    2.0
    """
    p, c = floats(p=p, c=c)
    if p.ndim == 0:
        raise ValueError("p and c have no axis; allowed: the mechanisms on the last axis")
    with np.errstate(all="ignore"):
        saving = np.minimum((p * (1 - c)).sum(axis=-1), 1.0)
        bad = (is_implausible(p, c) | (p > 1) | (c > 1)).any(axis=-1) | (p.sum(axis=-1) > 1 + RELATIVE_TOLERANCE)
        s = 1 / (1 - saving)
    return np.where(bad, np.nan, s)


def bottleneck_speedup(u: ArrayLike, u_other: ArrayLike, c: ArrayLike) -> Array:
    r"""Speedup when units work at the same time and only the busiest one costs time.

    .. math:: S = \frac{\max(u, u_o)}{\max(u_o, u\,c)}

    Source: this project's alternative to the shares of [FineGrained2016] section V.

    Args:
        u: Utilization of the unit that is improved [1].
        u_other: Largest utilization of the other units [1].
        c: Quality of the unit, ideal work / actual work [1].

    Returns: the speedup [1]; 1 where no unit works, inf where nothing is left to do.

    Range: S >= 1; at most 1/c, and at most u/u_other if the unit is the busiest.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(bottleneck_speedup(0.8, 0.5, 0.25))
    1.6
    """
    u, u_other, c = floats(u=u, u_other=u_other, c=c)
    with np.errstate(all="ignore"):
        before = np.maximum(u, u_other)
        s = np.where(before == 0, 1.0, before / np.maximum(u_other, u * c))
    return np.where(is_implausible(u, u_other, c) | (c > 1), np.nan, s)


def attained_ratio(achieved: ArrayLike, peak: ArrayLike, F: ArrayLike = 1.0, form: str = CONSISTENT) -> AttainedRatio:
    r"""MEMTHR and ARITHTHR: throughput over what is attainable on the device.

    .. math:: \mathrm{MEMTHR} = \frac{\mathrm{achieved}}{\mathrm{peak} \cdot F}

    Source: [FineGrained2016] section IV-H (memory) and V (arithmetic).

    Args:
        achieved: Throughput reached [bytes/s or operations/s].
        peak: Theoretical peak, in the unit of ``achieved``.
        F: Attained / theoretical throughput of the device (F_DRAMThr or F_ArithThr), at saturation [1].
        form: ``consistent`` or ``as_published``.

    Returns: AttainedRatio; ``value`` is ``raw`` clipped to [0, 1].

    Range: [0, 1]. Above 1 (clock boost, F too low): RAW_OUT_OF_RANGE, CLIPPED. F > 1: INPUT_SUSPECT. No peak: NaN,
    ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: F is given without its argument. At the application's own intensity the ratio is 1 by
    construction, therefore F is the saturated value (`characterization.saturated`). The forms differ in clipping
    only; default consistent.

    >>> float(attained_ratio(144e9, 288e9, 0.8).value)
    0.625
    """
    check_form(form)
    achieved, peak, F = floats(achieved=achieved, peak=peak, F=F)
    bad = is_implausible(achieved, peak, F)
    with np.errstate(all="ignore"):
        attainable = peak * F
        raw = achieved / attainable
    if form == CONSISTENT:
        raw = np.where(bad | (attainable == 0), np.nan, raw)
    value = clip_to_unit(raw) if form == CONSISTENT else raw
    flags = mask(
        (Flag.INPUT_SUSPECT, bad | (F > 1)),
        (Flag.ZERO_DENOM, attainable == 0),
        (Flag.RAW_OUT_OF_RANGE, raw > 1),
        (Flag.CLIPPED, value < raw),
    )
    return AttainedRatio(*arrays(raw, value, flags))


def application_speedup(
    time: ArrayLike, criterion: ArrayLike, speedup: ArrayLike, group: ArrayLike | None = None
) -> ApplicationSpeedup:
    r"""A criterion and its speedup over the kernels of an application, weighted by their times.

    .. math:: c = \frac{\sum_i t_i c_i}{\sum_i t_i} \qquad S = \frac{\sum_i t_i}{\sum_i t_i / S_i}

    Source: this project; [FineGrained2016] section V speaks of one kernel.

    Args:
        time: Time of the kernel [s, or any unit of time].
        criterion: Criterion of the kernel [1].
        speedup: Speedup of the kernel [1]; inf is allowed.
        group: Application of the kernel; none means that all are of one.

    Returns: ApplicationSpeedup; ``time`` is the sum over the group.

    Range: both lie between the smallest and the largest of the kernels. NaN and INPUT_SUSPECT if one of the
    group's times or criteria is negative, NaN or inf, or a speedup is not positive; NaN and ZERO_DENOM if no time was
    spent; NaN and NOT_APPLICABLE if no kernel is given.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> result = application_speedup([3.0, 1.0], [0.5, 1.0], [2.0, 1.0])
    >>> float(result.criterion), float(result.speedup)
    (0.625, 1.6)
    """
    t, c, s = flat_floats(time=time, criterion=criterion, speedup=speedup)
    g = Groups(group, t.size)
    bad = g.any(is_implausible(t, c) | ~(s > 0))
    with np.errstate(all="ignore"):
        total = g.reduce(np.add, t)
        c_app = g.reduce(np.add, t * c) / total
        # A weighted mean leaves the range of its parts by rounding only.
        c_app = np.clip(c_app, g.reduce(np.minimum, c), g.reduce(np.maximum, c))
        s_app = total / g.reduce(np.add, t / s)
    nothing = bad | (total == 0)
    flags = mask(
        (Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, g.filled & (total == 0)), (Flag.NOT_APPLICABLE, ~g.filled)
    )
    c_app, s_app = (np.where(nothing, np.nan, x) for x in (c_app, s_app))
    return ApplicationSpeedup(*g.shaped(c_app, s_app, total, g.ids, flags))


def potential_speedup(
    memthr: ArrayLike,
    ariththr: ArrayLike,
    bound: ArrayLike | None = None,
    time: ArrayLike | None = None,
    group: ArrayLike | None = None,
    form: str = CONSISTENT,
    *,
    hostsync: ArrayLike | None = None,
) -> PotentialSpeedup:
    r"""Overall potential speedup: how far the busier of memory and arithmetic is from what it can attain.

    .. math:: S = \frac{1}{\max(\mathrm{MEMTHR}, \mathrm{ARITHTHR})} \qquad
              S_{app} = \frac{\sum_i t_i}{\sum_i t_i / S_i}

    Source: [FineGrained2016] section V, PotentialSpeedup; the sum over kernels is this project's.

    Args:
        memthr: MEMTHR of the kernel (`attained_ratio`) [1].
        ariththr: ARITHTHR of the kernel [1].
        bound: What the profiler declares: ``"memory"`` or ``"compute"``, or the numbers of `Bound`. The published
            form needs it.
        time: Times of the kernels [s, or any unit of time], to combine them.
        group: Application of the kernel; none means that all are of one.
        form: ``consistent`` or ``as_published``.
        hostsync: Criterion HostSync, one a group, if the gaps between kernels are to be removed too.

    Returns: PotentialSpeedup; ``case`` is the resource that was used (`Bound`); ``application`` is empty without
    ``time``, ``application_with_host`` without ``hostsync`` as well, ``application_flags`` joins those of the kernels.

    Range: [1, inf]. A ratio above 1 is clipped, with RAW_OUT_OF_RANGE and CLIPPED, above 1.5 with INPUT_SUSPECT; both
    0 give inf and ZERO_DENOM; CASE_AMBIGUOUS where the declared bound is not the busier resource. One NaN kernel makes
    its application NaN.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit or an unknown form.

    Defect of the print: 1/MEMTHR if memory-bound, else 1/ARITHTHR, may ask the other resource for more than its own
    peak; default consistent.

    >>> result = potential_speedup([0.5, 0.1], [0.2, 0.25], time=[1.0, 2.0])
    >>> result.speedup.tolist(), float(result.application)
    ([2.0, 4.0], 3.0)
    """
    check_form(form)
    m, a = floats(memthr=memthr, ariththr=ariththr)
    declared, m, a = broadcast(bound=_declared(bound), memthr=m, ariththr=a)
    busier = np.where(a > m, Bound.COMPUTE, Bound.MEMORY).astype(np.int8)
    with np.errstate(all="ignore"):
        if form == AS_PUBLISHED:
            case = declared
            used = np.choose(case + 1, [np.full(m.shape, np.nan), m, a])
            bad = is_implausible(used)
            raw = speedup = 1 / used
        else:
            bad = is_implausible(m, a)
            case = np.where(bad, np.int8(Bound.UNKNOWN), busier)
            used = np.where(bad, np.nan, np.maximum(m, a))
            raw = 1 / used
            speedup = 1 / clip_to_unit(used)
    flags = mask(
        (Flag.INPUT_SUSPECT, bad | (m > MAX_SHARE_NOT_PERCENT) | (a > MAX_SHARE_NOT_PERCENT)),
        (Flag.ZERO_DENOM, used == 0),
        (Flag.RAW_OUT_OF_RANGE, raw < 1),
        (Flag.CLIPPED, speedup > raw),
        (Flag.CASE_AMBIGUOUS, (declared != Bound.UNKNOWN) & (declared != busier) & (m != a) & ~is_implausible(m, a)),
    )
    application = _application(speedup, flags, time, group, hostsync)
    return PotentialSpeedup(*arrays(raw, speedup, case, flags), *application)


def _declared(bound: ArrayLike | None) -> NDArray[np.int8]:
    given = np.asarray(Bound.UNKNOWN if bound is None else bound)
    if given.dtype.kind not in "iuUOT" and given.size:
        raise TypeError(f"bound has dtype {given.dtype}; allowed: 'memory', 'compute' or the numbers of Bound")
    names = ("memory", "compute") if given.dtype.kind in "UOT" else (Bound.MEMORY, Bound.COMPUTE)
    memory, compute = (np.asarray(given == name, dtype=np.bool_) for name in names)
    return np.where(memory, Bound.MEMORY, np.where(compute, Bound.COMPUTE, Bound.UNKNOWN)).astype(np.int8)


def _application(
    speedup: Array, flags: Mask, time: ArrayLike | None, group: ArrayLike | None, hostsync: ArrayLike | None
) -> tuple[Any, ...]:
    if time is None:
        nothing = np.zeros(0)
        return nothing, nothing, nothing.astype(np.uint32), nothing.astype(np.int64)
    t, s = flat_floats(time=time, speedup=speedup)
    whole = application_speedup(t, np.ones_like(s), s, group)
    g = Groups(group, t.size)
    (joined,) = g.shaped(g.reduce(np.bitwise_or, np.broadcast_to(np.atleast_1d(flags), t.shape)))
    if hostsync is None:
        return whole.speedup, np.zeros(0), np.asarray(joined | whole.flags), whole.group
    c, s_app = floats(hostsync=hostsync, application=whole.speedup)
    bad = is_implausible(c) | (c > 1)
    with np.errstate(all="ignore"):
        with_host = np.where(bad, np.nan, s_app / c)
    joined = np.asarray(joined | whole.flags | mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, c == 0)))
    return whole.speedup, with_host, joined, whole.group


def remaining_potential(total: ArrayLike, done: ArrayLike) -> Array:
    r"""Potential that is left after a step of tuning.

    .. math:: S_{left} = S_0 / s

    Source: [FineGrained2016] section VI-A, as used in its case studies.

    Args:
        total: Potential speedup predicted for the original [1].
        done: Speedup measured so far against the original [1].

    Returns: the speedup that remains [1].

    Range: positive; below 1 if more was reached than predicted. NaN where one is not positive or not finite.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> round(float(remaining_potential(5.8, 1.48)), 2)
    3.92
    """
    total, done = floats(total=total, done=done)
    bad = is_implausible(total, done) | (total == 0) | (done == 0)
    with np.errstate(all="ignore"):
        return np.where(bad, np.nan, total / done)
