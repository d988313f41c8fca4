"""Estimates from the instruction mix: limits, relations between them, and what a wrong number does."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.peak_estimates import (
    bandwidth_demand,
    bandwidth_limited,
    gpu_share_speedup,
    operand_bandwidth,
    potential_throughput,
)
from profsvc.formulas.performance.speedup import amdahl
from tests.formulas.contract import holds

rate = st.floats(1, 1e15)


@given(rate, rate, rate)
def test_bandwidth_limits_from_above_and_only_where_it_lacks(P: float, B: float, A: float) -> None:
    got = bandwidth_limited(P, B, A).value
    assert got <= P
    assert (got == P) == (A >= B) or got == pytest.approx(P)
    assert got * B / P <= max(A, B) * (1 + 1e-12)


@given(st.floats(0.01, 1), st.floats(1, 500))
def test_share_of_kernels_and_amdahl_are_one_relation(p: float, s: float) -> None:
    after = (1 - p) + p / s
    g = (p / s) / after
    assert gpu_share_speedup(g, s, p).value == pytest.approx(1 / after)
    assert amdahl(p, 1 / s) == pytest.approx(1 / after)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (potential_throughput, ([0.5, 0.25], [2.0, 1.0], 100.0)),
        (bandwidth_demand, (128.0, 0.25, 4.0, 1e9)),
        (bandwidth_limited, (10.0, 5.0, 2.0)),
        (gpu_share_speedup, (0.5, 10.0, 0.9)),
    ],
    ids=lambda x: x.__name__ if callable(x) else None,
)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_a_wrong_number_makes_nan_and_leaves_the_next_one_unchanged(
    function: Any, arguments: Any, wrong: float
) -> None:
    good = function(*arguments)
    assert good.flags == 0
    for k in range(len(arguments)):
        given = [np.array([x, x]) for x in arguments]
        given[k][0] = wrong
        got = function(*given)
        assert np.isnan(got.value[0])
        assert got.flags.tolist() == [Flag.INPUT_SUSPECT, 0]
        assert got.value[1] == good.value


def test_shares_above_one_and_nothing_to_divide_by() -> None:
    assert potential_throughput([0.7, 0.7], [1, 1], 1).flags == Flag.INPUT_SUSPECT
    assert bandwidth_demand(1, 25, 4, 1).flags == Flag.INPUT_SUSPECT
    assert gpu_share_speedup(40, 2, 1).flags == Flag.INPUT_SUSPECT
    got = gpu_share_speedup(0.5, 2, 0)
    assert np.isnan(got.value)
    assert got.flags == Flag.ZERO_DENOM
    assert bandwidth_limited(5.0, 0.0, 0.0).value == 5


def test_operands_are_asked_for_in_proportion() -> None:
    holds(operand_bandwidth, {"lanes": 32.0, "operands": 2.0, "operand_bytes": 4.0, "clock": 1e9})
    assert operand_bandwidth(64, 2, 4, 1e9).value == 2 * operand_bandwidth(32, 2, 4, 1e9).value
