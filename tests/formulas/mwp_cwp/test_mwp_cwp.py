"""The timing model against a simulation, a second reading of its equations, its limits, and what it says of itself."""

import heapq
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.mwp_cwp import (
    BANDWIDTH,
    DEPARTURE,
    WARPS,
    case_cycles,
    cwp,
    exec_cycles,
    independent_warps,
)
from profsvc.formulas.numerics.flags import FORMS, Flag
from tests.formulas.answers.thesis_time import TILED

NEITHER_CYCLES_NOR_CASE = {"n_sync"}

kernels = st.fixed_dictionaries(
    {
        "n_comp": st.integers(0, 500),
        "n_coal": st.integers(0, 20),
        "n_uncoal": st.integers(0, 20),
        "n_sync": st.integers(0, 5),
        "threads_per_block": st.integers(1, 512),
        "blocks": st.integers(1, 1000),
        "active_blocks_per_sm": st.integers(1, 8),
        "active_sms": st.integers(1, 30),
        "Mem_LD": st.integers(100, 800),
        "dep_coal": st.integers(0, 20),
        "dep_uncoal": st.integers(0, 80),
        "uncoal_per_mw": st.integers(1, 32),
        "load_bytes_per_warp": st.sampled_from([32, 64, 128, 256]),
        "freq": st.just(1.35e9),
        "bandwidth": st.floats(1e9, 1e12),
        "M_Factor": st.sampled_from([1.0, 1.3, 4.0]),
    }
)


def simulated(warps: int, rounds: int, compute: float, memory: float, slots: int) -> float:
    """Time until all warps have computed and waited for memory ``rounds`` times: one issue port, some slots."""
    ready = [(0.0, warp, 0) for warp in range(warps)]
    free = [0.0] * slots
    port = end = 0.0
    while ready:
        at, warp, done = heapq.heappop(ready)
        port = max(port, at) + compute
        answered = max(port, heapq.heappop(free)) + memory
        heapq.heappush(free, answered)
        end = max(end, answered)
        if done + 1 < rounds:
            heapq.heappush(ready, (answered, warp, done + 1))
    return end


@pytest.mark.parametrize(
    ("warps", "rounds", "slots", "printed"),
    [(8, 1, 2, 14), (4, 2, 2, 14), (8, 1, 8, 11), (4, 2, 8, 11), (1, 1, 8, 4), (2, 1, 2, 5)],
    ids=["6a", "6b", "7a", "7b", "9a", "9b"],
)
def test_figures_of_the_source_are_what_a_simulation_does(warps: int, rounds: int, slots: int, printed: float) -> None:
    assert simulated(warps, rounds, 1.0, 3.0, slots) == printed
    M, C, W = 3.0 * rounds, 1.0 * rounds, min(slots, warps)
    assert case_cycles(M, C, rounds, 3.0, warps, W, cwp(M, C, warps).CWP).cycles == printed


def test_the_repaired_model_is_nearer_to_the_simulation_than_the_print() -> None:
    rng = np.random.default_rng(1)
    error: dict[str, list[float]] = {form: [] for form in FORMS}
    for _ in range(400):
        warps, rounds, slots = (int(x) for x in rng.integers(1, (25, 9, 25)))
        C, L = rng.uniform(1, 30), rng.uniform(10, 60)
        truth = simulated(warps, rounds, C, L, slots)
        W, V = min(slots, warps), cwp(L * rounds, C * rounds, warps).CWP
        for form in FORMS:
            got = case_cycles(L * rounds, C * rounds, rounds, L, warps, W, V, form).cycles
            error[form].append(abs(math.log(got / truth)))
    ours, theirs = error["consistent"], error["as_published"]
    assert np.median(ours) < np.median(theirs)
    assert np.quantile(ours, 0.95) < 0.5 * np.quantile(theirs, 0.95)
    assert max(ours) < math.log(2)


