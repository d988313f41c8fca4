"""Series are judged as if each were alone, and any numbers have an answer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from profsvc.formulas.change.histories import all_steps
from profsvc.formulas.change.nightly_test import newest_value, nightly_verdict, noise_floor
from profsvc.formulas.change.steps import surest_step
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step, noise_prior
from tests.benchmarks import change as simulated

OF_SERIES = (newest_step, newest_value, nightly_verdict, all_steps)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(simulated.SEED)


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


@pytest.mark.parametrize("series", [1, 127, 128, 200, 255, 256, 257, 300, 32_769])
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


def test_all_steps_of_a_history(rng: np.random.Generator) -> None:
    levels = np.repeat([0.0, 6.0, 0.0, -5.0], [30, 8, 30, 32])
    found = all_steps(*simulated.flat(simulated.white(rng, 50, 100) + levels))
    right = np.isin(found.at % 100, [29, 30, 31, 37, 38, 39, 67, 68, 69])
    assert right.mean() > 0.85
    assert 110 <= found.at.size <= 155  # a short stretch between a step and its return may pass unseen
    assert np.median(np.abs(found.after - found.before)) == pytest.approx(5.5, abs=1.0)
    assert np.unique(all_steps(*simulated.flat(simulated.white(rng, 200, 100))).group).size <= 8


@pytest.mark.parametrize("rise", [3.0, 10.0, 30.0])
def test_a_drift_has_no_steps(rise: float, rng: np.random.Generator) -> None:
    for nights in (30, 100, 300):
        x = simulated.white(rng, 100, nights) + np.linspace(0.0, rise, nights)
        assert all_steps(*simulated.flat(x)).at.size <= 8


def test_a_sure_step_on_a_drift_is_found(rng: np.random.Generator) -> None:
    x = simulated.white(rng, 100, 60) + np.linspace(0.0, 5.0, 60) + 12.0 * (np.arange(60) >= 48)
    found = all_steps(*simulated.flat(x))
    assert np.isin(found.at % 60, [47, 48, 49]).sum() >= 95


def test_levels_far_apart_are_steps_in_dependent_noise(rng: np.random.Generator) -> None:
    """A test that takes them for dependence calls such a history quiet."""
    noise = simulated.autoregressive(rng, 100, 120, 0.9)
    noise /= noise.std(axis=1, keepdims=True)
    found = all_steps(*simulated.flat(noise + 10.0 * (np.arange(120) >= 70)))
    assert np.unique(found.group[np.abs(found.at % 120 - 70) <= 3]).size >= 95
    assert np.unique(all_steps(*simulated.flat(noise)).group).size <= 10


@pytest.mark.parametrize("values", [1, 41, 100])
def test_series_are_tested_some_at_a_time(
    values: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short, empty and long ones, with what siblings say and several fresh values, in blocks of one to three series."""
    x = simulated.stepped(simulated.white(rng, 30, 40), 6, 3.0)
    x[::3, :30] = np.nan
    x[5] = np.nan
    value, group = simulated.flat(x)
    prior = noise_prior(value, group, np.zeros(30, dtype=np.int64))
    fresh = np.arange(30) % 4 + 1
    whole = newest_step(value, group, None, prior, fresh=fresh)
    monkeypatch.setattr(surest_step, "MAX_VALUES_AT_ONCE", values)
    for name, one, other in zip(whole._fields, newest_step(value, group, None, prior, fresh=fresh), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=name)
    assert (whole.p <= ALPHA).sum() > 5
