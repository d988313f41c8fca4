"""The generator of logs makes what it says: the truth, seen through each sensor."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tests.formulas.thermal import synthetic_logs


def test_a_log_depends_on_its_seed_alone() -> None:
    few, many = synthetic_logs.simulate(3, 2), synthetic_logs.simulate(3, 4)
    for a, b in zip(few, many, strict=False):
        np.testing.assert_array_equal(a.power_w, b.power_w)
        np.testing.assert_array_equal(a.temperature_c, b.temperature_c)
    assert synthetic_logs.simulate(4, 1)[0].truth != few[0].truth


def test_the_board_solves_its_equation() -> None:
    """A second method: the differential equation of the die, leakage in it, by adaptive Runge-Kutta."""
    drawn = synthetic_logs.recipe(np.random.default_rng(5), "informative", "linear")._replace(wander_w=0.0, fan_w=0.0)
    power, temperature, _ = (x[0] for x in synthetic_logs.physics([drawn]))
    t, above = drawn.truth, temperature[0] - drawn.truth.idle_temperature_c
    R = t.resistance_c_per_w
    theta, now = R / R.sum() * above, 0.0
    for start, end, level in zip(drawn.start_s, np.append(drawn.start_s[1:], drawn.end_s), drawn.level_w, strict=True):
        sigma = t.sigma_w_per_c if level else drawn.sigma_idle

        def slope(_: float, x: np.ndarray, level: float = level, sigma: float = sigma) -> np.ndarray:
            target = R * (level + sigma * x.sum())
            return (target - x) / np.where(x < target, t.rc_rise_s, t.rc_decay_s)

        theta = solve_ivp(slope, (start, end), theta, rtol=1e-8, atol=1e-8, max_step=1.0).y[:, -1]
        now = end
        k = round(now / synthetic_logs.STEP_S)
        assert temperature[k] - t.idle_temperature_c == pytest.approx(theta.sum(), abs=0.1)
    assert power[k - 1] > t.idle_power_w


def test_the_sensors_show_the_truth_in_their_own_way() -> None:
    for log in synthetic_logs.simulate(6, 6):
        assert (log.temperature_c == np.round(log.temperature_c)).all()
        assert (np.diff(log.power_time_s) > 0).all()
        assert (np.diff(log.temperature_time_s) > 0).all()
        segment = log.segments()
        assert set(segment) - {-1} <= set(np.flatnonzero(log.load > 0))
        settled = log.power_time_s - log.start_s[segment] > 5
        for k in np.unique(segment[segment >= 0]):
            here = settled & (segment == k)
            cold = log.truth.idle_power_w + log.level_w[k]
            assert here.sum() == 0 or np.median(log.power_w[here]) == pytest.approx(cold, rel=0.25)


@pytest.mark.parametrize("kind", synthetic_logs.WITHOUT_INFORMATION)
def test_logs_without_information_have_none(kind: str) -> None:
    for log in synthetic_logs.simulate(7, 3, kind):
        used = log.segments() >= 0
        few = used.sum() < 20
        moved = np.unique(log.clock_mhz[used]).size > 1
        R = log.truth.resistance_c_per_w.sum()
        narrow = R * log.level_w.max() < 5 or kind in ("stuck", "noise", "steady")
        assert few or moved or narrow or log.throttled.any()
