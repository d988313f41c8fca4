"""Levels that wander: the filter is generalised least squares, and siblings tell them from levels that stay."""

import numpy as np
import pytest

from profsvc.formulas.change.levels.wandering import WANDERS, _fits, wandering
from profsvc.formulas.change.noise.siblings import AUTOCORRELATIONS
from profsvc.formulas.numerics.series import Series
from tests.inputs.noise import slow_wave, white


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(909)


def of(*rows: np.ndarray) -> Series:
    x, stop = np.concatenate(rows), np.cumsum([row.size for row in rows])
    return Series(x, x * 0, np.arange(x.size), stop - [row.size for row in rows], stop)


@pytest.mark.parametrize(("number", "q"), list(enumerate(WANDERS)))
def test_the_filter_is_generalised_least_squares(number: int, q: float, rng: np.random.Generator) -> None:
    """Of two series of other lengths at once, beside the covariance matrix of one."""
    x, split = rng.standard_normal(23), 17
    fit = _fits(of(rng.standard_normal(9), x), np.array([5, 9 + split]))
    place = np.arange(x.size)
    of_one = np.linalg.inv(np.eye(x.size) + q * np.minimum.outer(place, place))
    design = np.stack((np.ones(x.size), place >= split), axis=1)
    of_both = np.linalg.inv(design.T @ of_one @ design)
    level, step = of_both @ design.T @ of_one @ x
    left = x - design @ [level, step]
    column = len(AUTOCORRELATIONS) + number
    assert fit.difference[1, column] == pytest.approx(step)
    assert fit.variance[1, column] == pytest.approx(of_both[1, 1])
    assert fit.left[1, column] == pytest.approx(left @ of_one @ left)


def test_a_level_that_does_not_move_is_one_that_stays(rng: np.random.Generator) -> None:
    """So both ways of dependence can be compared: without any, they have one likelihood."""
    fit = _fits(of(rng.standard_normal(40)), np.array([33]))
    alike = fit.constant[0, 0] - 19 * np.log(fit.left[0, 0])
    nearly = fit.constant[0, len(AUTOCORRELATIONS)] - 19 * np.log(fit.left[0, len(AUTOCORRELATIONS)])
    assert nearly == pytest.approx(alike, abs=0.5)


def test_siblings_tell_a_wave_from_a_step(rng: np.random.Generator) -> None:
    x = slow_wave(rng, 100, 17)
    x[0] = np.r_[white(rng, 1, 12)[0], white(rng, 1, 5)[0] + 8.0]
    series, split = of(*x), np.arange(100) * 17 + 12
    found = wandering(series, np.arange(100), split)
    assert found.share[1:].mean() > 0.8
    assert found.p[0] < 1e-4
    assert (found.p[1:] < 1e-3).sum() <= 1
    few = wandering(of(*x[:9]), np.arange(9), split[:9])
    assert (few.share == 0).all()


@pytest.mark.parametrize("noisy", [0, 5, 12])
def test_series_without_noise_keep_their_step(noisy: int, rng: np.random.Generator) -> None:
    x = np.full((20, 17), 3.0)
    x[20 - noisy :] += 0.01 * rng.standard_normal((noisy, 17))
    x[0, 12:] = 4.0
    found = wandering(of(*x), np.array([0]), np.array([12]))
    assert found.share[0] * found.p[0] < 1e-6
