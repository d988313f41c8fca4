"""Latency hiding: against a simulation of warps, limits, and the rows of the specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.latency import (
    exposed,
    issue_cycles,
    simt_usage,
    trip_balance,
    warps_for_hiding,
    warps_for_pipeline,
)

period = st.integers(0, 60)


def idle_per_period(M: int, C: int, warps: int) -> float:
    """Cycles of a period in which a round robin of warps does not compute, once it has settled."""
    ready = [0] * warps
    port, busy, marks = 0, 0, []
    for turn in range(warps * 40):
        start = max(port, ready[turn % warps])
        port = start + C
        busy += C
        ready[turn % warps] = port + M
        if turn % warps == warps - 1:
            marks.append((port, busy))
    (t0, b0), (t1, b1) = marks[19], marks[39]
    return ((t1 - t0) - (b1 - b0)) / 20


@given(period, st.integers(1, 30), st.integers(1, 12))
def test_what_stays_exposed_is_what_a_round_robin_idles(M: int, C: int, warps: int) -> None:
    assert exposed(M, C, warps) == idle_per_period(M, C, warps)


@given(period, st.integers(1, 30))
def test_enough_warps_are_the_fewest_that_hide(M: int, C: int) -> None:
    enough = warps_for_hiding(M, C)
    assert exposed(M, C, enough) == 0
    if enough > 1:
        assert exposed(M, C, enough - 1) > 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_a_wrong_number_makes_nan_and_leaves_the_next_one_unchanged(wrong: float) -> None:
    for function, arguments in (
        (warps_for_hiding, (3.0, 1.0)),
        (exposed, (3.0, 1.0, 2.0)),
        (issue_cycles, (8.0, 32.0)),
        (warps_for_pipeline, (24.0, 4.0)),
    ):
        good = function(*arguments)
        for k in range(len(arguments)):
            given = [np.array([x, x]) for x in arguments]
            given[k][0] = wrong
            got = function(*given)
            assert np.isnan(got[0])
            assert got[1] == good


def test_nothing_to_divide_by() -> None:
    assert np.isnan(issue_cycles(0))
    assert np.isnan(warps_for_pipeline(24, 0))
    assert np.isnan(exposed(3.0, 1.0, 0))


@given(st.lists(st.integers(0, 32), min_size=1, max_size=40))
def test_usage_is_the_mean_of_the_cycles(active: list[int]) -> None:
    got = simt_usage(active, 32)
    assert got.value == pytest.approx(np.mean(active) / 32)
    assert got.flags == 0


def test_usage_edges() -> None:
    got = simt_usage([[8, 9], [8, -1], [8, np.nan]], 8)
    np.testing.assert_array_equal(got.value, [17 / 16, np.nan, np.nan])
    assert got.flags.tolist() == [Flag.INPUT_SUSPECT | Flag.RAW_OUT_OF_RANGE, Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT]
    assert simt_usage([0, 0], 0).flags == Flag.ZERO_DENOM
    assert simt_usage(np.zeros((3, 0)), [8, 8, 8]).flags.tolist() == [Flag.ZERO_DENOM] * 3
    assert simt_usage([[8, 4], [4, 2]], [8, 4]).value.tolist() == [0.75, 0.75]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=32))
def test_balance_is_the_time_the_threads_needed(trips: list[int]) -> None:
    got = trip_balance(trips)
    assert 0 < got.value <= 1
    assert got.value * max(trips) == pytest.approx(np.mean(trips))
    assert bool(got.flags & Flag.NOT_APPLICABLE) == (max(trips) == 0)


def test_balance_edges() -> None:
    got = trip_balance([[3, -1], [3, np.nan], [3, 3]])
    np.testing.assert_array_equal(got.value, [np.nan, np.nan, 1])
    assert got.flags.tolist() == [Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT, 0]
    assert trip_balance(np.zeros((2, 0))).flags.tolist() == [Flag.ZERO_DENOM] * 2
