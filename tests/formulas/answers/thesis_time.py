"""Figures of [Hong2012]: the timing model, the throughput model, peaks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from profsvc.formulas.mwp_cwp import case_cycles, cwp, exec_cycles, independent_warps, m_factor, mem_latency, mwp
from profsvc.formulas.performance.memory_accesses import chain_stride
from profsvc.formulas.performance.roofline import intensity, peak_rate
from profsvc.formulas.throughput import comp_ratio, idle_cycles, mwp_app, mwp_total, suggest_frequency

# The worked example of the paper: tiled matrix multiplication.
TILED: dict[str, Any] = {
    "n_comp": 27.0,
    "n_coal": 0.0,
    "n_uncoal": 6.0,
    "n_sync": 6.0,
    "threads_per_block": 128.0,
    "blocks": 80.0,
    "active_blocks_per_sm": 5.0,
    "active_sms": 16.0,
    "Mem_LD": 420.0,
    "dep_coal": 4.0,
    "dep_uncoal": 10.0,
    "uncoal_per_mw": 32.0,
    "load_bytes_per_warp": 128.0,
    "freq": 1e9,
    "bandwidth": 80e9,
}


def per_warp(GHz: float, bytes: float, Mem_L: float) -> Any:  # noqa: A002  # as the thesis calls it
    return mwp(Mem_L, 4, 200, GHz * 1e9, 1e9, bytes, 1).BW_per_warp / 1e9


def peak(BW_per_warp: float, GBs: float, SM: float) -> Any:
    return mwp(1, 4, 200, 1e9, GBs * 1e9, BW_per_warp, SM).MWP_peak_bw


def without_bandwidth(Mem_LD: float, dep: float) -> Any:
    latency = mem_latency(1, 0, Mem_LD, dep, 10, 32)
    return mwp(latency.Mem_L, latency.Departure_delay, 200, 1e9, 1e15, 128, 1).MWP_wo_bw


def one_case(C: float, M: float, MWP: float, Mem_insts: float, N: float, form: str = "consistent") -> Any:
    W = min(MWP, N)
    return case_cycles(M, C, Mem_insts, M / Mem_insts, N, W, cwp(M, C, N).CWP, form).cycles


def published_case(**given: float) -> Any:
    return one_case(**given, form="as_published")


def rounded_example() -> Any:
    """Cycles of the worked example of the paper with the MWP that it prints."""
    found = published_example()
    once = case_cycles(found.Mem_cycles, found.Comp_cycles, 6, found.Mem_L, 20, 2.28, 20, "as_published").cycles
    return once + 320 * (2.28 - 1) * 6 * 5


def published_example() -> Any:
    return exec_cycles(**TILED, form="as_published")


ANSWERS: dict[str, Callable[..., Any]] = {
    **{f"mwp_bw_per_warp_{device}": per_warp for device in ("8800GTX", "FX5600", "8800GT", "GTX280")},
    **{f"mwp_peak_bw_{device}": peak for device in ("8800GTX", "FX5600", "8800GT", "GTX280")},
    **{f"mwp_wo_bw_coal_{device}": without_bandwidth for device in ("8800GTX", "FX5600", "8800GT", "GTX280")},
    "mem_l_uncoal_fx5600": lambda Mem_LD, dep, n: mem_latency(0, 1, Mem_LD, 4, dep, n).Mem_L,
    "departure_uncoal_fx5600": lambda dep, n: mem_latency(0, 1, 420, 4, dep, n).Departure_delay,
    "mwp_wo_bw_uncoal_fx5600": lambda Mem_L, dep: mwp(Mem_L, dep, 16, 1e9, 1e15, 128, 1).MWP_wo_bw,
    "mem_l_coal_fx5600": lambda Mem_LD, dep: mem_latency(1, 0, Mem_LD, dep, 10, 32).Mem_L,
    "mem_l_coal_gtx280": lambda Mem_LD, dep: mem_latency(1, 0, Mem_LD, dep, 40, 2).Mem_L,
    "svm_mwp_gtx280": lambda Mem_LD, dep, n: mwp(*mem_latency(0, 1, Mem_LD, 4, dep, n)[2:4], 16, 1e9, 1e15, 1, 1).MWP,
    "fig6a_cwp": lambda C, M: cwp(M, C, 8).CWP,
    "fig6a_eq1": one_case,
    "fig6a_eq22": published_case,
    "fig6b_eq1": one_case,
    "fig7a_eq3": one_case,
    "fig7b_eq3": one_case,
    "fig9a_eq4": one_case,
    "fig9b_eq4": one_case,
    "case2_predicate_witness_case2": published_case,
    "case2_predicate_witness_case3": one_case,
    "rep_example": lambda Active_blocks, Blocks, SM: (
        exec_cycles(**TILED | {"active_blocks_per_sm": Active_blocks, "blocks": Blocks, "active_sms": SM}).Rep
    ),
    "blocks_per_sm_example": lambda Blocks, SM: (
        exec_cycles(**TILED | {"active_blocks_per_sm": 1, "blocks": Blocks, "active_sms": SM}).Rep
    ),
    "npw_fig28_published": lambda Ind, Mem, N: independent_warps(N, Mem, Ind, "as_published").value,
    "npw_fig28_repaired": lambda Ind, Mem, N: independent_warps(N, Mem, Ind).value,
    "npw_fig26_repaired": lambda Ind, Mem, N: independent_warps(N, Mem, Ind).value,
    "npw_dependent_published": lambda Ind, Mem, N: independent_warps(N, Mem, Ind, "as_published").value,
    "mfactor_FPadd": lambda ops: m_factor(ops).value,
    "mfactor_FPdiv": lambda ops: m_factor(ops).value,
    "mfactor_Intmul": lambda ops: m_factor(ops).value,
    "issue_cycles": lambda sp, warp: m_factor(sp, warp).value,
    **dict.fromkeys(
        ("peak_8800gtx", "peak_fx5600", "peak_8800gt", "peak_gtx280_3flop", "peak_gtx280_3flop_1296"),
        lambda cores, flop, ghz: peak_rate(cores, ghz, flop).value,
    ),
    "peak_gtx580": lambda flop, ghz, sm, sp: peak_rate(sm * sp, ghz, flop).value,
    "peak_gtx580_table14_as_printed": lambda cores, ghz, units: peak_rate(cores * units, ghz).value,
    "peak_e5645": lambda cores, ghz, lanes, units: peak_rate(cores * units * lanes, ghz, 1).value,
    "mat_naive_mem": lambda ai, comp: intensity(comp, 2 * 2000 + 1).value,  # two loads per step and a store
    "sepia_mem": lambda comp, mem: intensity(comp, mem).value,
    "n1_published": lambda C, M, MWP, N: C * N + idle_cycles(M, C, N, MWP, "as_published").Idle,
    "n1_repaired": lambda C, M, MWP, N: C * N + idle_cycles(M, C, N, MWP).Idle,
    "fig101_mwp": lambda MWP_App, MWP_BW, N: mwp_total(MWP_App, MWP_BW, np.inf, N).MWP,
    "fig100_mwpapp": lambda MSTR, OneMem: mwp_app(99, 1, OneMem, MSTR).App,
    "eq93_fig130": lambda InfiN, N: suggest_frequency(InfiN, N, 1).factor,
    "eq93_fig130_eq72": lambda EffComp, EffMem, N: (
        suggest_frequency(mwp_app(EffMem, EffComp, N, form="as_published").InfiN, N, 1).factor
    ),
    "gtx580_mwp_bw": lambda GBs, GHz, Mem_L, SM, **b: mwp(Mem_L, 1, 99, GHz, GBs, b["bytes"], SM).MWP_peak_bw,
    **{f"dep_cpu_{k}": lambda DEP, lat: comp_ratio(1, 1, 1, lat, DEP).DEP_Effect for k in (1, 2, 5)},
    "effratio_half": lambda fp, total: comp_ratio(fp, total, 1, 1, 1).EffRatio,
    "isca_2009_example": lambda: published_example().cycles_with_sync,
    "isca_2009_example_rounded": rounded_example,
    "stride_dotp": lambda: chain_stride(128, 128, "multiply").value,
    "stride_dmadd": lambda: chain_stride(8192, 8192).value,
    "stride_mmul": lambda: chain_stride(8192, 2, "multiply").value,
    "stride_madd": lambda: chain_stride(11384, 5000).value,
}
