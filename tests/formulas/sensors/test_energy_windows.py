"""Energies of windows against integrals done the long way, and counters that stand still, wrap and fall."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors.energy_windows import counter_energy, counter_ratio, window_energy

edge = st.floats(-5, 30)


def log(seed: int = 0, n: int = 200):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.uniform(0.05, 0.2, n)), rng.uniform(50, 500, n)


def the_long_way(t, p, b, e) -> float:
    b, e = max(b, t[0]), min(e, t[-1])
    if e <= b:
        return 0.0
    at = np.concatenate(([b], t[(t > b) & (t < e)], [e]))
    return float(np.trapezoid(np.interp(at, t, p), at))


@given(edge, edge)
def test_energy_is_the_integral(x: float, y: float) -> None:
    t, p = log()
    b, e = min(x, y), max(x, y)
    found = window_energy(t, p, b, e)
    covered = max(min(e, t[-1]) - max(b, t[0]), 0.0)
    assert found.covered_s == pytest.approx(covered, abs=1e-9)
    if covered > 0:
        assert found.energy_j == pytest.approx(the_long_way(t, p, b, e), rel=1e-9, abs=1e-6)
    assert bool(found.flags & Flag.EXTRAPOLATED) == (covered < (e - b) * (1 - 1e-9))


@given(st.lists(edge, min_size=3, max_size=3))
def test_energies_of_parts_add_up(edges: list[float]) -> None:
    t, p = log(1)
    a, b, c = np.clip(sorted(edges), t[0], t[-1])
    parts = window_energy(t, p, [a, b, a], [b, c, c])
    assert parts.energy_j[0] + parts.energy_j[1] == pytest.approx(parts.energy_j[2], abs=1e-6)


def test_nothing_is_drawn_over_a_gap() -> None:
    t = np.concatenate((np.arange(0, 10.5, 0.5), np.arange(20, 30.5, 0.5)))
    found = window_energy(t, np.full(t.size, 100.0), [0.0, 8.0, 11.0], [30.0, 15.0, 19.0])
    np.testing.assert_allclose(found.covered_s, [20.0, 2.0, 0.0])
    np.testing.assert_allclose(found.energy_j, [2000.0, 200.0, np.nan])
    assert (found.flags & Flag.EXTRAPOLATED).all()
    assert window_energy(t, np.full(t.size, 100.0), 0.0, 30.0, gap_s=11.0).energy_j == pytest.approx(3000.0)


def test_the_guard_keeps_the_time_before_out_of_the_mean() -> None:
    t = np.arange(0, 40, 0.1)
    instant = np.where((t >= 10) & (t < 30), 500.0, 80.0)
    averaged = np.array([instant[max(k - 9, 0) : k + 1].mean() for k in range(t.size)])
    plain = window_energy(t, averaged, 10.0, 30.0)
    guarded = window_energy(t, averaged, 10.0, 30.0, averaging_s=1.0)
    assert plain.mean_w < 495
    assert guarded.mean_w == pytest.approx(500.0, abs=1e-9)
    assert guarded.sd_w == pytest.approx(0.0, abs=1e-5)
    assert guarded.energy_j == plain.energy_j
    assert (guarded.mean_begin_s, guarded.mean_end_s) == (pytest.approx(11.0), pytest.approx(29.9))


def test_spread_is_that_of_the_readings() -> None:
    t, p = log(2)
    found = window_energy(t, p, [2.0, 5.0], [20.0, 9.0])
    for k in range(2):
        own = p[(t >= found.mean_begin_s[k]) & (t <= found.mean_end_s[k])]
        assert found.readings[k] == own.size
        assert found.sd_w[k] == pytest.approx(own.std(ddof=1), rel=1e-9)


def test_a_window_shorter_than_its_guard_has_energy_and_no_mean() -> None:
    found = window_energy(np.arange(10.0), np.full(10, 50.0), 3.2, 3.4)
    assert found.energy_j == pytest.approx(10.0)
    assert np.isnan(found.mean_w)
    assert np.isnan(found.sd_w)
    assert found.flags == Flag.NOT_APPLICABLE


def test_windows_that_are_none() -> None:
    found = window_energy([0.0, 1.0, 2.0], [5.0, 5.0, 5.0], [1.0, np.nan, 0.0], [0.5, 1.0, 2.0])
    np.testing.assert_allclose(found.energy_j, [np.nan, np.nan, 10.0])
    assert (found.flags[:2] == Flag.INPUT_SUSPECT).all()
    empty = window_energy([], [], [0.0], [1.0])
    assert np.isnan(empty.energy_j[0])
    assert empty.flags[0] & Flag.EXTRAPOLATED
    assert window_energy([0.0, 2.0, 1.0, 3.0], np.ones(4), 0.0, 3.0).flags & Flag.INPUT_SUSPECT
    assert window_energy([0.0, 1.0], [1.0, 1.0], np.zeros((2, 3)), 1.0).energy_j.shape == (2, 3)


def counter(power: float, update: float, poll: float, span: float):
    t = np.arange(0, span, poll)
    return t, power * update * np.floor(t / update + 1e-9)


def test_a_counter_that_stands_still_between_updates() -> None:
    t, c = counter(300.0, 0.1, 0.03, 20.0)
    b = np.linspace(1, 5, 50)
    e = b + np.linspace(0.02, 10, 50)
    found = counter_energy(t, c, b, e)
    assert found.period_s == pytest.approx(0.1, rel=0.01)
    assert (np.abs(found.energy_j - 300.0 * (e - b)) <= found.error_j).all()
    assert (found.error_j <= 2 * 300.0 * 0.1 + 1e-9).all()
    assert not found.flags.any()


@given(edge, edge, st.integers(0, 50))
def test_the_error_is_a_bound(x: float, y: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.05, 0.2, 200))
    power = rng.uniform(0, 500, 200)
    true = np.concatenate(([0.0], np.cumsum(power[:-1] * np.diff(t))))
    b, e = np.clip([min(x, y), max(x, y)], t[0], t[-1])
    energy = np.interp([b, e], t, true)
    found = counter_energy(t, true, b, e)
    assert abs(found.energy_j - (energy[1] - energy[0])) <= found.error_j + 1e-9


def test_a_counter_that_starts_over() -> None:
    t, c = counter(100.0, 0.1, 0.1, 10.0)
    fallen = np.where(c >= 500.0, c - 500.0, c)
    windows = ([1.0, 1.0, 6.0], [4.0, 9.0, 9.0])
    reset = counter_energy(t, fallen, *windows)
    np.testing.assert_allclose(reset.energy_j, [300.0, np.nan, 300.0], atol=1e-9)
    assert reset.flags.tolist() == [0, int(Flag.EXTRAPOLATED), 0]
    assert reset.resets == 1
    wrapped = counter_energy(t, fallen, *windows, wrap_j=500.0)
    np.testing.assert_allclose(wrapped.energy_j, [300.0, 800.0, 300.0], atol=1e-9)
    assert wrapped.resets == 0


def test_a_counter_that_never_moves_says_nothing() -> None:
    found = counter_energy(np.arange(10.0), np.zeros(10), [1.0], [5.0])
    assert np.isnan(found.energy_j[0])
    assert found.flags[0] == Flag.NOT_APPLICABLE
    outside = counter_energy(*counter(100.0, 0.1, 0.1, 10.0), [-1.0, 5.0, 6.0], [5.0, 11.0, 5.0])
    assert np.isnan(outside.energy_j).all()
    assert outside.flags.tolist() == [int(Flag.EXTRAPOLATED)] * 2 + [int(Flag.INPUT_SUSPECT)]


def test_ratio_and_its_bounds() -> None:
    found = counter_ratio([101.0, 97.0, 100.0, np.nan, 5.0], [100.0, 100.0, 0.0, 1.0, 5.0], [2.0, 2.0, 0.0, 0.0, 9.0])
    np.testing.assert_allclose(found.ratio, [1.01, 0.97, np.nan, np.nan, 1.0])
    assert found.agrees.tolist() == [True, False, False, False, True]
    assert found.flags.tolist() == [0, 0, int(Flag.ZERO_DENOM), int(Flag.INPUT_SUSPECT), 0]
    assert (found.low[:2] < found.ratio[:2]).all()
    assert np.isposinf(found.high[4])
