"""The parts of the offset's joint fit, each beside a second method: probabilities, slopes, steps and what fades."""

import numpy as np
import pytest

from profsvc.formulas.sensors import logs as _logs
from profsvc.formulas.sensors.power_steps import power_steps
from profsvc.formulas.thermal import step_response
from profsvc.formulas.thermal.clock_offset import joint_offset_fit
from profsvc.formulas.thermal.noise import quantization
from profsvc.formulas.thermal.rc_model import temperature_scan


@pytest.mark.parametrize("noise", [0.08, 0.3, 1.0, 2.5])
def test_what_a_rounded_reading_tells(noise: float) -> None:
    mean = np.linspace(40.0, 41.0, 7)
    value = np.arange(15.0, 66.0)
    read = quantization.Rounded(value, 1.0, 0.0)
    for at in mean.tolist():
        logs, slope = quantization.likelihood(read, np.full(value.size, at), noise)
        p = np.exp(logs)
        assert p.sum() == pytest.approx(1 - quantization.OUTLIER_SHARE, abs=1e-9)
        near = p > 1e-9
        more, less = (quantization.likelihood(read, np.full(value.size, at + h), noise)[0] for h in (1e-5, -1e-5))
        np.testing.assert_allclose(slope[near], (more - less)[near] / 2e-5, rtol=1e-4, atol=1e-4)
        told = quantization.information(read, np.full(value.size, at), noise)[0]
        assert told == pytest.approx((p * slope**2).sum(), rel=0.02)


def test_a_sensor_without_steps_tells_what_its_noise_lets_it() -> None:
    rng = np.random.default_rng(0)
    value = 40 + 0.5 * rng.standard_normal(4000)
    read = quantization.rounded_readings(value)
    assert read.step < 0.01
    noise = 2.0
    for _ in range(6):
        noise = quantization.likeliest_noise(read, np.full(4000, 40.0), noise)[0]
    assert noise == pytest.approx(0.5, rel=0.15)
    assert quantization.information(read, value[:1], noise)[0] == pytest.approx(1 / noise**2, rel=1e-3)


def test_a_reading_that_is_simply_wrong_does_not_pull() -> None:
    read = quantization.rounded_readings(np.append(np.repeat([30.0, 31.0, 32.0], 20), 900.0))
    logs, slope = quantization.likelihood(read, np.full(61, 31.0), 0.3)
    assert np.isfinite(logs).all()
    assert abs(slope[-1]) < 1e-6 < abs(slope[0])


@pytest.mark.parametrize("window", [0.0, 0.4, 1.0])
def test_where_a_step_is(window: float) -> None:
    """An average shows it half a window late, and on its way; an instant sensor somewhere between two readings."""
    true, poll = np.array([20.13, 47.31, 60.02]), 0.1
    t = np.arange(0.0, 80.0, poll)
    level = np.array([80.0, 400.0, 250.0, 90.0])
    fine = np.arange(-2.0, 80.0, 1e-3)
    energy = np.cumsum(level[np.searchsorted(true, fine, side="right")]) * 1e-3
    instant = level[np.searchsorted(true, t, side="right")]
    power = (np.interp(t, fine, energy) - np.interp(t - window, fine, energy)) / window if window else instant
    found = power_steps(_logs.integral(t, power, np.inf), 10.0)
    assert np.abs(found.time_s - true - window / 2).max() < (0.01 if window else poll / 2)
    np.testing.assert_allclose(found.size_w, np.diff(level), rtol=1e-3)
    between = max(0.8 * window / poll, 1)
    np.testing.assert_allclose(found.sd_s, poll / np.sqrt(12 * between), rtol=0.2)
    gap = (t < 47) | (t > 52)
    assert power_steps(_logs.integral(t[gap], power[gap], 3.0), 10.0).time_s.size == 2
    assert power_steps(_logs.integral(t, 300 + 100 * np.sin(t / 5), np.inf), 10.0).time_s.size == 0


@pytest.mark.parametrize(("step", "gap"), [(38.0, (40.0, 44.0)), (45.5, (40.0, 44.0)), (42.0, (40.0, 44.0))])
def test_a_step_that_a_gap_hides_is_no_step_but_a_gap(step: float, gap: tuple[float, float]) -> None:
    """Too near for a plateau of its own: its place must not count as known."""
    t = np.arange(0.0, 100.0, 0.5)
    t = t[(t < gap[0]) | (t > gap[1])]
    power = step_response._as_stamped(t, np.where(t > step, 400.0, 80.0))
    ((begin, end),) = power.gaps
    assert begin <= min(step, 40.0)
    assert end >= max(step, 44.0)
    assert step_response._as_stamped(t, np.where(t > 70, 400.0, 80.0)).gaps == []


