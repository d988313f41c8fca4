"""The throughput model: against the timing model it repairs to, its categories, its suggestions, and its limits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.mwp_cwp import mwp
from profsvc.formulas.numerics.flags import FORMS, Flag
from profsvc.formulas.throughput import (
    SLACK,
    Throughput,
    category,
    comp_ratio,
    effective_latency,
    idle_cycles,
    instruction_mix,
    memory_strength,
    mwp_app,
    mwp_total,
    peak_achievable,
    start_share,
    suggest_cores,
    suggest_frequency,
    suggest_warps,
    throughput,
    what_if,
)
from profsvc.specs import categories
from tests.formulas.contract import holds

KERNEL: dict[str, Any] = {
    "plain": 40.0,
    "wide": 10.0,
    "total": 100.0,
    "mem": 4.0,
    "ilp": 2.0,
    "dep": 2.0,
    "mstr": 2.0,
    "N": 24.0,
    "inst_latency": 20.0,
    "peak_plain": 790e9,
    "peak_wide": 1581e9,
    "Mem_L": 450.0,
    "departure_delay": 10.0,
    "load_bytes_per_warp": 128.0,
    "freq": 1.544e9,
    "bandwidth": 150e9,
    "active_sms": 16.0,
}
cycles, many = st.floats(1, 1e4), st.integers(1, 64)
kernels = st.fixed_dictionaries(
    {
        "plain": st.integers(0, 500),
        "wide": st.integers(0, 500),
        "mem": st.integers(0, 50),
        "ilp": st.floats(1, 4),
        "dep": st.floats(1, 30),
        "mstr": st.integers(1, 4),
        "N": many,
        "Mem_L": st.floats(20, 1000),
        "departure_delay": st.floats(0, 100),
        "load_bytes_per_warp": st.floats(0, 4096),
        "bandwidth": st.floats(1e10, 5e12),
        "active_sms": st.integers(1, 132),
    }
)
OTHER = {"inst_latency": 20.0, "peak_plain": 790e9, "peak_wide": 1581e9, "freq": 1.5e9}


@given(cycles, cycles, many, st.floats(0.05, 1))
def test_a_round_takes_what_the_timing_model_says(M: float, C: float, N: int, part: float) -> None:
    """C N + Idle is C + Mem_N where memory sets the time, which is equation 1 of chapter II: M N / W + C W."""
    W = max(1.0, part * N)
    got = idle_cycles(M, C, N, W)
    if got.Idle > 0:
        np.testing.assert_allclose(C * N + got.Idle, M * N / W + C * W)
    assert C * N + got.Idle >= C * N
    printed = idle_cycles(M, C, N, W, "as_published")
    assert printed.Idle <= got.Idle <= printed.Idle + C * (1 + 1e-9)


@given(cycles, cycles)
def test_one_warp_adds_up_and_many_hide(M: float, C: float) -> None:
    np.testing.assert_allclose(C + idle_cycles(M, C, 1, 1).Idle, C + M)
    np.testing.assert_allclose(C + idle_cycles(M, C, 1, 1, "as_published").Idle, max(C, M))
    assert idle_cycles(M, C, 64, 64).hidden_ratio <= 1 / 64 + 1e-12


@given(kernels, st.integers(0, 400))
def test_levels_of_performance_are_in_order(k: dict[str, Any], rest: int) -> None:
    given = {**k, **OTHER, "total": k["plain"] + k["wide"] + rest + k["mem"] + 1.0}
    got = throughput(**given)
    top = got.PeakAchi * (1 + 1e-9)
    assert 0 <= got.Perf_no_ilp <= got.Perf * (1 + 1e-9) <= got.Perf_comp * (1 + 2e-9) <= top * (1 + 2e-9)
    assert 1 <= got.category <= 10
    assert not got.flags & Flag.INPUT_SUSPECT
    assert bool(got.flags & Flag.NOT_APPLICABLE) == (k["mem"] == 0)
    if k["mem"] == 0:
        np.testing.assert_allclose(got.Perf, got.Perf_comp)
        assert got.category == 10
    faster = throughput(**{**given, "bandwidth": given["bandwidth"] * 2})
    assert faster.Perf >= got.Perf * (1 - 1e-9)
    nearer = throughput(**{**given, "Mem_L": 0.0})
    np.testing.assert_allclose(nearer.Perf, nearer.Perf_comp)


@given(kernels, st.integers(0, 400), st.floats(1.5, 10))
def test_a_kernel_repeated_and_a_device_scaled(k: dict[str, Any], rest: int, times: float) -> None:
    given = {**k, **OTHER, "total": k["plain"] + k["wide"] + rest + k["mem"] + 1.0}
    one = throughput(**given)
    more = throughput(**{**given, **{name: given[name] * times for name in ("plain", "wide", "total", "mem")}})
    np.testing.assert_allclose(more.Perf, one.Perf, rtol=1e-9)
    scaled = {name: given[name] * times for name in ("peak_plain", "peak_wide", "bandwidth", "active_sms")}
    np.testing.assert_allclose(throughput(**{**given, **scaled}).Perf, one.Perf * times, rtol=1e-9)


def test_a_kernel_step_by_step() -> None:
    got = throughput(**KERNEL)
    # 100 instructions at ILP 2 are 50 cycles, in two periods of two loads each: C = 25, M = 450.
    assert (got.EffComp, got.EffMem, got.InfiN) == (25.0, 450.0, 19.0)
    assert got.App == 36.0
    B = 150e9 / (1.544e9 * 128 / 450 * 16)
    np.testing.assert_allclose(got.BW, B)
    np.testing.assert_allclose(got.MWP, B)
    warps = B / 2
    idle = 450 * 24 / warps + 25 * (warps - 1) - 25 * 23
    np.testing.assert_allclose(got.Idle, idle)
    np.testing.assert_allclose(got.EffRatio, 0.5 * 25 * 24 / (25 * 24 + idle))
    np.testing.assert_allclose(got.PeakAchi, 0.8 * 790e9 + 0.2 * 1581e9)
    np.testing.assert_allclose(got.saturation, 36 / B)
    assert (got.limiter, got.category) == (1, 8)
    printed = throughput(**KERNEL, form="as_published")
    assert printed.InfiN == 18.0 / 10  # a dependence of 20 cycles at distance 2, which other warps do not hide
    np.testing.assert_allclose(printed.EffRatio_comp, 0.05)


def test_on_a_cpu_one_thread_waits_for_all() -> None:
    mix = instruction_mix(0, 4, 0, 8, 3, 1, 2, "cpu", lanes=4)
    cpu = {**KERNEL, "N": 1.0, "mstr": 1.0, "active_sms": 12.0, "freq": 2.4e9, "bandwidth": 50e9, "Mem_L": 250.0}
    cpu |= {"plain": mix.plain, "wide": mix.wide, "total": mix.total, "mem": 2.0, "inst_latency": 4.0}
    got = throughput(**cpu)
    assert got.MWP == 1
    np.testing.assert_allclose(got.Idle, 250.0)
    assert throughput(**cpu, form="as_published").Idle < 250.0


@given(st.lists(st.floats(0.1, 100), min_size=5, max_size=5))
def test_exactly_one_category_applies(x: list[float]) -> None:
    n, I, A, P, B = x
    rows = [
        P < A and B < A,
        P < A and B >= A,
        P >= A and B < SLACK * A,
        P >= A and SLACK * A <= B < A,
        P >= A and B >= A,
    ]
    predicates = [few and row for few in (n < I, n >= I) for row in rows]
    assert sum(predicates) == 1
    assert category(n, I, A, P, B).category == predicates.index(True) + 1


@given(st.floats(1, 50), st.floats(1, 100), st.floats(0.1, 100), st.floats(0.1, 100), st.floats(1, 4))
def test_relief_never_makes_a_category_worse(n: float, I: float, A: float, B: float, k: float) -> None:
    def merit(bandwidth: float, departure: float) -> int:
        return categories()[int(category(n, I, A, departure, bandwidth).category)].merit

    assert merit(B * k, np.inf) <= merit(B, np.inf)
    assert merit(B, A * k) <= merit(B, A / 2)


@given(st.floats(0.1, 200), st.floats(0.1, 200), st.integers(1, 132))
def test_suggested_cores_use_up_the_bandwidth_and_no_more(A: float, B: float, sms: int) -> None:
    got = suggest_cores(A, B, sms, sms)
    assert 1 <= got.value <= sms
    if A > B and got.value > 1:
        assert B * sms / got.value >= A * (1 - 1e-9)
        assert B * sms / (got.value + 1) < A


@given(st.floats(0.5, 200), st.integers(1, 4), many, st.floats(1, 100))
def test_suggested_warps_need_what_the_bandwidth_gives(B: float, s: int, N: int, I: float) -> None:
    got = suggest_warps(B, s, N, I)
    assert 1 <= got.value <= N
    if got.factor < 1 and got.value > 1:
        assert min(I, got.value) * s <= B * (1 + 1e-9)
        assert got.value == max(1, np.floor(B / s * (1 + 1e-12)))
        assert suggest_warps(B, s, N, I, "as_published").value >= got.value - 1e-9


@given(cycles, cycles, st.integers(2, 64))
def test_at_the_suggested_frequency_the_warps_hide(M: float, C: float, N: int) -> None:
    got = suggest_frequency(mwp_app(M, C, N).InfiN, N, 1e9)
    assert 0 < got.value <= 1e9
    if got.factor > 1:  # a slower core stretches the computation, in time, and not the memory period
        np.testing.assert_allclose(mwp_app(M, C * got.factor, N).InfiN, N)


@given(st.floats(0.1, 1e3), st.floats(0.1, 1e3), st.floats(0, 1))
def test_both_devices_finish_together(g: float, c: float, t: float) -> None:
    x = float(start_share(g, c, t).value)
    if 0 < x < 1:
        np.testing.assert_allclose(x * (1 / g + t), (1 - x) / c)
    else:
        rate = 1 / (1 / g + t)
        assert min(rate, c) / (rate + c) < 0.02


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_strength_of_batches_is_their_mean_size(sizes: list[int]) -> None:
    load, use, at = [], [], 0
    for size in sizes:
        load += list(range(at, at + size))
        use += [at + size] * size
        at += size + 1
    got = memory_strength(load, use)
    assert (got.groups, got.flags) == (len(sizes), 0)
    np.testing.assert_allclose(got.value, np.mean(sizes))


def test_strength_edges() -> None:
    assert memory_strength([], []).flags == Flag.NOT_APPLICABLE
    assert memory_strength([0, 1, 2], [np.nan, np.nan, np.nan]).value == 3
    wrong = memory_strength([0, 5, 3, 6], [2, 4, 9, 8])
    assert (float(wrong.value), int(wrong.flags)) == (1.0, Flag.INPUT_SUSPECT)
    with pytest.raises(ValueError, match="allowed: one axis, the same"):
        memory_strength([0, 1], [2])


def test_hardware_limits_are_those_of_the_timing_model() -> None:
    got = throughput(**KERNEL)
    limits = mwp(450, 10, 24, 1.544e9, 150e9, 128, 16)
    assert (got.BW, got.Proc) == (limits.MWP_peak_bw, 45.0)


@given(kernels)
def test_grid_is_each_point_alone(k: dict[str, Any]) -> None:
    given = {**k, **OTHER, "total": 2000.0}
    grid = what_if(given, {"bandwidth": [1e11, 1e12], "N": [1, 8, 32]})
    assert grid.Perf.shape == (2, 3)
    assert grid.Perf[1, 2] == throughput(**{**given, "bandwidth": 1e12, "N": 32}).Perf
    half = what_if({**given, "active_sms": 2.0}, {"active_sms": [1.0, 2.0]})
    np.testing.assert_allclose(half.PeakAchi[0] * 2, half.PeakAchi[1])
    many = what_if({**given, "N": np.array([1.0, 2.0])}, {"bandwidth": [1e11, 1e12, 2e12]})
    assert many.Perf.shape == (3, 2)


def test_edges() -> None:
    nothing = throughput(**{**KERNEL, "plain": 0.0, "wide": 0.0})
    assert nothing.Perf == nothing.PeakAchi == 0
    assert throughput(**{**KERNEL, "bandwidth": 0.0}).flags & Flag.ZERO_DENOM
    one = suggest_frequency(4, 1, 1e9)
    assert np.isnan(one.value)
    assert (float(one.factor), int(one.flags)) == (np.inf, Flag.ZERO_DENOM)
    assert mwp_app(0, 0, 4).InfiN == 1
    assert mwp_app(1, 0, 4).flags == Flag.ZERO_DENOM
    assert idle_cycles(0, 1, 4, 2).flags == Flag.NOT_APPLICABLE
    assert idle_cycles(1, 1, 4, 5).flags == Flag.INPUT_SUSPECT
    assert effective_latency([0.5, 0.4], [1, 2]).flags == Flag.INPUT_SUSPECT
    assert category(np.nan, 1, 1, 1, 1).category == 0
    assert category(-1, 1, 1, 1, 1).flags == Flag.INPUT_SUSPECT
    assert start_share(0, 0).flags == Flag.ZERO_DENOM
    assert instruction_mix(1, 0, 1, 0, 0, 0, 0, "cpu", 0).flags == Flag.ZERO_DENOM
    with pytest.raises(ValueError, match="no input 'sms'; allowed: 'plain'"):
        what_if(KERNEL, {"sms": [1]})
    with pytest.raises(ValueError, match="allowed: one axis"):
        what_if(KERNEL, {"N": 4})


@pytest.mark.parametrize("form", FORMS)
def test_contract(form: str) -> None:
    def whole(**k: Any) -> Throughput:
        return throughput(**k, form=form)

    inf = (np.inf,)
    if form == "consistent":
        holds(whole, {**KERNEL, "wide_ilp": 2.0, "n_hide": 24.0}, spared={"wide_ilp": (np.nan,), "n_hide": (np.nan,)})
        counts = ("fp", "fp_fused", "fp_vec", "fp_vec_fused", "integer", "br_misc", "mem")
        holds(instruction_mix, dict.fromkeys(counts, 4.0))
        holds(peak_achievable, {"fp": 1, "vec": 1, "dev_peak_fp": 1e9, "dev_peak_vec": 2e9})
        ratio = {
            "useful": 5,
            "total": 10,
            "ilp": 2,
            "inst_latency": 20,
            "dep": 2,
            "n_hide": 4,
            "wide": 1,
            "wide_ilp": 2,
        }
        holds(comp_ratio, ratio, spared={"wide_ilp": (np.nan,)})
        holds(mwp_app, {"eff_mem": 30, "eff_comp": 2, "N": 24, "mstr": 2})
        holds(mwp_total, {"app": 30, "bw": 20, "proc": 40, "N": 24, "mstr": 2}, spared={"bw": inf, "proc": inf})
        holds(idle_cycles, {"eff_mem": 30, "eff_comp": 2, "N": 24, "MWP": 8})
        holds(suggest_cores, {"app": 48, "bw": 40, "active_sms": 16, "sms": 16}, spared={"bw": inf})
        holds(suggest_warps, {"bw": 10, "mstr": 1, "N": 32, "InfiN": 16}, spared={"bw": inf})
        holds(suggest_frequency, {"InfiN": 8, "N": 2, "frequency_hz": 1e9})
        holds(start_share, {"perf_gpu": 3, "perf_cpu": 1, "transfer_s": 0.1})
    with pytest.raises(ValueError, match="no form 'printed'"):
        throughput(**KERNEL, form="printed")


def test_forms_agree_where_the_print_is_sound() -> None:
    """One request per warp, dependences out of reach, and computation alone: no memory."""
    sound = {**KERNEL, "mstr": 1.0, "dep": 100.0, "mem": 0.0}
    ours, theirs = (throughput(**sound, form=form) for form in FORMS)
    for name in ("Perf", "Perf_comp", "PeakAchi", "EffRatio"):
        assert getattr(ours, name) == getattr(theirs, name)