def by_the_book(k: dict[str, Any], published: bool) -> tuple[float, int]:
    """Cycles and case by the equations one after another, numbers in place of arrays."""
    n_mem = k["n_coal"] + k["n_uncoal"]
    sms = k["active_sms"] if published else min(k["active_sms"], k["blocks"])
    N = k["active_blocks_per_sm"] * math.ceil(k["threads_per_block"] / 32)
    L_u = k["Mem_LD"] + (k["uncoal_per_mw"] - 1) * k["dep_uncoal"]
    L_c = k["Mem_LD"] + k["dep_coal"]
    mem_cycles = L_u * k["n_uncoal"] + L_c * k["n_coal"]
    Mem_L = mem_cycles / n_mem
    delay = (k["dep_uncoal"] * k["uncoal_per_mw"] * k["n_uncoal"] + k["dep_coal"] * k["n_coal"]) / n_mem
    peak = k["bandwidth"] / (k["freq"] * k["load_bytes_per_warp"] / Mem_L * sms)
    MWP = min(Mem_L / delay if delay else math.inf, peak, N)
    weighted = k["M_Factor"] * (k["n_comp"] + n_mem) if published else k["M_Factor"] * k["n_comp"] + n_mem
    comp = 4 * weighted
    CWP = min((mem_cycles + comp) / comp, N)
    period, rep = comp / n_mem, k["blocks"] / (k["active_blocks_per_sm"] * sms)
    if MWP == N and CWP == N:
        return (mem_cycles + comp + period * (N - 1)) * rep, 1
    if (CWP >= MWP and comp <= mem_cycles) or (published and (CWP >= MWP or comp > mem_cycles)):
        return (mem_cycles * N / MWP + period * (MWP - 1 if published else MWP)) * rep, 2
    return (Mem_L + comp * N) * rep, 3


@given(kernels.filter(lambda k: k["n_coal"] + k["n_uncoal"] > 0), st.sampled_from(FORMS))
def test_equations_one_after_another(k: dict[str, Any], form: str) -> None:
    got = exec_cycles(**k, form=form)
    cycles, case = by_the_book(k, form == "as_published")
    if not np.isclose(got.MWP, got.CWP, rtol=1e-9, atol=0) and not np.isclose(got.Comp_cycles, got.Mem_cycles):
        assert got.case == case
        np.testing.assert_allclose(got.cycles, cycles, rtol=1e-9)
    np.testing.assert_allclose(got.cycles_with_sync, got.cycles + got.sync_cost)


@given(kernels)
def test_what_holds_for_every_kernel(k: dict[str, Any]) -> None:
    got = exec_cycles(**k)
    if k["n_comp"] + k["n_coal"] + k["n_uncoal"] == 0:
        assert got.cycles == 0
        assert np.isnan(got.CPI)
        return
    assert got.case in (1, 2, 3)
    assert 0 < got.MWP <= got.N
    assert 0 < got.CWP <= got.N
    assert got.sync_cost >= 0
    bound = max(got.Comp_cycles * got.N, got.Mem_cycles) * got.Rep
    assert got.cycles_bounded == pytest.approx(float(max(got.cycles, bound)))
    assert got.bound_violated == (got.cycles < bound * (1 - 1e-9))
    # Below the bound it only falls while fewer than two warps compute beside one memory period.
    assert got.cycles > 0.5 * bound * (1 - 1e-9)


@given(kernels)
def test_more_sms_never_take_longer(k: dict[str, Any]) -> None:
    got = exec_cycles(**k | {"active_sms": np.arange(1, 65)})
    assert (np.diff(got.cycles) <= 1e-9 * got.cycles[:-1]).all()
    assert (np.diff(got.cycles_bounded) <= 1e-9 * got.cycles_bounded[:-1]).all()
    beyond = np.arange(1, 65) >= k["blocks"]
    assert np.unique(got.cycles[beyond]).size <= 1


