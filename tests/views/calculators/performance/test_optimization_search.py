"""The greedy search: what to measure next, what is accepted, and when it ends."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["next-optimization"]
FIRST = "prefetch,shared,performance\n0,0,70\n1,0,68\n0,1,190\n"


def test_the_search_asks_for_the_next_set_and_ends() -> None:
    view = calculate(MODEL, {"versions": FIRST})
    assert [(row["optimizations"], row["state"]) for row in view["rows"]] == [
        ("prefetch", "measured"),
        ("shared", "accepted"),
        ("prefetch + shared", "measure next"),
    ]
    better = calculate(MODEL, {"versions": FIRST + "1,1,210\n"})
    assert better["notes"][0] == "best so far: prefetch + shared, performance 210"
    worse = calculate(MODEL, {"versions": FIRST + "1,1,180\n"})
    assert worse["notes"][0] == "best so far: shared, performance 190"
    assert "the search ends" in worse["notes"][1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("performance\n1\n", "name the optimizations"),
        ("a,performance\n2,1\n", "a is 2.0; allowed: 1 and 0"),
        ("a,performance\n1,1\n", "without any optimization is missing"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        calculate(MODEL, {"versions": text})
