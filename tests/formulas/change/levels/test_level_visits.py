"""Levels that a series visits: it jumps to them and back, it does not drift."""

import numpy as np
import pytest

from profsvc.formulas.change.levels.level_visits import alternation_probability, visit_probability
from profsvc.formulas.numerics.series import gather, in_units_of_sd, read_series


def visit(level: np.ndarray) -> float:
    """Return the probability that the last six values are a visit."""
    x, error, groups = read_series(level + np.random.default_rng(1).standard_normal(level.size), None, None)
    series = in_units_of_sd(gather(x, error, groups, ~np.isnan(x)))
    return float(visit_probability(series, np.array([level.size - 6]), 3.0)[0])


@pytest.mark.parametrize("nights", [1, 3, 30])
def test_a_level_that_was_left_by_a_jump_was_visited(nights):
    assert visit(np.r_[np.zeros(30), np.full(60, 12.0), np.zeros(nights), np.full(60, 12.0), np.zeros(6)]) > 0.1
    assert visit(np.r_[np.zeros(nights), np.full(60, 12.0), np.zeros(6)]) > 0.0


def test_a_level_that_a_series_drifted_away_from_was_not_visited():
    assert visit(np.r_[np.zeros(30), np.linspace(0.0, 12.0, 60), np.full(60, 12.0), np.zeros(6)]) == 0.0


def test_a_level_that_was_never_there_was_not_visited():
    assert visit(np.r_[np.full(60, 12.0), np.zeros(6)]) == 0.0


def alternation(high: list[int]) -> float:
    """Return the probability of the newest stretch of nights that are high, after thirty that are not."""
    level = np.r_[np.zeros(30), 9.0 * np.array(high)]
    x, error, groups = read_series(level + np.random.default_rng(2).standard_normal(level.size), None, None)
    series = in_units_of_sd(gather(x, error, groups, ~np.isnan(x)))
    return float(alternation_probability(series, np.array([30]), 3.0)[0])


def test_a_series_on_both_levels_since_a_step_has_none_yet() -> None:
    assert alternation([1, 0, 1, 0, 1]) > 0.01
    assert alternation([1, 1, 0, 0, 1, 1]) > 0.01
    assert alternation([1, 0, 1, 1, 0]) == 1.0


def test_the_level_that_stays_longer_than_all_turns_is_a_step() -> None:
    assert 0.0 < alternation([1, 0, 1, 0, *[1] * 7]) < 0.01


def test_one_night_on_the_old_level_is_no_turn() -> None:
    assert alternation([1, 1, 0, 1, 1]) == 0.0
    assert alternation([1] * 5) == 0.0
