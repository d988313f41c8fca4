"""Figures of [Ryoo2008]."""

from collections.abc import Callable
from typing import Any

from profsvc.formulas.performance.latency import simt_usage
from profsvc.formulas.performance.occupancy import Limits, occupancy, resource_demand
from profsvc.formulas.performance.peak_estimates import (
    bandwidth_demand,
    bandwidth_limited,
    gpu_share_speedup,
    potential_throughput,
)
from profsvc.formulas.performance.roofline import peak_rate, speedup_chain
from profsvc.formulas.performance.speedup import amdahl

GTX = Limits(24, 8, 512, 8192, 16384)
ALL = ["H.264", "LBM", "RC5-72", "FEM", "RPES", "PNS", "SAXPY", "TPACF", "FDTD", "MRI-FHD", "CP"]


def blocks(threads: float, regs: float) -> Any:
    return occupancy(threads, regs, 0, GTX).blocks


def gained(old: float, new: float) -> Any:
    return speedup_chain([1 / old, 1 / new]).step[1]


def over(demand: float, avail: float, tile: float = 1) -> Any:
    """Demand over what is available, off the time of a kernel so large that it is limited by it."""
    return 1 / bandwidth_limited(1, demand, avail * tile / 1000).value / 1000


ANSWERS: dict[str, Callable[..., Any]] = {
    "peak_ryoo_mad": lambda ghz, sp: peak_rate(sp, ghz).value,
    "peak_ryoo_sfu": lambda flop_per_sm_clk, ghz, sm: peak_rate(sm, ghz, flop_per_sm_clk).value,
    "issue_rate_ryoo": lambda ghz, sp: peak_rate(sp, ghz, 1).value,
    "ryoo_pt_quarter": lambda fma_fraction: potential_throughput([fma_fraction], [2], 172.8).value,
    "ryoo_pt_naive": lambda fma_fraction: potential_throughput([fma_fraction], [2], 172.8).value,
    "ryoo_pt_unrolled": lambda fma, insts: potential_throughput([fma / insts], [2], 172.8).value,
    "ryoo_bw_demand": lambda ghz, load_frac, sp, **size: bandwidth_demand(sp, load_frac, size["bytes"], ghz).value,
    "ryoo_bw_ratio": over,
    "ryoo_bw_ratio_tiled": over,
    "ryoo_tiled_gain": gained,
    "ryoo_prefetch_loss": lambda old, new: 100 * (1 - gained(old, new)),
    "ryoo_eff_unrolled": lambda meas, pot: gained(pot, meas),
    "ryoo_eff_tiled": lambda meas, pot: gained(pot, meas),
    "ryoo_regs_11": lambda blocks, regs, threads: resource_demand(blocks, threads, regs, 8192).amount,
    "ryoo_fdtd_regs": lambda regs, threads: resource_demand(1, threads, regs, 8192).amount,
    "ryoo_lbm_smem": lambda threads, **size: resource_demand(1, threads, size["bytes"], 16384).amount,
    "ryoo_occ_10": blocks,
    "ryoo_occ_11": blocks,
    "ryoo_occ_9": blocks,
    "ryoo_occ_11_threads": lambda threads: 1 - threads * occupancy(256, 11, 0, GTX).occupancy / 512,
    "ryoo_8x8_blocks": lambda maxthr, threads: occupancy(threads, 0, 0, Limits(maxthr / 32, 8, 512, 1, 1)).allowed[1],
    "ryoo_8x8_over": lambda limit, need: need / occupancy(64, 0, 0, GTX._replace(max_blocks_per_sm=limit)).blocks - 1,
    "ryoo_4x4_slots": lambda threads: 1 - simt_usage([threads], 32).value,
    "ryoo_max_threads": lambda sm, thr: (
        sm * occupancy(256, 10, 0, GTX._replace(max_warps_per_sm=thr / 32)).active_threads
    ),
    "ryoo_amdahl_fdtd_limit": lambda p: amdahl(p, 0.0),
    **{f"ryoo_amdahl_{name}": lambda p, s: amdahl(p, 1 / s) for name in ("H.264", "FEM", "RPES", "TPACF", "FDTD")},
    **{f"ryoo_gpushare_{name}": lambda g, p, s: gpu_share_speedup(g, s, p).value for name in ALL},
}
