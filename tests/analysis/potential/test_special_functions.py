"""Conversions, functions and divisions on the special function unit, on made-up counters."""

import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.special_functions import (
    added_special_functions,
    conversions,
    double_by_accident,
    expanded_share,
    integer_divisions,
    needless_conversions,
    spared_checks,
)

# Thread instructions of sines in a loop whose counter is converted, and of their fast form.
SINES = {
    "inst_fp32_thread": 1600.0, "inst_bit_convert_thread": 300.0, "inst_pipe_xu_warp": 100 / 32,
    "inst_f2i_thread": 100.0, "inst_frnd_thread": 0.0, "inst_i2f_thread": 0.0, "inst_i2fp_thread": 200.0,
    "inst_mufu_thread": 0.0,
    "inst_bssy_thread": 50.0, "inst_integer_thread": 600.0, "inst_control_thread": 300.0,
    "inst_unpack_half_thread": 0.0,
}  # fmt: skip
FAST = SINES | {
    "inst_fp32_thread": 500.0, "inst_bit_convert_thread": 100.0, "inst_f2i_thread": 0.0, "inst_i2fp_thread": 100.0,
    "inst_mufu_thread": 100.0, "inst_bssy_thread": 0.0,
}  # fmt: skip
OPCODES = [name for name in SINES if any(f"_{one}_" in name for one in ("f2i", "frnd", "i2f", "i2fp", "mufu", "bssy"))]


def counts(**values: float) -> Counts:
    return Counts(pd.DataFrame([values]))


def test_one_conversion_for_each_byte_is_needed() -> None:
    assert needless_conversions(counts(inst_bit_convert_thread=100.0, global_load_bytes_requested=120.0)) == 0
    assert needless_conversions(counts(inst_bit_convert_thread=100.0, global_load_bytes_requested=20.0)) == 80
    assert needless_conversions(counts()) == 0


def test_a_result_of_tensor_cores_may_become_an_operand_of_the_next_product() -> None:
    chain = counts(inst_bit_convert_thread=150.0, global_load_bytes_requested=20.0, tensor_ops_fp16=32 * 100.0)
    assert needless_conversions(chain) == 30


def test_double_precision_is_an_accident_where_each_result_is_converted() -> None:
    assert double_by_accident(counts(inst_fp64_thread=100.0, inst_bit_convert_thread=80.0)) == pytest.approx(0.8)
    assert double_by_accident(counts(inst_fp64_thread=100.0, inst_bit_convert_thread=0.0)) == 0
    assert double_by_accident(counts(inst_fp64_thread=0.0, inst_bit_convert_thread=80.0)) == 0


def test_conversions_that_are_not_counted_are_what_special_functions_leave_of_their_unit() -> None:
    counted = {"flop_count_dp_mul": 32e3, "flop_count_dp_fma": 32e3, "flop_count_sp_add": 4e3}
    unit = {"pipe_xu_elapsed_fraction": 0.9, "sm_elapsed_cycles_sum": 4e3}
    # 1800 instructions of the unit; a function for each in single precision, one for four in double.
    expected = 32 * 1800 - 4e3 - 16e3
    assert conversions(counts(**counted, **unit)) == pytest.approx(expected)
    assert double_by_accident(counts(**counted, **unit)) == pytest.approx(expected / 64e3)
    half = {"warp_nonpred_execution_efficiency_fraction": 0.5}
    assert conversions(counts(**counted, **unit, **half)) == pytest.approx(32 * 900 - 20e3)
    assert conversions(counts(**counted, **unit, inst_bit_convert_thread=7.0)) == 7
    assert needless_conversions(counts(flop_count_sp_mul=1.0, **unit)) == 0
    assert double_by_accident(counts(**counted)) == 0


def test_functions_are_expanded_in_single_precision_alone() -> None:
    functions = {"inst_fp32_thread": 2000.0, "inst_bit_convert_thread": 100.0}
    assert expanded_share(counts(**functions)) == pytest.approx(0.9)
    assert expanded_share(counts(**functions, inst_fp64_thread=1.0)) == 0
    assert expanded_share(counts(inst_fp32_thread=2000.0)) == 0
    assert expanded_share(counts(inst_fp32_thread=2000.0, inst_function_excess_thread=500.0)) == 0.25


def test_opcodes_tell_functions_from_counters_of_loops() -> None:
    assert expanded_share(counts(**SINES)) > 0.8
    assert added_special_functions(counts(**SINES)) == pytest.approx(
        1600 * expanded_share(counts(**SINES)) / 18, rel=0.1
    )
    assert expanded_share(counts(**FAST)) == 0
    assert added_special_functions(counts(**FAST)) == 0
    unread = counts(**{name: value for name, value in FAST.items() if name not in OPCODES})
    assert expanded_share(unread) > 0.1


def test_a_rounding_that_stays_a_float_is_of_the_data() -> None:
    lattice = FAST | {"inst_frnd_thread": 100.0, "inst_bit_convert_thread": 200.0}
    assert expanded_share(counts(**lattice)) == 0
    long = SINES | {"inst_fp32_thread": 4800.0, "inst_i2fp_thread": 100.0}
    power = long | {"inst_frnd_thread": 200.0, "inst_mufu_thread": 200.0}
    assert expanded_share(counts(**power)) > expanded_share(counts(**long))
    assert added_special_functions(counts(**power)) == 0


