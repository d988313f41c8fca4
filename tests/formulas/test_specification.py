"""Rows of the specification that the models of the book, the slides and the throughput model answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profsvc.formulas.benefit import Machine, benefit
from profsvc.formulas.memory_balance import near_field, reduction_transfers
from profsvc.formulas.mwp_cwp import mwp
from profsvc.formulas.roofline import (
    effective_bandwidth,
    intensity,
    peak_rate,
    pixel_roofline,
    roofline,
    speedup_chain,
)
from profsvc.formulas.throughput import (
    comp_ratio,
    idle_cycles,
    mwp_app,
    mwp_total,
    suggest_frequency,
)
from profsvc.formulas.work_depth import available_parallelism, brent_time, reduction_tree
from tests.formulas.test_truth import table

GOLDEN = Path(__file__).parents[3] / "shared" / "spec" / "golden.csv"


def fpn(quantity: str) -> Callable[..., Any]:
    def check(gops: float = 1.0, ops: float = 1.0, gbs: float = 1.0, **size: float) -> Any:
        return getattr(pixel_roofline(ops, size.get("bytes", 1.0), gops, gbs), quantity)

    return check


def on_fermi(lat: float = 1.0, sms: float = 14.0, size: float = 0.0, GHz: float = 1.15, GBs: float = 144.0) -> Any:
    machine = Machine(lat, 1, 1, 18, 18, 32, 4, GBs, GHz)
    one = {"sync_insts": 0, "sfu_insts": 0, "fp_insts": 0, "ilp": 1, "mlp": 1, "avg_trans_warp": 1, "miss_ratio": 1}
    counts = {"insts": 9, "mem_insts": 1, "total_warps": sms, "active_sms": sms, "N": 1, "size_of_data": size}
    return benefit(**one, **counts, machine=machine)


CHECKS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("peak_8800gtx", "peak_fx5600", "peak_8800gt"), lambda cores, flop, ghz: peak_rate(cores, ghz, flop)
    ),
    "peak_gtx280_3flop": lambda cores, flop, ghz: peak_rate(cores, ghz, flop),
    "peak_gtx280_3flop_1296": lambda cores, flop, ghz: peak_rate(cores, ghz, flop),
    **dict.fromkeys(
        ("peak_gtx280_slides", "peak_gtx280_slides_table", "peak_c2050"),
        lambda flop, ghz, mp, sp: peak_rate(mp * sp, ghz, flop),
    ),
    "peak_gtx580": lambda flop, ghz, sm, sp: peak_rate(sm * sp, ghz, flop),
    "peak_gtx580_table14_as_printed": lambda cores, ghz, units: peak_rate(cores * units, ghz),
    "peak_ryoo_mad": lambda ghz, sp: peak_rate(sp, ghz),
    "peak_ryoo_sfu": lambda flop_per_sm_clk, ghz, sm: peak_rate(sm, ghz, flop_per_sm_clk),
    "issue_rate_ryoo": lambda ghz, sp: peak_rate(sp, ghz, 1),
    "peak_e5645": lambda cores, ghz, lanes, units: peak_rate(cores * units * lanes, ghz, 1),
    **{f"slides_red_bw_{k}": lambda ms: effective_bandwidth(4 * 2**22 / 1e9, ms / 1e3) for k in range(1, 8)},
    **{f"slides_red_step_{k}": lambda a, b: speedup_chain([a, b]).step[1] for k in range(2, 8)},
    **{f"slides_red_cum_{k}": lambda a, b: speedup_chain([a, b]).total[1] for k in range(2, 8)},
    "slides_fpn1_ci": fpn("intensity"),
    "slides_fpn4_ci": fpn("intensity"),
    "slides_fpn_mem": fpn("memory"),
    "slides_fpn1_ops": fpn("compute"),
    "slides_fpn4_ops": fpn("compute"),
    "slides_fpn_roof": lambda a, b: pixel_roofline(1, 1, b, a).rate,
    "book_wd_par": lambda D, W: available_parallelism(W, D),
    "book_tree_W": lambda n: reduction_tree(n).work,
    "book_tree_D": lambda n: reduction_tree(n).depth,
    "book_brent_p1": lambda D, W, p: brent_time(W, D, p),
    "book_brent_p6": lambda D, W, p: brent_time(W, D, p),
    "book_red_adds": lambda Z, n: reduction_transfers(n, Z, 1).W,
    "book_fmm_words": lambda q: near_field(q, 11).words,
    "book_fmm_bytes": lambda: near_field(1, 11).words * 4,
    "book_fmm_q": lambda: 10 / near_field(1, 11, form="as_published").intensity,
    "book_fmm_q_27": lambda: 10 / near_field(1, 11).intensity,
    "book_fmm_Z_KB": lambda: near_field(422, 11).Z * 4 / 1024,
    "book_inner_ai": lambda: intensity(11, 16),
    "book_roof_base": lambda bw, peak: roofline(11 / 16, [peak], [bw]).attainable,
    "book_mwp_peak_c2050": lambda L, SM: on_fermi(L, SM).MWP_peak_bw,
    "book_tmem_min_dim": lambda BW, GHz, SM, lat, size, **_: on_fermi(lat, SM, size, GHz, BW).T_mem_min,
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
    "book_balance": lambda: roofline(1, [1000], [100]).ridge,
}
STARTS = ("peak_", "slides_red_", "slides_fpn", "book_wd", "book_tree", "book_brent", "book_red_")


def inputs(row: dict[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(row["inputs_json"])
    return given


@pytest.mark.skipif(not GOLDEN.exists(), reason="the specification is not beside this checkout")
def test_rows_of_the_specification() -> None:
    golden = {row["id"]: row for row in table(GOLDEN)}
    assert {name for name in golden if name.startswith(STARTS)} <= set(CHECKS)
    for name, check in CHECKS.items():
        row = golden[name]
        got = check(**inputs(row))
        value = getattr(got, "value", got)
        np.testing.assert_allclose(value, float(row["computed"]), rtol=1e-9, err_msg=name)
        if row["match"] == "yes":
            tolerance = float(row["tolerance"]) + 1e-12
            np.testing.assert_allclose(value, float(row["printed"]), rtol=0, atol=tolerance, err_msg=name)