def test_a_step_beside_a_gap_lies_anywhere_between_two_readings() -> None:
    t = np.arange(0.0, 100.0, 0.5)
    t = t[(t < 40) | (t > 44)]
    power = step_response._as_stamped(t, np.where(t > 46.6, 400.0, 80.0))
    assert power.stepped.time_s.tolist() == [pytest.approx(46.6, abs=0.25)]
    assert power.stepped.sd_s.tolist() == [pytest.approx(0.5 / np.sqrt(12))]
    assert power.stepped.size_w.tolist() == [pytest.approx(320)]


def board() -> tuple[step_response.PiecewisePower, np.ndarray, np.ndarray]:
    """A power log of steps with a gap in which it stepped, and a temperature of two parts."""
    t = np.arange(0.0, 300.0, 0.5)
    P = np.where((t > 40) & (t < 110) | (t > 150) & (t < 230), 400.0, 80.0)
    kept = (t < 148) | (t > 155)
    parts = temperature_scan(np.array([[0.05], [0.02]]) * (P - 80), 0.5, 0.0, [20.0, 4.0], [26.0, 5.2])
    return step_response._as_stamped(t[kept], P[kept]), t, np.floor(40 + parts.sum(axis=0))


def test_slopes_are_those_of_the_curve() -> None:
    power, t, T = board()
    assert len(power.gaps) == 1
    logs = joint_offset_fit.Logs(power, t[::3] + 0.7, quantization.rounded_readings(T[::3]))
    theta = np.array([0.7, 0.3, 3.0, 1.4, 0.05, 0.02, 40.0, 2.0, -1.0, 1.5, 0.5, *np.zeros(power.stepped.time_s.size)])
    slopes = joint_offset_fit._temperature_curve(logs, theta).slopes
    assert slopes.shape == (t[::3].size, theta.size)
    for n in range(theta.size):
        h = 1e-4 * np.eye(theta.size)[n]
        more, less = (joint_offset_fit._temperature_curve(logs, theta + sign * h).mean for sign in (1, -1))
        smooth = np.abs(t[::3, np.newaxis] - power.edges).min(axis=1) > 1e-3
        np.testing.assert_allclose(slopes[smooth, n], ((more - less) / 2e-4)[smooth], rtol=5e-3, atol=4e-3)


def test_a_step_that_was_later_moves_the_temperature_as_its_slope_says() -> None:
    t = np.arange(0.0, 200.0, 0.1)

    def warm(begin: float) -> np.ndarray:
        power = step_response._as_stamped(t, np.where(t > begin, 400.0, 80.0))
        known = step_response.thermal_states(power, np.array([20.0]), np.array([20.0]))
        return 0.05 * step_response.unit_response(power, known, t)[:, 0]

    power = step_response._as_stamped(t, np.where(t > 60.05, 400.0, 80.0))
    known = step_response.thermal_states(power, np.array([20.0]), np.array([20.0]))
    slope = joint_offset_fit._step_delay_columns(
        power, known, step_response.elapsed_time_constants(power, known, t), t, np.array([0.05])
    )[:, 0]
    later = t > 62
    np.testing.assert_allclose(slope[later], (warm(60.55) - warm(59.55))[later], rtol=2e-3)


def test_what_was_held_fades_in_the_time_constants_of_each_piece() -> None:
    t = np.arange(0.0, 200.0, 0.1)
    power = step_response._as_stamped(t, np.where((t > 60) & (t < 120), 400.0, 80.0))
    rise, decay = np.array([20.0, 5.0]), np.array([30.0, 8.0])
    known = step_response.thermal_states(power, rise, decay)
    at = np.array([0.0, 50.0, 90.0, 150.0])
    expected = [np.zeros(2)]
    edges = np.append(power.edges, np.inf)
    for end in at[1:]:
        total = np.zeros(2)
        for k in range(power.level.size):
            total += max(min(edges[k + 1], end) - edges[k], 0.0) / known.tau[k]
        expected.append(total)
    np.testing.assert_allclose(step_response.elapsed_time_constants(power, known, at), expected, rtol=1e-12)


