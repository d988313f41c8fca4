"""Figures of [Lemeire2017]."""

from collections.abc import Callable
from typing import Any

import numpy as np

from profsvc.formulas.mwp_cwp import case_cycles
from profsvc.formulas.performance.latency import issue_cycles, simt_usage
from profsvc.formulas.performance.memory_accesses import bank_degree
from profsvc.formulas.performance.occupancy import Limits, occupancy, warps_resident
from profsvc.formulas.performance.roofline import effective_bandwidth, peak_rate, pixel_roofline, speedup_chain

CARDS = ("HD5870", "HD5770", "HD5670", "HD5450", "HD6970", "HD6870", "HD6670", "HD6450")


def fpn(quantity: str) -> Callable[..., Any]:
    def check(gops: float = 1.0, ops: float = 1.0, gbs: float = 1.0, **size: float) -> Any:
        return getattr(pixel_roofline(ops, size.get("bytes", 1.0), gops, gbs), quantity)

    return check


def periods(N: int, MWP: int, Mem_insts: int, **_: str) -> str:
    """Memory and computation periods of a round: its cycles where only one of both takes time."""
    n = Mem_insts
    memory, computation = (case_cycles(n * m, n * c, n, m, N, MWP, N).cycles for m, c in ((1, 1e-9), (1e9, 1e9)))
    return f"{round(float(memory))}M+{round(float(computation) / 1e9 - float(memory))}C"


ANSWERS: dict[str, Callable[..., Any]] = {
    "peak_gtx280_slides": lambda flop, ghz, mp, sp: peak_rate(mp * sp, ghz, flop).value,
    "peak_gtx280_slides_table": lambda flop, ghz, mp, sp: peak_rate(mp * sp, ghz, flop).value,
    "peak_c2050": lambda flop, ghz, mp, sp: peak_rate(mp * sp, ghz, flop).value,
    **{f"slides_red_bw_{k}": lambda ms: effective_bandwidth(4 * 2**22 / 1e9, ms / 1e3).value for k in range(1, 8)},
    **{f"slides_red_step_{k}": lambda a, b: speedup_chain([a, b]).step[1] for k in range(2, 8)},
    **{f"slides_red_cum_{k}": lambda a, b: speedup_chain([a, b]).total[1] for k in range(2, 8)},
    "slides_warps": lambda groups, items, warp: warps_resident(groups, items, warp),
    "slides_issue": lambda sp, warp: issue_cycles(sp, warp),
    "slides_pipe": lambda items: warps_resident(1, items) * issue_cycles(8),
    "slides_threads_per_sp": lambda sp, threads: warps_resident(1, threads) * issue_cycles(sp),
    "slides_simt_usage": lambda cycles, lanes, used: 100 * simt_usage([used], cycles * lanes).value,
    "slides_fpn1_ci": fpn("intensity"),
    "slides_fpn4_ci": fpn("intensity"),
    "slides_fpn_mem": fpn("memory"),
    "slides_fpn1_ops": fpn("compute"),
    "slides_fpn4_ops": fpn("compute"),
    "slides_fpn_roof": lambda a, b: pixel_roofline(1, 1, b, a).rate,
    "slides_latency_4w": periods,
    **{
        f"slides_bank_stride{stride}": lambda banks, stride: bank_degree(4 * stride * np.arange(16), banks).value
        for stride in (1, 2, 8)
    },
    # A group of more items than the limit is no group: what it asks for is what the limit would have to be.
    "slides_group_limit": lambda x, y: x * y if not occupancy(x * y, 0, 0, Limits(48, 8, 1024, 1, 1)).blocks else 0,
    "slides_wavefronts": lambda items, wf: warps_resident(1, items, wf),
    "slides_wavefronts2": lambda items, wf: warps_resident(1, items, wf),
    **{f"slides_amd_thr_{card}": lambda est, k: peak_rate(k, 1 / est, 1).value for card in CARDS},
}
