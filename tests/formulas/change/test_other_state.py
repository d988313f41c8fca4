"""Values of nights in another state of the board: how far they say that a series changed."""

import numpy as np
import pytest

from profsvc.formulas.change.other_state import beyond_calm, beyond_probability, without_common

CALM = np.array([100.0, 100.2, 99.8, 100.1, 99.9])


def test_values_beyond_calm_ones_are_those_where_the_state_does_not_go() -> None:
    other = np.array([110.0, 120.0, 105.0, 112.0, 98.0, 99.9, 90.0])
    assert beyond_calm(CALM, other, 3, 1.0).values.tolist() == [False] * 4 + [True, False, True]
    assert beyond_calm(CALM, 200.0 - other, 3, 1.0).values.tolist() == [False] * 4 + [True, False, True]


@pytest.mark.parametrize("other", [[100.0, 100.1, 99.9, 80.0], [80.0]])
def test_a_state_that_goes_nowhere_has_no_other_side(other: list[float]) -> None:
    assert beyond_calm(CALM, np.array(other), 1, 1.0).side == 0.0
    assert not beyond_calm(CALM, np.array(other), 1, 1.0).values.any()


def test_a_run_that_siblings_make_too_is_not_improbable() -> None:
    assert beyond_probability(4, 30, (200, 0, 0)) < 0.002
    assert beyond_probability(4, 30, (200, 20, 60)) > 0.01
    assert beyond_probability(3, 5, (200, 0, 0)) > 0.01


def test_a_night_further_beyond_the_limit_than_any_before_is_no_step_of_each() -> None:
    rng = np.random.default_rng(20261206)
    night = np.r_[rng.uniform(0.05, 0.1, 10), np.full(4, 0.3)]
    x = np.exp(rng.uniform(0.5, 1.5, (14, 1)) * night + 0.001 * rng.standard_normal((14, 14)))
    z, e, _ = without_common(x, 4)
    assert z[:, -4:].min() > 5.0
    assert np.abs(e[:, -4:]).max() < 0.2 * z[:, -4:].min()


def test_few_series_say_nothing_of_what_they_have_in_common() -> None:
    z, e, _ = without_common(np.exp(0.1 * np.random.default_rng(1).standard_normal((9, 12))), 3)
    assert np.isfinite(z).all()
    assert np.isnan(e).all()
