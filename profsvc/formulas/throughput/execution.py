"""Performance of a kernel by the throughput model, and what it would be with other numbers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.mwp_cwp import mwp
from profsvc.formulas.numerics.arrays import Array, Mask, floats, is_implausible, mask, numbers
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form
from profsvc.formulas.throughput.categories import category
from profsvc.formulas.throughput.idle import idle_cycles
from profsvc.formulas.throughput.instructions import comp_ratio, peak_achievable
from profsvc.formulas.throughput.parallelism import mwp_app, mwp_total


class Throughput(NamedTuple):
    """Result of `throughput`: performances in flop/s, then ratios, cycles of a period, and what they came from."""

    Perf: Array
    Perf_comp: Array
    Perf_no_ilp: Array
    PeakAchi: Array
    EffRatio: Array
    EffRatio_comp: Array
    hidden_ratio: Array
    saturation: Array
    EffMem: Array
    EffComp: Array
    Idle: Array
    MWP: Array
    InfiN: Array
    App: Array
    BW: Array
    Proc: Array
    limiter: NDArray[np.int8]
    category: NDArray[np.int8]
    flags: Mask


class _Period(NamedTuple):
    """One computation period with its memory period, and the results for N warps."""

    useful: Array
    cycles: Array
    comp: Array
    EffComp: Array
    hidden_ratio: Array
    Idle: Array
    InfiN: Array
    App: Array
    MWP: Array
    limiter: NDArray[np.int8]
    flags: Mask


def throughput(
    *,
    plain: ArrayLike,
    wide: ArrayLike,
    total: ArrayLike,
    mem: ArrayLike,
    ilp: ArrayLike,
    dep: ArrayLike,
    mstr: ArrayLike,
    N: ArrayLike,
    inst_latency: ArrayLike,
    peak_plain: ArrayLike,
    peak_wide: ArrayLike,
    Mem_L: ArrayLike,
    departure_delay: ArrayLike,
    load_bytes_per_warp: ArrayLike,
    freq: ArrayLike,
    bandwidth: ArrayLike,
    active_sms: ArrayLike,
    wide_ilp: ArrayLike | None = None,
    n_hide: ArrayLike | None = None,
    issue_cycles: ArrayLike = 1.0,
    form: str = CONSISTENT,
) -> Throughput:
    r"""Performance of a kernel with its memory, without it, and without parallelism of instructions.

    .. math:: Perf = PeakAchi \cdot EffRatio, \qquad EffRatio = \frac{EffPerf\, N}{EffComp\, N + Idle}

    Computation is that between two memory periods, each of which is of MSTR requests together; with several memory
    instructions the totals are divided by their number.

    Source: [Hong2012] equations 64 to 82. On a CPU N and ``n_hide`` are 1 and ``active_sms`` are the cores.

    Args:
        plain: Useful instructions of the plain kind of a warp, see `instruction_mix` [count].
        wide: Useful instructions of the wide kind [count].
        total: All instructions [count].
        mem: Memory instructions [count].
        ilp: Instructions of a warp that issue together [1].
        dep: Distance to the nearest instruction that needs a result [instructions].
        mstr: Requests a warp issues together, see `memory_strength` [count].
        N: Warps resident on an SM [count].
        inst_latency: Latency of an instruction [cycles].
        peak_plain: Peak of the active SMs with the plain kind alone [flop/s].
        peak_wide: Peak of the active SMs with the wide kind alone [flop/s].
        Mem_L: Latency of a memory period, see `effective_latency` [cycles].
        departure_delay: Delay until the next request may depart [cycles].
        load_bytes_per_warp: Bytes of a request, of all its transactions that Mem_L counts [bytes].
        freq: SM clock [Hz].
        bandwidth: DRAM bandwidth [bytes/s].
        active_sms: SMs that share it [count].
        wide_ilp: Parallelism of the wide kind; None, or NaN in a row, is ``ilp`` [1].
        n_hide: Warps that hide a dependence; None, or NaN in a row, is N [count].
        issue_cycles: Cycles in which a warp's instruction enters the lanes [cycles].
        form: ``consistent`` or ``as_published``.

    Returns: Throughput; ``Perf_comp`` is without memory, the limit of a perfect cache, ``Perf_no_ilp``
    with instructions one after another, ``saturation`` is the requests
    needed over those that use up the bandwidth, ``MWP`` counts requests.

    Range: Perf in [0, Perf_comp], Perf_comp in [0, PeakAchi], Perf_no_ilp at most Perf. No memory instructions:
    Perf is Perf_comp, category 10, NOT_APPLICABLE. Nothing useful: 0. Otherwise as `comp_ratio`, `mwp_app`,
    `idle_cycles` and `mwp_cwp.mwp`.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defects of the print are those of `comp_ratio`, `mwp_app`, `mwp_total` and `idle_cycles`; default consistent, where
    requests under way are of MWP / MSTR warps.

    A kernel of 100 instructions, half useful, with one load, on a GTX 580 at two occupancies:

    >>> kernel = throughput(
    ...     plain=50, wide=0, total=100, mem=1, ilp=1, dep=2, mstr=1, N=[8, 48], inst_latency=20, peak_plain=790e9,
    ...     peak_wide=1581e9, Mem_L=450, departure_delay=10, load_bytes_per_warp=128, freq=1.544e9, bandwidth=150e9,
    ...     active_sms=16,
    ... )
    >>> (kernel.Perf / 1e9).round().tolist(), kernel.category.tolist()
    ([218.0, 361.0], [10, 10])
    """
    check_form(form)
    given: dict[str, ArrayLike | None] = dict(
        plain=plain, wide=wide, total=total, mem=mem, ilp=ilp, dep=dep, mstr=mstr, N=N, inst_latency=inst_latency,
        peak_plain=peak_plain, peak_wide=peak_wide, Mem_L=Mem_L, departure_delay=departure_delay,
        load_bytes_per_warp=load_bytes_per_warp, freq=freq, bandwidth=bandwidth, active_sms=active_sms,
        wide_ilp=wide_ilp, n_hide=n_hide, issue_cycles=issue_cycles,
    )  # fmt: skip
    k = dict(zip(given, floats(**given), strict=True))
    k["n_hide"] = np.where(np.isnan(k["n_hide"]), k["N"], k["n_hide"])
    k["wide_ilp"] = np.where(np.isnan(k["wide_ilp"]), k["ilp"], k["wide_ilp"])
    with np.errstate(all="ignore"):
        return _result(k, form)


def _result(k: dict[str, Array], form: str) -> Throughput:
    bad = is_implausible(*k.values())
    delay, load = k["departure_delay"], k["load_bytes_per_warp"]
    hardware = mwp(k["Mem_L"], delay, k["N"], k["freq"], k["bandwidth"], load, k["active_sms"], form=form)
    none = k["mem"] == 0
    free = none | (k["Mem_L"] == 0)
    B = np.where(free | (load == 0), np.inf, hardware.MWP_peak_bw)
    P = np.where(free | (delay == 0), np.inf, k["Mem_L"] / delay)
    at = _period(k, B, P, form)
    alone = np.ones_like(k["ilp"])
    without = _period({**k, "ilp": alone, "wide_ilp": alone}, B, P, form)
    whole, slow = (np.where(x.cycles == 0, 0.0, at.useful / x.cycles) for x in (at, without))
    peak = peak_achievable(k["plain"], k["wide"], k["peak_plain"], k["peak_wide"])
    kind = category(k["N"], at.InfiN, at.App, P, B)
    flags = at.flags | peak.flags | hardware.flags & ~np.uint32(Flag.NOT_APPLICABLE)
    values = (
        peak.value * whole, peak.value * at.comp, peak.value * slow, peak.value,
        whole, at.comp, at.hidden_ratio, at.App / B, np.where(none, 0.0, k["Mem_L"]), at.EffComp, at.Idle,
        at.MWP, at.InfiN, at.App, B, P,
    )  # fmt: skip
    places = (np.where(bad, -1, at.limiter), np.where(bad, 0, kind.category))
    shaped = np.broadcast_arrays(
        *(np.where(bad, np.nan, x) if form == CONSISTENT else x for x in values),
        *(x.astype(np.int8) for x in places),
        (flags | mask((Flag.INPUT_SUSPECT, bad), (Flag.NOT_APPLICABLE, none & ~bad))).astype(np.uint32),
    )
    return Throughput(*(x.copy() for x in shaped))


def _period(k: dict[str, Array], B: Array, P: Array, form: str) -> _Period:
    none = k["mem"] == 0
    ratio = comp_ratio(
        k["plain"] + k["wide"], k["total"], k["ilp"], k["inst_latency"], k["dep"], k["n_hide"], k["wide"],
        k["wide_ilp"], form,
    )  # fmt: skip
    periods = np.where(none, 1.0, k["mem"] / k["mstr"])
    C = ratio.TotalCycles * k["issue_cycles"] / periods
    M = np.where(none, 0.0, k["Mem_L"])
    demand = mwp_app(M, C, k["N"], k["mstr"], form)
    App = np.where(none, 0.0, demand.App)
    W = mwp_total(np.where(none, k["N"] * k["mstr"], App), B, P, k["N"], k["mstr"], form)
    idle = idle_cycles(M, C, k["N"], W.MWP if form == AS_PUBLISHED else W.MWP / k["mstr"], form)
    useful = ratio.PerfCycles * k["issue_cycles"] / periods * k["N"]
    cycles = C * k["N"] + np.where(none, 0.0, idle.Idle)
    flags = ratio.flags | demand.flags | W.flags | idle.flags & ~np.uint32(Flag.NOT_APPLICABLE)
    found = (useful, cycles, ratio.EffRatio, C, idle.hidden_ratio, idle.Idle, demand.InfiN, App, W.MWP)
    return _Period(*found, W.limiter, flags)


def what_if(inputs: Mapping[str, Any], axes: Mapping[str, ArrayLike], form: str = CONSISTENT) -> Throughput:
    """`throughput` over a grid of other numbers: each axis replaces one input by its values.

    The peaks of fewer SMs are those of fewer SMs: an axis of ``active_sms`` scales both unless they are axes too.

    Source: [Hong2012] section 5.6, predictions with another bandwidth, number of cores or of warps.

    Args:
        inputs: Arguments of `throughput`; their shapes follow the axes.
        axes: Values of inputs to replace, each with one axis.
        form: ``consistent`` or ``as_published``.

    Returns: Throughput, an axis each in the order of ``axes``, then those of the inputs.

    Range: as `throughput`.

    Errors: ValueError for an axis that is no input, or has not one axis; else as `throughput`.

    Bandwidth helps until another limit is met:

    >>> kernel = dict(
    ...     plain=50, wide=0, total=60, mem=4, ilp=1, dep=2, mstr=1, N=48, inst_latency=20, peak_plain=790e9,
    ...     peak_wide=1581e9, Mem_L=450, departure_delay=10, load_bytes_per_warp=128, freq=1.544e9, bandwidth=150e9,
    ...     active_sms=16,
    ... )
    >>> (what_if(kernel, {"bandwidth": [75e9, 150e9, 300e9, 600e9]}).Perf / 1e9).round().tolist()
    [217.0, 356.0, 405.0, 405.0]
    """
    if unknown := sorted(set(axes) - set(inputs)):
        raise ValueError(f"no input {', '.join(map(repr, unknown))}; allowed: {', '.join(map(repr, inputs))}")
    given = {name: numbers(name, x) for name, x in inputs.items() if x is not None}
    inner = len(np.broadcast_shapes(*(x.shape for x in given.values())))
    replaced = {}
    for place, (name, values) in enumerate(axes.items()):
        x = numbers(name, values)
        if x.ndim != 1:
            raise ValueError(f"{name} has shape {x.shape}; allowed: one axis")
        replaced[name] = x.reshape(x.shape + (1,) * (len(axes) - 1 - place + inner))
    if "active_sms" in replaced:
        part = replaced["active_sms"] / given["active_sms"]
        given |= {name: given[name] * part for name in ("peak_plain", "peak_wide") if name not in axes}
    return throughput(**{**given, **replaced}, form=form)