def test_a_rounding_down_is_of_the_data() -> None:
    assert expanded_share(counts(**SINES, inst_f2i_nearest_thread=100.0)) == expanded_share(counts(**SINES))
    lattice = counts(**SINES, inst_f2i_nearest_thread=0.0)
    assert added_special_functions(lattice) == 0
    # A logarithm takes the exponent of its argument alone; where none is converted, nothing is left of a function.
    assert expanded_share(lattice) < expanded_share(counts(**SINES))
    assert expanded_share(counts(**SINES | {"inst_i2fp_thread": 0.0}, inst_f2i_nearest_thread=0.0)) == 0


def test_divisions_of_integers_convert_there_and_back() -> None:
    division = {"inst_integer_thread": 1500.0, "inst_bit_convert_thread": 200.0, "inst_mufu_thread": 100.0}
    both = division | {"inst_f2i_thread": 100.0, "inst_i2f_thread": 100.0}
    assert integer_divisions(counts(**both)) == 100
    assert integer_divisions(counts(**both | {"inst_i2f_thread": 0.0})) == 0


def test_a_power_of_each_loaded_value_is_a_function() -> None:
    powers = {"inst_frnd_thread": 10.0, "inst_f2i_thread": 10.0, "inst_i2fp_thread": 10.0, "inst_mufu_thread": 10.0}
    other = {"inst_fp32_thread": 500.0, "inst_bit_convert_thread": 30.0, "global_load_bytes_requested": 40.0,
             "inst_pipe_xu_warp": 1.0, "inst_i2f_thread": 0.0}  # fmt: skip
    assert expanded_share(counts(**powers, **other)) > 0.5
    assert expanded_share(counts(**powers | {"inst_frnd_thread": 0.0}, **other)) == 0


def test_a_power_of_a_constant_is_a_function_without_an_exponent() -> None:
    powers = {"inst_frnd_thread": 10.0, "inst_f2i_thread": 10.0, "inst_i2fp_thread": 0.0, "inst_mufu_thread": 0.0}
    other = {"inst_fp32_thread": 500.0, "inst_bit_convert_thread": 20.0, "global_load_bytes_requested": 40.0,
             "inst_pipe_xu_warp": 20 / 32, "inst_i2f_thread": 0.0}  # fmt: skip
    expanded = expanded_share(counts(**powers, **other))
    assert expanded == pytest.approx(10 * 20 / 500)
    assert expanded_share(counts(**powers | {"inst_frnd_thread": 0.0}, **other)) == 0, "loaded values become integers"


@pytest.mark.parametrize(
    ("to_floats", "exponents", "length", "special"),
    [
        (0.0, 10.0, 18.0, 1.0),
        (10.0, 0.0, 20.0, 1.0),
        (20.0, 0.0, 20.0, 1.0),
        (10.0, 10.0, 46.0, 2.0),
        (10.0, 5.0, 33.0, 1.5),
    ],
)
def test_functions_have_the_length_of_their_kind(
    to_floats: float, exponents: float, length: float, special: float
) -> None:
    reduced = {"inst_f2i_thread": 10.0, "inst_frnd_thread": to_floats, "inst_i2fp_thread": exponents,
               "inst_mufu_thread": 0.0, "inst_i2f_thread": 0.0, "inst_bit_convert_thread": 40.0,
               "inst_function_excess_thread": 0.0, "inst_pipe_xu_warp": 40 / 32}  # fmt: skip
    table = counts(**reduced, inst_fp32_thread=1000.0)
    assert expanded_share(table) == pytest.approx(10 * length / 1000)
    assert added_special_functions(table) == pytest.approx(min(10 * special, 10 * length / 18))
    assert added_special_functions(counts(**reduced | {"inst_mufu_thread": 30.0}, inst_fp32_thread=1000.0)) == 0


def test_a_fast_division_spares_its_check_and_a_fast_power_takes_one_instruction_more() -> None:
    powers = {"inst_frnd_thread": 6.0, "inst_f2i_thread": 4.0, "inst_i2fp_thread": 5.0}
    assert spared_checks(counts(inst_divide_check_thread=10.0)) == 10
    assert spared_checks(counts(inst_divide_check_thread=10.0, **powers)) == 6
    assert spared_checks(counts(inst_divide_check_thread=3.0, **powers)) == 0
    assert spared_checks(counts(**powers)) == 0


@pytest.mark.parametrize(("arithmetic", "share"), [(800.0, 4 / 9), (3600.0, 0.5), (799.0, 0.0)])
def test_integers_that_become_floats_with_no_polynomial_each_are_data(arithmetic: float, share: float) -> None:
    opcodes = {f"inst_{name}_thread": 0.0 for name in ("mufu", "f2i", "i2f", "frnd", "integer")}
    loop = {"inst_pipe_xu_warp": 1e3, "inst_bit_convert_thread": 100.0, "inst_i2fp_thread": 100.0}
    assert expanded_share(counts(**opcodes, **loop, inst_fp32_thread=arithmetic)) == pytest.approx(share)
