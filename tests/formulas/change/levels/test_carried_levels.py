"""Levels of before a change of a series: those that it was on, and none that noise makes."""

import numpy as np
import pytest

from profsvc.formulas.change.levels.carried_levels import carried_visit_probability, levels_of

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
