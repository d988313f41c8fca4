"""Plateaus of logs that were put together from plateaus, and slopes whose error is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors.plateaus import change_points, plateau_slope


def stepped(levels: list[float], seconds: list[float], poll: float = 0.1, noise: float = 2.0, seed: int = 0):
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.8 * poll, 1.2 * poll, int(sum(seconds) / poll)))
    at = np.searchsorted(np.cumsum(seconds), t, side="right").clip(max=len(levels) - 1)
    return t, np.array(levels)[at] + rng.normal(0, noise, t.size)


LEVELS = [80.0, 534.0, 80.0, 143.0, 233.0, 303.0, 401.0, 452.0, 474.0, 80.0]
SECONDS = [25.0, 150.0, 130.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 5.0]


@pytest.mark.parametrize("poll", [0.02, 0.1, 0.5, 1.0])
def test_the_levels_and_their_edges(poll: float) -> None:
    t, p = stepped(LEVELS, SECONDS, poll)
    found = change_points(t, p)
    np.testing.assert_allclose(found.level_w, LEVELS, atol=3)
    np.testing.assert_allclose(found.begin_s[1:], np.cumsum(SECONDS)[:-1], atol=poll)
    np.testing.assert_array_equal(found.begin_s[1:], found.end_s[:-1])
    assert found.steady.all()
    assert (found.sd_w < 4).all()


def test_spikes_are_no_plateaus() -> None:
    t, p = stepped([80.0, 500.0, 80.0], [20.0, 20.0, 20.0])
    p[[50, 51, 300, 301, 302, 480]] = [400.0, 420.0, 80.0, 70.0, 80.0, 9999.0]
    found = change_points(t, p)
    np.testing.assert_allclose(found.level_w, [80, 500, 80], atol=3)


@given(st.integers(0, 1000), st.sampled_from([30, 300, 3000]), st.sampled_from([0.0, 0.1, 2.0]))
def test_noise_has_one_plateau(seed: int, n: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    found = change_points(np.arange(n) * 0.1, 80 + rng.normal(0, noise, n))
    assert found.level_w.size == 1
    assert found.level_w[0] == pytest.approx(80, abs=3 * noise + 1e-9)


def test_a_ramp_is_not_steady_and_is_one() -> None:
    t = np.arange(0, 90, 0.1)
    power = np.interp(t, [0, 30, 60, 90], [80.0, 80.0, 500.0, 500.0]) + np.random.default_rng(0).normal(0, 1, t.size)
    found = change_points(t, power)
    assert found.steady.tolist() == [True, False, True]
    assert found.level_w[[0, 2]] == pytest.approx([80, 500], abs=10)
    assert found.begin_s[1] == pytest.approx(30, abs=3)
    assert found.end_s[1] == pytest.approx(60, abs=3)


def test_a_slow_drift_is_no_step() -> None:
    t = np.arange(0, 150, 0.1)
    power = 530 + 4 * (1 - np.exp(-t / 40)) + np.random.default_rng(0).normal(0, 3.5, t.size)
    assert change_points(t, power).steady.tolist() == [True]


def test_a_gap_ends_a_plateau() -> None:
    t = np.concatenate((np.arange(0, 20, 0.1), np.arange(40, 60, 0.1)))
    found = change_points(t, np.full(t.size, 80.0))
    assert found.begin_s.tolist() == [0.0, 40.0]
    assert found.end_s.tolist() == pytest.approx([19.9, 59.9])


def test_the_least_step_is_the_callers() -> None:
    t, p = stepped([80.0, 90.0, 500.0], [20.0, 20.0, 20.0], noise=0.5)
    assert change_points(t, p).level_w.size == 3
    assert change_points(t, p, least_step_w=30.0).level_w.size == 2


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(allow_nan=True)), max_size=40))
def test_any_log_is_cut_without_holes(pairs: list[tuple[float, float]]) -> None:
    t, p = (np.array([pair[k] for pair in pairs]) for k in (0, 1))
    p[np.abs(p) > 1e100] = np.nan
    found = change_points(t, p)
    assert (found.begin_s <= found.end_s).all()
    assert (found.begin_s[1:] >= found.end_s[:-1]).all()


def test_too_few_readings() -> None:
    assert change_points([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]).level_w.size == 0
    assert change_points([], []).level_w.size == 0


def correlated(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    if kind == "white":
        return rng.normal(size=n)
    if kind == "averaged":
        return np.convolve(rng.normal(size=n + 9), np.ones(10) / 10, "valid")
    x = np.empty(n)
    state = rng.normal() / np.sqrt(1 - 0.81)
    for k, e in enumerate(rng.normal(size=n)):
        x[k] = state = 0.9 * state + e
    return x


@pytest.mark.parametrize("kind", ["white", "averaged", "wandering"])
@pytest.mark.parametrize("n", [70, 700])
def test_two_standard_errors_hold_the_slope(kind: str, n: int) -> None:
    rng = np.random.default_rng(3)
    runs = 200
    t = np.arange(n) * 0.1
    p = np.concatenate([500 + 0.3 * t + correlated(rng, kind, n) for _ in range(runs)])
    found = plateau_slope(np.tile(t, runs), p, np.repeat(np.arange(runs), n))
    held = np.mean(np.abs(found.slope_w_per_s - 0.3) < 2 * found.se_w_per_s)
    naive = np.polyfit(t, p[:n], 1, cov=True)[1][0, 0] ** 0.5
    assert held > (0.8 if n == 70 and kind == "wandering" else 0.88)
    assert np.median(found.se_w_per_s) < 12 * naive  # and it is not so wide that everything holds


def test_slopes_of_groups_are_those_of_each_alone() -> None:
    rng = np.random.default_rng(0)
    t, p, g = rng.uniform(0, 50, 600), rng.normal(500, 3, 600), rng.integers(3, 6, 600)
    whole = plateau_slope(t, p, g)
    for k, one in enumerate((3, 4, 5)):
        alone = plateau_slope(t[g == one], p[g == one])
        assert alone.slope_w_per_s.shape == ()
        for mine, theirs in zip(alone, whole, strict=True):
            assert mine == pytest.approx(theirs[k], rel=1e-9)
        assert alone.slope_w_per_s == pytest.approx(np.polyfit(t[g == one], p[g == one], 1)[0])


def test_a_long_plateau_is_thinned_and_keeps_its_slope() -> None:
    rng = np.random.default_rng(1)
    t = np.arange(100_000) * 0.1
    p = 500 + 1e-3 * t + rng.normal(0, 5, t.size)
    found = plateau_slope(t, p)
    assert found.readings <= 4096
    assert found.slope_w_per_s == pytest.approx(np.polyfit(t, p, 1)[0], rel=1e-3)


def test_no_slope_of_too_few() -> None:
    found = plateau_slope([0.0, 1.0, 2.0, np.nan], [1.0, 2.0, 3.0, 4.0])
    assert np.isnan(found.slope_w_per_s)
    assert found.flags == Flag.INPUT_SUSPECT
    assert np.isnan(plateau_slope(np.ones(20), np.arange(20.0)).slope_w_per_s)
    assert np.isnan(plateau_slope([], []).slope_w_per_s)
    assert plateau_slope([], [], np.array([], dtype=np.int64)).slope_w_per_s.size == 0
