"""Memory and computation warp parallelism: warps that wait together, and warps that compute meanwhile."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.mwp_cwp.result import Quantity
from profsvc.formulas.numerics.arrays import Array, Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

DEPARTURE, BANDWIDTH, WARPS = range(3)


class Latency(NamedTuple):
    """Latency of an uncoalesced, a coalesced and a mean request, and the delay until the next one may depart."""

    L_u: Array
    L_c: Array
    Mem_L: Array
    Departure_delay: Array
    flags: Mask


class MemoryParallelism(NamedTuple):
    """Result of `mwp`; ``limiter`` is DEPARTURE, BANDWIDTH or WARPS, -1 where MWP is not known."""

    MWP: Array
    MWP_wo_bw: Array
    MWP_peak_bw: Array
    BW_per_warp: Array
    limiter: NDArray[np.int8]
    flags: Mask


class ComputationParallelism(NamedTuple):
    """Result of `cwp`."""

    CWP: Array
    CWP_full: Array
    flags: Mask


def mem_latency(
    n_coal: ArrayLike,
    n_uncoal: ArrayLike,
    Mem_LD: ArrayLike,
    dep_coal: ArrayLike,
    dep_uncoal: ArrayLike,
    uncoal_per_mw: ArrayLike,
    coal_per_mw: ArrayLike = 1.0,
    form: str = CONSISTENT,
) -> Latency:
    r"""Latency of a warp's memory request, and the delay between the departures of two of them.

    .. math:: L_u = Mem\_LD + (n - 1) d_u \qquad L_c = Mem\_LD + d_c \qquad Mem\_L = w_u L_u + w_c L_c \qquad
              Departure\_delay = w_u n d_u + w_c d_c

    with the weights w of both kinds among the memory instructions, and n transactions an uncoalesced request.

    Source: [Hong2012] equations 10 to 15, [HongKim2009] equations 10 to 15.

    Args:
        n_coal: Coalesced memory instructions of a warp [count].
        n_uncoal: Uncoalesced memory instructions of a warp [count].
        Mem_LD: Round trip of one transaction to DRAM [cycles].
        dep_coal: Delay between two coalesced transactions, d_c [cycles].
        dep_uncoal: Delay between two uncoalesced transactions, d_u [cycles].
        uncoal_per_mw: Transactions of an uncoalesced request, n [count].
        coal_per_mw: Transactions of a coalesced request; the source has 1, and d_c is multiplied by it [count].
        form: ``consistent`` or ``as_published``.

    Returns: Latency, all in cycles.

    Range: 0 or more. Without memory instructions Mem_L and Departure_delay are 0, NOT_APPLICABLE; the print divides
    0 by 0. A request of less than one transaction: INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    A coalesced request adds one departure delay and an uncoalesced one n - 1, so that at n = 1 and equal delays the
    two latencies differ by one delay. Both forms keep that, as the fitted parameters carry it.

    On the Quadro FX 5600 a scattered request departs as 32 transactions, a coalesced one as 1:

    >>> scattered = mem_latency([0, 6], [6, 0], 420, 4, 10, 32)
    >>> scattered.Mem_L.tolist(), scattered.Departure_delay.tolist()
    ([730.0, 424.0], [320.0, 4.0])
    """
    check_form(form)
    c, u, LD, d_c, d_u, n, k = floats(
        n_coal=n_coal,
        n_uncoal=n_uncoal,
        Mem_LD=Mem_LD,
        dep_coal=dep_coal,
        dep_uncoal=dep_uncoal,
        uncoal_per_mw=uncoal_per_mw,
        coal_per_mw=coal_per_mw,
    )
    bad = is_implausible(c, u, LD, d_c, d_u, n, k)
    less_than_one = ((u > 0) & (n < 1)) | ((c > 0) & (k < 1))
    none = (c + u == 0) & ~bad
    with np.errstate(all="ignore"):
        w_u, w_c = u / (u + c), c / (c + u)
        L_u, L_c = LD + (n - 1) * d_u, LD + k * d_c
        results = [L_u, L_c, w_u * L_u + w_c * L_c, w_u * n * d_u + w_c * k * d_c]
    if form != AS_PUBLISHED:
        results[2:] = [np.where(none, 0.0, x) for x in results[2:]]
        results = [np.where(bad, np.nan, x) for x in results]
    flags = mask((Flag.INPUT_SUSPECT, bad | less_than_one), (Flag.NOT_APPLICABLE, none))
    return Latency(*arrays(*results, flags))


def independent_warps(N: ArrayLike, mem_req: ArrayLike, ind_req: ArrayLike, form: str = CONSISTENT) -> Quantity:
    r"""Warps that act as one request each, when requests of one warp need not wait for each other.

    .. math:: N_{pw} = N \frac{mem}{mem - ind} \qquad N_{pw,published} = N \frac{ind}{mem - ind}

    Source: [Hong2012] equation 28; the figures 26 and 28 pin the repair.

    Args:
        N: Warps resident on an SM [count].
        mem_req: Memory requests of a warp [count].
        ind_req: Of these, how many need not wait for an earlier one that is still under way; the first of a batch
            waits for none and is not counted [count].
        form: ``consistent`` or ``as_published``.

    Returns: Quantity [warps].

    Range: [N, N mem]. All requests independent: mem - 1 count, as the first one is not. No requests: N,
    NOT_APPLICABLE. More independent requests than requests: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: 0 where all requests depend on each other, and no gain where every second one does not, while
    figure 28b lets four warps act like eight; default consistent.

    >>> independent_warps(4, 2, [0, 1]).value.tolist(), float(independent_warps(4, 2, 1, "as_published").value)
    ([4.0, 8.0], 4.0)
    """
    check_form(form)
    n, mem, ind = floats(N=N, mem_req=mem_req, ind_req=ind_req)
    more = ind > mem
    bad = is_implausible(n, mem, ind) | more
    none = (mem == 0) & ~bad
    with np.errstate(all="ignore"):
        if form == AS_PUBLISHED:
            value = n * ind / (mem - ind)
        else:
            waits = np.maximum(mem - ind, np.minimum(mem, 1.0))
            value = np.where(bad, np.nan, np.where(none, n, n * mem / waits))
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.NOT_APPLICABLE, none), (Flag.ZERO_DENOM, (mem == ind) & ~bad & ~none))
    return Quantity(*arrays(value, flags))


def mwp(
    Mem_L: ArrayLike,
    Departure_delay: ArrayLike,
    N: ArrayLike,
    freq: ArrayLike,
    bandwidth: ArrayLike,
    load_bytes_per_warp: ArrayLike,
    active_sms: ArrayLike,
    N_pw: ArrayLike | None = None,
    form: str = CONSISTENT,
) -> MemoryParallelism:
    r"""Memory warp parallelism: the warps of an SM whose memory requests are under way at the same time.

    .. math:: MWP = \min\Bigl(\frac{Mem\_L}{Departure\_delay},
              \frac{bandwidth \cdot Mem\_L}{freq \cdot bytes \cdot SMs}, N\Bigr)

    Source: [Hong2012] equations 5 to 7, 16, 17 and 29; [HongKim2009] likewise.

    Args:
        Mem_L: Mean latency of a request [cycles].
        Departure_delay: Delay until the next request may depart [cycles].
        N: Warps resident on an SM [count].
        freq: SM clock [Hz].
        bandwidth: DRAM bandwidth of the device [bytes/s].
        load_bytes_per_warp: Bytes that one request moves, of all its transactions that Mem_L counts [bytes].
        active_sms: SMs that share the bandwidth [count].
        N_pw: Warps that act as one request each, in place of N, see `independent_warps` [count]; None,
            or NaN in a row, is N.
        form: ``consistent`` or ``as_published``.

    Returns: MemoryParallelism; MWP_wo_bw is without the limit of the bandwidth, MWP_peak_bw that limit, [warps];
    BW_per_warp is the bandwidth one warp draws [bytes/s].

    Range: (0, N], or up to N_pw. No requests (Mem_L is 0): N, NOT_APPLICABLE, no bandwidth drawn and no limit by it.
    No delay: no limit by departure. No warps, no SMs or no bandwidth: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: equation 17 caps by N what equation 29 would let rise to N_pw; the consistent form caps both
    by N_pw. A latency that rises by more transactions raises the limit of the bandwidth unless their bytes are
    counted with it.

    Coalesced loads of 4 bytes on the Quadro FX 5600, whose limit the source prints as 12:

    >>> result = mwp(424, 4, 24, 1.35e9, 76.8e9, 128, 16)
    >>> float(result.MWP.round(2)), int(result.limiter) == BANDWIDTH
    (11.78, True)
    """
    check_form(form)
    L, delay, n, f, B, load, sms, n_pw = floats(
        Mem_L=Mem_L,
        Departure_delay=Departure_delay,
        N=N,
        freq=freq,
        bandwidth=bandwidth,
        load_bytes_per_warp=load_bytes_per_warp,
        active_sms=active_sms,
        N_pw=N_pw,
    )
    warps = np.where(np.isnan(n_pw), n, n_pw)
    bad = is_implausible(L, delay, n, f, B, load, sms, warps)
    none = (L == 0) & ~bad
    zero = ((n == 0) | (sms == 0) | (B == 0)) & ~bad
    with np.errstate(all="ignore"):
        full, drawn = L / delay, f * load / L
        peak = B / (drawn * sms)
        if form == AS_PUBLISHED:
            without = np.minimum(full, n)
        else:
            full, drawn, peak = (np.where(none, x, y) for x, y in ((np.inf, full), (0.0, drawn), (np.inf, peak)))
            without = np.minimum(np.where(delay == 0, np.inf, full), warps)
            without, peak, drawn = (np.where(bad | zero, np.nan, x) for x in (without, peak, drawn))
        MWP = np.minimum(np.minimum(without, peak), warps)
    by = np.where(warps == MWP, WARPS, np.where(peak == MWP, BANDWIDTH, DEPARTURE))
    limiter = np.where(np.isnan(MWP), -1, by).astype(np.int8)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero), (Flag.NOT_APPLICABLE, none))
    return MemoryParallelism(*arrays(MWP, without, peak, drawn, limiter, flags))


def cwp(Mem_cycles: ArrayLike, Comp_cycles: ArrayLike, N: ArrayLike) -> ComputationParallelism:
    r"""Computation warp parallelism: the warps that compute during one memory period of a warp, and that warp.

    .. math:: CWP = \min\Bigl(\frac{Mem\_cycles + Comp\_cycles}{Comp\_cycles}, N\Bigr)

    Source: [Hong2012] equations 8 and 9; [HongKim2009] likewise.

    Args:
        Mem_cycles: Cycles a warp waits for memory [cycles].
        Comp_cycles: Cycles a warp holds the issue port [cycles].
        N: Warps resident on an SM [count].

    Returns: ComputationParallelism [warps]; CWP_full is before the cap by N. The higher, the less computation there is
    between two memory accesses.

    Range: CWP in (0, N]. No memory: 1. No computation: CWP_full inf, CWP N, ZERO_DENOM. No warps: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A computation period a third as long as a memory period, figure 6a of the source:

    >>> float(cwp(3.0, 1.0, 8).CWP)
    4.0
    """
    M, C, n = floats(Mem_cycles=Mem_cycles, Comp_cycles=Comp_cycles, N=N)
    bad = is_implausible(M, C, n)
    zero = (((C == 0) & (M > 0)) | (n == 0)) & ~bad
    with np.errstate(all="ignore"):
        full = np.where(bad, np.nan, np.where(M == 0, 1.0, (M + C) / C))
        CWP = np.where(n == 0, np.nan, np.minimum(full, n))
    return ComputationParallelism(*arrays(CWP, full, mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero))))
