"""Work that is avoidable although its results are used, on made-up counters and on kernels of libraries."""

import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.avoidable_work import (
    divided_share,
    double_by_accident,
    expanded_share,
    multiplies_half_matrices,
    needless_conversions,
    repeated_share,
    unrelated_places,
    unused_of_l2_loads,
)

GATHER = {
    "l2_tex_read_sectors": 1.1e6, "l2_tex_requests": 1.0e6, "global_load_bytes_requested": 4e6,
    "dram_read_bytes": 0.4e6, "global_store_sectors": 0.0, "global_store_bytes_requested": 0.0,
}  # fmt: skip


def counts(**values: float) -> Counts:
    return Counts(pd.DataFrame([values]))


def test_one_conversion_for_each_byte_is_needed() -> None:
    assert needless_conversions(counts(inst_bit_convert_thread=100.0, global_load_bytes_requested=120.0)) == 0
    assert needless_conversions(counts(inst_bit_convert_thread=100.0, global_load_bytes_requested=20.0)) == 80
    assert needless_conversions(counts()) == 0


def test_double_precision_is_an_accident_where_each_result_is_converted() -> None:
    assert double_by_accident(counts(inst_fp64_thread=100.0, inst_bit_convert_thread=80.0)) == pytest.approx(0.8)
    assert double_by_accident(counts(inst_fp64_thread=100.0, inst_bit_convert_thread=0.0)) == 0
    assert double_by_accident(counts(inst_fp64_thread=0.0, inst_bit_convert_thread=80.0)) == 0


def test_functions_are_expanded_in_single_precision_alone() -> None:
    functions = {"inst_fp32_thread": 2000.0, "inst_bit_convert_thread": 100.0}
    assert expanded_share(counts(**functions)) == pytest.approx(0.9)
    assert expanded_share(counts(**functions, inst_fp64_thread=1.0)) == 0
    assert expanded_share(counts(inst_fp32_thread=2000.0)) == 0


def test_special_functions_without_arithmetic_are_divisions() -> None:
    divisions = {"inst_pipe_xu_warp": 30.0, "inst_executed_warp": 400.0}
    assert divided_share(counts(**divisions, inst_fp32_thread=0.0)) == pytest.approx(0.45)
    assert divided_share(counts(**divisions, inst_fp32_thread=32 * 30.0)) == 0


def test_half_precision_that_is_unpacked_for_products() -> None:
    unpacked = {
        "inst_fp16_thread": 24.0, "inst_fp32_thread": 63.0, "flop_count_sp_fma": 63.0, "thread_inst_executed": 100.0,
        "inst_tensor_warp": 0.0,
    }  # fmt: skip
    assert multiplies_half_matrices(counts(**unpacked))
    assert not multiplies_half_matrices(counts(**unpacked | {"inst_fp16_thread": 1.0}))
    assert not multiplies_half_matrices(counts(**unpacked | {"flop_count_sp_fma": 10.0}))


def test_a_gather_takes_sectors_one_at_a_time_and_a_stride_does_not() -> None:
    assert unrelated_places(counts(**GATHER)) > 0.8
    assert unrelated_places(counts(**GATHER | {"l2_tex_requests": 0.4e6})) == 0
    # Columns: sectors come one at a time, but DRAM brings each byte once.
    assert unrelated_places(counts(**GATHER | {"dram_read_bytes": 4e6, "l2_tex_requests": 1.1e6})) == 0


def test_what_l2_sent_and_nobody_asked_for() -> None:
    assert unused_of_l2_loads(counts(**GATHER)) == pytest.approx(1 - 4 / 35.2)
    local = {"local_load_sectors": 0.5e6, "local_load_l1_hit_fraction": 0.0}
    assert unused_of_l2_loads(counts(**GATHER, **local)) == pytest.approx(1 - 4 / 19.2)


def test_values_that_were_loaded_before() -> None:
    assert repeated_share(counts(**GATHER)) == pytest.approx(0.9)
    assert repeated_share(counts()) == 0
