"""Matrices that other pipes multiply in place of the tensor pipe, on made-up counters."""

import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.matrix_products import (
    DOUBLES_PER_LOAD,
    WORDS_PER_LOAD,
    multiplies_doubles,
    multiplies_matrices,
    repeated_share,
)


def counts(**values: float) -> Counts:
    return Counts(pd.DataFrame([values]))


def test_half_precision_that_is_unpacked_for_products() -> None:
    unpacked = {
        "inst_fp16_thread": 24.0, "inst_fp32_thread": 63.0, "flop_count_sp_fma": 63.0, "thread_inst_executed": 100.0,
        "inst_tensor_warp": 0.0, "shared_load_inst_warp": 1.0,
    }  # fmt: skip
    assert multiplies_matrices(counts(**unpacked))
    assert not multiplies_matrices(counts(**unpacked | {"shared_load_inst_warp": 0.0}))
    assert not multiplies_matrices(counts(**unpacked | {"inst_fp16_thread": 1.0}))
    assert not multiplies_matrices(counts(**unpacked | {"flop_count_sp_fma": 10.0}))
    by_operation = {"flop_count_hp_add": 24.0, "flop_count_sp_fma": 63.0, "thread_inst_executed": 100.0}
    by_operation["shared_load_inst_warp"] = 1.0
    assert multiplies_matrices(counts(**by_operation, inst_tensor_warp=0.0))
    assert not multiplies_matrices(counts(**by_operation | {"flop_count_hp_add": 1.0}, inst_tensor_warp=0.0))


def test_bfloat16_that_integer_instructions_unpack_for_products() -> None:
    unpacked = {
        "inst_fp16_thread": 0.0, "inst_unpack_bfloat16_thread": 24.0, "inst_fp32_thread": 63.0,
        "flop_count_sp_fma": 63.0, "thread_inst_executed": 100.0, "inst_tensor_warp": 0.0, "shared_load_inst_warp": 1.0,
    }  # fmt: skip
    assert multiplies_matrices(counts(**unpacked))
    for other in ({"inst_unpack_bfloat16_thread": 1.0}, {"shared_load_inst_warp": 0.0}, {"inst_tensor_warp": 1.0}):
        assert not multiplies_matrices(counts(**unpacked | other)), other


def test_pairs_that_stay_in_registers_are_no_matrices() -> None:
    pairs = {
        "flop_count_hp_fma": 90.0, "thread_inst_executed": 100.0, "inst_tensor_warp": 0.0, "dram_read_bytes": 1.0,
        "global_load_bytes_requested": 4.0, "global_load_inst_warp": 1.0,
    }  # fmt: skip
    assert multiplies_matrices(counts(**pairs))
    assert not multiplies_matrices(counts(**pairs | {"global_load_inst_warp": 0.1}))
    assert multiplies_matrices(counts(**pairs | {"global_load_inst_warp": 0.1, "shared_load_inst_warp": 1.0}))


def test_rows_of_half_precision_use_each_value_a_few_times_and_are_no_matrices() -> None:
    row = {
        "inst_fp16_thread": 30.0, "inst_fp32_thread": 63.0, "flop_count_sp_fma": 63.0, "thread_inst_executed": 100.0,
        "inst_tensor_warp": 0.0, "shared_load_inst_warp": 1.0, "global_load_bytes_requested": 42.0,
    }  # fmt: skip
    matrix = {"global_load_bytes_requested": 4.2}
    assert not multiplies_matrices(counts(**row))
    assert multiplies_matrices(counts(**row | matrix))
    assert not multiplies_matrices(counts(**row | matrix, global_ldgsts_bytes_requested=40.0))
    assert multiplies_matrices(counts(**row, global_ldgsts_inst_warp=1.0)), "copies whose size was not counted"


def test_sums_of_pairs_are_no_matrices() -> None:
    pairs = {
        "inst_fp16_thread": 90.0, "flop_count_hp_fma": 60.0, "thread_inst_executed": 100.0, "inst_tensor_warp": 0.0,
        "shared_load_inst_warp": 1.0, "global_load_bytes_requested": 480.0,
    }  # fmt: skip
    assert not multiplies_matrices(counts(**pairs))
    assert multiplies_matrices(counts(**pairs | {"global_load_bytes_requested": 48.0}))


def test_values_that_were_loaded_before() -> None:
    assert repeated_share(counts(dram_read_bytes=0.4e6, global_load_bytes_requested=4e6)) == pytest.approx(0.9)
    assert repeated_share(counts()) == 0