def test_saturated_bandwidth_leaves_nothing_to_more_sms() -> None:
    streaming = TILED | {"n_uncoal": 0, "n_coal": 6, "blocks": 3000, "freq": 1.35e9, "bandwidth": 20e9}
    got = exec_cycles(**streaming | {"active_sms": np.array([1.0, 15.0, 30.0])})
    assert got.limiter.tolist() == [WARPS, BANDWIDTH, BANDWIDTH]
    assert got.cycles[0] / got.cycles[1] > 2.5
    assert got.cycles[1] / got.cycles[2] < 1.01
    seconds = got.cycles[2] / streaming["freq"]
    moved = streaming["blocks"] * 4 * 6 * streaming["load_bytes_per_warp"]
    assert moved / seconds == pytest.approx(streaming["bandwidth"], rel=0.01)


def test_bandwidth_is_used_up_by_twenty_of_thirty_sms() -> None:
    # MWP_peak_BW of 10.8 on 30 SMs is printed for the kernels that need 20; 16 warps per SM follow from both.
    kernel = TILED | {"n_uncoal": 0, "n_coal": 6, "threads_per_block": 512, "active_blocks_per_sm": 1, "blocks": 30}
    drawn = exec_cycles(**kernel).BW_per_warp
    got = exec_cycles(**kernel | {"bandwidth": 10.8 * 30 * drawn, "active_sms": np.arange(1, 31)})
    assert got.MWP_peak_bw[-1] == pytest.approx(10.8)
    assert np.flatnonzero(got.limiter == BANDWIDTH)[0] + 1 == 21
    assert got.MWP_peak_bw[-1] * 30 / got.N[-1] == pytest.approx(20.25)
    assert got.cycles[9] / got.cycles[19] == pytest.approx(2)
    assert got.cycles[19] / got.cycles[29] < 1.15  # where memory did not limit it would be 1.5


@pytest.mark.parametrize("form", FORMS)
def test_scalar_is_vector_is_broadcast(form: str) -> None:
    values = {name: np.array([x, x * 2]) for name, x in TILED.items()}
    vector = exec_cycles(**values, form=form)
    column = exec_cycles(**{name: x[:, np.newaxis] for name, x in values.items()}, form=form)
    for k in range(2):
        scalar = exec_cycles(**{name: float(x[k]) for name, x in values.items()}, form=form)
        for one, two, three in zip(scalar, vector, column, strict=True):
            assert one.shape == ()
            assert one == two[k] == three[k, 0]
    launches_by_sms = exec_cycles(**values | {"active_sms": np.arange(1.0, 5)[:, np.newaxis]}, form=form)
    assert {x.shape for x in launches_by_sms} == {(4, 2)}
    assert vector.case.dtype == vector.limiter.dtype == np.int8


@pytest.mark.parametrize("name", TILED)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0])
def test_a_wrong_number_makes_nan_and_leaves_the_next_one_unchanged(name: str, wrong: float) -> None:
    values = {key: np.array([x, x]) for key, x in TILED.items()}
    good = exec_cycles(**values)
    values[name] = np.array([wrong, TILED[name]])
    for x in values.values():
        x.flags.writeable = False
    got = exec_cycles(**values)
    assert got.flags[0] & Flag.INPUT_SUSPECT
    assert np.isnan(got.cycles_with_sync[0])
    assert np.isnan(got.cycles[0]) == (name not in NEITHER_CYCLES_NOR_CASE)
    assert (got.case[0] == 0) == (name not in NEITHER_CYCLES_NOR_CASE)
    for field, one in got._asdict().items():
        assert one[1] == good._asdict()[field][1], field
    assert exec_cycles(**values, form="as_published").flags[0] & Flag.INPUT_SUSPECT


def test_wrong_dtype_shape_form_and_options() -> None:
    with pytest.raises(TypeError, match="Mem_LD has dtype"):
        exec_cycles(**TILED | {"Mem_LD": np.array(["420"])})
    with pytest.raises(ValueError, match="do not broadcast"):
        exec_cycles(**TILED | {"blocks": np.ones(2), "active_sms": np.ones(3)})
    for option, allowed in (("form", "as_published"), ("rep", "fractional"), ("load", "per_request")):
        with pytest.raises(ValueError, match=f"no form 'printed'; allowed: .*'{allowed}'"):
            exec_cycles(**TILED | {option: "printed"})


