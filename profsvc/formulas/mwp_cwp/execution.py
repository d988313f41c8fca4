"""Cycles of a kernel: one round of its resident warps by the case they are in, and all rounds."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.mwp_cwp.instructions import comp_cycles
from profsvc.formulas.mwp_cwp.parallelism import cwp, mem_latency, mwp
from profsvc.formulas.numerics.arrays import (
    RELATIVE_TOLERANCE,
    Array,
    Bools,
    Mask,
    arrays,
    floats,
    is_implausible,
    mask,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

FRACTIONAL, CEIL = "fractional", "ceil"
PER_REQUEST, ALL_TRANSACTIONS = "per_request", "all_transactions"


class CaseCycles(NamedTuple):
    """Result of `case_cycles`; ``case`` is 1, 2 or 3, and 0 where none can be chosen."""

    cycles: Array
    case: NDArray[np.int8]
    flags: Mask


class Execution(NamedTuple):
    """Result of `exec_cycles`, for the whole kernel; from ``MWP`` on what it was computed from."""

    cycles: Array
    cycles_bounded: Array
    case: NDArray[np.int8]
    Rep: Array
    CPI: Array
    sync_cost: Array
    cycles_with_sync: Array
    bound_violated: Bools
    flags: Mask
    MWP: Array
    CWP: Array
    MWP_peak_bw: Array
    BW_per_warp: Array
    limiter: NDArray[np.int8]
    N: Array
    Mem_L: Array
    Mem_cycles: Array
    Comp_cycles: Array


def case_cycles(
    Mem_cycles: ArrayLike,
    Comp_cycles: ArrayLike,
    n_mem: ArrayLike,
    Mem_L: ArrayLike,
    N: ArrayLike,
    MWP: ArrayLike,
    CWP: ArrayLike,
    form: str = CONSISTENT,
) -> CaseCycles:
    r"""Cycles of one round, in which the resident warps of an SM run once, by the case they are in.

    .. math:: (Mem + Comp) \frac{N}{MWP} + p (MWP - 1) \quad 1:\ MWP = N, CWP = N \qquad
              Mem \frac{N}{MWP} + p\, MWP \quad 2:\ CWP \ge MWP, Comp \le Mem \qquad
              Mem\_L + Comp\, N \quad 3:\ \text{otherwise}

    with p = Comp / n_mem, the computation period of one memory instruction.

    Source: [Hong2012] equations 1 to 4 and 21 to 23; [HongKim2010] likewise.

    Args:
        Mem_cycles: Cycles a warp waits for memory, Mem [cycles].
        Comp_cycles: Cycles a warp holds the issue port, Comp [cycles].
        n_mem: Memory instructions of a warp [count].
        Mem_L: Mean latency of a request: one memory period [cycles].
        N: Warps resident on an SM [count].
        MWP: Memory warp parallelism [warps].
        CWP: Computation warp parallelism [warps].
        form: ``consistent`` or ``as_published``.

    Returns: CaseCycles [cycles].

    Range: 0 or more. No memory: case 3, Comp N, NOT_APPLICABLE. No warps: NaN, ZERO_DENOM. Where the print chooses
    another case: CASE_AMBIGUOUS, in both forms.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defects of the print: case 2 also takes launches with Comp > Mem, and then can be far below the Comp N cycles that
    issuing takes; its time has a period too few, p (MWP - 1), against equation 1 and figure 6. Default consistent.

    Figure 6a, eight warps of which two overlap: 4 memory and 2 computation periods, 3 and 1 long:

    >>> float(case_cycles(3, 1, 1, 3, 8, 2, 4).cycles), float(case_cycles(3, 1, 1, 3, 8, 2, 4, "as_published").cycles)
    (14.0, 13.0)
    """
    check_form(form)
    M, C, m, L, n, W, V = floats(
        Mem_cycles=Mem_cycles, Comp_cycles=Comp_cycles, n_mem=n_mem, Mem_L=Mem_L, N=N, MWP=MWP, CWP=CWP
    )
    bad = is_implausible(M, C, m, L, n, W, V)
    none = (m == 0) & ~bad
    zero = ((n == 0) | (W == 0)) & ~bad
    few = (n <= W) & (n <= V)
    ours = np.where(none, 3, np.where(few, 1, np.where((V >= W) & (C <= M), 2, 3)))
    theirs = np.where((n == W) & (n == V), 1, np.where((V >= W) | (C > M), 2, 3))
    published = form == AS_PUBLISHED
    with np.errstate(all="ignore"):
        p = C / m
        case = theirs if published else ours
        memory = M * n / W + p * (W - 1 if published else W)
        # With N_pw, MWP may pass N; equation 4 still holds, of which equation 21 is the case MWP = N.
        both = M + C + p * (W - 1) if published else (M + C) * n / W + p * (W - 1)
        cycles = np.choose(case - 1, [both, memory, L + C * n])
    unknown = bad if published else bad | zero
    cycles = cycles if published else np.where(unknown, np.nan, cycles)
    differ = (Flag.CASE_AMBIGUOUS, (ours != theirs) & ~bad & ~zero & ~none)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero), (Flag.NOT_APPLICABLE, none), differ)
    return CaseCycles(*arrays(cycles, np.where(unknown, 0, case).astype(np.int8), flags))


def exec_cycles(
    *,
    n_comp: ArrayLike,
    n_coal: ArrayLike,
    n_uncoal: ArrayLike,
    threads_per_block: ArrayLike,
    blocks: ArrayLike,
    active_blocks_per_sm: ArrayLike,
    active_sms: ArrayLike,
    Mem_LD: ArrayLike,
    dep_coal: ArrayLike,
    dep_uncoal: ArrayLike,
    uncoal_per_mw: ArrayLike,
    load_bytes_per_warp: ArrayLike,
    freq: ArrayLike,
    bandwidth: ArrayLike,
    n_sync: ArrayLike = 0.0,
    coal_per_mw: ArrayLike = 1.0,
    M_Factor: ArrayLike = 1.0,
    issue_cycles: ArrayLike = 4.0,
    warp: ArrayLike = 32.0,
    N_pw: ArrayLike | None = None,
    rep: str = FRACTIONAL,
    load: str = PER_REQUEST,
    form: str = CONSISTENT,
) -> Execution:
    r"""Cycles of a kernel on a number of SMs, the case of the model it is in, cycles per instruction, cost of barriers.

    .. math:: cycles = round \cdot Rep \qquad Rep = \frac{blocks}{blocks_{SM} SMs} \qquad
              CPI = \frac{cycles}{n\, warps_{block}\, blocks / SMs} \qquad
              sync = Departure\_delay\, (\min(MWP, warps_{block}) - 1)\, n_{sync}\, blocks_{SM} Rep

    with the cycles of one round from `case_cycles`.

    Source: [Hong2012] equations 5 to 27 and 30, [HongKim2009], whose names of table 1 stand behind ours; IPP in
    [HongKim2010] asks for it as a function of the active SMs, as an array.

    Args:
        n_comp: #Comp_insts: instructions of a warp that are no memory instructions [count].
        n_coal: #Coal_Mem_insts: coalesced memory instructions of a warp [count].
        n_uncoal: #Uncoal_Mem_insts: uncoalesced memory instructions of a warp [count]; #Mem_insts is the sum of both,
            #Total_insts that of all three.
        threads_per_block: #Threads_per_block: threads of a block [count].
        blocks: #Blocks: blocks of the grid [count].
        active_blocks_per_sm: #Active_blocks_per_SM: blocks resident on an SM at a time [count].
        active_sms: #Active_SMs: SMs that work [count].
        Mem_LD: Round trip of one transaction to DRAM [cycles].
        dep_coal: Departure_del_coal: delay between two coalesced transactions [cycles].
        dep_uncoal: Departure_del_uncoal: delay between two uncoalesced transactions [cycles].
        uncoal_per_mw: #Uncoal_per_mw: transactions of an uncoalesced request [count].
        load_bytes_per_warp: Load_bytes_per_warp: bytes a request moves; of one transaction if ``load`` is
            ``all_transactions`` [bytes].
        freq: Freq: SM clock [Hz].
        bandwidth: Mem_Bandwidth: DRAM bandwidth of the device [bytes/s].
        n_sync: #Synch_insts: barriers of a warp [count].
        coal_per_mw: #Coal_per_mw: transactions of a coalesced request [count].
        M_Factor: Mean factor of the computation instructions, see `mean_m_factor` [1].
        issue_cycles: Issue_cycles: cycles to issue one instruction of a warp [cycles].
        warp: #Threads_per_warp: threads of a warp [count].
        N_pw: As in `mwp`.
        rep: ``fractional`` rounds as in the print, or ``ceil``, where the last round takes as long as a full one.
        load: ``per_request``, or ``all_transactions``: the bandwidth a warp draws counts the mean number of
            transactions a request, as the latency does.
        form: ``consistent`` or ``as_published``.

    Returns: Execution. The cycles do not contain the barriers, ``cycles_with_sync`` does. ``cycles_bounded`` is at
    least what issuing, and what waiting of one warp, takes: Rep max(Comp N, Mem); ``bound_violated`` says where the
    model promises less. The case is 0 where a number is missing.

    Range: 0 or more; CPI at least ``issue_cycles`` where the bound holds and M_Factor is 1 or more. SMs or rounds
    that are not full, or a warp partly filled: TAIL_EFFECT. More blocks resident than there are for an SM, or not a
    number: INPUT_SUSPECT. No memory instructions: case 3, Comp N, NOT_APPLICABLE. No warps, SMs, bandwidth or
    instructions: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form, rep or load.

    Defects of the print, beside those of `case_cycles`, `comp_cycles` and `mwp`: SMs without a block count as active,
    a partly filled warp counts in part in CPI, and barriers give time back where MWP is below 1; default consistent.

    Tiled matrix multiplication, the worked example of [HongKim2009], quoted from memory as 38450 and 50738 cycles; so
    it is with MWP rounded to 2.28:

    >>> example = exec_cycles(
    ...     n_comp=27, n_coal=0, n_uncoal=6, n_sync=6, threads_per_block=128, blocks=80, active_blocks_per_sm=5,
    ...     active_sms=16, Mem_LD=420, dep_coal=4, dep_uncoal=10, uncoal_per_mw=32, load_bytes_per_warp=128,
    ...     freq=1e9, bandwidth=80e9, form="as_published",
    ... )
    >>> int(example.case), float(example.cycles.round()), float(example.cycles_with_sync.round())
    (2, 38428.0, 50728.0)
    """
    check_form(form)
    check_form(rep, (FRACTIONAL, CEIL))
    check_form(load, (PER_REQUEST, ALL_TRANSACTIONS))
    c, u, s, n_t, n_k, moved = floats(
        n_coal=n_coal,
        n_uncoal=n_uncoal,
        n_sync=n_sync,
        uncoal_per_mw=uncoal_per_mw,
        coal_per_mw=coal_per_mw,
        load_bytes_per_warp=load_bytes_per_warp,
    )
    grid = _launch(threads_per_block, blocks, active_blocks_per_sm, active_sms, warp, rep, form)
    latency = mem_latency(c, u, Mem_LD, dep_coal, dep_uncoal, n_t, n_k, form)
    C = comp_cycles(n_comp, c + u, M_Factor, issue_cycles, form)
    with np.errstate(all="ignore"):
        M = latency.L_u * u + latency.L_c * c
        if load == ALL_TRANSACTIONS:
            moved = moved * np.where(c + u == 0, 1.0, (n_t * u + n_k * c) / (c + u))
        W = mwp(latency.Mem_L, latency.Departure_delay, grid.N, freq, bandwidth, moved, grid.sms, N_pw, form)
        V = cwp(M, C.value, grid.N)
        once = case_cycles(M, C.value, c + u, latency.Mem_L, grid.N, W.MWP, V.CWP, form)
        cycles, bound = once.cycles * grid.Rep, np.maximum(C.value * grid.N, M) * grid.Rep
        issued = (np.asarray(n_comp) + c + u) * grid.warps_per_sm
        CPI = np.where((issued == 0) & (form != AS_PUBLISHED), np.nan, cycles / issued)
        sync = latency.Departure_delay * _waiting(W.MWP, grid.warps_per_block, form) * _known(s, form) * grid.blocks
    bad = (Flag.INPUT_SUSPECT, is_implausible(s))
    flags = grid.flags | latency.flags | C.flags | W.flags | V.flags | once.flags
    flags = flags | mask((Flag.ZERO_DENOM, issued == 0), bad)
    violated = cycles < bound * (1 - RELATIVE_TOLERANCE)
    result = (cycles, np.maximum(cycles, bound), once.case, grid.Rep, CPI, sync, cycles + sync, violated, flags)
    model = (W.MWP, V.CWP, W.MWP_peak_bw, W.BW_per_warp, W.limiter, grid.N, latency.Mem_L, M, C.value)
    return Execution(*(x.copy() for x in np.broadcast_arrays(*result, *model)))


class _Launch(NamedTuple):
    """A launch configuration on the SMs that have a block; ``blocks`` and ``warps_per_sm`` are over all rounds."""

    warps_per_block: Array
    N: Array
    Rep: Array
    sms: Array
    blocks: Array
    warps_per_sm: Array
    flags: Mask


def _launch(
    threads: ArrayLike, blocks: ArrayLike, resident: ArrayLike, sms: ArrayLike, warp: ArrayLike, rep: str, form: str
) -> _Launch:
    given = floats(threads_per_block=threads, blocks=blocks, active_blocks_per_sm=resident, active_sms=sms, warp=warp)
    bad = is_implausible(*given)
    T, B, R, S, w = (_known(x, form) for x in given)
    with np.errstate(all="ignore"):
        used = S if form == AS_PUBLISHED else np.minimum(S, B)
        filled, Rep = np.ceil(T / w), B / (R * used)
        broken = (np.abs(Rep - np.round(Rep)) > RELATIVE_TOLERANCE * Rep) | (T / w != filled) | (S > B)
        more = np.ceil(B / np.minimum(S, B)) < R
        warps = (T / w if form == AS_PUBLISHED else filled) * B / used
        Rep = np.ceil(Rep * (1 - RELATIVE_TOLERANCE)) if rep == CEIL else Rep
        flags = mask((Flag.INPUT_SUSPECT, bad | more), (Flag.TAIL_EFFECT, broken & ~bad))
        return _Launch(*arrays(filled, R * filled, Rep, used, R * Rep, warps, flags))


def _known(x: Array, form: str) -> Array:
    return x if form == AS_PUBLISHED else np.where(is_implausible(x), np.nan, x)


def _waiting(MWP: Array, warps_per_block: Array, form: str) -> Array:
    """Warps that wait at a barrier for the last of those in memory together."""
    waiting = np.minimum(MWP, warps_per_block) - 1
    return waiting if form == AS_PUBLISHED else np.maximum(waiting, 0.0)
