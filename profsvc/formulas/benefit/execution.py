"""Time of a kernel and its four potential benefits."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.benefit.chart import COMPUTE, MEMORY
from profsvc.formulas.benefit.overheads import serial_overheads
from profsvc.formulas.benefit.result import Benefit, Machine
from profsvc.formulas.mwp_cwp import ComputationParallelism, MemoryParallelism, cwp, mwp
from profsvc.formulas.numerics.arrays import RELATIVE_TOLERANCE, Array, Bools, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

BYTES, REQUESTS = "bytes", "requests_per_sm"
DRAM, AMAT = "dram", "amat"


class _Given(NamedTuple):
    """The arguments, as arrays of one shape; of the machine those that follow."""

    insts: Array
    mem: Array
    sync: Array
    sfu: Array
    fp: Array
    warps: Array
    sms: Array
    N: Array
    ilp: Array
    mlp: Array
    trans: Array
    miss: Array
    size: Array
    cfdiv: Array
    bank: Array
    amat: Array
    DRAM_lat: Array
    hit_lat: Array
    Delta: Array
    avg_inst_lat: Array
    FP_lat: Array
    SIMD_width: Array
    SFU_width: Array
    mem_peak_bandwidth: Array
    freq: Array
    transaction_size: Array
    warp_size: Array
    Gamma: Array


class _Parallelism(NamedTuple):
    """Numbers of requests and instructions in flight."""

    lat: Array
    AMAT: Array
    ITILP: Array
    ITILP_max: Array
    ITMLP: Array
    MWP_cp: Array
    W: MemoryParallelism
    V: ComputationParallelism


def benefit(
    *,
    insts: ArrayLike,
    mem_insts: ArrayLike,
    sync_insts: ArrayLike,
    sfu_insts: ArrayLike,
    fp_insts: ArrayLike,
    total_warps: ArrayLike,
    active_sms: ArrayLike,
    N: ArrayLike,
    ilp: ArrayLike,
    mlp: ArrayLike,
    avg_trans_warp: ArrayLike,
    miss_ratio: ArrayLike,
    size_of_data: ArrayLike,
    machine: Machine,
    O_cfdiv: ArrayLike = 0.0,
    O_bank: ArrayLike = 0.0,
    amat: ArrayLike | None = None,
    size_unit: str = BYTES,
    latency: str = DRAM,
    form: str = CONSISTENT,
) -> Benefit:
    r"""Execution time of a kernel, its parts, and what it would gain if each of four costs were gone.

    .. math:: T_{exec} = T_{comp} + T_{mem} - T_{overlap}, \qquad
              T_{comp} = w\,n \frac{lat}{ITILP} + W_{serial}, \qquad T_{mem} = \frac{w\,n_{mem}}{ITMLP} AMAT, \qquad
              T_{overlap} = \min\Bigl(T_{comp} \frac{N - \zeta}{N}, T_{mem}\Bigr)
    .. math:: B_{itilp} = w\,n\,lat \Bigl(\frac{1}{ITILP} - \frac{1}{ITILP_{max}}\Bigr), \quad
              B_{serial} = W_{serial}, \quad B_{fp} = T_{comp} - T_{fp} - B_{itilp} - B_{serial}, \quad
              B_{memlp} = \max(T_{mem} - T_{overlap} - T_{mem\,min}, 0)

    with w warps per SM over the kernel and zeta = 1 where CWP <= MWP.

    Source: [Kim2012] equations 4.1 to 4.30 and tables 4.1 and 4.2; [Sim2012].

    Args:
        insts: #insts: instructions of a warp, n, with memory instructions, without special functions [count].
        mem_insts: #mem_insts: memory instructions of a warp [count].
        sync_insts: #sync_insts: barriers of a warp [count].
        sfu_insts: #SFU_insts: special functions of a warp [count].
        fp_insts: #FP_insts: floating-point instructions of a warp [count].
        total_warps: #total_warps: warps of the kernel [count].
        active_sms: #active_SMs: SMs that work [count].
        N: Warps resident on an SM [count].
        ilp: ILP: instruction-level parallelism of a warp [1].
        mlp: MLP: requests of a warp that are under way together [1].
        avg_trans_warp: Transactions of a request [count].
        miss_ratio: Share of the requests that miss the caches [1].
        size_of_data: Data the kernel has to move, see ``size_unit``.
        machine: Machine: warp_size, Gamma, Delta, DRAM_lat, FP_lat, hit_lat, avg_inst_lat, SIMD_width and SFU_width of
            the table, and mem_peak_bandwidth, freq and transaction_size, which its equations need beside it.
        O_cfdiv: Cycles an SM loses to divergence [cycles].
        O_bank: Cycles an SM loses to bank conflicts [cycles].
        amat: AMAT: mean access time where it was measured; None, or NaN in a row, computes it [cycles].
        size_unit: ``bytes`` of the device, or ``requests_per_sm``.
        latency: Latency that requests in flight hide: ``dram`` as in the source, or ``amat``.
        form: ``consistent`` or ``as_published``.

    Returns: Benefit [cycles of an average SM that works].

    Range: T_exec at least max(T_comp, T_mem), T_overlap in [0, min(T_comp, T_mem)], B_itilp 0 or more, and T_comp =
    T_fp + B_fp + B_itilp + B_serial; B_fp is below 0, RAW_OUT_OF_RANGE, where arithmetic is slower than the average
    instruction. No memory instructions: T_mem 0, NOT_APPLICABLE. A round of warps not full: TAIL_EFFECT. No warps, SMs,
    parallelism or lanes: NaN, ZERO_DENOM. Parts above the whole, a request of less than one transaction, a parallelism
    below 1: INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form, unit or
    latency.

    Defects of the print: T_mem_min is bytes times cycles, the bytes of one transaction are moved in the latency of all
    of a request, and T_fp is at the parallelism there is while B_itilp is at the highest, so that B_fp of a kernel of
    arithmetic alone is below 0; default consistent.

    >>> c2050 = Machine(440, 18, 20, 18, 18, 32, 4, 144e9, 1.15e9)
    >>> kernel = benefit(
    ...     insts=1000, mem_insts=20, sync_insts=0, sfu_insts=0, fp_insts=600, total_warps=6720, active_sms=14, N=24,
    ...     ilp=1.2, mlp=2, avg_trans_warp=1, miss_ratio=1, size_of_data=1e6, machine=c2050,
    ... )
    >>> [int(x) for x in (kernel.T_exec, kernel.T_comp, kernel.B_itilp, kernel.B_fp, kernel.B_memlp)]
    [500000, 480000, 0, 192000, 12013]
    """
    check_form(form)
    check_form(size_unit, (BYTES, REQUESTS))
    check_form(latency, (DRAM, AMAT))
    k = _Given(*floats(
        insts=insts, mem_insts=mem_insts, sync_insts=sync_insts, sfu_insts=sfu_insts, fp_insts=fp_insts,
        total_warps=total_warps, active_sms=active_sms, N=N, ilp=ilp, mlp=mlp, avg_trans_warp=avg_trans_warp,
        miss_ratio=miss_ratio, size_of_data=size_of_data, O_cfdiv=O_cfdiv, O_bank=O_bank, amat=amat,
        **Machine(*machine)._asdict(),
    ))  # fmt: skip
    bad = is_implausible(*k._replace(amat=np.where(np.isnan(k.amat), 0.0, k.amat)))
    zero = ((k.N == 0) | (k.sms == 0) | (k.ilp == 0) | (k.mlp == 0) | (k.SIMD_width == 0) | (k.warp_size == 0)) & ~bad
    with np.errstate(all="ignore"):
        at = _parallelism(k, latency, form)
        return _result(k, at, bad, zero, size_unit, form)


def _parallelism(k: _Given, latency: str, form: str) -> _Parallelism:
    """Equations 4.4, 4.5 and 4.12 to 4.24."""
    lat = k.DRAM_lat + (k.trans - 1) * k.Delta
    access = np.where(np.isnan(k.amat), lat * k.miss + k.hit_lat, k.amat)
    most = k.avg_inst_lat / (k.warp_size / k.SIMD_width)
    ITILP = np.minimum(k.ilp * k.N, most)
    # All transactions of a request depart and move bytes within the latency that counts them.
    n = 1.0 if form == AS_PUBLISHED else k.trans
    hidden = access if latency == AMAT else lat
    W = mwp(hidden, k.Delta * n, k.N, k.freq, k.mem_peak_bandwidth, k.transaction_size * n, k.sms, form=form)
    V = cwp(k.mem * access / k.mlp, k.insts * k.avg_inst_lat / ITILP, k.N)
    MWP_cp = np.minimum(np.maximum(1.0, V.CWP - 1), W.MWP)
    ITMLP = np.minimum(k.mlp * MWP_cp, W.MWP_peak_bw)
    return _Parallelism(lat, access, ITILP, most, ITMLP, MWP_cp, W, V)


def _result(k: _Given, at: _Parallelism, bad: Bools, zero: Bools, size_unit: str, form: str) -> Benefit:
    """Equations 4.1 to 4.3, 4.6, 4.11, 4.16, 4.17 and 4.25 to 4.30."""
    w = k.warps / k.sms
    parallel, ideal = (w * k.insts * k.avg_inst_lat / x for x in (at.ITILP, at.ITILP_max))
    lost = serial_overheads(
        k.insts, k.mem, k.sync, k.sfu, np.where(zero, 0.0, w), at.lat, k.SIMD_width, k.SFU_width, k.warp_size, k.Gamma
    )
    serial = lost.O_sync + lost.O_SFU + k.cfdiv + k.bank
    T_comp = parallel + serial
    T_mem = np.where(k.mem == 0, 0.0, w * k.mem / at.ITMLP * at.AMAT)
    overlap = np.minimum(T_comp * (k.N - (at.V.CWP <= at.W.MWP)) / k.N, T_mem)
    T_fp = w * k.fp * k.FP_lat / (at.ITILP if form == AS_PUBLISHED else at.ITILP_max)
    by_requests = k.size * at.lat / at.W.MWP_peak_bw
    repaired = form == CONSISTENT and size_unit == BYTES
    T_mem_min = k.size * k.freq / k.mem_peak_bandwidth if repaired else by_requests
    B_itilp = parallel - ideal
    B_fp = T_comp - T_fp - B_itilp - serial
    B_memlp = np.maximum(T_mem - overlap - T_mem_min, 0.0)
    times = (T_comp + T_mem - overlap, T_comp, T_mem, overlap, parallel, serial, lost.O_sync, lost.O_SFU)
    inner = (at.AMAT, at.ITILP, at.ITILP_max, at.ITMLP, at.W.MWP, at.MWP_cp, at.V.CWP, at.W.MWP_peak_bw)
    gains = (T_fp, T_mem_min, B_itilp, serial, B_fp, B_memlp)
    none = (bad | zero) & (form == CONSISTENT)
    numbers = (np.where(none, np.nan, x) for x in (*times, *inner, *gains))
    bound = np.where(bad | zero, -1, np.where(T_mem > T_comp, MEMORY, COMPUTE)).astype(np.int8)
    rounds = k.warps / (k.sms * k.N)
    flags = lost.flags | at.W.flags & ~np.uint32(Flag.NOT_APPLICABLE) | mask(
        (Flag.INPUT_SUSPECT, bad | _is_implausible(k)),
        (Flag.ZERO_DENOM, zero),
        (Flag.NOT_APPLICABLE, (k.mem == 0) & ~bad),
        (Flag.TAIL_EFFECT, (np.abs(rounds - np.round(rounds)) > RELATIVE_TOLERANCE * rounds) & ~bad),
        (Flag.RAW_OUT_OF_RANGE, B_fp < -RELATIVE_TOLERANCE * T_comp),
    )  # fmt: skip
    return Benefit(*arrays(*numbers, bound, flags))


def _is_implausible(k: _Given) -> Bools:
    """Return where inputs contradict each other or their unit."""
    less_than_one = (k.mem > 0) & ((k.trans < 1) | (k.mlp < 1))
    return np.asarray((k.mem > k.insts) | (k.fp > k.insts) | (k.miss > 1) | (k.ilp < 1) | less_than_one)
