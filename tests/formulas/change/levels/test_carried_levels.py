"""Levels of before a change of a series: those that it was on, and none that noise makes."""

import numpy as np
import pytest

from profsvc.formulas.change.levels.carried_levels import _two_groups, carried_visit_probability, levels_of
from tests.inputs.noise import autoregressive

RNG = np.random.default_rng(20261203)
TURNS = np.repeat([0, 1, 0, 1, 0], [7, 5, 9, 4, 6])  # which of two levels, in 31 nights


def probability(older: np.ndarray, rise: float, low: float = 105.0) -> float:
    """Return the probability of four newest values that lie so far above eight."""
    x = low + 0.1 * np.random.default_rng(5).standard_normal(12)
    x[8:] += rise
    return carried_visit_probability(older, x, 8, 3.0)


@pytest.mark.parametrize("turns", [TURNS, 1 - TURNS], ids=["mostly low", "mostly high"])
def test_a_level_as_far_away_as_before_a_change_is_a_visit(turns: np.ndarray) -> None:
    older = 100.0 + turns + 0.1 * RNG.standard_normal(turns.size)
    assert probability(older, 1.05) > 0.01
    assert probability(older, 2.0) == 0.0
    assert probability(older, 0.5) == 0.0


def test_the_way_back_is_a_visit_too() -> None:
    older = 100.0 + TURNS + 0.1 * RNG.standard_normal(TURNS.size)
    assert probability(older, -1.05, 106.05) > 0.01


def test_levels_that_are_not_positive_are_as_far_apart_in_the_value() -> None:
    older = -3.0 + TURNS + 0.1 * RNG.standard_normal(TURNS.size)
    assert probability(older, 1.0, 2.0) > 0.01
    assert probability(older, 2.0, 2.0) == 0.0


@pytest.mark.parametrize("height", [3.0, 4.0, 6.0])
def test_one_level_and_its_noise_hide_no_step(height: float) -> None:
    older = 100.0 + 0.1 * np.random.default_rng([7, int(height)]).standard_normal((200, 60))
    assert sum(probability(row, 0.105 * height) > 0.0 for row in older) <= 2


def test_two_values_elsewhere_are_no_level() -> None:
    assert levels_of(np.r_[np.zeros(9), 5.0, 5.1, np.ones(9) * 0.1])[0].tolist() == [0.0, 0.1]
    assert levels_of(np.array([]))[0].size == 0
    assert probability(100.0 + np.r_[np.zeros(9), 1.0, 1.0, np.zeros(9)], 1.05) == 0.0


@pytest.mark.parametrize("share", [1 / 2, 1 / 3])
@pytest.mark.parametrize("seed", range(20))
def test_levels_that_alternate_often_are_levels(seed: int, share: float) -> None:
    rng = np.random.default_rng([seed, round(6 * share)])
    x = rng.standard_normal(40) + 6.0 * (rng.random(40) < share)
    levels, sizes, sd = levels_of(x)
    assert levels.min() == pytest.approx(0.0, abs=2.0)
    assert levels.max() == pytest.approx(6.0, abs=2.0)
    assert sizes.min() >= 3
    assert 0.5 < sd < 3.0


def test_noise_of_one_level_seldom_has_a_second_one() -> None:
    rng = np.random.default_rng(20261130)
    for noise in (rng.standard_normal((300, 40)), autoregressive(rng, 300, 40, 0.6), rng.standard_t(3, (300, 40))):
        assert sum(bool(_two_groups(x)[0]) for x in noise) <= 3
    even = sum(bool(_two_groups(x)[0]) for x in rng.uniform(size=(300, 40)))
    assert even <= 30  # they have gaps by chance


def test_two_boards_in_turn_are_known_after_a_change() -> None:
    """Which board measures a night is chance; after the change four nights in a row are on the other one."""
    known = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 7])
        older = 100.0 + (rng.random(40) < 0.5) + rng.standard_normal(40) / 6
        known += probability(older, 1.05) > 0.01
    assert known >= 85  # 12 where only stretches between jumps were levels
