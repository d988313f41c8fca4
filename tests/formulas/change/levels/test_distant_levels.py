"""Levels that dependent noise does not reach, and what is too short or too even to say."""

import numpy as np
import pytest

from profsvc.formulas.change.levels.distant_levels import distant_levels
from profsvc.formulas.numerics.series import Series
from tests.benchmarks import change as simulated


def _series(x: np.ndarray) -> Series:
    rows, n = x.shape
    start = np.arange(rows) * n
    return Series(x.ravel(), np.zeros(x.size), np.arange(x.size), start, start + n)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261201)


@pytest.mark.parametrize("n", [8, 12, 30, 80, 150, 400])
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_noise_errs_no_more_than_it_says(n: int, rho: float, rng: np.random.Generator) -> None:
    rows = 4000
    p = distant_levels(_series(simulated.autoregressive(rng, rows, n, rho))).p
    for alpha in (0.05, 0.01):
        assert (p <= alpha).sum() <= rows * alpha + 3 * np.sqrt(rows * alpha)


def test_levels_are_found_where_noise_depends_on_the_night_before(rng: np.random.Generator) -> None:
    x = simulated.autoregressive(rng, 200, 100, 0.9)
    x += 8 * x.std() * (np.arange(100) >= 60)
    found = distant_levels(_series(x))
    assert (found.p <= 0.01).all()
    assert (np.abs(found.split - np.arange(200) * 100 - 60) <= 5).mean() > 0.9


def test_each_series_is_as_it_would_be_alone(rng: np.random.Generator) -> None:
    x = rng.standard_normal(100)
    x[30:60] += 1e6
    stop = np.array([7, 7, 40, 100])  # too short, empty, and two of 33 and 60 values
    start = np.array([0, 7, 7, 40])
    together = distant_levels(Series(x, np.zeros(100), np.arange(100), start, stop))
    assert np.isnan(together.p[:2]).all()
    for one in (2, 3):
        alone = distant_levels(_series(x[np.newaxis, start[one] : stop[one]]))
        assert together.p[one] == pytest.approx(alone.p[0], rel=1e-6)
        assert together.split[one] - start[one] == alone.split[0]


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
def test_the_unit_does_not_matter(unit: float) -> None:
    x = np.repeat([1.0, 2.0], 10) + np.tile([0.1, -0.1], 10)
    assert distant_levels(_series(unit * x[np.newaxis])).p[0] == pytest.approx(np.exp(-30 / 63 * 25))


def test_equal_values_say_nothing_and_two_levels_without_noise_are_sure() -> None:
    assert np.isnan(distant_levels(_series(np.full((1, 20), 3.5))).p).all()
    assert distant_levels(_series(np.repeat([[1.0, 2.0]], 10, axis=1))).p[0] == 0.0
