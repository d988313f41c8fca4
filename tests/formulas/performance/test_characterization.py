import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.characterization import eval_characterization, fit_characterization, saturated

value = st.floats(0, 1e3, allow_subnormal=False).map(lambda v: round(v, 3))
knots = st.lists(st.tuples(st.integers(0, 1000), value), min_size=2, max_size=20, unique_by=lambda k: k[0]).map(sorted)


@given(knots)
def test_pchip_is_that_of_scipy(points: list[tuple[int, float]]) -> None:
    X, Y = np.array(points, dtype=float).T
    x = np.linspace(X[0], X[-1], 101)
    got = eval_characterization(X, Y, x)
    np.testing.assert_allclose(got.y, PchipInterpolator(X, Y)(x), rtol=1e-9, atol=1e-9)
    assert not got.flags.any()


def test_curve_of_a_worked_example() -> None:
    """Slopes 7/6, 9/13 (harmonic mean of 1 and 1/2 with weights 5 and 4) and 1/6 at knots 0, 1 and 3."""
    got = eval_characterization([0, 1, 3], [0.0, 1.0, 2.0], [0.5, 2.0])
    assert got.y == pytest.approx([0.5 + (7 / 6 - 9 / 13) / 8, 1.5 + 2 * (9 / 13 - 1 / 6) / 8], abs=1e-12)


@given(knots)
def test_curve_meets_its_knots_and_stays_between_them(points: list[tuple[int, float]]) -> None:
    X, Y = np.array(points, dtype=float).T
    for kind in ("pchip", "linear"):
        np.testing.assert_array_equal(eval_characterization(X, Y, X, kind).y, Y)
        x = np.linspace(X[0], X[-1], 300)
        k = np.clip(np.searchsorted(X, x, side="right") - 1, 0, X.size - 2)
        y = eval_characterization(X, Y, x, kind).y
        assert (y >= np.minimum(Y[k], Y[k + 1])).all()
        assert (y <= np.maximum(Y[k], Y[k + 1])).all()
    rising = eval_characterization(X, np.sort(Y), np.linspace(X[0], X[-1], 300)).y
    assert (np.diff(rising) >= -1e-9).all()


def test_beyond_the_knots_the_last_value_holds() -> None:
    result = eval_characterization([1, 2, 4], [1.0, 0.5, 0.25], [[0.0, 1.0], [4.0, 32.0]])
    assert result.y.tolist() == [[1.0, 1.0], [0.25, 0.25]]
    assert result.flags.tolist() == [[Flag.EXTRAPOLATED, 0], [0, Flag.EXTRAPOLATED]]


def test_suspect_places_and_knots() -> None:
    result = eval_characterization([1, 2], [1.0, 0.5], [np.nan, -1.0, np.inf, 1.5])
    np.testing.assert_array_equal(result.y, [np.nan, np.nan, np.nan, 0.75])
    assert result.flags.tolist() == [Flag.INPUT_SUSPECT] * 3 + [0]
    for X, Y in (([2, 1], [1.0, 0.5]), ([1, 1], [1.0, 0.5]), ([1, 2], [np.nan, 0.5]), ([], [])):
        broken = eval_characterization(X, Y, 1.5)
        assert np.isnan(broken.y)
        assert broken.flags == Flag.INPUT_SUSPECT


def test_one_knot_is_a_constant() -> None:
    result = eval_characterization([2], [0.5], [2, 3])
    assert result.y.tolist() == [0.5, 0.5]
    assert result.flags.tolist() == [0, Flag.EXTRAPOLATED]
    assert eval_characterization([2], [0.5], 2).y.shape == ()


samples = st.lists(st.tuples(st.integers(0, 20), value), min_size=1, max_size=60)


