"""Steps that are excursions: two boards that take turns under one name, and the one that stays."""

import numpy as np
import pytest

from profsvc.analysis.changes.nightly import find_changes
from profsvc.formulas.change.noise.siblings import MIN_SIBLINGS
from tests.benchmarks.detection import points_of, walk
from tests.inputs.noise import white


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("series", [3, 22])
def test_two_boards_that_take_turns_under_one_name_are_no_changes(series: int, turn: int) -> None:
    """Each turn of three nights or five would be one: eight looks at 22 series had 16 and 47 findings without it.

    Three series that say nothing of each other's noise have no step that would have to be explained.
    """
    rng, found, told = np.random.default_rng(4), 0, 0
    for last in range(35, 43):
        x = white(rng, series, last)
        x[:, 30:] += rng.uniform(4.0, 12.0, (series, 1)) * (np.arange(last - 30) // turn % 2 == 0)
        verdict = find_changes(points_of(x[:, :, np.newaxis], np.arange(series)), [])
        found += len(verdict.found)
        told += sum(row["shape"] == "levels" for row in verdict.told)
    assert found <= series * 8 // 100
    assert told or series < MIN_SIBLINGS


def test_the_board_that_stays_after_two_took_turns_is_found_once() -> None:
    rng = np.random.default_rng(4)
    x = white(rng, 22, 40)
    x[:, 30:] += rng.uniform(6.0, 12.0, (22, 1)) * np.r_[1, 1, 0, 0, np.ones(6)]
    told = walk(x[:, :, np.newaxis], 30)
    assert told.found >= 20
    assert told.false <= 24  # 39 where each turn was one


@pytest.mark.parametrize("together", [True, False])
def test_a_level_that_was_visited_before_a_step_is_known_since(together: bool) -> None:
    """Kernels that take 1 % longer on a cold board do so after one of them changed by 5 % as well."""
    rng = np.random.default_rng([20261204, together])
    x = 0.001 * white(rng, 22, 64)
    cold = np.repeat([0, 1, 0, 1, 0, 1, 0, 1], [6, 5, 9, 4, 9, 4, 15, 12]).astype(bool)
    x[: 6 if together else 1, cold] += 0.01
    x[0, 40:] = 1.05 * (1.0 + x[0, 40:]) - 1.0
    told = walk(x[:, :, np.newaxis] / 0.02, 38)
    assert [(row["series"], row["run_id"] - 1) for row in told.rows] == [("s000000", 40)]


def test_a_second_step_of_another_size_is_found_beside_known_levels() -> None:
    x = 0.001 * white(np.random.default_rng(20261205), 22, 60)
    x[0, np.repeat([0, 1, 0, 1, 0], [8, 6, 8, 6, 32]).astype(bool)] += 0.01
    x[0, 40:] = 1.05 * (1.0 + x[0, 40:]) - 1.0
    x[0, 52:] = 1.02 * (1.0 + x[0, 52:]) - 1.0
    told = walk(x[:, :, np.newaxis] / 0.02, 38)
    assert [(row["series"], row["run_id"] - 1) for row in told.rows] == [("s000000", 40), ("s000000", 52)]
