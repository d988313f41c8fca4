"""Levels that a series visits: it jumps to them and back, it does not drift."""

import numpy as np
import pytest

from profsvc.formulas.change.level_visits import visit_probability
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
