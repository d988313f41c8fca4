"""Least squares compared with SciPy and with worked examples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from profsvc.formulas.numerics.regression import corrected_aic, nonnegative_least_squares, ordinary_least_squares

matrices = st.integers(1, 8).flatmap(
    lambda m: st.integers(1, 6).flatmap(
        lambda n: st.tuples(arrays(np.float64, (m, n), elements=st.integers(-5, 5).map(float)),
                            arrays(np.float64, m, elements=st.integers(-9, 9).map(float)))
    )
)  # fmt: skip


@given(matrices)
def test_nonnegative_least_squares_fulfils_the_conditions_of_a_minimum(system: tuple[np.ndarray, np.ndarray]) -> None:
    """Where a coefficient is positive the gradient is 0; where it is 0 the gradient only worsens the fit."""
    A, b = system
    x = nonnegative_least_squares(A, b)
    pull = A.T @ (b - A @ x)
    assert (x >= 0).all()
    assert (pull <= 1e-9).all()
    assert abs(x @ pull) <= 1e-9


def test_nonnegative_least_squares_with_a_bound_coefficient() -> None:
    """Columns (1, 1) and (0, 1), target (2, 1): without bounds (2, -1), with them the mean of the target."""
    assert nonnegative_least_squares(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 1.0])) == pytest.approx(
        [1.5, 0.0]
    )


def test_nonnegative_least_squares_of_columns_of_any_size() -> None:
    A = np.array([[1e-9, 0.0, 0.0], [0.0, 1e9, 0.0]])
    for size in (1e-20, 1.0, 1e20):
        b = np.array([2.0, 3.0]) * size
        np.testing.assert_allclose(A @ nonnegative_least_squares(A, b), b, rtol=1e-12)


def test_nonnegative_least_squares_of_nothing() -> None:
    assert nonnegative_least_squares(np.zeros((3, 0)), np.ones(3)).shape == (0,)
    assert nonnegative_least_squares(np.zeros((0, 2)), np.ones(0)).tolist() == [0.0, 0.0]


def test_ordinary_least_squares_is_that_of_scipy() -> None:
    rng = np.random.default_rng(7)
    x = rng.uniform(0, 10, 12)
    y = 3 + 2 * x + rng.normal(0, 1, 12)
    line = ordinary_least_squares(np.stack((np.ones_like(x), x), axis=1), y)
    theirs = stats.linregress(x, y)
    assert line.coefficients == pytest.approx([theirs.intercept, theirs.slope])
    assert np.sqrt(np.diag(line.covariance)) == pytest.approx([theirs.intercept_stderr, theirs.stderr])


def test_numbers_that_are_none_give_none() -> None:
    line = ordinary_least_squares(np.array([[1.0], [np.inf]]), np.ones(2))
    assert np.isnan(line.coefficients).all()
    assert np.isnan(line.residuals).all()
    assert line.dof == 0


def test_no_covariance_without_freedom_or_rank() -> None:
    assert np.isnan(ordinary_least_squares(np.eye(2), np.ones(2)).covariance).all()
    assert np.isnan(ordinary_least_squares(np.ones((4, 2)), np.arange(4.0)).covariance).all()


def test_the_criterion_of_akaike_weighs_parameters_and_needs_rows() -> None:
    assert corrected_aic(1.0, 5, 3) == math.inf
    assert corrected_aic(2.0, 10, 2) == pytest.approx(10 * math.log(0.2) + 6 + 24 / 6)
    assert corrected_aic(0.0, 10, 2) < corrected_aic(0.0, 10, 3)
