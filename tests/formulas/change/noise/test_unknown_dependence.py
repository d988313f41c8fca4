"""Tests of how laws of dependence count where no siblings say which."""

import numpy as np
import pytest

from profsvc.formulas.change.noise.siblings import AUTOCORRELATIONS
from profsvc.formulas.change.noise.unknown_dependence import counts_of_law
from profsvc.formulas.change.steps.newest_step import newest_step
from tests.formulas.change.left_out import tail_of_others
from tests.inputs.noise import autoregressive

SURE = 0.05 / 8  # p of a finding of one series alone


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2026113001)


def test_worked_example() -> None:
    """By hand: 22 values with an autocorrelation of 0.4."""
    log_v, more = counts_of_law(0.4, np.array([22.0]))
    assert log_v[0] == pytest.approx(-3.636, abs=1e-3)  # 200 * 0.4 / 22
    assert more[0] == pytest.approx((1 + 1.41630) * 7.38906, rel=1e-4)  # (24/22)^4, and e^(110 * 0.4 / 22) = e^2


def test_the_mean_of_the_tails_by_hand(rng: np.random.Generator) -> None:
    """The p of one window of a series is the weighted mean by matrices, of a step of five values."""
    x = np.concatenate((rng.permutation(np.linspace(-1, 1, 15)), [2.1, 2.0, 2.4, 2.2, 2.3]))
    assert newest_step(x).p_suspected == pytest.approx(2 * tail_of_others(x, None, 15) / 0.95, rel=1e-6)


def test_all_laws_count_as_they_are_in_a_long_series() -> None:
    for rho in AUTOCORRELATIONS:
        log_v, more = counts_of_law(rho, np.array([1e6]))
        assert log_v[0] == pytest.approx(0.0, abs=1e-3)
        assert more[0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("rho", "nights"), [(0.0, 10), (0.3, 10), (0.6, 10), (0.6, 30), (0.3, 100)])
def test_noise_of_no_autocorrelation_errs_much_more_often_than_another(
    rng: np.random.Generator, rho: float, nights: int
) -> None:
    """First findings of 600 series alone in twenty nights: the bar is 2 of 1000, three sd of chance above it 2.9."""
    x = autoregressive(rng, 600, nights + 20, rho)
    found = np.zeros(len(x), dtype=bool)
    for night in range(nights + 1, x.shape[1] + 1):
        found |= newest_step(x[:, :night].ravel(), np.repeat(np.arange(len(x)), night)).p <= SURE
    assert found.sum() / (20 * len(x)) <= 0.002 + 3 * np.sqrt(0.002 / (20 * len(x)))
