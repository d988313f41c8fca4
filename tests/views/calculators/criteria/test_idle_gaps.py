"""Gaps of a list of times: overlaps, copies, and a list without gaps."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["idle-gaps"]
HEAD = "start,duration,kind,name\n"


def test_the_gap_before_a_late_kernel() -> None:
    view = calculate(MODEL, MODEL.examples[0].values)
    assert view["rows"] == [{"gap": 10, "before": "store", "share": 0.25, "speedup_without_it": pytest.approx(4 / 3)}]
    assert view["notes"][0].startswith("the device works in 75.0% of 40")
    assert view["notes"][1] == "on average 1.17 events run at a time"


def test_copies_are_gaps_or_work() -> None:
    events = HEAD + "0,10,kernel,a\n10,10,copy,b\n20,10,kernel,c\n"
    assert calculate(MODEL, {"events": events})["rows"][0]["before"] == "c"
    assert calculate(MODEL, {"events": events, "busy": "kernels and copies"})["notes"][-1] == "there is no gap"
    with pytest.raises(UsageError, match="all are copies"):
        calculate(MODEL, {"events": HEAD + "0,1,copy,a\n"})
