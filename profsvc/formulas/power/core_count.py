"""The best number of SMs: performance per watt, the closed form of the bandwidth limit, and what it saves."""

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
    numbers,
)
from profsvc.formulas.numerics.distributions import normal_quantiles
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

CONFIDENCE = 0.95
MEMORY_BOUND_CASE = 2  # of the timing model: the only case that can reach the bandwidth of the device


class CoreScan(NamedTuple):
    """The best number of SMs, the range of numbers that measurement cannot distinguish from it, and the curve."""

    best: Array
    low: Array
    high: Array
    per_watt: Array
    per_watt_best: Array
    flags: Mask


class ClosedCores(NamedTuple):
    """The best number of SMs, the number before rounding and clamping, and whether the bandwidth sets it."""

    cores: Array
    raw: Array
    bandwidth_limited: NDArray[np.bool_]
    flags: Mask


class Savings(NamedTuple):
    """Shares of the energy saved, by what is counted as energy."""

    runtime_and_idle: Array
    runtime: Array
    gated: Array
    flags: Mask


@np.errstate(all="ignore")
def perf_per_watt(work: ArrayLike, time_s: ArrayLike, power_w: ArrayLike) -> Flagged:
    r"""Work per second and watt, which is work per joule.

    .. math:: \frac{Perf}{W} = \frac{work / time}{power}

    Source: [HongKim2010]; equation (62) of [Hong2012], in GIPS/W where ``work`` is in 1e9 instructions.

    Args:
        work: Work done [any].
        time_s: Time it took [s].
        power_w: Mean power over that time [W].

    Returns: Valued [unit of the work / J].

    Range: >= 0; NaN with ZERO_DENOM where the energy is 0, with INPUT_SUSPECT where an argument is negative, NaN or
    inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(perf_per_watt(300.0, 2.0, 150.0).value)
    1.0
    """
    w, t, P = floats(work=work, time_s=time_s, power_w=power_w)
    value = w / t / P
    zero = (t == 0) | (P == 0)
    return flagged(np.where(zero, np.nan, value), is_implausible(w, t, P), (Flag.ZERO_DENOM, zero))


