"""The fits' common ground, against SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, stats

from profsvc.formulas._regression import corrected_aic, nonnegative, ordinary, t_quantile


@pytest.mark.parametrize("dof", [1, 2, 3, 4, 5, 30, 101, 999, 1000, 1001, 5000])
def test_quantiles_of_student_are_those_of_scipy(dof: int) -> None:
    for p in (0.5, 0.6, 0.9, 0.975, 0.9995):
        assert t_quantile(p, dof) == pytest.approx(stats.t.ppf(p, dof), rel=1e-7, abs=1e-12)


def test_quantiles_at_the_ends() -> None:
    assert t_quantile(0.975, math.inf) == pytest.approx(stats.norm.ppf(0.975), rel=1e-12)
    assert math.isnan(t_quantile(0.975, 0))
    assert math.isnan(t_quantile(0.2, 5))
    assert math.isnan(t_quantile(1.0, 5))


matrices = st.integers(1, 8).flatmap(
    lambda m: st.integers(1, 6).flatmap(
        lambda n: st.tuples(arrays(np.float64, (m, n), elements=st.integers(-5, 5).map(float)),
                            arrays(np.float64, m, elements=st.integers(-9, 9).map(float)))
    )
)  # fmt: skip


@given(matrices)
def test_non_negative_least_squares_is_as_good_as_that_of_scipy(system: tuple[np.ndarray, np.ndarray]) -> None:
    A, b = system
    x = nonnegative(A, b)
    _, residual = optimize.nnls(A, b)
    assert (x >= 0).all()
    assert np.linalg.norm(A @ x - b) <= residual + 1e-8


def test_ordinary_least_squares_is_that_of_scipy() -> None:
    rng = np.random.default_rng(7)
    x = rng.uniform(0, 10, 12)
    y = 3 + 2 * x + rng.normal(0, 1, 12)
    line = ordinary(np.stack((np.ones_like(x), x), axis=1), y)
    theirs = stats.linregress(x, y)
    assert line.coefficients == pytest.approx([theirs.intercept, theirs.slope])
    assert np.sqrt(np.diag(line.covariance)) == pytest.approx([theirs.intercept_stderr, theirs.stderr])


def test_numbers_that_are_none_give_none() -> None:
    line = ordinary(np.array([[1.0], [np.inf]]), np.ones(2))
    assert np.isnan(line.coefficients).all()
    assert np.isnan(line.residuals).all()
    assert line.dof == 0


def test_no_covariance_without_freedom_or_rank() -> None:
    assert np.isnan(ordinary(np.eye(2), np.ones(2)).covariance).all()
    assert np.isnan(ordinary(np.ones((4, 2)), np.arange(4.0)).covariance).all()


def test_the_criterion_of_akaike_weighs_parameters_and_needs_rows() -> None:
    assert corrected_aic(1.0, 5, 3) == math.inf
    assert corrected_aic(2.0, 10, 2) == pytest.approx(10 * math.log(0.2) + 6 + 24 / 6)
    assert corrected_aic(0.0, 10, 2) < corrected_aic(0.0, 10, 3)
