"""Work and depth: the tree of the source."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["work-depth"]


def test_the_tree_of_the_source() -> None:
    given = {"tree": "16", "processors": "1,6"}
    rows = calculate(MODEL, given)["rows"]
    assert rows == calculate(MODEL, {"work": 31, "depth": 5, "processors": [1, 6]})["rows"]
    assert [round(row["steps"], 2) for row in rows] == [31.0, 9.33]
    assert rows[1]["speedup"] == pytest.approx(31 / (5 + 26 / 6))


def test_an_algorithm_that_does_more_work_needs_more_processors() -> None:
    given = {"work": "1e6", "depth": "10", "excess": "10", "processors": "100"}
    (row,) = calculate(MODEL, given)["rows"]
    assert row["most_speedup"] == pytest.approx(10)
    assert row["speedup"] < row["most_speedup"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "work and depth are missing"),
        ({"work": "3"}, "work and depth are missing"),
        ({"work": "3", "depth": "4"}, "depth is 4 but work is 3"),
        ({"work": "3", "tree": "4"}, "leave out work and depth"),
    ],
)
def test_what_does_not_fit_is_said(given: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        calculate(MODEL, given)
