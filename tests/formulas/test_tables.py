"""The printed tables of [Hong2012] and [Ryoo2008], where their inputs are printed, out of the formulas and the data."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profsvc import specs
from profsvc.formulas.benefit import benefit
from profsvc.formulas.mwp_cwp import exec_cycles, m_factor, mem_latency
from profsvc.formulas.performance.occupancy import Limits, occupancy, resource_demand
from profsvc.formulas.performance.peak_estimates import gpu_share_speedup
from profsvc.formulas.performance.roofline import intensity, peak_rate
from profsvc.formulas.performance.speedup import amdahl
from profsvc.formulas.power.energy_split import best_split, share_errors
from profsvc.formulas.power.placement import rank_placements, tpc_effect, tpc_of_core
from profsvc.formulas.thermal.rc_model import max_rise, temperature

TABLES = Path(__file__).parents[3] / "shared" / "spec" / "tables"
pytestmark = pytest.mark.skipif(not TABLES.is_dir(), reason="the printed tables are not beside this checkout")
GTX = Limits(24, 8, 512, 8192, 16384)


def rows(name: str) -> list[dict[str, str]]:
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text: str) -> float:
    """A cell as a number: >99% is 1, as the table is used where it is checked."""
    return 1.0 if text == ">99%" else float(text.rstrip("%")) / (100 if text.endswith("%") else 1)


def test_devices_and_their_peaks() -> None:
    known = {"QuadroFX5600": "FX5600"}
    for row in rows("thesis_t02_gpus"):
        device = specs.device(known.get(row["model"], row["model"]))
        assert (device.sms, device.compute_capability) == (int(row["num_SM"]), row["compute_capability"])
        assert device.sms * device.fp32_lanes_per_sm == int(row["SP_cores"])
        assert device.boost_clock_hz == pytest.approx(float(row["processor_clock_GHz"]) * 1e9, rel=0.004)
        assert device.dram_peak_bytes_per_s == pytest.approx(float(row["mem_bandwidth_GBs"]) * 1e9)
        for column, flop in (("peak_gflops_2flop_per_SP", 2), ("peak_gflops_3flop_per_SP", 3)):
            got = peak_rate(float(row["SP_cores"]), float(row["processor_clock_GHz"]), flop).value
            assert got == pytest.approx(float(row[column]))


def test_instructions_for_each_access_to_memory() -> None:
    programs = {entry["name"]: entry for entry in specs.timing()["benchmark"]}
    for row in rows("thesis_t04_merge_benchmarks"):
        program = next(entry for name, entry in programs.items() if name.lower() == row["benchmark"].lower())
        printed = [float(x) for x in row["comp_insts_printed"].split(" - ")]
        assert [program["comp_min"], program["comp_max"]] == [printed[0], printed[-1]]
        assert program["registers_per_thread"] == int(row["regs_per_thread"])
        assert program["comp_per_mem"] == float(row["arith_intensity"])
        if implied := row["mem_insts_implied(=comp/intensity)"]:
            assert intensity(printed[0], float(row["arith_intensity"])).value == pytest.approx(float(implied), rel=1e-4)
    loops = {entry["name"]: entry for entry in specs.timing()["microbenchmark"]}
    for row in rows("thesis_t03_microbenchmarks"):
        found = [loops[row["name"]][name] for name in ("mem_per_loop", "comp_per_loop", "float_per_loop")]
        assert found == [int(x) for x in list(row.values())[1:]]


def test_latencies_and_costs_of_instructions() -> None:
    memory = {row["parameter"]: row for row in rows("thesis_t05_memory_parameters")}
    for column, devices in (("FX5600_8800GTX_8800GT", ("FX5600", "8800GTX", "8800GT")), ("GTX280", ("GTX280",))):
        LD, d_u, d_c = (float(row[column]) for row in memory.values())
        for name in devices:
            has = specs.memory_parameters(name)
            assert (has.Mem_LD, has.dep_uncoal, has.dep_coal) == (LD, d_u, d_c)
            assert mem_latency(1, 0, LD, d_c, d_u, 32).L_c == LD + d_c
    for row in rows("thesis_t06_instruction_throughput"):
        if row["M_Factor_manual"]:
            assert m_factor(float(row["ops_per_cycle_per_SM_manual"])).value == float(row["M_Factor_manual"])
    costs = sorted(entry["m_factor_measured"] for entry in specs.timing()["instruction"])
    assert {float(row["M_Factor_experiment"]) for row in rows("thesis_t06_instruction_throughput")} == set(costs)


def test_units_and_their_power() -> None:
    short = {"Shared memory": "Shared", "Texture cache": "Texture", "Constant cache": "Constant"}
    short |= {"Global memory": "Global", "Local memory": "Local", "L1 cache": "L1", "L2 cache": "L2"}
    of_device = {key: {one.name: one for one in specs.components(key)} for key in ("GTX280", "GTX580")}
    for row in rows("thesis_t08_power_parameters_gtx280"):
        unit = of_device["GTX280"][short.get(row["unit"], row["unit"])]
        assert (unit.max_power_w, unit.per_sm) == (float(row["MaxPower_W"]), row["per"] == "SM")
        assert unit.special == (row["special_linear"] == "Yes")
    for row in rows("thesis_t11_power_parameters_gtx580"):
        unit = of_device["GTX580"][short.get(row["unit"], row["unit"])]
        assert unit.max_power_w == float(row["GTX580_W"])
    touched: dict[str, set[str]] = {}
    for row in rows("thesis_t07_instruction_units"):
        touched.setdefault(row["ptx_instruction"], set()).add(row["variable"].removeprefix("RP_").lower()[:3])
    for name, units in specs.instruction_units("as_published").items():
        # A name of the list of registers means both kinds of it, and * all.
        wanted = set().union(
            *(touched.get(one, set()) for one in (name, name.removesuffix("_int").removesuffix("_fp"), "*"))
        )
        assert {unit.lower()[:3] for unit in units} == wanted, name


def test_temperatures() -> None:
    has = {row["parameter"]: float(row["value"]) for row in rows("thesis_t09_temperature_gtx280")}
    reported = {row["quantity"]: row["value"] for row in rows("thesis_reported_results")}
    idle, hot = (float(reported[name]) for name in ("cold chip temperature", "final temperature SVM"))
    # The power that warms the chip as far as it was printed is plausible only where the rise, not the whole, is meant.
    rise = max_rise(115.692356, 1 / 13.3, has["mu"], has["lambda"], has["rho"])
    assert rise == pytest.approx(hot - idle, abs=1e-3)
    after = temperature(float(reported["time to saturation"]), idle, float(rise), has["RC_Rise"])
    assert after == pytest.approx(hot, abs=0.01)


def test_placements() -> None:
    runs = rows("thesis_t12_four_core_thermal")
    cores = [[int(core) for core in run["active_cores"].split("-")] for run in runs]
    power, heat = ([float(run[name]) for run in runs] for name in ("avg_power_W", "avg_temp_C"))
    counted = rank_placements(cores, tpc_of_core(np.arange(14))).active_tpcs
    assert counted.tolist() == [int(run["active_TPCs_printed"]) for run in runs]
    assert tpc_effect(counted, power, heat).power_per_tpc_w == pytest.approx(3.927580645)


def test_the_slow_device_gets_nothing() -> None:
    level = {"Slow": 1.0, "Fast": 8.0, "Low": 50.0, "High": 100.0}
    for row in rows("thesis_t16_series"):
        speeds = [level[row[name]] for name in ("perf_CPU_repaired(Fig156)", "perf_GPU_repaired")]
        powers = [level[row[name]] for name in ("power_CPU", "power_GPU")]
        best = float(best_split(100, *speeds, *powers, 60, objective="edp").share)
        assert (best > 0.5) == (speeds[1] > speeds[0]) or speeds[0] == speeds[1]
        if row["quadrant_Fig156"]:
            whole = best_split(100, *speeds, *powers, 60, objective="energy").share
            assert whole == pytest.approx(float(speeds[1] > speeds[0]), abs=0.2)


def test_splits_of_the_work() -> None:
    found = rows("thesis_fig147_split")
    model, best = ([float(row[name]) for row in found] for name in ("model_GPU_pct", "manual_GPU_pct"))
    assert share_errors(model, best).relative_mean == pytest.approx(0.17, abs=0.005)


def test_applications_of_2008() -> None:
    share = {row["application"]: number(row["cpu_time_in_kernels"]) for row in rows("ryoo_t2_suite")}
    for row in rows("ryoo_t3_performance"):
        threads, s, S = (float(row[name]) for name in ("threads_per_SM", "kernel_speedup", "app_speedup"))
        for per_thread, used, fits, capacity in (
            ("registers_per_thread", "regs_used_per_SM", "regs_fit_8192", 8192),
            ("shared_bytes_per_thread", "shared_used_per_SM", "shared_fit_16384", 16384),
        ):
            taken = resource_demand(1, threads, float(row[per_thread]), capacity)
            assert taken.amount == pytest.approx(float(row[used]))
            assert bool(taken.fits) == (row[fits] == "True")
        assert float(row["max_active_threads"]) == threads * 16
        if p := share.get(row["application"]):
            most = amdahl(min(1.0, p + 0.005), 1 / s)  # the share is rounded; that of TPACF by more
            assert row["application"] == "TPACF" or most * 1.01 >= S
            inconsistent = row["application"] in {"SAXPY", "MRI-Q", "MRI-FHD"}
            g = gpu_share_speedup(number(row["gpu_exec_pct"]), s, p).value
            assert inconsistent or g == pytest.approx(S, rel=0.03)


def test_versions_of_the_matrix_product() -> None:
    for row in rows("ryoo_matmul_versions"):
        if row["registers"]:
            got = occupancy(256, float(row["registers"]), 0, GTX)
            assert (got.blocks, got.active_threads) == (float(row["blocks_per_SM"]), float(row["threads_per_SM"]))
    has = {row["quantity"]: row["value"] for row in rows("ryoo_device_8800gtx")}
    device = specs.device("8800GTX")
    assert [device.sms, device.registers_per_sm, device.shared_mem_per_sm_bytes, device.max_blocks_per_sm] == [
        int(has[name]) for name in ("SMs", "registers per SM", "shared memory per SM", "max blocks per SM")
    ]
    assert device.max_warps_per_sm * device.warp_size == int(has["max threads per SM"])


@pytest.mark.parametrize(
    ("table", "function", "apart"),
    [
        ("thesis_t01_model_parameters", exec_cycles, set()),
        ("book_t4_1_inputs", benefit, {"MWP", "CWP", "MWP_peak_bw"}),  # results, not inputs
    ],
)
def test_parameters_are_named_as_printed(table: str, function: Any, apart: set[str]) -> None:
    text = function.__doc__
    assert not [
        row["parameter"] for row in rows(table) if row["parameter"] not in text and row["parameter"] not in apart
    ]
