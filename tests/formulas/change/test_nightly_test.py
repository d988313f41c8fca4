"""Error rates of the formulas of change, their limits, and what they make of odd series. Rates are of seeded noise."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from profsvc.formulas.change.nightly_test import effect, false_discovery, newest_value, nightly_verdict, noise_floor
from profsvc.formulas.change.steps import (
    ALPHA,
    MAX_LEAVE_ONE_OUT_RATIO,
    MIN_SEGMENT,
    WINDOWS,
    all_steps,
    newest_step,
)
from profsvc.formulas.change.two_level_test import without_each
from profsvc.formulas.numerics import distributions
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.numerics.series import Series
from tests.benchmarks import change as simulated
from tests.benchmarks.left_out import counted, p_by_definition, p_of_others, tail_of_others

OF_SERIES = (newest_step, newest_value, nightly_verdict, all_steps)
STEADY = [10.1, 9.9, 10.0, 10.2, 10.0, 9.8, 10.1, 9.9, 10.0, 10.1, 9.9, 10.0]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(simulated.SEED)


def at_most(share: float, series: int) -> float:
    """Return what a rule with this rate of error exceeds once in 10,000 tries."""
    return float(stats.binom.ppf(0.9999, series, share) / series)


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


def test_no_finding_depends_on_a_spike(rng: np.random.Generator) -> None:
    x = simulated.white(rng, 1000, 100)
    got = simulated.brought_by_spike(rng, x, 4.0, newest=5)
    assert got.hang == 0
    assert got.barred > 0
    assert got.last <= at_most(0.011, 1000) * 1000
    x = x[:300]
    for height in (10.0, 1e12, -1e6):
        assert simulated.brought_by_spike(rng, x, height)[:3] == (0, 0, 0)
    at_the_end = x.copy()
    at_the_end[:, -1] += 50.0
    assert simulated.found(at_the_end).mean() <= at_most(0.01, 300)
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


def test_few_findings_of_a_night_are_false(rng: np.random.Generator) -> None:
    real, false = np.sum([simulated.one_night(rng, 60, 4.0, 500, 5) for _ in range(5)], axis=0)
    assert real >= 20
    assert false <= at_most(0.05, 25) * 25


def test_one_finding_a_change_and_not_one_a_night(rng: np.random.Generator) -> None:
    got = simulated.season(rng, 40, 20, 45, {3: 25, 8: 30}, 6.0, reruns=2)
    assert set(got["delay"]) == {3, 8}
    assert max(got["delay"].values()) <= 3
    assert len(got["false"]) <= 1


def test_the_optimum_is_where_the_literature_has_it(rng: np.random.Generator) -> None:
    false, soon = simulated.optimal(rng, 4.2, 4000)
    assert false == pytest.approx(0.01, abs=0.005)
    assert soon < 0.8


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


@pytest.mark.parametrize("function", OF_SERIES)
def test_series_beside_each_other_are_judged_alone(function: Callable[..., Any], rng: np.random.Generator) -> None:
    x = simulated.stepped(simulated.white(rng, 5, 40), 6, 8.0) * np.array([[1e-9], [1.0], [1e6], [1e12], [3.0]])
    value, group = simulated.flat(x)
    shuffled = np.argsort(np.tile(np.arange(40), 5), kind="stable")  # night by night
    together = function(value[shuffled], group[shuffled])
    if function is all_steps:
        assert together.group.tolist() == [0, 1, 2, 3, 4]
        assert (together.before == [function(one).before[0] for one in x]).all()
        return
    for one, series in enumerate(x):
        alone = function(series)
        field = "newest_p" if function is nightly_verdict else "p"
        assert getattr(alone, field).shape == ()
        np.testing.assert_allclose(getattr(together, field)[one], getattr(alone, field), rtol=1e-6)


@pytest.mark.parametrize("series", [1, 127, 128, 200, 255, 256, 257, 300, 32_768, 40_000])
def test_each_of_many_series_is_judged_as_if_alone(series: int, rng: np.random.Generator) -> None:
    """Up to 20 series of 16 values stand at both ends; those between them have one value each.

    The numbers are those at which sort keys of one and two bytes overflow.
    """
    few = simulated.white(rng, min(series, 20), 16) + 50.0
    few[::2, -4:] += 9.0
    ids = np.concatenate([np.arange(len(few) // 2), np.arange(series - len(few) + len(few) // 2, series)])
    length = np.ones(series, dtype=np.int64)
    length[ids] = 16
    group, first = np.repeat(np.arange(series), length), np.cumsum(length) - length
    value = rng.normal(50.0, 1.0, group.size)
    value[length[group] == 16] = few.ravel()
    sd = noise_floor(value, np.arange(group.size) // 2, group).sd
    alone_sd = [noise_floor(x, (first[k] + np.arange(16)) // 2).sd for k, x in zip(ids, few, strict=True)]
    np.testing.assert_allclose(sd[ids], alone_sd, rtol=1e-6)
    for function in (newest_step, newest_value, nightly_verdict):
        together, alone = function(value, group), [function(x) for x in few]
        for field in together._fields:
            wanted = np.array([getattr(one, field) for one in alone])
            if field == "at":
                wanted = np.where(wanted < 0, -1, wanted + first[ids])
            if field != "adjusted" and not (function is nightly_verdict and field in ("found", "rerun_wanted")):
                got = getattr(together, field)[ids]
                np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9, err_msg=field)
    steps, single = all_steps(value, group), [all_steps(x) for x in few]
    assert steps.group.tolist() == [k for k, one in zip(ids, single, strict=True) for _ in one.at]
    assert steps.at.tolist() == [first[k] + at for k, one in zip(ids, single, strict=True) for at in one.at]
    assert steps.before.tolist() == [level for one in single for level in one.before]
    assert steps.after.tolist() == [level for one in single for level in one.after]


@pytest.mark.parametrize("function", OF_SERIES)
def test_the_same_bits_again_and_arguments_stay(function: Callable[..., Any], rng: np.random.Generator) -> None:
    value, group = simulated.flat(simulated.stepped(simulated.white(rng, 20, 30), 5, 3.0))
    before = value.copy()
    value.flags.writeable = False
    for first, again in zip(function(value, group), function(value, group), strict=True):
        assert np.asarray(first).tobytes() == np.asarray(again).tobytes()
    assert (value == before).all()


@settings(max_examples=15)
@given(arrays(np.float64, st.integers(0, 40), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_any_numbers_give_a_probability_or_none(value: np.ndarray) -> None:
    group = np.arange(value.size) % 3
    for function in (newest_step, newest_value):
        for of in (None, group):
            p = function(value, of).p
            assert (np.isnan(p) | ((p >= 0) & (p <= 1))).all()
    for at in all_steps(value).at:
        assert np.isfinite(value[at])
    nightly_verdict(value, group)


@settings(max_examples=15)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_units_do_not_matter(offset: float, unit: float) -> None:
    series = np.array([0.1, -0.1, 0.0, 0.2, 0.0, -0.2, 0.1, -0.1, 0.0, 0.1, 4.0, 4.2, 4.1, 3.9])
    assert newest_step(series * unit).p == pytest.approx(float(newest_step(series).p), rel=1e-6)
    assert newest_step(series - 7 * round(offset)).at == 10


def test_missing_nights_close_up() -> None:
    value = [*STEADY, 12.0, 12.1, 11.9]
    with_gaps = [x for pair in zip(value, [np.nan] * len(value), strict=True) for x in pair]
    assert newest_step(with_gaps).p == newest_step(value).p
    assert newest_step(with_gaps).at == 2 * newest_step(value).at == 24
    tail = newest_value([*STEADY, np.nan])
    assert np.isnan(tail.p)
    assert tail.flags & Flag.NOT_APPLICABLE
    assert newest_step([*STEADY, np.inf]).flags == Flag.INPUT_SUSPECT
    assert newest_step([*STEADY, np.inf]).p == newest_step(STEADY).p


def test_small_histories_say_what_they_need() -> None:
    for n in range(8):
        step, tail = newest_step(STEADY[:n]), newest_value(STEADY[:n])
        assert step.needed == 8 - n
        assert np.isnan(step.p)
        assert tail.needed == max(6 - n, 0)
        assert np.isnan(tail.p) == (n < 6)
    night = nightly_verdict(STEADY[:3])
    assert (bool(night.found), bool(night.rerun_wanted), int(night.needed)) == (False, False, 5)


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
    assert simulated.found(np.round(simulated.stepped(simulated.white(rng, 300, 60), 8, 3.0))).mean() > 0.93


def test_constant_until_now() -> None:
    tail = newest_value([7.0] * 9 + [8.0, 7.0, 7.0])
    assert tail.p == 1


def test_a_trend_is_no_step_of_a_night_but_a_change_in_the_end(rng: np.random.Generator) -> None:
    drift = simulated.white(rng, 200, 60) + np.linspace(0, 6, 60)
    assert simulated.found(drift[:, :8] + 0.0).mean() <= 0.02
    assert newest_step(*simulated.flat(drift)).p.mean() < 0.4  # a trend might as well be autocorrelation


def test_known_errors_of_measurement_are_no_step() -> None:
    value = [*STEADY, 10.6, 10.5, 10.7, 10.5, 10.6]
    assert newest_step(value).p < 0.001
    assert newest_step(value, standard_error=0.5).p > ALPHA
    assert newest_step(value, standard_error=[np.nan] * 17).p == newest_step(value).p
    unsure = newest_value([*STEADY, 11.0], standard_error=[0.0] * 12 + [0.5])
    assert unsure.p > newest_value([*STEADY, 11.0]).p
    assert newest_value([*STEADY, 10.3], standard_error=0.4).sd > 0.4


def test_all_steps_of_a_history(rng: np.random.Generator) -> None:
    levels = np.repeat([0.0, 6.0, 0.0, -5.0], [30, 8, 30, 32])
    found = all_steps(*simulated.flat(simulated.white(rng, 50, 100) + levels))
    right = np.isin(found.at % 100, [29, 30, 31, 37, 38, 39, 67, 68, 69])
    assert right.mean() > 0.85
    assert 110 <= found.at.size <= 155  # a short stretch between a step and its return may pass unseen
    assert np.median(np.abs(found.after - found.before)) == pytest.approx(5.5, abs=1.0)
    assert np.unique(all_steps(*simulated.flat(simulated.white(rng, 200, 100))).group).size <= 8


def test_a_change_too_small_to_matter_is_not_found() -> None:
    value = np.tile([*STEADY, 10.9, 11.0, 11.1, 11.0, 10.9], 2)
    group = np.repeat([4, 9], 17)
    assert nightly_verdict(value, group).found.tolist() == [True, True]
    assert nightly_verdict(value, group, relative=[0.05, 0.2]).found.tolist() == [True, False]
    assert nightly_verdict(value, group, absolute=2.0).found.tolist() == [False, False]
    assert nightly_verdict(value, group, alpha=1e-12).found.tolist() == [False, False]
    assert nightly_verdict(value, group, share=1e-12).rerun_wanted.tolist() == [True, True]


def test_many_tests_share_one_rate() -> None:
    p = np.array([1e-6, 0.2, 0.01, np.nan, 2.0, -1.0])
    found = false_discovery(p, 0.05)
    assert found.found.tolist() == [True, False, True, False, False, False]
    np.testing.assert_allclose(found.adjusted[:3], stats.false_discovery_control(p[:3]))
    np.testing.assert_allclose(
        false_discovery(p, dependent=True).adjusted[:3], stats.false_discovery_control(p[:3], method="by")
    )
    assert np.isnan(found.adjusted[3:]).all()


def test_noise_floor_needs_repeats_and_bears_one_bad_run(rng: np.random.Generator) -> None:
    none = noise_floor([1.0, 2.0], [1, 2])
    assert np.isnan(none.sd)
    assert none.flags == Flag.NOT_APPLICABLE
    binary = np.repeat(np.arange(400), 2)
    value = rng.standard_normal(800) * 0.3 + binary * 5.0
    assert noise_floor(value, binary).sd == pytest.approx(0.3, rel=0.12)
    value[0] = 1e9
    assert noise_floor(value, binary).sd == pytest.approx(0.3, rel=0.12)
    assert noise_floor([np.nan, 1.0, 2.0], [1, 1, 1]).df == 1


def test_effects() -> None:
    assert effect([1.0, np.nan], [np.nan, 1.0]).material.tolist() == [False, False]
    with pytest.raises(ValueError, match="do not broadcast"):
        effect([1.0, 2.0], [1.0, 2.0, 3.0])


def test_wrong_types_and_shapes() -> None:
    with pytest.raises(TypeError, match="value has dtype"):
        newest_step(["1"])
    with pytest.raises(ValueError, match="flat arrays"):
        newest_value(np.ones((2, 3)))
    with pytest.raises(ValueError, match="group has shape"):
        nightly_verdict([1.0, 2.0, 3.0], [1, 2])
    with pytest.raises(TypeError, match="group has dtype"):
        all_steps([1.0, 2.0], [0.5, 1.5])
    assert ALPHA == 0.01
