"""Latency hiding and SIMT usage: the drawings of the source."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

HIDING, USAGE = CALCULATORS["latency-hiding"], CALCULATORS["simt-usage"]


def usage(**given):
    return {row["quantity"]: row["value"] for row in calculate(USAGE, given)["rows"]}


def test_four_warps_hide_three_periods_and_six_fill_the_pipeline() -> None:
    view = calculate(HIDING, {"memory": "3", "computation": "1"})
    assert [row["exposed_cycles"] for row in view["rows"]] == [3, 2, 1, 0, 0, 0]
    assert next(row["warps"] for row in view["rows"] if row["hidden"]) == 4
    assert next(row["warps"] for row in view["rows"] if row["pipeline_full"]) == 6
    assert "issues in 4 cycles, so 6 warps (192 threads) fill 24 stages" in view["notes"][1]


def test_independent_instructions_count_like_warps() -> None:
    rows = calculate(HIDING, {"memory": "3", "computation": "1", "ilp": "2", "warps": "1,2"})["rows"]
    assert [row["exposed_cycles"] for row in rows] == [2, 0]


def test_branches_of_half_a_warp() -> None:
    found = usage(active="8,8,8,8,8,8,0,0,0,0,8,8", lanes="8")
    assert found == {"usage": pytest.approx(2 / 3), "slots_used": 64, "slots_lost": 32, "speedup": 1.5}


def test_loops_of_unequal_length() -> None:
    assert usage(trips="1,1,1,5", warp="4") == {"trip_balance": 0.4, "worst_warp": 0.4, "iterations": 5}
    view = calculate(USAGE, {"trips": "1,5,1,5,2", "warp": "2"})
    assert {row["quantity"]: row["value"] for row in view["rows"]}["trip_balance"] == pytest.approx(14 / 22)
    assert view["notes"] == ["with threads sorted by their iterations warps would execute 8"]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="active and trips are missing"):
        calculate(USAGE, {})
    with pytest.raises(UsageError, match="9 lanes are more than the 8"):
        usage(active="9", lanes="8")
    assert usage(trips="0,0")["trip_balance"] == 1
