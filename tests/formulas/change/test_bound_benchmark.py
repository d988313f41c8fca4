"""Tests of the bound on the steps that a rule can find in a series alone."""

import numpy as np
import pytest

from tests.benchmarks import bound_alone, detection
from tests.inputs.noise import autoregressive


def test_forms_by_matrices() -> None:
    """The sums are those of the precision of autoregressive noise, projected beside the level."""
    history, nights, rho = 7, 12, 0.6
    x = autoregressive(np.random.default_rng(1), 3, nights, rho)
    place = np.arange(nights)
    precision = np.linalg.inv(rho ** np.abs(place[:, np.newaxis] - place) / (1 - rho**2))
    ones, step = np.ones(nights), np.asarray(place >= history, dtype=float)
    projected = precision - np.outer(precision @ ones, precision @ ones) / (ones @ precision @ ones)
    left, with_step, of_step, constant = bound_alone.forms(x, history, rho)
    assert left == pytest.approx([row @ projected @ row for row in x])
    assert with_step == pytest.approx([row @ projected @ step for row in x])
    assert of_step == pytest.approx(step @ projected @ step)
    assert constant == pytest.approx(0.5 * np.linalg.slogdet(precision)[1] - 0.5 * np.log(ones @ precision @ ones))


def test_likelihood_of_a_step_by_quadrature() -> None:
    """The sd is integrated out with its density 1 / sd, up and down alike."""
    from scipy.integrate import quad

    history, rho, height = 6, 0.3, 2.0
    x = autoregressive(np.random.default_rng(2), 1, 11, rho)
    left, with_step, of_step, _ = bound_alone.forms(x, history, rho)
    rise = height / np.sqrt(1 - rho**2)

    def density(per_sd: float, way: float) -> float:
        square = left[0] * per_sd**2 - 2 * way * rise * with_step[0] * per_sd + rise**2 * of_step
        return float(per_sd**9 * np.exp(-square / 2))

    whole = np.mean([quad(density, 0, 50, args=(way,))[0] for way in (1.0, -1.0)])
    quiet = quad(lambda per_sd: per_sd**9 * np.exp(-left[0] * per_sd**2 / 2), 0, 50)[0]
    gain = bound_alone.log_stepped(x, history, rho, height) - bound_alone.log_quiet(x, history, rho)
    assert gain[0] == pytest.approx(np.log(whole / quiet), abs=2e-3)


def test_who_knows_less_finds_less() -> None:
    known = bound_alone.bound(10, 2.0, 0.0, (0.0,), 2000)
    unknown = bound_alone.bound(10, 2.0, 0.0, bound_alone.QUIET, 2000)
    assert 0.3 < unknown < known < detection.bound(10, 2.0) < 0.9
