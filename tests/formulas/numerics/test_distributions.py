"""Tails and quantiles compared with ``scipy.stats``, with tables and with closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from profsvc.formulas.numerics import distributions


@pytest.mark.parametrize("freedom", [1, 2.5, 7, 30, 400, 1e6])
def test_student_tail(freedom: float) -> None:
    t = np.array([-8, -1.5, 0, 0.3, 2, 12])
    np.testing.assert_allclose(distributions.student_tail(t, freedom), stats.t.sf(t, freedom), rtol=1e-9)


def test_student_quantiles_of_the_printed_table() -> None:
    printed = {1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980, math.inf: 1.960}
    for freedom, t in printed.items():
        assert distributions.student_quantile(0.975, freedom) == pytest.approx(t, abs=5e-4)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 30, 101, 999, 1000, 1001, 5000])
def test_student_quantiles(freedom: int) -> None:
    for p in (0.5, 0.6, 0.9, 0.975, 0.9995):
        assert distributions.student_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-7, abs=1e-12)


def test_student_quantiles_outside_the_range_are_nan() -> None:
    assert math.isnan(distributions.student_quantile(0.975, 0))
    assert math.isnan(distributions.student_quantile(0.0, 5))
    assert math.isnan(distributions.student_quantile(1.0, 5))


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 3), (2, 8), (5, 100), (30, 4)])
def test_f_tail(numerator: float, denominator: float) -> None:
    f = np.array([0.05, 0.7, 1, 3, 20])
    got = distributions.f_tail(f, numerator, denominator)
    np.testing.assert_allclose(got, stats.f.sf(f, numerator, denominator), rtol=1e-9)


def test_f_tail_with_one_numerator_is_that_of_two_sided_student() -> None:
    t = np.array([0.3, 2.0, 7.0])
    np.testing.assert_allclose(distributions.f_tail(t**2, 1, 9), 2 * distributions.student_tail(t, 9), rtol=1e-10)


def test_chi_squared_tail() -> None:
    x = np.array([0.0, 0.7, 4.0, 30.0])
    np.testing.assert_allclose(distributions.chi_squared_tail(x, 2), np.exp(-x / 2), rtol=1e-12)


def test_the_quantile_of_a_mixture() -> None:
    weight, middle, scale = np.array([0.3, 0.7]), np.array([0.0, 1.0]), np.array([1.0, 0.2])
    (got,) = distributions.student_mixture_quantiles(np.array([0.9]), middle, scale, 6.0, weight)
    assert float(weight @ stats.t.cdf((got - middle) / scale, 6)) == pytest.approx(0.9, abs=1e-6)


def test_the_quantile_of_an_exact_fit_is_its_location() -> None:
    location, scale, weight = np.array([3.0]), np.zeros(1), np.ones(1)
    got = distributions.student_mixture_quantiles(np.array([0.025, 0.5]), location, scale, 9.0, weight)
    assert got == pytest.approx([3, 3])
