"""Work that is avoidable although its results are used, on made-up counters and on kernels of libraries."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.avoidable_work import (
    avoidable_instructions,
    divided_share,
    lone_share,
    repeated_steps,
    short_steps,
    values_of_integers,
)
from profsvc.analysis.potential.special_functions import (
    conversions,
    double_by_accident,
)
from tests.analysis.potential.test_special_functions import FAST


def counts(**values: float) -> Counts:
    return Counts(pd.DataFrame([values]))


def test_functions_of_doubles_whose_results_are_rounded_are_by_accident() -> None:
    function = {"inst_fp64_thread": 90.0, "inst_fp32_thread": 10.0, "inst_executed_warp": 1e3}
    rounded = counts(**function, inst_round_double_thread=1.0)
    assert double_by_accident(rounded) == 1
    assert avoidable_instructions(rounded)["accidental_double"] == pytest.approx(0.9 - 0.18)
    for results in (0.0, 0.5, float("nan")):
        other = counts(**function, inst_round_double_thread=results)
        assert double_by_accident(other) == 0
        assert avoidable_instructions(other)["accidental_double"] == 0


def test_divisions_and_roots_have_a_slow_path() -> None:
    roots = FAST | {"inst_bssy_thread": 100.0, "inst_i2fp_thread": 0.0, "inst_bit_convert_thread": 0.0}
    share = {
        bssy: float(avoidable_instructions(counts(**roots | {"inst_bssy_thread": bssy}))["expensive_functions"][0])
        for bssy in (0.0, 30.0, 100.0)
    }
    assert share[0.0] == 0
    assert 0 < share[30.0] < share[100.0]


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


def test_integers_beyond_those_of_addresses_and_loops_compute_values() -> None:
    # A hundred accesses in a loop of as many turns.
    loop = {"inst_ldst_thread": 100.0, "inst_control_thread": 100.0, "inst_uniform_thread": 0.0}
    for integers, values in ((6700.0, 0.0), (6700.0 + 3200.0, 100.0)):
        assert values_of_integers(counts(**loop, inst_integer_thread=integers)) == values
        assert values_of_integers(counts(**loop, inst_integer_thread=integers - 50, inst_bit_thread=50.0)) == values
    for unknown in ({"inst_integer_thread": 1e6}, {"inst_ldst_thread": 1.0}, {}):
        assert values_of_integers(counts(**unknown)) == 0


@pytest.mark.parametrize(("lone", "share"), [(25.0, 0.25), (200.0, 1.0), (np.nan, 0.0)])
def test_what_one_lane_does_alone_is_a_share_of_the_instructions(lone: float, share: float) -> None:
    assert lone_share(counts(inst_lone_warp=lone, inst_executed_warp=100.0)) == share
