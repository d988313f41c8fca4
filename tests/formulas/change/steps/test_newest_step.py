"""Error rates of the newest step, and what it makes of odd series. Rates are of seeded noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from profsvc.formulas.change.levels.series_length import MIN_SEGMENT
from profsvc.formulas.change.nightly_test import newest_value
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step, noise_prior
from profsvc.formulas.change.steps.surest_step import WINDOWS
from profsvc.formulas.numerics import distributions
from profsvc.formulas.numerics.flags import Flag
from tests.benchmarks import change as simulated
from tests.formulas.change.steady_series import at_most


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(simulated.SEED)


def test_noise_raises_no_more_than_its_share(rng: np.random.Generator) -> None:
    assert simulated.found(simulated.white(rng, 1000, 100)).mean() <= at_most(0.01, 1000)
    assert simulated.found(simulated.autoregressive(rng, 1000, 100, 0.6)).mean() <= at_most(0.02, 1000)
    assert simulated.found(rng.standard_t(3, (1000, 100))).mean() <= at_most(0.01, 1000)
    assert simulated.found(simulated.white(rng, 2000, 12)).mean() <= at_most(0.01, 2000)


@pytest.mark.parametrize("rho", [0.35, 0.7, 0.85])
@pytest.mark.parametrize("nights", [12, 25, 60])
def test_series_that_drift_about_make_no_sure_findings(rho: float, nights: int) -> None:
    """What a night of many series takes for sure is far below 0.01, and must be rarer still."""
    rng = np.random.default_rng(404)
    p = newest_step(*simulated.flat(simulated.autoregressive(rng, 1500, nights, rho))).p
    assert (p <= ALPHA).mean() <= at_most(0.025, 1500)
    assert (p <= 0.001).mean() <= at_most(0.003, 1500)


def test_a_level_that_was_there_before_is_no_change(rng: np.random.Generator) -> None:
    """Six visits of a second level, and one more: as boards do that have two clocks."""
    low, high = [0.0] * 6, [6.0] * 5
    x = simulated.white(rng, 300, 72) + np.array((low + high) * 6 + [0.0, *high])
    assert simulated.found(x).mean() <= 0.01
    new = simulated.white(rng, 300, 72) + np.array([0.0] * 67 + high)
    assert simulated.found(new).mean() > 0.97


def test_p_is_no_smaller_than_it_says_and_not_idle(rng: np.random.Generator) -> None:
    p = newest_step(*simulated.flat(simulated.white(rng, 2000, 60))).p
    for level in (0.001, 0.01, 0.05, 0.2):
        assert (p <= level).mean() <= at_most(level, 2000)
    assert (p <= 0.05).mean() >= 0.02
    q = newest_value(*simulated.flat(simulated.white(rng, 2000, 60))).p
    assert 0.03 <= (q <= 0.05).mean() <= at_most(0.05, 2000)


def test_a_step_of_two_sd_is_found_within_five(rng: np.random.Generator) -> None:
    assert simulated.found_within(simulated.stepped(simulated.white(rng, 400, 100), 5, 2.0), 5) >= 0.86
    assert simulated.found_within(simulated.stepped(simulated.white(rng, 500, 100), 3, 6.0), 1) >= 0.99
    assert simulated.found_within(simulated.stepped(simulated.white(rng, 500, 15), 5, 12.0), 1) >= 0.95


@given(st.floats(0, 60), st.sampled_from([1, 2, 3.5, 10, 98, 1000]))
def test_tails(t: float, df: float) -> None:
    for sign in (1.0, -1.0):
        assert distributions.student_tail(sign * t, df) == pytest.approx(stats.t.sf(sign * t, df), rel=1e-9)
    assert distributions.normal_tail(min(t, 30.0)) == pytest.approx(stats.norm.sf(min(t, 30.0)), rel=1e-12)
    assert np.isnan(distributions.student_tail([np.nan, 1.0], [5.0, 0.0])).all()


def test_the_windows_share_the_error() -> None:
    """More than 1, for a step that must stand without any one value errs less: the rates above hold it."""
    assert sum(share for width, share in WINDOWS if width >= MIN_SEGMENT) == pytest.approx(1.35, abs=1e-12)
    assert [m for m, _ in WINDOWS] == sorted({m for m, _ in WINDOWS})


@settings(max_examples=15)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_units_do_not_matter(offset: float, unit: float) -> None:
    series = np.array([0.1, -0.1, 0.0, 0.2, 0.0, -0.2, 0.1, -0.1, 0.0, 0.1, 4.0, 4.2, 4.1, 3.9])
    assert newest_step(series * unit).p == pytest.approx(float(newest_step(series).p), rel=1e-6)
    assert newest_step(series - 7 * round(offset)).at == 10


@pytest.mark.parametrize("newest", [(15, 15), (0, 15, 15), (15, 15, 0), (0, 0, 15, 15), (15, 15, 0, 0)])
def test_two_values_are_no_step_however_far_they_are(newest: tuple[int, ...], rng: np.random.Generator) -> None:
    """A window that has values of the level before is improbable by the others alone."""
    x = simulated.white(rng, 300, 40)
    x[:, -len(newest) :] += newest
    flat = simulated.flat(x)
    prior = noise_prior(*flat, np.zeros(300, dtype=np.intp))
    assert (newest_step(*flat, prior=prior).p <= ALPHA).mean() <= 0.03
    constant = np.zeros(40)
    constant[-len(newest) :] += newest
    assert newest_step(constant).p == 1.0


def test_constant_and_quantised_series() -> None:
    assert newest_step([7.0] * 30).p == 1
    step = newest_step([7.0] * 30 + [8.0] * 3)
    assert (step.p, step.flags) == (0, Flag.ZERO_DENOM)
    assert newest_step([7.0] * 30 + [8.0] * 2).p > ALPHA
    assert newest_step(([7.0] * 9 + [8.0]) * 4).p > 0.5
    assert newest_step(([7.0] * 9 + [8.0]) * 4 + [8.0] * 8).p < ALPHA


def test_rounded_noise_keeps_its_rate_and_its_steps(rng: np.random.Generator) -> None:
    rare = (rng.random((1000, 60)) < 0.05) * 1.0
    coarse = np.round(simulated.white(rng, 1000, 60))
    for noise in (rare, coarse):
        assert simulated.found(noise).mean() <= at_most(0.01, 1000)
    assert simulated.found(np.round(simulated.stepped(simulated.white(rng, 1000, 60), 8, 3.0))).mean() > 0.93


def test_a_trend_is_no_step_of_a_night_but_a_change_in_the_end(rng: np.random.Generator) -> None:
    drift = simulated.white(rng, 200, 60) + np.linspace(0, 6, 60)
    assert simulated.found(drift[:, :8] + 0.0).mean() <= 0.02
    assert newest_step(*simulated.flat(drift)).p.mean() < 0.4  # a trend might as well be autocorrelation


@pytest.mark.parametrize(("first", "at"), [(64.0, 12), (90.0, 13), (1.0, 13)])
def test_a_step_begins_with_a_first_value_that_overshoots(first: float, at: int) -> None:
    """It is far above both adjacent values, as a spike is, and counts for no step; but it is at the new level."""
    quiet = [-0.2, 0.4, 0.8, 0.6, 1.0, 0.7, 3.0, 2.8, -2.9, -3.0, 3.5, -0.6]
    step = newest_step([1000.0 + x for x in (*quiet, first, 56.9, 54.0, 59.8, 60.4)])
    assert float(step.p) < 0.01
    assert int(step.at) == at
