"""Planned temperatures: published figures, exact solutions, and how often the interval holds."""

import numpy as np
import pytest

from profsvc.formulas.thermal.load_plan import (
    POINTS,
    RcNetwork,
    error_reach_c,
    heat_cost,
    plan_curve,
    time_to_limit_s,
)
from profsvc.formulas.thermal.rc_model import max_rise, temperature, temperature_scan
from profsvc.formulas.thermal.time_constants.left_out_windows import left_out_errors

IDLE_C, RISE_S, DECAY_S, SIGMA = 57.0, 35.0, 60.0, 10 / 22


def gtx280(rise_c: float, power_w: float) -> RcNetwork:
    return RcNetwork(IDLE_C, np.array([rise_c / power_w]), np.array([RISE_S]), np.array([DECAY_S]))


@pytest.mark.parametrize(
    ("power_w", "intensity", "final_c", "leakage_w"), [(45.83, 0.0, 68.0, 5.0), (115.7, 1 / 13.3, 78.0, 10.0)]
)
def test_the_published_final_temperatures_and_leakage(
    power_w: float, intensity: float, final_c: float, leakage_w: float
) -> None:
    rise = float(max_rise(power_w, intensity, 0.12, 5.5, 21.505))
    curve = plan_curve(gtx280(rise, power_w), [power_w], [600.0], IDLE_C)
    assert curve.temperature_c[-1] == pytest.approx(final_c, abs=0.05)
    assert float(heat_cost(curve, SIGMA, IDLE_C).leakage_w) == pytest.approx(leakage_w, abs=0.5)


def test_a_plan_is_the_sum_of_the_parts_of_a_board() -> None:
    board = RcNetwork(30.0, np.array([0.01, 0.04]), np.array([2.0, 50.0]), np.array([3.0, 80.0]))
    curve = plan_curve(board, [200.0, 0.0], [30.0, 40.0], 30.0)
    at = curve.time_s[1 : POINTS + 1]
    parts = [temperature(at, 0.0, 200 * r, rc) for r, rc in ((0.01, 2.0), (0.04, 50.0))]
    assert curve.temperature_c[1 : POINTS + 1] == pytest.approx(30 + sum(parts))
    held = np.array([2 * (1 - np.exp(-15.0)), 8 * (1 - np.exp(-0.6))])
    assert curve.temperature_c[-1] == pytest.approx(30 + held @ np.exp(-40 / np.array([3.0, 80.0])))


def test_a_board_at_rest_stays_so_and_wrong_constants_are_unknown() -> None:
    assert plan_curve(gtx280(21.0, 115.7), [115.7], [600.0], 78.0).temperature_c == pytest.approx(78.0)
    broken = gtx280(21.0, 115.7)._replace(rc_rise_s=np.array([0.0]))
    assert np.isnan(plan_curve(broken, [100.0], [60.0], 57.0).temperature_c[1:]).all()
    assert np.isnan(plan_curve(gtx280(21.0, 115.7), [100.0], [0.0], 57.0).temperature_c[1:]).all()


def test_the_time_to_a_limit_is_that_of_the_exponential() -> None:
    curve = plan_curve(gtx280(21.0, 115.7), [115.7], [600.0], IDLE_C)
    found = time_to_limit_s(curve.time_s, curve.temperature_c, 70.0)
    assert found == pytest.approx(-RISE_S * np.log(1 - 13 / 21), rel=1e-3)


def test_the_reach_holds_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(1)
    errors = rng.normal(0, 0.7, (4000, 6))
    held = [abs(one[-1]) < float(error_reach_c(one[:-1])) for one in errors]
    assert 0.94 < np.mean(held) < 0.96
    assert float(error_reach_c([0.5] * 5, 3.0)) == pytest.approx(3 * float(error_reach_c([0.5] * 5)))


def test_a_load_that_the_model_does_not_hold_for_has_its_error() -> None:
    t = np.arange(0.0, 700.0, 0.5)
    power = np.select(
        [(t >= 100 * k) & (t < 100 * k + 50) for k in range(1, 7)], [100.0 * k for k in range(1, 7)], 50.0
    )
    T = temperature_scan(30 + 0.05 * power, 0.5, 32.5, 10.0, 15.0)
    begin = 100.0 * np.arange(1, 7)
    asked = [10.0], [15.0], begin, begin + 50
    assert np.abs(left_out_errors(t, power, t + 0.5, T, *asked)).max() < 0.1
    hotter = T + 5.0 * ((t >= 300) & (t < 350))
    errors = left_out_errors(t, power, t + 0.5, hotter, *asked)
    assert errors[2] == pytest.approx(-5, abs=0.3)
    assert np.isnan(left_out_errors(t, power, t, T, [np.nan], [15.0], begin, begin + 50)).all()
    assert np.isnan(left_out_errors(t, power, t, T, [10.0], [15.0], [1000.0], [1100.0])).all()
