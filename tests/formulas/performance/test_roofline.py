"""The roofline: limits, ceilings, the second way round, and the rows of the specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.roofline import (
    COMPUTE,
    MEMORY,
    effective_bandwidth,
    intensity,
    peak_rate,
    pixel_roofline,
    roofline,
    speedup_chain,
)
from tests.formulas.contract import fields, holds

rate = st.floats(1e-3, 1e15)
ceilings = st.lists(rate, min_size=1, max_size=4)


@given(st.floats(0, 1e6), ceilings, ceilings)
def test_attainable_is_the_lowest_of_all_ceilings_one_by_one(I: float, peaks: list[float], bands: list[float]) -> None:
    got = roofline(I, peaks, bands)
    assert got.attainable == min([*peaks, *(I * b for b in bands)])
    own = peaks[got.ceiling] if got.bound == COMPUTE else I * bands[got.ceiling]
    assert got.attainable == own
    assert got.flags == 0


@given(st.floats(0, 1e6), rate, rate, st.floats(1, 100))
def test_more_of_anything_never_lowers_the_roof(I: float, P: float, B: float, k: float) -> None:
    here = roofline(I, [P], [B]).attainable
    assert roofline(I * k, [P], [B]).attainable >= here
    assert roofline(I, [P * k], [B]).attainable >= here
    assert roofline(I, [P], [B * k]).attainable >= here
    np.testing.assert_allclose(roofline(I, [P * k], [B * k]).attainable, here * k)
    assert roofline(I, [P, P * k], [B, B * k]).attainable == here
    assert roofline(I, [P, np.inf], [B]).attainable == here


@given(rate, rate)
def test_the_bound_changes_at_the_ridge(P: float, B: float) -> None:
    ridge = float(roofline(1.0, [P], [B]).ridge)
    assert roofline([ridge * 0.99, ridge * 1.01], [P], [B]).bound.tolist() == [MEMORY, COMPUTE]


def test_edges_of_the_roof() -> None:
    assert roofline(4.0, [8.0], [2.0]).bound == COMPUTE
    nothing_moved, no_work = roofline([np.inf, 0.0], [8.0], [2.0]).attainable
    assert (nothing_moved, no_work) == (8.0, 0.0)
    assert roofline(np.inf, [8.0], [0.0]).attainable == 8.0
    wrong = roofline([np.nan, -1.0, 1.0, 1.0], [[8.0], [8.0], [np.nan], [np.inf]], [[2.0], [2.0], [2.0], [np.inf]])
    assert np.isnan(wrong.attainable).all()
    assert wrong.flags.tolist() == [Flag.INPUT_SUSPECT] * 4
    assert wrong.bound.tolist() == wrong.ceiling.tolist() == [-1] * 4
    assert roofline(np.ones(3), [8.0, 9.0], np.ones((3, 1))).attainable.shape == (3,)
    with pytest.raises(ValueError, match="at least one ceiling"):
        roofline(1.0, [], [1.0])
    with pytest.raises(TypeError, match="peaks has dtype"):
        roofline(1.0, ["8"], [1.0])


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), rate, rate)
def test_pixels_are_the_roofline_over_the_operations_of_a_pixel(W: float, Q: float, P: float, B: float) -> None:
    got = pixel_roofline(W, Q, P, B)
    np.testing.assert_allclose(got.rate * W, roofline(intensity(W, Q).value, [P], [B]).attainable)
    assert got.rate == min(got.memory, got.compute)


def test_an_element_without_operations_or_bytes() -> None:
    got = pixel_roofline([0.0, 2.0, 0.0], [4.0, 0.0, 0.0], 10.0, 8.0)
    np.testing.assert_array_equal(got.rate, [2.0, 5.0, np.nan])
    assert got.flags.tolist() == [0, 0, Flag.NOT_APPLICABLE]


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8))
def test_the_chain_multiplies_up(times: list[float]) -> None:
    got = speedup_chain(times)
    assert got.step[0] == got.total[0] == 1
    np.testing.assert_allclose(np.cumprod(got.step), got.total)


def test_a_wrong_time_spares_the_rest_of_the_chain() -> None:
    got = speedup_chain([4.0, np.nan, 2.0, 1.0, 0.0])
    np.testing.assert_array_equal(got.total, [1, np.nan, 2, 4, np.nan])
    np.testing.assert_array_equal(got.step, [1, np.nan, np.nan, 2, np.nan])
    S, Z = Flag.INPUT_SUSPECT, Flag.ZERO_DENOM
    assert got.flags.tolist() == [0, S, S, 0, Z]
    assert speedup_chain(np.ones((2, 0))).total.shape == (2, 0)
    with pytest.raises(ValueError, match="no axis"):
        speedup_chain(1.0)


def test_contract() -> None:
    holds(peak_rate, {"units": 128, "clock": 1.35e9, "operations": 2})
    holds(intensity, {"operations": 11, "moved": 16})
    holds(pixel_roofline, {"operations": 9, "moved": 5, "op_rate": 5e11, "bandwidth": 1.15e11})
    holds(effective_bandwidth, {"moved": 1e9, "time_s": 0.01})
    assert effective_bandwidth(1.0, 0.0).flags == Flag.ZERO_DENOM
    assert np.isinf(intensity(1.0, 0.0).value)
    assert intensity(0.0, 0.0).flags == Flag.NOT_APPLICABLE
    assert fields(peak_rate(2, 3))["value"] == 12
