"""Figures of [Kim2012]."""

from collections.abc import Callable
from typing import Any

from profsvc import specs
from profsvc.formulas.benefit import Machine, benefit
from profsvc.formulas.performance.memory_balance import near_field, reduction_transfers
from profsvc.formulas.performance.peak_estimates import operand_bandwidth
from profsvc.formulas.performance.roofline import intensity, roofline
from profsvc.formulas.performance.work_depth import available_parallelism, brent_time, reduction_tree


def on_fermi(lat: float = 1.0, sms: float = 14.0, size: float = 0.0, GHz: float = 1.15, GBs: float = 144.0) -> Any:
    machine = Machine(lat, 1, 1, 18, 18, 32, 4, GBs, GHz)
    one = {"sync_insts": 0, "sfu_insts": 0, "fp_insts": 0, "ilp": 1, "mlp": 1, "avg_trans_warp": 1, "miss_ratio": 1}
    counts = {"insts": 9, "mem_insts": 1, "total_warps": sms, "active_sms": sms, "N": 1, "size_of_data": size}
    return benefit(**one, **counts, machine=machine)


ANSWERS: dict[str, Callable[..., Any]] = {
    "book_wd_par": lambda D, W: available_parallelism(W, D).value,
    "book_tree_W": lambda n: reduction_tree(n).work,
    "book_tree_D": lambda n: reduction_tree(n).depth,
    "book_eps": lambda n: reduction_tree(n).depth - 1,
    "book_brent_p1": lambda D, W, p: brent_time(W, D, p).value,
    "book_brent_p6": lambda D, W, p: brent_time(W, D, p).value,
    "book_red_adds": lambda Z, n: reduction_transfers(n, Z, 1).W,
    "book_fmm_words": lambda q: near_field(q, 11).words,
    "book_fmm_bytes": lambda: near_field(1, 11).words * 4,
    "book_fmm_q": lambda: 10 / near_field(1, 11, form="as_published").intensity,
    "book_fmm_q_27": lambda: 10 / near_field(1, 11).intensity,
    "book_fmm_q_KB": lambda: near_field(422, 11).Z / 8 * 4 / 1024,  # the print counts one word of the eight a point has
    "book_fmm_Z_KB": lambda: near_field(422, 11).Z * 4 / 1024,
    "book_inner_ai": lambda: intensity(11, 16).value,
    "book_roof_base": lambda bw, peak: roofline(11 / 16, [peak], [bw]).attainable,
    "book_balance": lambda: roofline(1, [1000], [100]).ridge,
    "book_mwp_peak_c2050": lambda L, SM: on_fermi(L, SM).MWP_peak_bw,
    "book_tmem_min_dim": lambda BW, GHz, SM, lat, size, **_: on_fermi(lat, SM, size, GHz, BW).T_mem_min,
    "book_regbw": lambda: operand_bandwidth(1e12, 2, 4, 1).value / 1e12,
    "book_lanes": lambda: operand_bandwidth(32, 1, 4, 1).value,
    "book_regfile": lambda: specs.device("8800GTX").registers_per_sm * 4 / 1024,
    "book_fermi_rf": lambda: specs.device("GTX580").registers_per_sm * 4 * 16 / 2**20,
}
