"""The best number of SMs: scan and closed form against each other, ties, errors, and the three accounts of savings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.power import core_count as f
from profsvc.formulas.power.component_power import active_factors, gpu_power

N = np.arange(1.0, 31)


def saturating(limit: float) -> np.ndarray:
    """Time of the same work on 1 to 30 SMs, of which ``limit`` use up the bandwidth."""
    return 1 / np.minimum(N, limit)


# Power of a GTX280: 83 W at rest, and 37 W from one to all SMs.
POWER = np.asarray(gpu_power(43.28 * active_factors(N, 30).sm, 83.0).value)


@given(st.floats(2, 60))
def test_scan_and_closed_form_agree_on_a_limit_of_bandwidth(limit: float) -> None:
    scan = f.optimal_cores_scan(N, saturating(limit), POWER, num_sms=30)
    closed = f.optimal_cores_closed(limit * 16 / 30, 16, 16, limit * 16 / 30, 30, case=2)
    # Work per joule rises up to the limit. The scan takes the better adjacent number, the closed form the lower one.
    assert closed.cores <= scan.best <= closed.cores + 1
    assert (scan.flags & Flag.EXTRAPOLATED) == 0


def test_the_two_kinds_of_kernels_of_the_source() -> None:
    limited = f.optimal_cores_scan(N, saturating(20), POWER, num_sms=30)
    free = f.optimal_cores_scan(N, saturating(99), POWER, num_sms=30)
    assert (float(limited.best), float(free.best)) == (20, 30)
    assert limited.per_watt_best == limited.per_watt[19]


def test_a_larger_number_than_those_tried_may_be_better() -> None:
    half = f.optimal_cores_scan(N[:15], saturating(99)[:15], POWER[:15], num_sms=30)
    assert half.flags == Flag.EXTRAPOLATED
    assert f.optimal_cores_scan(N[:15], saturating(99)[:15], POWER[:15]).flags == Flag.EXTRAPOLATED


def test_rows_are_scanned_beside_each_other() -> None:
    both = f.optimal_cores_scan(N, [saturating(20), saturating(99)], POWER, num_sms=[30, 30])
    assert both.best.tolist() == [20, 30]
    assert both.per_watt.shape == (2, 30)
    assert both.flags.tolist() == [0, 0]


def test_points_that_are_none_are_left_out() -> None:
    time = saturating(20).copy()
    time[[19, 20]] = np.nan, 0.0
    got = f.optimal_cores_scan(N, [time, np.full(30, np.nan)], POWER, num_sms=30)
    assert got.best[0] == 22
    assert np.isnan([got.best[1], got.low[1], got.high[1], got.per_watt_best[1]]).all()
    assert [bool(flag & Flag.INPUT_SUSPECT) for flag in got.flags] == [True, True]
    none = f.optimal_cores_scan([], [], [])
    assert np.isnan(none.best)
    assert none.flags == Flag.INPUT_SUSPECT
    with pytest.raises(ValueError, match="numbers of SMs on the last axis"):
        f.optimal_cores_scan(1, 1, 1)


@pytest.mark.parametrize(("error", "width"), [(0.01, 12), (0.001, 1)])
def test_the_interval_holds_the_true_best(error: float, width: int) -> None:
    rng = np.random.default_rng(9)
    truth = saturating(20)
    time = truth * (1 + rng.normal(0, error, (400, 30)))
    watts = POWER * (1 + rng.normal(0, error, (400, 30)))
    got = f.optimal_cores_scan(N, time, watts, 1.0, error * truth, error * POWER, num_sms=30)
    held = (got.low <= 20) & (got.high >= 20)
    assert held.mean() >= 0.92  # at least 95 % promised, less three standard deviations of 400
    assert ((got.low <= got.best) & (got.best <= got.high)).all()
    assert np.median(got.high - got.low) <= width
    assert (got.best != 20).any() == (error == 0.01)


def test_without_errors_there_is_one_best() -> None:
    got = f.optimal_cores_scan(N, saturating(20), POWER, num_sms=30)
    assert got.low == got.best == got.high


def test_forms_of_the_closed_number() -> None:
    published = f.optimal_cores_closed([10.8, 10.8], [16, 14], 16, 10.8, 30, form="as_published")
    repaired = f.optimal_cores_closed([10.8, 10.8], [16, 14], 16, 10.8, 30)
    assert published.cores.tolist() == [30, 20.25]
    assert repaired.cores.tolist() == [20, 20]
    assert published.flags.tolist() == [Flag.CASE_AMBIGUOUS, 0]
    assert repaired.bandwidth_limited.tolist() == [True, True]
    with pytest.raises(ValueError, match="no form 'or'"):
        f.optimal_cores_closed(1, 1, 1, 1, 1, form="or")


def test_edges_of_the_closed_number() -> None:
    got = f.optimal_cores_closed(
        [0.2, 8.0, 8.0, np.nan, 8.0, 4.0], 16, [16.0, 4.0, 0.0, 16.0, 16.0, 16.0], [0.2, 8.0, 8.0, 8.0, np.inf, 4.0],
        30, [2, 2, 2, 2, 3, 7],
    )  # fmt: skip
    assert got.cores.tolist()[:2] == [1, 30]
    assert np.isnan(got.cores[2:4]).all()
    assert got.cores[4] == 30
    assert got.flags[0] & Flag.CLIPPED
    assert got.flags[1] & Flag.CLIPPED
    assert got.flags[2] & Flag.ZERO_DENOM
    assert got.flags[3] == Flag.INPUT_SUSPECT
    assert got.flags[5] & Flag.INPUT_SUSPECT


def test_edges_of_savings() -> None:
    assert f.gating_saving(31, 30, 1, 1).flags == Flag.INPUT_SUSPECT
    got = f.energy_savings([20, 20, 20], 30, 1, [1, 0, 1], 60, [120, 120, 0], [80, 80, np.nan])
    assert got.flags.tolist() == [0, Flag.ZERO_DENOM, Flag.INPUT_SUSPECT]
    assert np.isnan(got.runtime).tolist() == [False, True, True]
    assert np.isnan(got.gated).tolist() == [False, True, False]
    zero = f.energy_savings(20, 30, 1, 1, 60, 0, 80)
    assert zero.flags == Flag.ZERO_DENOM
    assert f.perf_per_watt([1, 1], [0, 1], [1, 0]).flags.tolist() == [Flag.ZERO_DENOM] * 2