@np.errstate(all="ignore")
def optimal_cores_scan(
    active_sms: ArrayLike,
    time_s: ArrayLike,
    power_w: ArrayLike,
    work: ArrayLike = 1.0,
    time_se_s: ArrayLike = 0.0,
    power_se_w: ArrayLike = 0.0,
    num_sms: ArrayLike | None = None,
) -> CoreScan:
    r"""Number of SMs with the most work per joule, and which other numbers the errors leave possible.

    .. math:: n^* = \arg\max_n \frac{W_n}{t_n P_n}, \qquad
              n \text{ is possible while } \ln\frac{p_{n^*}}{p_n} \le z \sqrt{s_{n^*}^2 + s_n^2}

    with s the relative standard error of p = W/(tP), and z the one-sided 95 % quantile for as many comparisons as there
    are other numbers, so that the set holds the true best with at least 95 %.

    Source: equation (62) of [Hong2012] for the curve; the interval is multiple comparison with the best, [Hsu1981],
    with the bound of Bonferroni.

    Args:
        active_sms: Numbers of SMs tried, n on the last axis [count].
        time_s: Time of the same work, or of ``work``, on each [s].
        power_w: Mean power on each [W].
        work: Work done on each [any].
        time_se_s: Standard error of the time; 0 where it is known exactly [s].
        power_se_w: Standard error of the power [W].
        num_sms: SMs of the device, without the last axis; None where it is not known [count].

    Returns: CoreScan; ``best``, ``low`` and ``high`` without the last axis, ``per_watt`` with it. Ties give the
    smaller number.

    Range: within the numbers tried. Points that are negative, NaN or inf, or have no time or power, are left out with
    INPUT_SUSPECT; NaN without any. EXTRAPOLATED where the best is the largest number tried and not the whole
    device: a larger one may be better still.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or have no axis.

    >>> scan = optimal_cores_scan([10, 20, 30], [2.0, 1.0, 0.99], [100, 120, 150], power_se_w=[1, 1, 1])
    >>> float(scan.best), float(scan.low), float(scan.high)
    (20.0, 20.0, 20.0)
    """
    n, t, P, w, se_t, se_p = floats(
        active_sms=active_sms, time_s=time_s, power_w=power_w, work=work, time_se_s=time_se_s, power_se_w=power_se_w
    )
    if n.ndim == 0:
        raise ValueError("active_sms has no axis; allowed: the numbers of SMs on the last axis")
    bad = is_implausible(n, t, P, w, se_t, se_p) | (t == 0) | (P == 0) | (w == 0)
    per_watt = np.where(bad, np.nan, perf_per_watt(w, t, P).value)
    s = np.hypot(se_t / t, se_p / P)
    none = bad.all(axis=-1)
    ranked = np.where(bad, -np.inf, per_watt)
    top = ranked.max(axis=-1, keepdims=True, initial=-np.inf)
    best = np.where(ranked == top, n, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    place = ((ranked == top) & (n == best)).argmax(axis=-1)[..., np.newaxis] if n.shape[-1] else None
    possible = _is_not_worse(per_watt, s, place, bad)
    low = np.where(possible, n, np.inf).min(axis=-1, initial=np.inf)
    high = np.where(possible, n, -np.inf).max(axis=-1, initial=-np.inf)
    most = np.where(bad, -np.inf, n).max(axis=-1, initial=-np.inf)
    last = (best[..., 0] == most) & ~(most >= floats(num_sms=num_sms)[0])
    found = (np.where(none, np.nan, x) for x in (best[..., 0], low, high))
    flags = mask((Flag.INPUT_SUSPECT, bad.any(axis=-1) | none), (Flag.EXTRAPOLATED, last & ~none))
    return CoreScan(*arrays(*found, per_watt, np.where(none, np.nan, top[..., 0]), flags))


@np.errstate(all="ignore")
def _is_not_worse(per_watt: Array, s: Array, place: NDArray[np.intp] | None, bad: Bools) -> Bools:
    """Return where a point is the best, or its distance to the best lies within the errors."""
    if place is None:
        return ~bad
    at_best = np.arange(per_watt.shape[-1]) == place
    others = np.maximum((~bad).sum(axis=-1, keepdims=True) - 1, 1)
    z = normal_quantiles(1 - (1 - CONFIDENCE) / others)
    distance = np.log(np.take_along_axis(per_watt, place, -1) / per_watt)
    error = np.hypot(np.take_along_axis(s, place, -1), s)
    near = (error > 0) & (distance <= z * error)
    return np.asarray((at_best | near) & ~bad)


@np.errstate(all="ignore")
def optimal_cores_closed(
    mwp: ArrayLike,
    cwp: ArrayLike,
    warps: ArrayLike,
    mwp_peak_bw: ArrayLike,
    num_sms: ArrayLike,
    case: ArrayLike | None = None,
    form: str = CONSISTENT,
) -> ClosedCores:
    r"""Number of SMs that just reach the bandwidth of the memory; all of them where it is not reached.

    .. math:: n^* = \frac{Bandwidth}{BW_{warp} \cdot N_{warps}} = \frac{MWP_{peak\,BW} \cdot N_{SM}}{N_{warps}}

    unless (1) MWP = N or CWP = N, (2) MWP > CWP, or (3) MWP < MWP_peak_BW: then all. ``consistent`` reads (1) as
    *and*, which is case 1 of the timing model: with *or* every strongly memory-bound launch, whose CWP is capped to N,
    would be sent to all SMs. It rounds down and clamps to [1, N_SM]. CASE_AMBIGUOUS where the readings differ.

    Source: [HongKim2010]; equation (63) of [Hong2012], with equation (6) for the right-hand form.

    Args:
        mwp: Memory warp parallelism of the timing model with all SMs active [warps].
        cwp: Computation warp parallelism [warps].
        warps: Warps resident on an SM, N [warps].
        mwp_peak_bw: Memory warp parallelism at which the bandwidth is used up, all SMs active; inf where a kernel
            does not use the memory [warps].
        num_sms: SMs of the device [count].
        case: Case number of the timing model, 1 to 3; 1 and 3 mean all SMs, in place of (1) and (2). NaN or None: by
            (1) and (2). Only the consistent form uses it.
        form: ``consistent`` or ``as_published``.

    Returns: ClosedCores; the published number is not rounded.

    Range: [1, num_sms] when consistent. NaN where an argument is negative, NaN or inf, or N is 0 (ZERO_DENOM).

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Sixteen warps per SM, of which 10.8 use up the bandwidth; and a kernel that reaches only MWP 5.878:

    >>> optimal_cores_closed([10.8, 5.878], [16, 16], 16, 10.8, 30).cores.tolist()
    [20.0, 30.0]
    """
    check_form(form)
    M, C, N, B, S, k = floats(mwp=mwp, cwp=cwp, warps=warps, mwp_peak_bw=mwp_peak_bw, num_sms=num_sms, case=case)
    unlimited = M < B
    either = (M == N) | (C == N) | (M > C) | unlimited
    both = (M == N) & (C == N) | (M > C) | unlimited
    everything = np.where(np.isnan(k), both, (k != MEMORY_BOUND_CASE) | unlimited)
    limit = B * S / N
    chosen = either if form == AS_PUBLISHED else everything
    raw = np.where(chosen, S, limit)
    cores = raw if form == AS_PUBLISHED else np.clip(np.floor(raw), 1, S)
    zero = N == 0
    bad = is_implausible(M, C, N, np.where(np.isposinf(B), 0.0, B), S)
    fine = flagged(
        np.where(zero, np.nan, cores),
        bad,
        (Flag.ZERO_DENOM, zero),
        (Flag.CASE_AMBIGUOUS, either != everything),
        (Flag.CLIPPED, (cores != np.floor(raw)) & (form == CONSISTENT)),
        (Flag.INPUT_SUSPECT, ~np.isnan(k) & ~np.isin(k, (1, 2, 3))),
    )
    return ClosedCores(fine.value, *arrays(np.where(bad | zero, np.nan, raw), ~chosen & ~bad & ~zero, fine.flags))


@np.errstate(all="ignore")
def gating_saving(active_sms: ArrayLike, num_sms: ArrayLike, time_s: ArrayLike, time_all_s: ArrayLike) -> Flagged:
    r"""Share of the energy saved on fewer SMs if each SM at rest could be switched off.

    .. math:: 1 - \frac{P(N)\, n/N \cdot t(n)}{P(N)\, t(N)} = 1 - \frac{n}{N} \frac{t(n)}{t(N)}

    A projection: all power of the board, idle power included, is assumed to be that of its SMs.

    Source: section 3.5.6 of [Hong2012].

    Args:
        active_sms: SMs that work, n [count].
        num_sms: SMs of the device, N [count].
        time_s: Time on n SMs [s].
        time_all_s: Time of the same work on all [s].

    Returns: Valued, the share [1].

    Range: <= 1, negative where fewer SMs cost energy. NaN with ZERO_DENOM where N or ``time_all_s`` is 0, with
    INPUT_SUSPECT where an argument is negative, NaN or inf; the flag alone for n > N.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> round(float(gating_saving(20, 30, 1.0, 1.0).value), 4)
    0.3333
    """
    n, N, t, T = floats(active_sms=active_sms, num_sms=num_sms, time_s=time_s, time_all_s=time_all_s)
    zero = (N == 0) | (T == 0)
    saving = np.where(zero, np.nan, 1 - n / N * (t / T))
    return flagged(saving, is_implausible(n, N, t, T), (Flag.ZERO_DENOM, zero), (Flag.INPUT_SUSPECT, n > N))


@np.errstate(all="ignore")
def energy_savings(
    active_sms: ArrayLike,
    num_sms: ArrayLike,
    time_s: ArrayLike,
    time_all_s: ArrayLike,
    runtime_w: ArrayLike,
    runtime_all_w: ArrayLike,
    idle_w: ArrayLike,
) -> Savings:
    r"""Share of the energy saved on fewer SMs, in the three accounts of the source.

    .. math:: 1 - \frac{(P_n + P_{idle}) t_n}{(P_N + P_{idle}) t_N}, \qquad 1 - \frac{P_n t_n}{P_N t_N}, \qquad
              1 - \frac{n\, t_n}{N\, t_N}

    The three are different questions; a mean of one says nothing about the others.

    Source: sections 3.5.5 and 3.5.6 of [Hong2012].

    Args:
        active_sms: SMs that work, n [count].
        num_sms: SMs of the device, N [count].
        time_s: Time on n SMs [s].
        time_all_s: Time of the same work on all [s].
        runtime_w: Power above idle on n SMs [W].
        runtime_all_w: Power above idle on all [W].
        idle_w: Power at rest [W].

    Returns: Savings, shares [1].

    Range: <= 1, negative where fewer SMs cost energy; NaN as in `gating_saving`, and with ZERO_DENOM where the energy
    on all SMs is 0.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    The logarithmic law at 20 of 30 SMs, 5 % slower:

    >>> saved = energy_savings(20, 30, 1.05, 1.0, 84.7, 100.0, 83.0)
    >>> [round(float(x), 3) for x in saved[:3]]
    [0.038, 0.111, 0.3]
    """
    gated = gating_saving(active_sms, num_sms, time_s, time_all_s)
    t, T, P, Q, idle, g = floats(
        time_s=time_s, time_all_s=time_all_s, runtime_w=runtime_w, runtime_all_w=runtime_all_w, idle_w=idle_w,
        gated=gated.value,
    )  # fmt: skip
    both = 1 - (P + idle) * t / ((Q + idle) * T)
    alone = 1 - P * t / (Q * T)
    zero = (T == 0) | (Q == 0)
    bad = is_implausible(t, T, P, Q, idle)
    parts = [flagged(np.where(zero, np.nan, x), bad, (Flag.ZERO_DENOM, zero)) for x in (both, alone)]
    flags = parts[0].flags | numbers("flags", gated.flags)
    return Savings(*arrays(parts[0].value, parts[1].value, g, flags))
