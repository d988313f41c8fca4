"""Arithmetic on pairs of half precision is useful work; constants that are moved with the same instruction are none."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.peaks import FIGURES, peaks
from profsvc.analysis.potential.useful_time import (
    arithmetic_operations,
    half_arithmetic,
    memory_wavefronts,
    needed_instructions,
    useful_times,
)

PAIRS = 3_200_000.0


def counters(**given: float) -> Counts:
    known = {"elapsed_cycles": 1e6, "inst_fp32_thread": 0.0, "inst_fp64_thread": 0.0, "global_load_inst_warp": 10.0,
             "inst_tensor_warp": 0.0, "inst_fp16_thread": PAIRS, "inst_integer_thread": 1e5}  # fmt: skip
    return Counts(pd.DataFrame([known | given]))


def test_pairs_are_arithmetic() -> None:
    count, operands = arithmetic_operations(counters())
    assert count[0] == pytest.approx(PAIRS / 32)
    assert operands[0] == pytest.approx(PAIRS / 32)


@pytest.mark.parametrize(
    "given",
    [{"inst_integer_thread": PAIRS}, {"inst_integer_thread": np.nan}, {"inst_fp16_thread": np.nan},
     {"inst_unpack_half_thread": PAIRS}],
)  # fmt: skip
def test_moves_and_conversions_are_none(given: dict[str, float]) -> None:
    assert half_arithmetic(counters(**given))[0] == 0


def test_a_conversion_among_the_pairs_is_left_out() -> None:
    assert half_arithmetic(counters(inst_unpack_half_thread=1e6))[0] == PAIRS - 1e6


def test_products_of_bytes_in_tiles_are_operands_that_serve_sixteen_times() -> None:
    tiles = {"inst_dot_product_thread": PAIRS, "thread_inst_executed": PAIRS, "global_load_bytes_requested": 1e3,
             "shared_load_inst_warp": 1e3, "inst_fp16_thread": 0.0}  # fmt: skip
    assert arithmetic_operations(counters(**tiles))[1] == pytest.approx(PAIRS / 32 / 16)


DOUBLE_TILES = {
    "inst_fp64_thread": 6400.0, "flop_count_dp_fma": 6400.0, "flop_count_dp_add": 0.0, "flop_count_dp_mul": 0.0,
    "thread_inst_executed": 1e4, "inst_fp16_thread": 0.0, "tensor_ops_fp64": 0.0, "shared_load_inst_warp": 50.0,
    "duration_ns": 1e3, "elapsed_cycles": 1e3,
}  # fmt: skip


def test_doubles_of_tiles_are_operands_of_two_words_that_serve_eight_times() -> None:
    assert arithmetic_operations(counters(**DOUBLE_TILES))[1] == pytest.approx(2 * 6400 / 32 / 8)


@pytest.mark.parametrize(("peak", "part"), [(4.0, 0.5), (1.0, 1.0), (np.nan, 1.0)])
def test_doubles_of_tiles_need_the_time_of_the_tensor_pipe_where_it_is_faster(peak: float, part: float) -> None:
    figures = pd.DataFrame(
        [dict.fromkeys(FIGURES, 1.0) | {"tensor_fp64_peak_op_per_s": peak, "fp64_lanes_per_sm": 64.0}]
    )
    figures = figures.assign(sm_clock_hz=1 / 64)
    table = pd.DataFrame([{"inst_tensor_warp": 0.0} | DOUBLE_TILES])
    assert useful_times(table, figures)["fp64"][0] == pytest.approx(part * 6400 / 64 * 1e3 / 1e3)


@pytest.mark.parametrize(("checks", "part"), [(0.0, 1.0), (10.0, 0.5), (np.nan, 1.0)])
def test_the_check_of_a_division_is_no_useful_work_of_its_unit(checks: float, part: float) -> None:
    divided = {
        "duration_ns": 1e6, "elapsed_cycles": 1e3, "inst_fp32_thread": 3200.0, "inst_fp16_thread": 0.0,
        "inst_mufu_thread": 10.0, "inst_divide_check_thread": checks, "pipe_xu_elapsed_fraction": 20 / 32 / 500,
        "warp_nonpred_execution_efficiency_fraction": 1.0, "global_load_inst_warp": 1.0,
        "flop_count_sp_add": 0.0, "flop_count_sp_mul": 0.0, "flop_count_sp_fma": 3200.0,
        "flop_count_dp_add": 0.0, "flop_count_dp_mul": 0.0, "flop_count_dp_fma": 0.0,
    }  # fmt: skip
    figures = pd.DataFrame([dict.fromkeys(FIGURES, 1.0) | {"sfu_per_sm": 16.0}])
    time = useful_times(pd.DataFrame([{"inst_tensor_warp": 0.0} | divided]), figures)["xu"]
    assert time[0] == pytest.approx(part * 1e6 * divided["pipe_xu_elapsed_fraction"])


def test_what_one_lane_does_alone_takes_five_steps_of_all_lanes() -> None:
    work = {
        "inst_executed_warp": 1e6, "warp_nonpred_execution_efficiency_fraction": 1 / 32, "elapsed_cycles": 1e4,
        "shared_load_inst_warp": 1e5, "shared_store_inst_warp": 0.0, "shared_wavefronts_ideal": 1e5,
        "global_load_inst_warp": 0.0, "global_store_inst_warp": 0.0, "sm_elapsed_cycles_sum": 1e6, "duration_ns": 1e4,
        **dict.fromkeys((f"flop_count_{kind}_{op}" for kind in ("sp", "dp") for op in ("add", "mul", "fma")), 0.0),
        "inst_tensor_warp": 0.0, "global_load_bytes_requested": 0.0, "global_store_bytes_requested": 0.0,
        "l2_to_l1_read_bytes": 0.0, "l1_to_l2_write_bytes": 0.0,
    }  # fmt: skip
    table = pd.DataFrame([work, work | {"inst_lone_warp": 1e6}])
    nothing = np.zeros(2)
    assert needed_instructions(Counts(table), nothing, nothing, nothing) == pytest.approx([1e6 / 32, 5e6 / 32])
    times = useful_times(table, peaks(table, specs.figures("NVIDIA H200", "9.0"))[0])
    assert times["l1"][1] / times["l1"][0] == pytest.approx(5 / 32)


def test_lanes_that_are_predicated_off_need_no_part_of_a_wavefront() -> None:
    shared = {"shared_load_inst_warp": 30.0, "shared_store_inst_warp": 10.0, "shared_wavefronts_ideal": 80.0}
    known = counters(**shared, global_load_inst_warp=0.0, global_store_inst_warp=0.0)
    assert sum(memory_wavefronts(known, np.zeros(1))[:2]) == 80
    half = counters(**shared, global_load_inst_warp=0.0, global_store_inst_warp=0.0, shared_predicated_on_fraction=0.5)
    assert sum(memory_wavefronts(half, np.zeros(1))[:2]) == 40


@pytest.mark.parametrize(("bytes_each", "needed"), [(128.0, 25.0), (320.0, 37.5), (512.0, 50.0)])
def test_loads_of_one_word_leave_a_quarter_of_the_operands_that_l1_has_again(bytes_each: float, needed: float) -> None:
    loads = {"global_load_inst_warp": 100.0, "global_load_bytes_requested": 100 * bytes_each}
    known = counters(**loads, global_load_l1_hit_fraction=1.0, global_store_inst_warp=0.0, l2_to_l1_read_bytes=0.0)
    assert memory_wavefronts(known, np.array([100.0]))[0] == needed


def test_a_load_that_is_spared_takes_one_address_with_it() -> None:
    work = {"inst_executed_warp": 1000.0, "inst_fp32_thread": 3200.0, "inst_ldst_thread": 3200.0}
    few, many = (
        counters(**work | {"inst_fp16_thread": 0.0}, inst_control_thread=other, inst_misc_thread=0.0)
        for other in (0.0, 25600.0)
    )
    nothing = np.zeros(1)
    for known in (few, many):
        spared = needed_instructions(known, nothing, nothing, nothing)
        spared = spared - needed_instructions(known, nothing, nothing, np.array([50.0]))
        assert 50 < spared <= 100


def test_places_of_a_list_need_no_sector_of_l2_each() -> None:
    gather = {
        "l2_tex_read_sectors": 1.1e6, "l2_tex_sectors": 1.1e6, "l2_tex_requests": 1.0e6, "dram_read_bytes": 0.4e6,
        "global_load_bytes_requested": 4e6, "global_store_sectors": 0.0, "global_store_bytes_requested": 0.0,
        "global_load_inst_warp": 1e5, "global_load_sectors_per_request": 18.0, "l2_read_hit_fraction": 0.9,
        "l2_utilization_fraction": 0.6, "sol_l2_fraction": 0.6, "sol_memory_fraction": 0.6, "duration_ns": 1e5,
        "global_theoretical_sectors": 1.1e6, "global_theoretical_sectors_ideal": 1e5,
    }  # fmt: skip
    table = pd.DataFrame([gather | {"inst_integer_thread": 32 * each * 1e5} for each in (1.5, 5.0)])
    listed, computed = useful_times(table, peaks(table, specs.figures("NVIDIA H200", "9.0"))[0])["l2"]
    assert listed < computed / 2
