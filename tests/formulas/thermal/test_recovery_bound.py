"""The bound of what logs tell against second methods: the simulator itself, an integral, and a textbook case."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from tests.formulas.thermal import recovery_bound, synthetic_logs


def test_parts_follow_the_power_as_the_boards_do() -> None:
    drawn = synthetic_logs.recipes(3, range(4))
    power, temperature, _ = synthetic_logs.physics(drawn)
    for k, r in enumerate(drawn):
        t = r.truth
        R = t.resistance_c_per_w
        known = [*np.log(t.rc_rise_s), np.log(t.rc_decay_s[0] / t.rc_rise_s[0]), *R, *r.start_c * R / R.sum()]
        above = power[k : k + 1] - t.idle_power_w
        warm = recovery_bound.follow(above, np.array([[known]]), np.empty((1, 0), dtype=np.intp))
        np.testing.assert_allclose(warm[0, 0], temperature[k] - t.idle_temperature_c, atol=1e-9)


def test_a_step_moved_by_a_whole_cell_is_a_step_a_cell_later() -> None:
    power = np.repeat([[0.0, 100.0]], [50, 50], axis=1)
    board = [np.log(20), np.log(1), 0.3, 0.1, 0.0, 0.0, 0.0]
    moved = recovery_bound.follow(power, np.array([[[*board, synthetic_logs.STEP_S]]]), np.array([[50]]))
    later = recovery_bound.follow(
        np.repeat([[0.0, 100.0]], [51, 49], axis=1), np.array([[[*board, 0.0]]]), np.array([[50]])
    )
    np.testing.assert_allclose(moved, later, atol=1e-12)
    assert moved[0, 0, -1] > 1


@pytest.mark.parametrize("noise", [0.05, 0.3, 1.0])
def test_information_of_rounded_readings(noise: float) -> None:
    """The variance of the slope of the logarithm, by an integral over what the sensor saw before it rounded."""
    mean, change = 20.1, 1e-4

    def logarithm(seen: float, at: float) -> float:
        low = np.floor(seen)
        return float(np.log(norm.cdf(low + 1, at, noise) - norm.cdf(low, at, noise)))

    def told(seen: float) -> float:
        slope = (logarithm(seen, mean + change) - logarithm(seen, mean - change)) / (2 * change)
        return slope**2 * float(norm.pdf(seen, mean, noise))

    edges = np.arange(np.floor(mean - 5 * noise), mean + 5 * noise + 1)
    by_parts = sum(quad(told, a, b, limit=200)[0] for a, b in pairwise(edges))
    assert recovery_bound.information(np.array([mean]), np.array([noise]))[0] == pytest.approx(by_parts, rel=1e-3)


def test_more_loads_tell_more_and_no_offset_is_known_without_error() -> None:
    few, many = (np.array(recovery_bound.least_errors(5, 20, kind)) for kind in ("informative", "many_loads"))
    assert (few > 1e-3).all()
    assert (np.median(many, axis=0) < np.median(few, axis=0)).all()
    assert recovery_bound.right_at_best(np.array([0.1]), 0.2)[0] == pytest.approx(0.9545, abs=1e-4)