@pytest.mark.parametrize(
    ("changed", "flag", "case"),
    [
        ({"n_uncoal": 0}, Flag.NOT_APPLICABLE, 3),
        ({"threads_per_block": 0}, Flag.ZERO_DENOM, 0),
        ({"active_blocks_per_sm": 0}, Flag.ZERO_DENOM, 0),
        ({"active_sms": 0}, Flag.ZERO_DENOM, 0),
        ({"bandwidth": 0}, Flag.ZERO_DENOM, 0),
        ({"n_comp": 0, "n_uncoal": 0}, Flag.ZERO_DENOM, 3),
        ({"blocks": 100}, Flag.TAIL_EFFECT, 2),
        ({"threads_per_block": 100}, Flag.TAIL_EFFECT, 2),
        ({"blocks": 8, "active_blocks_per_sm": 1}, Flag.TAIL_EFFECT, 2),
        ({"blocks": 20}, Flag.INPUT_SUSPECT, 2),
        ({"uncoal_per_mw": 0.5}, Flag.INPUT_SUSPECT, 2),
        ({"n_comp": 5000, "dep_uncoal": 0.1}, Flag.CASE_AMBIGUOUS, 3),
    ],
    ids=lambda x: str(x) if isinstance(x, dict) else None,
)
def test_flags_and_edges(changed: dict[str, float], flag: Flag, case: int) -> None:
    assert exec_cycles(**TILED).flags == 0
    got = exec_cycles(**TILED | changed)
    assert got.flags & flag
    assert got.case == case
    assert np.isnan(got.cycles) == (case == 0)
    assert exec_cycles(**TILED | changed, form="as_published").flags & flag


def test_independent_requests_act_like_more_warps() -> None:
    few = {"n_uncoal": 0, "n_coal": 8, "threads_per_block": 32, "active_blocks_per_sm": 4, "bandwidth": 1e12}
    dependent = exec_cycles(**TILED | few)
    independent = exec_cycles(**TILED | few, N_pw=independent_warps(4, 8, 4).value)
    assert dependent.MWP == 4
    assert independent.MWP == 8
    assert dependent.case == independent.case == 1
    assert 0.45 < independent.cycles / dependent.cycles < 0.6
    many = few | {"threads_per_block": 1024}
    queued = exec_cycles(**TILED | many)
    assert queued.limiter == DEPARTURE
    assert exec_cycles(**TILED | many, N_pw=independent_warps(128, 8, 4).value).cycles == queued.cycles


def test_barriers_of_one_warp_cost_nothing() -> None:
    assert exec_cycles(**TILED | {"threads_per_block": 32}).sync_cost == 0
    starved = TILED | {"bandwidth": 1e9, "load_bytes_per_warp": 1024.0}
    assert exec_cycles(**starved).MWP < 1
    assert exec_cycles(**starved).sync_cost == 0
    assert exec_cycles(**starved, form="as_published").sync_cost < 0


def test_bytes_are_counted_with_the_transactions_of_the_latency() -> None:
    mixed = TILED | {"n_coal": 2.0, "load_bytes_per_warp": 32.0}
    counted = exec_cycles(**mixed, load="all_transactions")
    assert counted.BW_per_warp / exec_cycles(**mixed).BW_per_warp == pytest.approx((6 * 32 + 2) / 8)
    scattered = exec_cycles(**TILED | {"uncoal_per_mw": np.array([2.0, 32.0])}, load="all_transactions")
    assert scattered.MWP_peak_bw[0] > scattered.MWP_peak_bw[1]
    printed = exec_cycles(**TILED | {"uncoal_per_mw": np.array([2.0, 32.0])})
    assert printed.MWP_peak_bw[0] < printed.MWP_peak_bw[1]
    none = exec_cycles(**TILED | {"n_uncoal": 0}, load="all_transactions")
    assert none.cycles == exec_cycles(**TILED | {"n_uncoal": 0}).cycles
