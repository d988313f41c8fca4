"""What the day of the week adds to series that have a weekly cycle, and nothing to those that have none."""

import numpy as np
import pytest

from profsvc.formulas.change.weekly_cycles import weekly_cycles


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261129)


def test_each_series_has_its_share_of_the_cycle(rng):
    weekday = np.arange(56) % 7
    height = np.repeat([2.0, 4.0, 8.0], 20)
    cycle = weekly_cycles(rng.standard_normal((60, 56)) + height[:, np.newaxis] * (weekday >= 5), weekday)
    told = (cycle[:, weekday >= 5].mean(axis=1) - cycle[:, weekday < 5].mean(axis=1)).reshape(3, 20).mean(axis=1)
    assert told == pytest.approx([2.0, 4.0, 8.0], rel=0.15)


def test_a_cycle_of_one_series_alone_is_known_from_its_weeks(rng):
    weekday = (np.arange(100) + 3) % 7
    x = rng.standard_normal((30, 100))
    x[4] += 4.0 * np.sin(2 * np.pi * weekday / 7)
    cycle = weekly_cycles(x, weekday)
    assert np.flatnonzero(cycle.any(axis=1)).tolist() == [4]
    assert np.std(x[4] - cycle[4]) < 1.3


def test_noise_has_no_cycle_whatever_its_kind(rng):
    def kinds(nights):
        walk = rng.standard_normal((40, nights)).cumsum(axis=1)
        states = 8.0 * (rng.random(nights) < 0.4) + rng.standard_normal((40, nights))
        return {"tails": rng.standard_t(2, (40, nights)), "walk": walk, "states of all": states,
                "rounded": np.round(rng.standard_normal((40, nights))), "constant": np.ones((40, nights))}  # fmt: skip

    weekday = np.arange(60) % 7
    found = dict.fromkeys(kinds(60), 0)
    for _ in range(20):
        for name, x in kinds(60).items():
            x[rng.random(x.shape) < 0.1] = np.nan
            found[name] += int(weekly_cycles(x, weekday).any(axis=1).sum())
    assert found == dict.fromkeys(found, 0)


def test_nights_of_working_days_alone_have_a_cycle_too(rng):
    weekday = np.arange(70) % 7
    x = np.where(weekday < 5, rng.standard_normal((20, 70)) + 5.0 * (weekday == 0), np.nan)
    cycle = weekly_cycles(x, weekday)
    assert np.mean(cycle[:, weekday == 0]) == pytest.approx(5.0, rel=0.15)
    assert np.mean(cycle[:, weekday == 3]) == pytest.approx(0.0, abs=0.4)


@pytest.mark.parametrize("shape", [(0, 30), (3, 0), (3, 19), (1, 30)])
def test_too_few_days_have_none(shape):
    assert not weekly_cycles(np.ones(shape), np.arange(shape[1]) % 7).any()
