"""No finding depends on a single value. Rates are of seeded noise."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from profsvc.formulas.change.histories import all_steps
from profsvc.formulas.change.nightly_test import (
    nightly_verdict,
)
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step
from profsvc.formulas.change.steps.surest_step import MAX_LEAVE_ONE_OUT_RATIO
from profsvc.formulas.change.steps.two_level_test import without_each
from profsvc.formulas.numerics.series import Series
from tests.benchmarks import change as simulated
from tests.formulas.change.left_out import counted, p_by_definition, p_of_others, tail_of_others
from tests.formulas.change.steady_series import STEADY, at_most


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(simulated.SEED)


def test_no_finding_depends_on_a_spike(rng: np.random.Generator) -> None:
    x = simulated.white(rng, 500, 100)
    got = simulated.brought_by_spike(rng, x, 4.0, newest=5)
    assert got.hang == 0
    assert got.barred > 0
    assert got.last <= at_most(0.011, 500) * 500
    x = x[:200]
    for height in (10.0, 1e12, -1e6):
        assert simulated.brought_by_spike(rng, x, height)[:3] == (0, 0, 0)
    at_the_end = x.copy()
    at_the_end[:, -1] += 50.0
    assert simulated.found(at_the_end).mean() <= at_most(0.01, 200)
    assert newest_step([7.0] * 30 + [99.0, 7.0, 7.0]).p == 1
    assert all_steps([7.0] * 30 + [99.0] + [7.0] * 30).at.size == 0
    assert nightly_verdict(*simulated.flat(at_the_end)).rerun_wanted.mean() > 0.99


def test_hardly_more_spikes_make_a_finding_than_any_rule_that_finds_steps_must_have(rng: np.random.Generator) -> None:
    for spike, least, other_causes in ((3.0, 0.00998, 0.009), (6.0, 0.00014, 0.008)):
        assert simulated.least_raised(rng, spike, 50_000) == pytest.approx(least, rel=0.2, abs=2e-4)
        got = simulated.found(simulated.spiked(rng, simulated.white(rng, 2000, 100), spike, newest=5)[0]).mean()
        assert got <= at_most(least + other_causes, 2000)


def test_a_step_that_depends_on_one_value_asks_for_a_rerun(rng: np.random.Generator) -> None:
    x = simulated.white(rng, 1000, 60)
    x[:, -3] += 3.5
    step = newest_step(*simulated.flat(x))
    hanging = (step.p_suspected <= ALPHA) & (step.p > ALPHA)
    assert 3 <= hanging.sum() <= 30
    night = nightly_verdict(*simulated.flat(x[hanging]))
    assert not night.found.any()
    assert night.rerun_wanted.all()


SERIES_OF_WHOLE_NUMBERS = arrays(np.int64, st.integers(8, 26), elements=st.integers(-6, 6))


@settings(max_examples=30, deadline=None)
@given(SERIES_OF_WHOLE_NUMBERS, st.integers(0, 9), st.integers(-60, 60), st.data())
def test_no_single_value_is_surer_than_the_others_allow(
    noise: np.ndarray, height: int, spike: int, data: st.DataObject
) -> None:
    """For any series and any place: whatever value is put there, p is at least a fifth of what the others have."""
    x = noise.astype(np.float64)
    x[data.draw(st.integers(5, x.size - 3)) :] += height
    one = data.draw(st.integers(0, x.size - 1))
    x[one] = spike
    p, places = newest_step(x).p, counted(x)
    for at in np.flatnonzero(places == one):
        assert np.isnan(p) or p >= p_of_others(x[places], int(at)) / MAX_LEAVE_ONE_OUT_RATIO * (1 - 1e-6)


@settings(max_examples=30, deadline=None)
@given(SERIES_OF_WHOLE_NUMBERS, st.integers(0, 9), st.data())
def test_p_is_what_its_definition_says(noise: np.ndarray, height: int, data: st.DataObject) -> None:
    x = noise.astype(np.float64)
    split = data.draw(st.integers(5, x.size - 3))
    x[split:] += height
    x = x[counted(x)]
    step = newest_step(x)
    if np.isnan(step.p) or counted(x).size < x.size:
        return
    wanted = 1.0 if step.before == step.after else p_by_definition(x, int(step.at))
    assert step.p == pytest.approx(wanted, rel=1e-6, abs=1e-300)


@settings(max_examples=15, deadline=None)
@given(SERIES_OF_WHOLE_NUMBERS, st.integers(0, 9), st.data())
def test_a_step_without_each_value_is_what_the_others_give(noise: np.ndarray, height: int, data: st.DataObject) -> None:
    x = np.r_[noise, 7, noise[::-1], -3].astype(np.float64)
    edges = np.array([0, noise.size + 1, x.size])
    split = np.array([data.draw(st.integers(a + 5, b - 3)) for a, b in itertools.pairwise(edges.tolist())])
    x[split[0] : edges[1]] += height
    series = Series(x, np.zeros(x.size), np.arange(x.size), edges[:-1], edges[1:])
    tails, _ = without_each(series, split)
    for a, b, k in zip(edges, edges[1:], split, strict=False):
        again = [tail_of_others(x[a:b], one, k - a) for one in range(b - a)]
        np.testing.assert_allclose(tails[a:b], again, rtol=1e-7, atol=1e-12)


def test_errors_of_measurement_count_without_each_value_too() -> None:
    x, error = np.array([*STEADY, 11.0, 11.1, 10.9]), np.r_[np.full(12, 0.1), 0.5, 0.6, 0.7]
    series = Series(x, error, np.arange(15), np.array([0]), np.array([15]))
    tails, apart = without_each(series, np.array([12]))
    z = (11.05 - np.mean(STEADY)) / np.sqrt((0.5**2 + 0.6**2) / 4 + 0.01 / 12)
    assert tails[14] == pytest.approx(stats.norm.sf(z), rel=1e-9)
    assert (tails >= without_each(series._replace(error=np.zeros(15)), np.array([12]))[0]).all()
    assert apart[13] == pytest.approx((11.1 - 10.95) / np.sqrt(1.5), rel=1e-9)


@pytest.mark.parametrize("at", [10, -5, -3, -2, -1])
def test_a_high_spike_is_as_good_as_missing(at: int, rng: np.random.Generator) -> None:
    x = simulated.white(rng, 30, 60)
    with_spike, without = x.copy(), x.copy()
    with_spike[:, at], without[:, at] = 25.0, np.nan
    left, right = (newest_step(*simulated.flat(one)) for one in (with_spike, without))
    same = np.isclose(left.p, right.p, rtol=1e-6)
    assert same.mean() > 0.95  # the sd that tells spikes moves a little with one
    assert (left.at == right.at).mean() > 0.95
