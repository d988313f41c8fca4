"""The benefit model: a second reading of its equations, what must hold between its parts, and its limits."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.benefit import (
    BENEFITS,
    COMPUTE,
    MEMORY,
    Benefit,
    Machine,
    benefit,
    benefit_chart,
    fit_gamma,
    serial_overheads,
)
from profsvc.formulas.numerics.flags import FORMS, Flag
from tests.formulas.contract import fields, holds

C2050 = Machine(440.0, 18.0, 20.0, 18.0, 18.0, 32.0, 4.0, 144e9, 1.15e9)
KERNEL: dict[str, Any] = {
    "insts": 1000.0,
    "mem_insts": 20.0,
    "sync_insts": 2.0,
    "sfu_insts": 200.0,
    "fp_insts": 600.0,
    "total_warps": 6720.0,
    "active_sms": 14.0,
    "N": 24.0,
    "ilp": 1.25,
    "mlp": 2.0,
    "avg_trans_warp": 2.0,
    "miss_ratio": 0.5,
    "size_of_data": 1e6,
}
kernels = st.fixed_dictionaries(
    {
        "mem_insts": st.integers(0, 100),
        "sync_insts": st.integers(0, 3),
        "sfu_insts": st.integers(0, 400),
        "total_warps": st.integers(1, 10**5),
        "active_sms": st.integers(1, 132),
        "N": st.integers(1, 64),
        "ilp": st.floats(1, 4),
        "mlp": st.floats(1, 8),
        "avg_trans_warp": st.floats(1, 32),
        "miss_ratio": st.floats(0, 1),
        "size_of_data": st.floats(0, 1e9),
        "O_cfdiv": st.floats(0, 1e4),
        "O_bank": st.floats(0, 1e4),
    }
)
machines = st.tuples(
    st.floats(100, 1000), st.floats(10, 100), st.floats(0, 50), st.floats(4, 40), st.floats(4, 40),
    st.sampled_from([8.0, 16.0, 32.0]), st.sampled_from([2.0, 4.0, 16.0]), st.floats(1e10, 5e12), st.floats(5e8, 2e9),
).map(lambda numbers: Machine(*numbers))  # fmt: skip


def by_the_book(k: dict[str, Any], h: Machine, published: bool) -> dict[str, float]:
    """Read the equations one after another, numbers in place of arrays."""
    m = {name: float(x) for name, x in h._asdict().items()}
    w = k["total_warps"] / k["active_sms"]
    lat = m["DRAM_lat"] + (k["avg_trans_warp"] - 1) * m["Delta"]
    AMAT = lat * k["miss_ratio"] + m["hit_lat"]
    most = m["avg_inst_lat"] / (m["warp_size"] / m["SIMD_width"])
    ITILP = min(k["ilp"] * k["N"], most)
    n = 1 if published else k["avg_trans_warp"]
    peak = m["mem_peak_bandwidth"] / (m["freq"] * m["transaction_size"] * n / lat * k["active_sms"])
    MWP = min(lat / (m["Delta"] * n) if m["Delta"] else math.inf, peak, k["N"])
    comp = k["insts"] * m["avg_inst_lat"] / ITILP
    mem = k["mem_insts"] * AMAT / k["mlp"]
    CWP = min((mem + comp) / comp, k["N"])
    ITMLP = min(k["mlp"] * min(max(1, CWP - 1), MWP), peak)
    parallel = w * k["insts"] * m["avg_inst_lat"] / ITILP
    sync = w * k["sync_insts"] * m["Gamma"] * lat * k["mem_insts"] / k["insts"]
    F = min(max(k["sfu_insts"] / k["insts"] - m["SFU_width"] / m["SIMD_width"], 0), 1)
    serial = sync + w * k["sfu_insts"] * m["warp_size"] / m["SFU_width"] * F + k["O_cfdiv"] + k["O_bank"]
    T_comp = parallel + serial
    T_mem = w * k["mem_insts"] / ITMLP * AMAT
    overlap = min(T_comp * (k["N"] - (CWP <= MWP)) / k["N"], T_mem)
    T_fp = w * k["fp_insts"] * m["FP_lat"] / (ITILP if published else most)
    moved = k["size_of_data"] * lat / peak if published else k["size_of_data"] * m["freq"] / m["mem_peak_bandwidth"]
    itilp = parallel - w * k["insts"] * m["avg_inst_lat"] / most
    return {
        "T_exec": T_comp + T_mem - overlap,
        "T_comp": T_comp,
        "T_mem": T_mem,
        "T_overlap": overlap,
        "MWP": MWP,
        "CWP": CWP,
        "T_mem_min": moved,
        "B_itilp": itilp,
        "B_serial": serial,
        "B_fp": T_comp - T_fp - itilp - serial,
        "B_memlp": max(T_mem - overlap - moved, 0),
    }


@given(kernels, st.integers(100, 10000), st.floats(0, 1), machines, st.sampled_from(FORMS))
def test_a_second_reading(k: dict[str, Any], insts: int, fp: float, machine: Machine, form: str) -> None:
    given = {**k, "insts": float(insts), "fp_insts": insts * fp}
    got = benefit(**given, machine=machine, form=form)
    for name, value in by_the_book(given, machine, form == "as_published").items():
        np.testing.assert_allclose(getattr(got, name), value, rtol=1e-9, atol=1e-6 * got.T_exec, err_msg=name)


@given(kernels, st.integers(100, 10000), st.floats(0, 1), machines)
def test_what_holds_between_the_parts(k: dict[str, Any], insts: int, fp: float, machine: Machine) -> None:
    got = benefit(**k, insts=insts, fp_insts=insts * fp, machine=machine._replace(FP_lat=machine.avg_inst_lat))
    slack = 1e-9 * got.T_exec
    assert got.T_exec >= max(got.T_comp, got.T_mem) - slack
    assert 0 <= got.T_overlap <= min(got.T_comp, got.T_mem) + slack
    assert got.B_itilp >= -slack
    assert got.B_fp >= -slack
    assert got.B_memlp >= 0
    assert got.ITILP_max >= got.ITILP
    assert got.MWP_cp >= min(1, got.MWP)
    np.testing.assert_allclose(got.T_fp + got.B_fp + got.B_itilp + got.B_serial, got.T_comp, rtol=1e-9)
    assert not got.flags & (Flag.INPUT_SUSPECT | Flag.ZERO_DENOM | Flag.RAW_OUT_OF_RANGE)
    chart = benefit_chart(got)
    assert chart.zone == (MEMORY if got.T_mem > got.T_comp else COMPUTE) == got.bound
    np.testing.assert_allclose(chart.share * got.T_exec + chart.time, got.T_exec)
    assert chart.share.max() == chart.share[chart.best] <= 1 + 1e-9


@given(kernels, machines, st.floats(1.5, 4))
def test_scaling_and_monotony(k: dict[str, Any], machine: Machine, times: float) -> None:
    given = {**k, "insts": 500.0, "fp_insts": 100.0}
    one = benefit(**given, machine=machine)
    whole = {name: given[name] * times for name in ("total_warps", "O_cfdiv", "O_bank", "size_of_data")}
    more = benefit(**{**given, **whole}, machine=machine)
    for name in ("T_exec", "T_mem", "B_itilp", "B_fp", "B_memlp", "B_serial"):
        np.testing.assert_allclose(getattr(more, name), times * getattr(one, name), rtol=1e-9, atol=1e-6 * one.T_exec)
    slower = machine._replace(mem_peak_bandwidth=machine.mem_peak_bandwidth / times)
    assert benefit(**given, machine=slower).T_mem >= one.T_mem * (1 - 1e-12)
    conflicts = benefit(**{**given, "O_bank": given["O_bank"] + 1e5}, machine=machine)
    assert conflicts.T_exec >= one.T_exec * (1 - 1e-12)


def test_forms_agree_where_the_print_is_sound() -> None:
    """One transaction per request, the highest parallelism of instructions, and data in requests of an SM."""
    given = {**KERNEL, "avg_trans_warp": 1.0, "size_unit": "requests_per_sm", "size_of_data": 100.0}
    ours, theirs = (benefit(**given, machine=C2050, form=form) for form in FORMS)
    for name, x in fields(ours).items():
        np.testing.assert_array_equal(x, getattr(theirs, name), err_msg=name)


@given(st.floats(1e3, 1e9), st.integers(1, 132))
def test_least_memory_time_is_bytes_over_bandwidth_in_both_units(size: float, sms: int) -> None:
    machine = C2050._replace(transaction_size=64.0)
    given = {**KERNEL, "active_sms": float(sms)}
    one = benefit(**{**given, "size_of_data": size}, machine=machine)
    requests = size / (64 * KERNEL["avg_trans_warp"] * sms)
    other = benefit(**{**given, "size_of_data": requests}, machine=machine, size_unit="requests_per_sm")
    np.testing.assert_allclose(one.T_mem_min, other.T_mem_min)


def test_benefit_of_arithmetic_is_below_zero_only_in_print() -> None:
    """A kernel of arithmetic alone at half the parallelism: the witness of the specification."""
    given = {**KERNEL, "mem_insts": 0.0, "sfu_insts": 0.0, "fp_insts": 1000.0, "N": 6.0, "ilp": 1.5}
    ours, theirs = (benefit(**given, machine=C2050, form=form) for form in FORMS[::-1])
    np.testing.assert_allclose(theirs.B_fp, -theirs.W_parallel / 2)
    assert theirs.flags & Flag.RAW_OUT_OF_RANGE
    np.testing.assert_allclose(ours.B_fp, 0, atol=1e-9 * ours.T_exec)
    assert ours.flags == Flag.NOT_APPLICABLE
    assert (ours.T_mem, ours.B_memlp) == (0, 0)


def test_edges() -> None:
    def got(**other: Any) -> Benefit:
        return benefit(**{**KERNEL, **other}, machine=C2050)

    for none in ("N", "active_sms", "ilp", "mlp"):
        assert got(**{none: 0.0}).flags & Flag.ZERO_DENOM
        assert np.isnan(got(**{none: 0.0}).T_exec)
    assert got(total_warps=6721.0).flags == Flag.TAIL_EFFECT
    for odd in ({"mlp": 0.5}, {"ilp": 0.5}, {"miss_ratio": 40.0}, {"fp_insts": 1001.0}, {"mem_insts": 1001.0}):
        assert got(**odd).flags & Flag.INPUT_SUSPECT
    assert got(insts=0.0, mem_insts=0.0, sfu_insts=0.0, fp_insts=0.0).T_exec == 0
    memory = got(insts=0.0, fp_insts=0.0)
    assert memory.CWP == 24
    assert np.isfinite(memory.T_exec)
    at_once = benefit(**KERNEL, machine=C2050._replace(Delta=0.0))
    assert at_once.MWP_peak_bw == at_once.MWP < 24
    without = C2050._replace(SFU_width=0.0)
    assert benefit(**KERNEL, machine=without).flags == Flag.ZERO_DENOM
    assert benefit(**{**KERNEL, "sfu_insts": 0.0}, machine=without).O_SFU == 0
    assert got(amat=[100.0, np.nan]).AMAT.tolist() == [100.0, 248.0]
    assert got(latency="amat").MWP < got().MWP
    with pytest.raises(ValueError, match="no form 'lines'; allowed: 'bytes', 'requests_per_sm'"):
        got(size_unit="lines")
    unknown = benefit_chart(got(N=0.0))
    assert (int(unknown.zone), int(unknown.best)) == (-1, -1)


@given(st.floats(1, 500), st.floats(1e3, 1e7), st.floats(10, 1e4))
def test_gamma_comes_back(gamma: float, base: float, barrier: float) -> None:
    n = np.array([0.0, 1.0, 3.0, 7.0])
    fit = fit_gamma(base + gamma * barrier * n, n, barrier)
    np.testing.assert_allclose(fit.Gamma, gamma, rtol=1e-6)
    np.testing.assert_allclose(fit.base, base, rtol=1e-6, atol=1e-6 * gamma * barrier)


def test_gamma_of_the_model_and_what_cannot_be_fitted() -> None:
    n = np.arange(4.0)
    times = benefit(**{**KERNEL, "sync_insts": n}, machine=C2050)
    cost = serial_overheads(1000, 20, 1, 0, 480, 460, 32, 4, Gamma=1).O_sync
    assert (times.bound == COMPUTE).all()
    hidden = times.T_mem == times.T_overlap
    fit = fit_gamma(times.T_exec[hidden], n[hidden], cost)
    np.testing.assert_allclose(fit.Gamma, 64)
    slower = fit_gamma([5.0, 4.0, 3.0, np.nan], n, 1.0)
    assert (float(slower.Gamma), int(slower.flags)) == (-1, Flag.INPUT_SUSPECT | Flag.RAW_OUT_OF_RANGE)
    assert fit_gamma([5.0, 4.0], [1.0, 1.0], 1.0).flags == Flag.ZERO_DENOM
    assert np.isnan(fit_gamma([5.0, 4.0], [1.0, 2.0], 1.0).se)
    rng = np.random.default_rng(3)
    noisy = 1e4 + 64 * 10 * n + rng.normal(0, 30, (400, 4))
    fits = fit_gamma(noisy, n, 10.0)
    assert 0.9 < np.mean(np.abs(fits.Gamma - 64) < 4.303 * fits.se) < 0.99
    with pytest.raises(ValueError, match="no axis"):
        fit_gamma(1.0, 1.0, 1.0)


def test_contract() -> None:
    def flat(**k: Any) -> Benefit:
        machine = Machine(**{name: k.pop(name) for name in Machine._fields})
        return benefit(**k, machine=machine)

    machine = {name: float(x) for name, x in C2050._asdict().items()}
    good = {**KERNEL, "O_cfdiv": 10.0, "O_bank": 20.0, "amat": 300.0, **machine}
    holds(flat, good, spared={"amat": (np.nan,)})
    holds(
        serial_overheads,
        {"insts": 100, "mem_insts": 10, "sync_insts": 2, "sfu_insts": 60, "warps_per_sm": 48, "avg_DRAM_lat": 500,
         "SIMD_width": 32, "SFU_width": 4, "warp_size": 32, "Gamma": 64},
    )  # fmt: skip
    assert len(BENEFITS) == 4
