"""Stretches away from a level: counted among siblings, by hand and against a chain of two states."""

import numpy as np
import pytest

from profsvc.formulas.change.levels.stretches import Stretches, stretch_probability, stretches_of_siblings
from profsvc.formulas.numerics.series import Series


def series_of(rows: np.ndarray) -> Series:
    """Return rows as series."""
    n = rows.shape[1]
    edges = np.arange(len(rows) + 1) * n
    return Series(rows.ravel(), np.zeros(rows.size), np.arange(rows.size), edges[:-1], edges[1:])


def test_stretches_with_a_return_are_counted_in_all_siblings() -> None:
    rows = np.random.default_rng(1).standard_normal((12, 30))
    rows[0, 10:13] += 20.0  # three values
    rows[1, 5] -= 20.0  # one
    rows[2, 25:] += 20.0  # did not return: no stretch, maybe a change
    rows[3, :4] += 20.0  # did not begin
    seen = stretches_of_siblings(series_of(rows), np.zeros(12, dtype=np.intp), np.zeros(12))
    assert {part.tolist()[0] for part in seen} == {360.0, 2.0}
    assert seen.begun.tolist() == [2.0] * 12
    assert seen.stayed.tolist() == [2.0] * 12


def test_what_is_nearer_than_the_least_distance_is_no_stretch() -> None:
    rows = np.random.default_rng(1).standard_normal((12, 30))
    rows[0, 10] += 20.0
    seen = stretches_of_siblings(series_of(rows), np.zeros(12, dtype=np.intp), np.full(12, 30.0))
    assert seen.begun.tolist() == [0.0] * 12


def test_few_siblings_say_nothing() -> None:
    rows = np.random.default_rng(1).standard_normal((9, 30))
    seen = stretches_of_siblings(series_of(rows), np.zeros(9, dtype=np.intp), np.zeros(9))
    assert stretch_probability(seen, np.full((9, 1), 3.0)).tolist() == [[1.0]] * 9


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_many_stretches_give_the_probability_of_the_chain(m: int) -> None:
    """They begin in one value of fifty and stay with a probability of 2/3."""
    counts = Stretches(np.array([1e6]), np.array([2e4]), np.array([4e4]))
    expected = 0.02 * (2 / 3) ** (m - 1)
    assert stretch_probability(counts, np.array([[float(m)]]))[0, 0] == pytest.approx(expected, rel=1e-3)
