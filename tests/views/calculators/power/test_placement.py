"""Placement of active SMs and the cost of clusters: table 12 of the source through the commands."""

import json
from typing import Any

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS
from profsvc.views.calculators.power.placement import TABLE_12, TWO_ROWS
from tests.cli import conftest as commands

cli, store_file = commands.cli, commands.store_file

COUNTS = {"0-7-1-8": 2, "4-11-6-13": 2, "2-9-5-12": 2, "4-11-0-1": 3, "3-10-5-6": 3, "6-7-8-9": 4, "10-11-12-13": 4,
          "2-3-4-5": 4, "0-1-2-3": 4}  # fmt: skip


def test_the_cluster_counts_of_table_12_come_out_of_the_command(cli: Any) -> None:
    found = cli("placement", "--options", ",".join(COUNTS), "-o", "json")
    rows = json.loads(found.out)["rows"]
    assert {row["cores"]: row["active_tpcs"] for row in rows} == COUNTS
    assert [row["active_tpcs"] for row in rows] == sorted(COUNTS.values())


def test_the_means_and_slopes_of_table_12_come_out_of_the_command(cli: Any, tmp_path: Any) -> None:
    (tmp_path / "t12.csv").write_text(TABLE_12, encoding="utf-8")
    found = json.loads(cli("tpc-effect", tmp_path / "t12.csv", "-o", "json").out)
    means = {row["active_tpcs"]: row["power_w"] for row in found["rows"]}
    assert means == {2: pytest.approx(253.9633333), 3: pytest.approx(256.795), 4: pytest.approx(261.75)}
    notes = " ".join(found["notes"])
    for figure in ("3.928 W per further", "2.683 +- 0.69", "correlation 0.961", "over 8.85 W", "over 3.82 degC"):
        assert figure in notes
    assert "least power: 0-7-1-8; least temperature: 4-11-6-13" in notes
    assert "within 0.6 W on average, 1.4 W at worst" in notes


def test_a_floor_plan_sets_clusters_apart_and_memory_spreads_them() -> None:
    near = calculate(CALCULATORS["placement"], {"plan": TWO_ROWS})
    assert near["rows"][0]["active_tpcs"] == 2
    assert near["rows"][0]["distance_mm"] == pytest.approx(18)
    assert near["figure"]["title"] == f"Best placement: {near['rows'][0]['cores']}"
    wide = calculate(CALCULATORS["placement"], {"plan": TWO_ROWS, "kernel": "memory"})
    assert wide["rows"][0]["active_tpcs"] == 4


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("placement", {"active": "15"}, "active is 15, but the device has 14 SMs"),
        ("placement", {"active": "30", "sms": "132"}, "at most 100000 are compared: give options"),
        ("placement", {"options": "0-1,2"}, "the same number of SMs"),
        ("placement", {"options": "0-x"}, "must be numbers with a hyphen"),
        ("placement", {"options": "0-0,1-2"}, "cores '0-0' name an SM twice"),
        ("placement", {"options": "0-15,1-14"}, "no option can be: each names an SM beyond 13"),
        ("placement", {"plan": "tpc,x,y\n0,1,1\n"}, "one row for each cluster from 0 to 6"),
        ("tpc-effect", {"table": "cores,power,temperature\n0-1,1,1\n2,1,1\n"}, "the same number of active SMs"),
    ],
)
def test_what_cannot_be_is_refused_with_what_was_seen(name: str, given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        calculate(CALCULATORS[name], given)


def test_one_configuration_alone_has_no_slope_and_no_error() -> None:
    view = calculate(CALCULATORS["tpc-effect"], {"table": "cores,power,temperature\n0-7,250,70\n"})
    assert view["rows"][0]["power_w"] == 250
    assert view["rows"][0]["predicted_w"] is None
    assert "no slope" in view["notes"][0]


def test_one_block_per_sm_holds_where_one_more_doubles_the_time() -> None:
    for more, holds in (("2.38", "yes"), ("1.21", "no")):
        view = calculate(CALCULATORS["one-block"], {"time": "1.2", "time_more": more})
        assert view["rows"][1]["value"] == holds
        assert bool(view["notes"]) == (holds == "no")
