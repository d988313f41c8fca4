"""Estimates from the instruction mix: limits, relations between them, and the rows of the specification."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.accesses import bank_degree
from profsvc.formulas.estimates import bandwidth_demand, bandwidth_limited, gpu_share_speedup, potential_throughput
from profsvc.formulas.flags import Flag
from profsvc.formulas.latency import issue_cycles, simt_usage
from profsvc.formulas.occupancy import Limits, occupancy, warps_resident
from profsvc.formulas.speedup import amdahl
from tests.formulas.test_truth import table

GOLDEN = Path(__file__).parents[3] / "shared" / "spec" / "golden.csv"
GTX = Limits(24, 8, 512, 8192, 16384)
rate = st.floats(1, 1e15)


@given(rate, rate, rate)
def test_bandwidth_limits_from_above_and_only_where_it_lacks(P: float, B: float, A: float) -> None:
    got = bandwidth_limited(P, B, A).value
    assert got <= P
    assert (got == P) == (A >= B) or got == pytest.approx(P)
    assert got * B / P <= max(A, B) * (1 + 1e-12)


@given(st.floats(0.01, 1), st.floats(1, 500))
def test_share_of_kernels_and_amdahl_are_one_relation(p: float, s: float) -> None:
    after = (1 - p) + p / s
    g = (p / s) / after
    assert gpu_share_speedup(g, s, p).value == pytest.approx(1 / after)
    assert amdahl(p, 1 / s) == pytest.approx(1 / after)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (potential_throughput, ([0.5, 0.25], [2.0, 1.0], 100.0)),
        (bandwidth_demand, (128.0, 0.25, 4.0, 1e9)),
        (bandwidth_limited, (10.0, 5.0, 2.0)),
        (gpu_share_speedup, (0.5, 10.0, 0.9)),
    ],
    ids=lambda x: x.__name__ if callable(x) else None,
)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_a_wrong_number_makes_nan_and_spares_the_neighbour(function: Any, arguments: Any, wrong: float) -> None:
    good = function(*arguments)
    assert good.flags == 0
    for k in range(len(arguments)):
        given = [np.array([x, x]) for x in arguments]
        given[k][0] = wrong
        got = function(*given)
        assert np.isnan(got.value[0])
        assert got.flags.tolist() == [Flag.INPUT_SUSPECT, 0]
        assert got.value[1] == good.value


def test_shares_above_one_and_nothing_to_divide_by() -> None:
    assert potential_throughput([0.7, 0.7], [1, 1], 1).flags == Flag.INPUT_SUSPECT
    assert bandwidth_demand(1, 25, 4, 1).flags == Flag.INPUT_SUSPECT
    assert gpu_share_speedup(40, 2, 1).flags == Flag.INPUT_SUSPECT
    got = gpu_share_speedup(0.5, 2, 0)
    assert np.isnan(got.value)
    assert got.flags == Flag.ZERO_DENOM
    assert bandwidth_limited(5.0, 0.0, 0.0).value == 5


def blocks(threads: float, regs: float) -> Any:
    return occupancy(threads, regs, 0, GTX).blocks


CHECKS: dict[str, Any] = {
    "ryoo_pt_quarter": lambda fma_fraction: potential_throughput([fma_fraction], [2], 172.8).value,
    "ryoo_pt_naive": lambda fma_fraction: potential_throughput([fma_fraction], [2], 172.8).value,
    "ryoo_pt_unrolled": lambda fma, insts: potential_throughput([fma / insts], [2], 172.8).value,
    "ryoo_bw_demand": lambda ghz, load_frac, sp, **size: bandwidth_demand(sp, load_frac, size["bytes"], ghz).value,
    "ryoo_bw_ratio": lambda avail, demand: 1 / bandwidth_limited(1, demand, avail).value,
    "ryoo_occ_10": blocks,
    "ryoo_occ_11": blocks,
    "ryoo_occ_9": blocks,
    "ryoo_occ_11_threads": lambda threads: 1 - threads * occupancy(256, 11, 0, GTX).occupancy / 512,
    "ryoo_8x8_blocks": lambda maxthr, threads: occupancy(threads, 0, 0, Limits(maxthr / 32, 8, 512, 1, 1)).allowed[1],
    "ryoo_4x4_slots": lambda threads: 1 - simt_usage([threads], 32).value,
    **{f"ryoo_amdahl_{name}": lambda p, s: amdahl(p, 1 / s) for name in ("H.264", "FEM", "RPES", "TPACF", "FDTD")},
    "ryoo_amdahl_fdtd_limit": lambda p: amdahl(p, 0.0),
    **{
        f"ryoo_gpushare_{name}": lambda g, p, s: gpu_share_speedup(g, s, p).value
        for name in ["H.264", "LBM", "RC5-72", "FEM", "RPES", "PNS", "SAXPY", "TPACF", "FDTD", "MRI-FHD", "CP"]
    },
    "slides_warps": lambda groups, items, warp: warps_resident(groups, items, warp),
    "slides_issue": lambda sp, warp: issue_cycles(sp, warp),
    "slides_pipe": lambda items: warps_resident(1, items) * issue_cycles(8),
    "slides_simt_usage": lambda cycles, lanes, used: 100 * simt_usage([used], cycles * lanes).value,
    **{
        f"slides_bank_stride{stride}": lambda banks, stride: bank_degree(4 * stride * np.arange(16), banks).value
        for stride in (1, 2, 8)
    },
    "slides_wavefronts": lambda items, wf: warps_resident(1, items, wf),
    "slides_wavefronts2": lambda items, wf: warps_resident(1, items, wf),
}


@pytest.mark.skipif(not GOLDEN.exists(), reason="the specification is not beside this checkout")
def test_rows_of_the_specification() -> None:
    golden = {row["id"]: row for row in table(GOLDEN)}
    starts = ("ryoo_pt_", "ryoo_occ_", "ryoo_amdahl_", "ryoo_gpushare_", "slides_bank_", "slides_warps", "slides_wave")
    assert {name for name in golden if name.startswith(starts)} <= set(CHECKS)
    for name, check in CHECKS.items():
        row = golden[name]
        got = check(**json.loads(row["inputs_json"]))
        np.testing.assert_allclose(got, float(row["computed"]), rtol=1e-9, err_msg=name)
        if row["match"] == "yes":
            tolerance = float(row["tolerance"]) + 1e-12
            np.testing.assert_allclose(got, float(row["printed"]), rtol=0, atol=tolerance, err_msg=name)
