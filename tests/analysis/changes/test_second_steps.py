"""A second step, before the level of the first one has a history of its own, and none where there is none."""

import numpy as np
import pytest

from tests.benchmarks.detection import walk
from tests.inputs.noise import white

FIRST, NIGHTS = 20, 30


def told(x: np.ndarray) -> list[list[int]]:
    """Return the nights in which the changes of each series began, by looks every night since the first one."""
    rows = walk(x[:, :, np.newaxis], FIRST + 2).rows
    return [[row["run_id"] - 1 for row in rows if row["series"] == f"s{one:06}"] for one in range(len(x))]


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_two_steps_three_nights_apart_are_both_found(noise: float) -> None:
    x = noise * white(np.random.default_rng(3), 12, NIGHTS)
    x[0, FIRST:] += 5.0
    x[0, FIRST + 3 :] += 5.0
    first, *others = told(x)
    assert [abs(one - at) <= 1 for one, at in zip(first, (FIRST, FIRST + 3), strict=True)] == [True, True]
    assert others == [[]] * 11


def test_a_level_that_stays_makes_one_finding() -> None:
    x = white(np.random.default_rng(4), 12, NIGHTS)
    x[:, FIRST:] += 6.0
    assert all(len(one) == 1 for one in told(x))


def test_a_step_that_goes_on_is_a_step_down_as_well() -> None:
    """Half of the first step is taken back after three nights."""
    x = 0.5 * white(np.random.default_rng(5), 12, NIGHTS)
    x[0, FIRST:] += 10.0
    x[0, FIRST + 3 :] -= 4.0
    assert len(told(x)[0]) == 2


@pytest.mark.parametrize("gap", [5, 12])
def test_half_of_the_way_back_is_a_change_of_its_own_and_the_first_stays_open(gap: int) -> None:
    x = 0.5 * white(np.random.default_rng([8, gap]), 12, FIRST + gap + 10)
    x[:, FIRST:] += 8.0
    x[:, FIRST + gap :] -= 4.0
    rows = walk(x[:, :, np.newaxis], FIRST + 2).rows
    assert all(abs(one[1] - FIRST - gap) <= 1 for one in told(x))
    assert len(rows) <= 2 * 12 + 1
    assert "fixed" not in {row["state"] for row in rows}


def test_a_new_host_moves_each_series_by_its_own_amount_and_each_once() -> None:
    rng = np.random.default_rng(9)
    x, moved = white(rng, 60, NIGHTS), 15.0 * rng.standard_normal(60)
    x[:, FIRST:] += moved[:, np.newaxis]
    large = [one for one, by in zip(told(x), moved, strict=True) if abs(by) > 6.0]
    assert len(large) > 30
    assert large == [[FIRST]] * len(large)


@pytest.mark.parametrize("gap", [3, 4, 5, 6])
def test_a_second_step_begins_with_the_first_run_that_shows_it(gap: int) -> None:
    """Medians of three values would take the last run before it for its first one."""
    x = white(np.random.default_rng([6, gap]), 12, FIRST + gap + 6)
    x[:, FIRST:] += 20.0
    x[:, FIRST + gap :] += 12.0
    assert told(x) == [[FIRST, FIRST + gap]] * 12
