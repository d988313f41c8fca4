"""Scores of predictions, beside second methods and in their limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.numerics.prediction_accuracy import MIN_PAIRS, WITHIN_SHARES, accuracy

speedups = st.sampled_from([0.5, 0.9, 1.0, 1.1, 1.5, 2.0, 3.7, 8.0, 50.0])
pairs = st.lists(st.tuples(speedups, speedups), min_size=3, max_size=30)


@given(pairs)
def test_ranks_and_line_are_those_of_another_library(given_pairs):
    p, a = np.array(given_pairs).T
    score = accuracy(p, a)
    if len(set(p)) > 1 and len(set(a)) > 1:
        assert score.rank_correlation == pytest.approx(stats.spearmanr(p, a).statistic, abs=1e-12)
    if len(set(p)) > 1 and len(set(a)) > 1:
        line = stats.linregress(np.log(p), np.log(a))
        half = stats.t.ppf(0.975, len(p) - 2) * line.stderr
        found = [score.slope, score.intercept, score.slope_low, score.slope_high]
        expected = [line.slope, line.intercept, line.slope - half, line.slope + half]
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    elif len(set(p)) > 1:
        assert abs(score.slope) < 1e-12
    else:
        assert np.isnan([score.slope, score.rank_correlation]).all()


@given(pairs, st.floats(0.1, 10))
def test_scores_do_not_depend_on_order_and_know_a_common_factor(given_pairs, factor):
    p, a = np.array(given_pairs).T
    score, turned = accuracy(p, a), accuracy(p[::-1], a[::-1])
    for name, x in score._asdict().items():
        np.testing.assert_allclose(getattr(turned, name), x, rtol=1e-9, atol=1e-9, err_msg=name)
    scaled = accuracy(factor * p, a)
    np.testing.assert_allclose(scaled.bias, score.bias + np.log(factor), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scaled.rank_correlation, score.rank_correlation, rtol=1e-9)
    assert scaled.constant == score.constant


@given(pairs)
def test_ranges(given_pairs):
    score = accuracy(*np.array(given_pairs).T)
    assert (np.diff(score.within) >= 0).all()
    assert ((score.within >= 0) & (score.within <= 1)).all()
    assert score.log_error >= abs(score.bias)
    assert np.isnan(score.rank_correlation) or abs(score.rank_correlation) <= 1
    assert len(score.within) == len(WITHIN_SHARES)


def test_who_is_always_right():
    a = np.array([1.0, 1.2, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0])
    score = accuracy(a, a)
    assert (score.rank_correlation, score.log_error, score.slope) == (1, 0, pytest.approx(1))
    assert score.within.tolist() == [1, 1, 1]
    assert score.constant_log_error > 0
    assert score.flags == 0


def test_few_pairs_prove_nothing_and_pairs_that_are_none_are_left_out():
    assert accuracy([2.0] * (MIN_PAIRS - 1), [2.0] * (MIN_PAIRS - 1)).flags == Flag.NOT_APPLICABLE
    score = accuracy([2.0, np.nan, 0.0, 3.0, np.inf, -1.0], [2.0, 1.0, 1.0, np.nan, 1.0, 1.0])
    assert score.n == 1
    assert score.flags == Flag.NOT_APPLICABLE | Flag.INPUT_SUSPECT
    assert score.log_error == 0
    assert np.isnan(score.rank_correlation)
    assert np.isnan(accuracy([], []).constant)


def test_what_is_no_content_raises():
    with pytest.raises(TypeError, match="predicted has dtype"):
        accuracy(np.array(["1"]), [1.0])
    with pytest.raises(ValueError, match="do not broadcast"):
        accuracy([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="allowed: flat arrays"):
        accuracy(np.ones((2, 2)), np.ones((2, 2)))
    given_array = np.array([1.0, 2.0])
    given_array.flags.writeable = False
    assert accuracy(given_array, given_array).n == 2