def test_tiles_of_half_precision_are_multiplied_though_they_are_unpacked_once() -> None:
    tiles = {
        "inst_fp32_thread": 1e6, "flop_count_sp_fma": 1e6, "thread_inst_executed": 1.5e6,
        "inst_unpack_half_thread": 2e4, "global_load_bytes_requested": 4e4, "shared_load_inst_warp": 5e3,
        "inst_tensor_warp": 0.0,
    }  # fmt: skip
    assert multiplies_matrices(counts(**tiles))
    for other in ({"flop_count_sp_fma": 5e5}, {"inst_unpack_half_thread": 1e3}, {"shared_load_inst_warp": 0.0}):
        assert not multiplies_matrices(counts(**tiles | other)), other
    loaded = tiles | {"inst_unpack_half_thread": 0.0, "memory_inst_16bit_warp": 2e4 / 32}
    assert multiplies_matrices(counts(**loaded))
    integers = {"inst_i2fp_thread": 2e4}
    assert not multiplies_matrices(counts(**loaded | integers)), "no type of tensor cores"


TILES_IN_TWO = {
    "inst_fp16_thread": 24.0, "inst_fp32_thread": 66.0, "thread_inst_executed": 100.0, "inst_tensor_warp": 0.0,
    "flop_count_sp_fma": 22.0, "flop_count_sp_add": 22.0, "flop_count_sp_mul": 22.0, "shared_load_inst_warp": 0.1,
}  # fmt: skip


def test_a_product_and_its_sum_are_a_multiply_add_where_operands_are_of_tiles() -> None:
    assert multiplies_matrices(counts(**TILES_IN_TWO))
    many = 2 * (22 + 22) / 32 / WORDS_PER_LOAD
    for other in ({"flop_count_sp_add": 0.0}, {"flop_count_sp_mul": 0.0}, {"shared_load_inst_warp": many}):
        assert not multiplies_matrices(counts(**TILES_IN_TWO | other)), other
    lanes = {"shared_load_inst_warp": 0.0, "global_load_inst_warp": 1.0, "global_load_bytes_requested": 10.0}
    dots = TILES_IN_TWO | lanes | {"dram_read_bytes": 1.0}
    assert not multiplies_matrices(counts(**dots)), "products of two vectors, added across lanes"
    assert multiplies_matrices(counts(**dots | {"flop_count_sp_fma": 60.0}))


def test_products_of_four_bytes_are_of_matrices_where_a_load_serves_many() -> None:
    tiles = {
        "inst_dot_product_thread": 680.0, "thread_inst_executed": 1e3, "global_load_bytes_requested": 80.0,
        "shared_load_inst_warp": 4.0, "inst_tensor_warp": 0.0,
    }  # fmt: skip
    assert multiplies_matrices(counts(**tiles))
    for other in (
        {"inst_dot_product_thread": 390.0}, {"global_load_bytes_requested": 400.0}, {"shared_load_inst_warp": 0.0},
        {"shared_load_inst_warp": 6.0}, {"inst_tensor_warp": 1.0}, {"inst_dot_product_thread": float("nan")},
    ):  # fmt: skip
        assert not multiplies_matrices(counts(**tiles | other)), other
    # Where the width of loads is known, a vector has one product for each word of them, and matrices have more.
    words = tiles | {"shared_load_inst_warp": 12.0}
    assert multiplies_matrices(counts(**words, shared_load_words_thread=340.0))
    assert not multiplies_matrices(counts(**words, shared_load_words_thread=680.0))


def test_tiles_of_doubles_are_multiplied_where_the_tensor_pipe_takes_them() -> None:
    tiles = {
        "inst_fp64_thread": 68.0, "flop_count_dp_fma": 68.0, "thread_inst_executed": 100.0, "tensor_ops_fp64": 0.0,
        "shared_load_inst_warp": 0.25,
    }  # fmt: skip
    assert multiplies_doubles(counts(**tiles))
    assert multiplies_matrices(counts(**tiles))
    many = 68 / 32 / DOUBLES_PER_LOAD
    for other in (
        {"tensor_ops_fp64": float("nan")}, {"tensor_ops_fp64": 8.0}, {"flop_count_dp_fma": 40.0},
        {"shared_load_inst_warp": 0.0}, {"shared_load_inst_warp": many}, {"thread_inst_executed": 200.0},
    ):  # fmt: skip
        assert not multiplies_doubles(counts(**tiles | other)), other
