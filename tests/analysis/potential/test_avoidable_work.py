"""Work that is avoidable although its results are used, on made-up counters and on kernels of libraries."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.avoidable_work import (
    added_special_functions,
    avoidable_instructions,
    conversions,
    divided_share,
    double_by_accident,
    expanded_share,
    integer_divisions,
    lone_share,
    needless_conversions,
    repeated_steps,
    short_steps,
    spared_checks,
    values_of_integers,
)


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


def test_functions_of_doubles_whose_results_are_rounded_are_by_accident() -> None:
    function = {"inst_fp64_thread": 90.0, "inst_fp32_thread": 10.0, "inst_executed_warp": 1e3}
    rounded = counts(**function, inst_round_double_thread=1.0)
    assert double_by_accident(rounded) == 1
    assert avoidable_instructions(rounded)["accidental_double"] == pytest.approx(0.9 - 0.18)
    for results in (0.0, 0.5, float("nan")):
        other = counts(**function, inst_round_double_thread=results)
        assert double_by_accident(other) == 0
        assert avoidable_instructions(other)["accidental_double"] == 0


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


def test_divisions_and_roots_have_a_slow_path() -> None:
    roots = FAST | {"inst_bssy_thread": 100.0, "inst_i2fp_thread": 0.0, "inst_bit_convert_thread": 0.0}
    share = {
        bssy: float(avoidable_instructions(counts(**roots | {"inst_bssy_thread": bssy}))["expensive_functions"][0])
        for bssy in (0.0, 30.0, 100.0)
    }
    assert share[0.0] == 0
    assert 0 < share[30.0] < share[100.0]


def test_divisions_of_integers_convert_there_and_back() -> None:
    division = {"inst_integer_thread": 1500.0, "inst_bit_convert_thread": 200.0, "inst_mufu_thread": 100.0}
    both = division | {"inst_f2i_thread": 100.0, "inst_i2f_thread": 100.0}
    assert integer_divisions(counts(**both)) == 100
    assert integer_divisions(counts(**both | {"inst_i2f_thread": 0.0})) == 0


def test_the_adder_converts_half_precision() -> None:
    unpacked = {"inst_bit_convert_thread": 60.0, "inst_unpack_half_thread": 50.0, "inst_fp32_thread": 40.0}
    assert conversions(counts(**unpacked)) == 110
    least, most = (
        float(avoidable_instructions(counts(**unpacked | {"inst_unpack_half_thread": count}))["type_conversions"][0])
        for count in (0.0, 50.0)
    )
    assert most > least


def test_special_functions_without_arithmetic_are_divisions() -> None:
    divisions = {"inst_pipe_xu_warp": 30.0, "inst_executed_warp": 400.0}
    assert divided_share(counts(**divisions, inst_fp32_thread=0.0)) == pytest.approx(0.45)
    assert divided_share(counts(**divisions, inst_fp32_thread=32 * 30.0)) == 0


STEPS = {"warps_launched": 10.0, "inst_executed_warp": 8e3, "shared_load_inst_warp": 2e3, "shared_store_inst_warp": 1e3}


def test_short_steps_between_barriers_exchange_what_could_stay_in_registers() -> None:
    barriers, exchanged = short_steps(counts(**STEPS, barrier_inst_warp=1e3))
    assert barriers == pytest.approx(980), "two barriers of each warp are needed"
    assert exchanged == pytest.approx(0.98)
    long = short_steps(counts(**STEPS | {"inst_executed_warp": 32e3}, barrier_inst_warp=1e3))
    assert [part.item() for part in long] == pytest.approx([490, 0.49])
    tiles = short_steps(counts(**STEPS | {"shared_load_inst_warp": 39e3}, barrier_inst_warp=1e3))
    assert tiles[1] == pytest.approx(0.098), "a tile is no exchange"
    assert [part.item() for part in short_steps(counts(**STEPS))] == [0, 0]
    assert [part.item() for part in short_steps(counts(**STEPS, barrier_inst_warp=20.0))] == [0, 0]
    assert repeated_steps(counts(**STEPS)) == 1


def test_of_a_division_with_a_prepared_reciprocal_a_comparison_spares_three_instructions() -> None:
    classes = {"inst_integer_thread": 800.0, "inst_ldst_thread": 200.0}
    opcodes = dict.fromkeys(("inst_i2f_thread", "inst_f2i_thread", "inst_mufu_thread", "inst_f2i_long_thread"), 0.0)
    products = {"inst_multiply_high_thread": 50.0, "inst_compare_unsigned_thread": 100.0}
    assert divided_share(counts(**classes, **opcodes, **products)) == pytest.approx(0.15)
    hashes = products | {"inst_compare_unsigned_thread": 0.0}
    assert divided_share(counts(**classes, **opcodes, **hashes)) == 0
    long = dict.fromkeys(opcodes, 10.0)
    of_32_bits = divided_share(counts(**classes, **long | {"inst_f2i_long_thread": 0.0}))
    assert divided_share(counts(**classes, **long)) > 2 * of_32_bits > 0


def test_a_power_of_each_loaded_value_is_a_function() -> None:
    powers = {"inst_frnd_thread": 10.0, "inst_f2i_thread": 10.0, "inst_i2fp_thread": 10.0, "inst_mufu_thread": 10.0}
    other = {"inst_fp32_thread": 500.0, "inst_bit_convert_thread": 30.0, "global_load_bytes_requested": 40.0,
             "inst_pipe_xu_warp": 1.0, "inst_i2f_thread": 0.0}  # fmt: skip
    assert expanded_share(counts(**powers, **other)) > 0.5
    assert expanded_share(counts(**powers | {"inst_frnd_thread": 0.0}, **other)) == 0


def test_all_of_a_checked_division_but_a_reciprocal_and_a_product_is_avoidable() -> None:
    divisions = {
        "inst_fp32_thread": 90.0, "inst_control_thread": 30.0, "inst_mufu_thread": 10.0, "inst_bssy_thread": 10.0,
        "inst_pipe_xu_warp": 20 / 32, "inst_ldst_thread": 80.0,
    }  # fmt: skip
    checked, none = (
        avoidable_instructions(counts(**divisions, inst_divide_check_thread=count))["expensive_functions"].item()
        for count in (10.0, 0.0)
    )
    assert checked == pytest.approx(10 * (12 - 2) / 200)
    assert none == pytest.approx(10 * 12 / 2 / 200), "of a reciprocal or a root nothing tells what accuracy it needs"


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


def test_integers_beyond_those_of_addresses_and_loops_compute_values() -> None:
    # A hundred accesses in a loop of as many turns.
    loop = {"inst_ldst_thread": 100.0, "inst_control_thread": 100.0, "inst_uniform_thread": 0.0}
    for integers, values in ((6700.0, 0.0), (6700.0 + 3200.0, 100.0)):
        assert values_of_integers(counts(**loop, inst_integer_thread=integers)) == values
        assert values_of_integers(counts(**loop, inst_integer_thread=integers - 50, inst_bit_thread=50.0)) == values
    for unknown in ({"inst_integer_thread": 1e6}, {"inst_ldst_thread": 1.0}, {}):
        assert values_of_integers(counts(**unknown)) == 0


@pytest.mark.parametrize(("arithmetic", "share"), [(800.0, 4 / 9), (3600.0, 0.5), (799.0, 0.0)])
def test_integers_that_become_floats_with_no_polynomial_each_are_data(arithmetic: float, share: float) -> None:
    opcodes = {f"inst_{name}_thread": 0.0 for name in ("mufu", "f2i", "i2f", "frnd", "integer")}
    loop = {"inst_pipe_xu_warp": 1e3, "inst_bit_convert_thread": 100.0, "inst_i2fp_thread": 100.0}
    assert expanded_share(counts(**opcodes, **loop, inst_fp32_thread=arithmetic)) == pytest.approx(share)


@pytest.mark.parametrize(("lone", "share"), [(25.0, 0.25), (200.0, 1.0), (np.nan, 0.0)])
def test_what_one_lane_does_alone_is_a_share_of_the_instructions(lone: float, share: float) -> None:
    assert lone_share(counts(inst_lone_warp=lone, inst_executed_warp=100.0)) == share
