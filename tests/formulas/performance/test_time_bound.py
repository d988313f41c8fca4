"""The least time and what lies above it: limits, and the catalogue of patterns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.time_bound import COMPUTE, MEMORY, antiparallel_report, lost_share, time_bound
from profsvc.specs import patterns
from tests.formulas.contract import holds

number = st.floats(1e-3, 1e12)


@given(number, number, number, number, st.floats(1, 10))
def test_what_is_above_is_explained_or_not(W: float, P: float, Q: float, B: float, slow: float) -> None:
    least = time_bound(W, P, Q, B)
    assert least.t_min <= least.t_serial <= 2 * least.t_min
    assert np.isnan(least.t_delta)
    assert least.flags == 0
    got = time_bound(W, P, Q, B, least.t_min * slow)
    np.testing.assert_allclose(got.t_min + got.t_delta, least.t_min * slow)
    np.testing.assert_allclose(np.minimum(got.t_delta, got.overlap_gap) + got.unexplained, got.t_delta)
    np.testing.assert_allclose(time_bound(W, P, Q, B, got.t_serial).unexplained, 0, atol=1e-9 * got.t_min)


def test_bounds_and_edges() -> None:
    got = time_bound([8.0, 2.0, 4.0, 0.0], 2.0, [4.0, 8.0, 4.0, 0.0], 2.0)
    assert got.bound.tolist() == [COMPUTE, MEMORY, COMPUTE, COMPUTE]
    assert got.t_min.tolist() == [4.0, 4.0, 2.0, 0.0]
    faster = time_bound(8.0, 2.0, 4.0, 2.0, 3.0)
    assert (float(faster.t_delta), int(faster.flags)) == (-1.0, Flag.INPUT_SUSPECT)
    none = time_bound(8.0, 0.0, 4.0, 2.0)
    assert np.isnan(none.t_min)
    assert (int(none.bound), int(none.flags)) == (-1, Flag.ZERO_DENOM)


def test_contract() -> None:
    good = {"ops": 8e9, "op_rate": 1e12, "accesses": 2e9, "access_rate": 1e11, "t_actual": 0.04}
    holds(time_bound, good, spared={"t_actual": (np.nan,)})
    holds(lost_share, {"metric": 0.5}, spared={"metric": (np.nan,)})


@given(st.floats(0, 1), st.floats(1, 1e6))
def test_readings_are_one_scale(share: float, factor: float) -> None:
    assert lost_share(share).value == share
    np.testing.assert_allclose(lost_share(1 - share, "kept").value, share, atol=1e-15)
    np.testing.assert_allclose(lost_share(factor, "factor").value, lost_share(1 / factor, "kept").value)
    assert lost_share(share).flags == lost_share(factor, "factor").flags == 0


def test_shares_that_are_none() -> None:
    got = lost_share([1.2, 40.0, np.nan, -0.1])
    np.testing.assert_array_equal(got.value, [1, 1, np.nan, np.nan])
    clipped = Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED
    assert got.flags.tolist() == [clipped, clipped | Flag.INPUT_SUSPECT, 0, Flag.INPUT_SUSPECT]
    assert lost_share([0.5, 0.0], "factor").value.tolist() == [0, 0]
    with pytest.raises(ValueError, match="no form 'gained'; allowed: 'lost', 'kept', 'factor'"):
        lost_share(0.5, "gained")


def test_report_has_every_pattern_of_the_catalogue() -> None:
    readings = {key: pattern.reading for key, pattern in patterns().items()}
    assert len(readings) == 13
    report = antiparallel_report({"banks": [1, 16], "coalescing": 32, "occupancy": 0.5}, readings)
    assert list(report) == list(readings)
    assert report["banks"].value.tolist() == [0, 0.9375]
    assert (report["coalescing"].value, report["occupancy"].value) == (0.96875, 0.5)
    assert sum(bool(np.isnan(lost.value).all()) for lost in report.values()) == 10
    with pytest.raises(ValueError, match="no pattern 'bank'; allowed: 'overlap'"):
        antiparallel_report({"bank": 2.0}, readings)