def test_the_fit_finds_what_it_was_made_from() -> None:
    power, t, T = board()
    logs = joint_offset_fit.Logs(power, t + 0.7, quantization.rounded_readings(T))
    found = joint_offset_fit.fit(logs, np.array([0.0, 0.1, np.log(25.0), np.log(2.5)]))
    assert found.phi[0] == pytest.approx(0.7, abs=3 * found.error[0])
    np.testing.assert_allclose(np.exp(found.phi[2:]), [20.0, 4.0], rtol=0.1)
    assert np.exp(found.phi[1]) == pytest.approx(1.3, rel=0.05)
    np.testing.assert_allclose(found.resistance, [0.05, 0.02], rtol=0.1)
    assert found.error[0] < 0.1


def test_a_part_that_began_cold_warms_while_the_power_rests() -> None:
    t = np.arange(0.0, 200.0, 0.1)
    P = np.where((t > 60.05) & (t < 130.05), 400.0, 80.0)
    power = step_response._as_stamped(t, P)
    rise, decay = np.array([20.0]), np.array([35.0])
    for start in (-8.0, 8.0):
        known = step_response.thermal_states(power, rise, decay, np.array([start / 0.05]))
        own = 0.05 * step_response.unit_response(power, known, t) + start * np.exp(
            -step_response.elapsed_time_constants(power, known, t)
        )
        true = temperature_scan(0.05 * (P - 80), 0.1, start, 20.0, 35.0)
        assert np.abs(own[:, 0] - true).max() < 0.15


def test_the_odds_of_rest() -> None:
    """Worked by hand: 1 - 4.605 - 6.438; and as the ratio of two integrals over what was held."""
    one, sure, prior = np.array([0.1]), np.array([[0.01]]), np.array([25.0**-2])
    assert joint_offset_fit.rest_log_odds(one, sure, prior) == pytest.approx(1 - 4.605 - 6.438, abs=1e-3)
    assert joint_offset_fit.rest_log_odds(5 * one, sure, prior) == pytest.approx(25 - 4.605 - 6.438, abs=1e-3)
    h = np.linspace(-100.0, 100.0, 400_001)
    for best in (0.1, 0.5):
        likelihood = np.exp(-0.5 * (h - best) ** 2 / 0.01)
        density = np.exp(-0.5 * (h / 25) ** 2) / np.sqrt(2 * np.pi) / 25
        free, rest = (likelihood * density).sum() * (h[1] - h[0]), np.exp(-0.5 * best**2 / 0.01)
        told = joint_offset_fit.rest_log_odds(np.array([best]), sure, prior)
        assert 2 * np.log(free / rest) == pytest.approx(told, abs=1e-2)


@pytest.mark.parametrize("start", [0.0, -6.0])
def test_a_board_is_taken_to_be_at_rest_only_where_it_was(start: float) -> None:
    rng, t = np.random.default_rng(5), np.arange(0.0, 300.0, 0.5)
    P = np.where((t > 40) & (t < 110) | (t > 150) & (t < 230), 400.0, 80.0)
    T = temperature_scan(0.05 * (P - 80), 0.5, start, 20.0, 30.0)
    read = quantization.rounded_readings(np.floor(40 + T + rng.normal(0, 0.3, t.size)))
    logs = joint_offset_fit.Logs(step_response._as_stamped(t, P), t + 0.7, read)
    free, rest = joint_offset_fit.fit(logs, np.array([0.5, 0.3, 3.1])).offsets
    assert (rest.cost < free.cost) == (start == 0.0)
    if start == 0.0:
        assert rest.error_s <= free.error_s
        assert rest.offset_s == pytest.approx(0.7 - 0.25, abs=3 * rest.error_s + 0.1)


def test_a_part_that_is_not_there_is_paid_for() -> None:
    """Evidence speaks for the one part of a board of one, and for both of a board of two."""
    rng, t = np.random.default_rng(6), np.arange(0.0, 300.0, 0.5)
    P = np.where((t > 40) & (t < 110) | (t > 150) & (t < 230), 400.0, 80.0)
    for share in (0.0, 0.4):
        parts = temperature_scan(np.array([[1 - share], [share]]) * 0.06 * (P - 80), 0.5, 0.0, [20.0, 2.0], [26.0, 2.6])
        read = quantization.rounded_readings(np.floor(40 + parts.sum(axis=0) + rng.normal(0, 0.3, t.size)))
        logs = joint_offset_fit.Logs(step_response._as_stamped(t, P), t, read)
        one, two = (joint_offset_fit.fit(logs, np.array([0.0, 0.26, *tau])) for tau in ([3.0], [3.0, 0.7]))
        assert two.lost < one.lost + 1
        assert (two.offsets[1].cost < one.offsets[1].cost) == (share > 0)