@given(samples, st.one_of(st.none(), st.integers(1, 10)))
def test_knots_are_medians(points: list[tuple[int, float]], bins: int | None) -> None:
    x, y = np.array(points, dtype=float).T
    fit = fit_characterization(x, y, bins)
    assert (np.diff(fit.knots_x) > 0).all()
    assert fit.samples.sum() == x.size
    distinct = np.unique(x)
    assert fit.knots_x.size == (distinct.size if bins is None else min(bins, distinct.size))
    if bins is None:
        np.testing.assert_allclose(fit.knots_y, [np.median(y[x == at]) for at in distinct])
    elif bins == 1:
        np.testing.assert_allclose(fit.knots_y, [np.median(y)])


@given(samples, st.randoms(use_true_random=False))
def test_order_of_samples_changes_no_bit(points: list[tuple[int, float]], random) -> None:
    x, y = np.array(points, dtype=float).T
    order = random.sample(range(x.size), x.size)
    a, b = (
        fit_characterization(x, y, 4, trend="decreasing"),
        fit_characterization(x[order], y[order], 4, trend="decreasing"),
    )
    np.testing.assert_array_equal(a.knots_y, b.knots_y)


@given(samples)
def test_trend_makes_knots_monotone(points: list[tuple[int, float]]) -> None:
    x, y = np.array(points, dtype=float).T
    free = fit_characterization(x, y)
    for trend, sign in (("increasing", 1), ("decreasing", -1)):
        fit = fit_characterization(x, y, trend=trend)
        assert (sign * np.diff(fit.knots_y) >= 0).all()
        np.testing.assert_allclose(fit.knots_y @ fit.samples, free.knots_y @ free.samples, rtol=1e-9, atol=1e-9)
        if (sign * np.diff(free.knots_y) >= 0).all():
            np.testing.assert_array_equal(fit.knots_y, free.knots_y)


def test_isotonic_regression_by_hand() -> None:
    fit = fit_characterization([1, 2, 2, 3, 4], [1.0, 4.0, 4.0, 1.0, 5.0], trend="increasing")
    np.testing.assert_allclose(fit.knots_y, [1.0, 3.0, 3.0, 5.0])


def test_samples_left_out_are_flagged() -> None:
    fit = fit_characterization([1, 2, np.nan, 3], [1.0, -1.0, 1.0, 0.5])
    assert fit.knots_x.tolist() == [1.0, 3.0]
    assert fit.flags == Flag.INPUT_SUSPECT
    beyond = fit_characterization([1, 2, 8, 9], [1.0, 0.8, 0.5, 0.4], [2, 4, 6, 8])
    assert beyond.knots_x.tolist() == [2.0, 8.0]
    assert beyond.flags == Flag.EXTRAPOLATED
    assert fit_characterization([], []).knots_x.size == 0


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="bins is 0"):
        fit_characterization([1], [1.0], 0)
    with pytest.raises(ValueError, match="at least two, in ascending order"):
        fit_characterization([1], [1.0], [2, 1])
    with pytest.raises(ValueError, match="allowed: 'pchip', 'linear'"):
        fit_characterization([1], [1.0], kind="spline")
    with pytest.raises(ValueError, match="allowed: 'pchip', 'linear'"):
        eval_characterization([1], [1.0], 1, "spline")
    with pytest.raises(ValueError, match="allowed: 'any', 'increasing', 'decreasing'"):
        fit_characterization([1], [1.0], trend="up")


def test_saturated_is_the_best_of_the_sweep() -> None:
    np.testing.assert_array_equal(saturated([[0.2, 0.9, 0.8], [0.1, np.nan, 0.3]]), [0.9, np.nan])
    assert np.isnan(saturated([]))


def test_arguments_stay_as_they_are() -> None:
    x, y = np.array([3.0, 1.0, 2.0]), np.array([0.3, 1.0, 0.5])
    x.flags.writeable = y.flags.writeable = False
    fit = fit_characterization(x, y, [0, 2, 4])
    eval_characterization(fit.knots_x, fit.knots_y, x)
    assert x.tolist() == [3.0, 1.0, 2.0]
