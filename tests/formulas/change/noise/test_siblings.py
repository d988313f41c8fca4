"""What siblings say of a series: how usual autocorrelations and shapes are."""

import numpy as np
import pytest

from profsvc.formulas.change.noise.siblings import NoisePrior, flat_noise, sibling_prior
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step, noise_prior
from profsvc.formulas.change.trends import fitted_trend, shapes
from profsvc.formulas.numerics.series import Series
from tests.benchmarks import change as simulated


def mean_rho(prior: NoisePrior) -> np.ndarray:
    return (prior.weight * prior.rho).sum(axis=1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(808)


def series_of(x: np.ndarray) -> Series:
    rows, n = x.shape
    start = np.arange(rows) * n
    return Series(x.ravel(), np.zeros(x.size), np.arange(x.size), start, start + n)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.9])
def test_short_siblings_together_know_their_autocorrelation(rho: float, rng: np.random.Generator) -> None:
    x = simulated.autoregressive(rng, 200, 17, rho)
    prior = noise_prior(*simulated.flat(x), np.zeros(200, dtype=int))
    assert prior.weight.sum(axis=1) == pytest.approx(1.0)
    assert mean_rho(prior)[0] == pytest.approx(rho, abs=0.08)


def test_a_step_of_all_siblings_is_no_dependence(rng: np.random.Generator) -> None:
    x = simulated.stepped(simulated.white(rng, 100, 25), 5, 3.0)
    assert mean_rho(noise_prior(*simulated.flat(x), np.zeros(100, dtype=int)))[0] < 0.1


def test_two_families_are_asked_apart(rng: np.random.Generator) -> None:
    x = np.concatenate((simulated.white(rng, 50, 30), simulated.autoregressive(rng, 50, 30, 0.8)))
    prior = noise_prior(*simulated.flat(x), np.repeat([0, 1], 50))
    calm, bound = mean_rho(prior)[[0, -1]]
    assert calm < 0.1 < 0.6 < bound


def test_few_siblings_constant_ones_and_short_ones_say_nothing(rng: np.random.Generator) -> None:
    few = noise_prior(*simulated.flat(simulated.white(rng, 9, 30)), np.zeros(9, dtype=int))
    constant = noise_prior(*simulated.flat(np.ones((30, 20))), np.zeros(30, dtype=int))
    short = noise_prior(*simulated.flat(simulated.white(rng, 30, 7)), np.zeros(30, dtype=int))
    for prior in (few, constant, short):
        assert not prior.known.any()
        assert (prior.weight == flat_noise(len(prior.known)).weight).all()
    assert sibling_prior(np.zeros((0, 3)), np.zeros(0, dtype=np.intp)).shape == (0, 3)


def test_siblings_make_short_histories_see_more_at_the_same_error(rng: np.random.Generator) -> None:
    """The error is that of `newest_step`; three standard errors of 2000 series are 0.7 %."""
    quiet = simulated.flat(simulated.white(rng, 2000, 17))
    prior = noise_prior(*quiet, np.zeros(2000, dtype=int))
    assert (newest_step(*quiet, None, prior).p <= ALPHA).mean() <= ALPHA + 0.007
    changed = simulated.flat(simulated.stepped(simulated.white(rng, 500, 17), 5, 3.0))
    alone, known = (newest_step(*changed, None, one).p <= ALPHA for one in (None, prior.of(np.arange(500))))
    assert known.mean() > 0.95 > 0.8 > alone.mean()


def test_siblings_of_one_variance_and_of_many_are_told_apart(rng: np.random.Generator) -> None:
    x = simulated.white(rng, 100, 25)
    level = np.exp(rng.standard_normal((100, 1)))
    known = {
        name: (prior.weight[0] * prior.df).sum()
        for name, prior in (
            (name, noise_prior(*simulated.flat(values), np.zeros(100, dtype=int)))
            for name, values in {
                "alike": x,
                "in proportion": level * (1 + 0.01 * x),
                "each its own": 100 + level * x,
            }.items()
        )
    }
    assert min(known["alike"], known["in proportion"]) > 64 > 10 > known["each its own"]


def test_a_loud_series_among_quiet_siblings_has_its_own_noise(rng: np.random.Generator) -> None:
    """Ten times louder than the others, its scatter is no step: at most 1 % and three standard errors of 300."""
    loud = rng.standard_normal((300, 25)) * 10
    false = 0
    for one in loud.reshape(60, 5, 25):
        x = simulated.flat(100 + np.concatenate((one, simulated.white(rng, 40, 25))))
        false += int((newest_step(*x, None, noise_prior(*x, np.zeros(45, dtype=int))).p[:5] <= ALPHA).sum())
    assert false <= 300 * ALPHA + 3 * np.sqrt(300 * ALPHA)


def test_a_series_whose_siblings_say_nothing_is_as_without_any(rng: np.random.Generator) -> None:
    x = simulated.flat(simulated.stepped(simulated.white(rng, 20, 30), 5, 3.0))
    np.testing.assert_allclose(newest_step(*x, None, flat_noise(20)).p, newest_step(*x).p, rtol=1e-12)


def test_lines_and_steps_are_told_apart() -> None:
    noise, one = np.tile([0.1, -0.1, 0.0], 10), np.zeros(1, dtype=np.intp)
    line = shapes(series_of((noise + np.linspace(0, 2, 30))[np.newaxis]), one)
    step = shapes(series_of((noise + 2.0 * (np.arange(30) >= 20))[np.newaxis]), one)
    assert line.trend[0] > 0.99
    assert step.step[0] > 0.99


def test_a_doubtful_series_among_drifting_siblings_drifts(rng: np.random.Generator) -> None:
    doubtful = (np.arange(50) >= 35) * 1.5 + simulated.white(rng, 1, 50)[0]
    among = {
        name: shapes(series_of(np.concatenate((doubtful[np.newaxis], others))), np.zeros(41, dtype=np.intp))
        for name, others in {
            "drifting": simulated.white(rng, 40, 50) + 0.06 * np.arange(50),
            "steady": simulated.white(rng, 40, 50),
        }.items()
    }
    assert among["drifting"].trend[0] > among["steady"].trend[0]
    assert among["drifting"].trend[1:].min() > 0.5
    assert np.median(among["steady"].trend[1:]) < 0.2


def test_trends_of_long_series_may_be_bent() -> None:
    place = np.linspace(-1, 1, 60)
    np.testing.assert_allclose(fitted_trend(place**2), place**2, atol=1e-12)
    assert np.ptp(fitted_trend(place[:30] ** 2 - 0.5)) < 1.0
    assert shapes(series_of(np.zeros((2, 12))), np.zeros(2, dtype=np.intp)).trend.tolist() == [0.5, 0.5]
