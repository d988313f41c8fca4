"""Instructions of a warp or thread: which are useful, the peak they allow, and the share of the cycles they take."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import (
    Array,
    Flagged,
    Mask,
    arrays,
    flagged,
    floats,
    is_implausible,
    mask,
    numbers,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

GPU, CPU = "gpu", "cpu"


class Mix(NamedTuple):
    """Useful instructions of both kinds, and all."""

    plain: Array
    wide: Array
    total: Array
    flags: Mask


class CompRatio(NamedTuple):
    """Cycles of the useful instructions at their best and of all, the factor of dependence, and the ratio of both."""

    PerfCycles: Array
    TotalCycles: Array
    DEP_Effect: Array
    EffRatio: Array
    flags: Mask


class Strength(NamedTuple):
    """Requests that a warp issues together, on average, and the number of batches."""

    value: Array
    groups: Array
    flags: Mask


def instruction_mix(
    fp: ArrayLike,
    fp_fused: ArrayLike,
    fp_vec: ArrayLike,
    fp_vec_fused: ArrayLike,
    integer: ArrayLike,
    br_misc: ArrayLike,
    mem: ArrayLike,
    processor: str = GPU,
    lanes: ArrayLike = 4.0,
) -> Mix:
    r"""Useful instructions of a kernel on a GPU, or of the same kernel on a CPU.

    On a GPU ``plain`` are the floating-point instructions of one operation and ``wide`` the fused multiply-adds. On a
    CPU without them each is two; ``plain`` are scalar instructions and ``wide`` those of ``lanes`` elements.

    Source: [Hong2012] section 5.3.4 and table 15.

    Args:
        fp: Scalar floating-point instructions [count].
        fp_fused: Fused multiply-adds [count].
        fp_vec: Scalar instructions that could be vectorized [count].
        fp_vec_fused: Fused multiply-adds that could be vectorized [count].
        integer: Integer instructions [count].
        br_misc: Other instructions that do not access memory [count].
        mem: Memory instructions [count].
        processor: ``gpu`` or ``cpu``.
        lanes: Elements of a vector instruction of the CPU [count].

    Returns: Mix [count].

    Range: 0 or more; plain + wide at most total. A CPU without lanes: NaN, ZERO_DENOM. A number that is negative, NaN
    or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown processor.

    >>> [float(x) for x in instruction_mix(1, 2, 8, 4, 3, 1, 2)[:3]]
    [9.0, 6.0, 21.0]
    >>> [float(x) for x in instruction_mix(1, 2, 8, 4, 3, 1, 2, "cpu")[:3]]
    [5.0, 4.0, 15.0]
    """
    check_form(processor, (GPU, CPU))
    f, ff, v, vf, i, b, m, k = floats(
        fp=fp, fp_fused=fp_fused, fp_vec=fp_vec, fp_vec_fused=fp_vec_fused, integer=integer, br_misc=br_misc, mem=mem,
        lanes=lanes,
    )  # fmt: skip
    bad, zero = is_implausible(f, ff, v, vf, i, b, m, k), np.asarray((k == 0) & (processor == CPU))
    with np.errstate(all="ignore"):
        plain, wide = (f + v, ff + vf) if processor == GPU else (f + 2 * ff, (v + 2 * vf) / k)
        results = (plain, wide, plain + wide + i + b + m)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero & ~bad))
    return Mix(*arrays(*(np.where(bad | zero, np.nan, x) for x in results), flags))


def peak_achievable(fp: ArrayLike, vec: ArrayLike, dev_peak_fp: ArrayLike, dev_peak_vec: ArrayLike) -> Flagged:
    r"""Peak that a mix of useful instructions allows.

    .. math:: PeakAchi = \frac{Peak_{FP}\, n_{FP} + Peak_{Vec}\, n_{Vec}}{n_{FP} + n_{Vec}}

    Source: [Hong2012] equations 65 to 67; on a GPU fused multiply-adds take the place of vector instructions. The
    weights are right where each instruction takes one issue slot.

    Args:
        fp: Useful instructions of the plain kind [count].
        vec: Useful instructions of the wide kind [count].
        dev_peak_fp: Peak of the device with the plain kind alone [flop/s].
        dev_peak_vec: Peak of the device with the wide kind alone [flop/s].

    Returns: Valued [flop/s].

    Range: between both peaks; 0 where nothing useful is done. A number that is negative, NaN or inf: NaN,
    INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A GTX 580 with one fused multiply-add in two instructions:

    >>> float(peak_achievable(1, 1, 790.5e9, 1581e9).value)
    1185750000000.0
    """
    f, v, p, q = floats(fp=fp, vec=vec, dev_peak_fp=dev_peak_fp, dev_peak_vec=dev_peak_vec)
    with np.errstate(all="ignore"):
        value = np.where(f + v == 0, 0.0, (p * f + q * v) / (f + v))
    return flagged(value, is_implausible(f, v, p, q))


def comp_ratio(
    useful: ArrayLike,
    total: ArrayLike,
    ilp: ArrayLike,
    inst_latency: ArrayLike,
    dep: ArrayLike,
    n_hide: ArrayLike = 1.0,
    wide: ArrayLike = 0.0,
    wide_ilp: ArrayLike | None = None,
    form: str = CONSISTENT,
) -> CompRatio:
    r"""Share of the cycles of computation that useful instructions would take at their best.

    .. math:: EffRatio = \frac{\sum useful / ILP}{\sum total / ILP \cdot DEP}, \qquad
              DEP = \max\Bigl(\frac{latency}{distance \cdot N_{hide}}, 1\Bigr)

    Source: [Hong2012] equations 68 to 70 and section 5.8.

    Args:
        useful: Useful instructions, both kinds [count].
        total: All instructions [count].
        ilp: Instructions of a warp or thread that issue together [1].
        inst_latency: Latency of an instruction, about 20 on a GPU, 4 on a CPU [cycles].
        dep: Distance to the nearest instruction that needs the result [instructions].
        n_hide: Warps that issue meanwhile: N on a GPU, 1 on a CPU [count].
        wide: Of the useful ones, those of the wide kind [count].
        wide_ilp: Parallelism of the wide kind; None, or NaN in a row, is ``ilp`` [1].
        form: ``consistent`` or ``as_published``.

    Returns: CompRatio.

    Range: EffRatio in [0, 1], DEP_Effect 1 or more. With one parallelism it cancels in the ratio, not in the cycles. No
    instructions: ratio NaN, NOT_APPLICABLE. No parallelism, distance or warps: NaN, ZERO_DENOM. More useful than all,
    or wide than useful: INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: other warps do not hide a dependence, so that a GPU with one after another would lose 20 times;
    default consistent.

    Five useful of ten, as in the source; each waiting for the one before, on a CPU, and among 24 warps:

    >>> comp_ratio(5, 10, 1, [1, 4, 20], 1, [1, 1, 24]).EffRatio.tolist()
    [0.5, 0.125, 0.5]
    """
    check_form(form)
    u, t, k, lat, d, n, w, own = floats(
        useful=useful, total=total, ilp=ilp, inst_latency=inst_latency, dep=dep, n_hide=n_hide, wide=wide,
        wide_ilp=wide_ilp,
    )  # fmt: skip
    kw = np.where(np.isnan(own), k, own)
    bad = is_implausible(u, t, k, lat, d, n, w, kw)
    zero = (k == 0) | (kw == 0) | (d == 0) | (n == 0)
    with np.errstate(all="ignore"):
        hidden = 1.0 if form == AS_PUBLISHED else n
        effect = np.maximum(lat / (d * hidden), 1.0)
        perf, every = ((x - w) / k + w / kw for x in (u, t))
        results = (perf, every * effect, effect, perf / (every * effect))
    none = (bad | zero) & (form != AS_PUBLISHED)
    odd = (u > t) | (w > u)
    flags = mask(
        (Flag.INPUT_SUSPECT, bad | odd), (Flag.ZERO_DENOM, zero & ~bad), (Flag.NOT_APPLICABLE, (t == 0) & ~bad & ~zero)
    )
    return CompRatio(*arrays(*(np.where(none, np.nan, x) for x in results), flags))


def memory_strength(load: ArrayLike, first_use: ArrayLike) -> Strength:
    """Loads that a warp issues before it waits for the first of them, averaged over a stream of instructions.

    A batch opens at a load and closes where the first result of the batch is used.

    Source: [Hong2012] sections 5.3.3 and 5.3.6, MSTR.

    Args:
        load: Places of the loads in the stream, ascending, on the only axis [instructions].
        first_use: Place where the result of each is used first; NaN where it never is [instructions].

    Returns: Strength.

    Range: 1 to the number of loads; loads that are never used close no batch. No loads: NaN, NOT_APPLICABLE. A load
    that is used before it is issued, or not in order: INPUT_SUSPECT, and it is left out.

    Errors: TypeError for a wrong dtype, ValueError for shapes that differ or another number of axes.

    Two loads and their product, twice; then a load whose result is the next address:

    >>> float(memory_strength([0, 1, 4, 5], [2, 2, 6, 6]).value), float(memory_strength([0, 2], [1, 3]).value)
    (2.0, 1.0)
    """
    at, used = (numbers(name, x).astype(np.float64) for name, x in (("load", load), ("first_use", first_use)))
    if at.ndim != 1 or at.shape != used.shape:
        raise ValueError(f"load has shape {at.shape}, first_use {used.shape}; allowed: one axis, the same")
    order = np.maximum.accumulate(np.concatenate([[-np.inf], at[:-1]])) if at.size else at
    bad = is_implausible(at) | (used <= at) | (at <= order)
    groups, close = 0, -np.inf
    for here, needed in zip(at[~bad], np.where(np.isnan(used), np.inf, used)[~bad], strict=True):
        if here >= close:
            groups, close = groups + 1, np.inf
        close = min(close, needed)
    count = int((~bad).sum())
    flags = mask((Flag.INPUT_SUSPECT, bad.any()), (Flag.NOT_APPLICABLE, count == 0))
    return Strength(*arrays(count / groups if groups else np.nan, float(groups), flags))
