"""What else an answer may mean stands among the causes, with the fact that decides."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.causes.alternatives import NEEDS, with_alternatives
from profsvc.analysis.causes.rows import COLUMNS
from profsvc.specs.advice.causes import alternatives, causes, least_shares

COUNTERS = (
    "global_load_sectors",
    "global_load_bytes_requested",
    "global_store_sectors",
    "global_store_bytes_requested",
)


def launch(launch_id: int, *found: tuple[str, float]) -> pd.DataFrame:
    """Return rows of causes with their savings, the answer first."""
    rows = [
        (launch_id, rank, name, causes()[name].kind, 1e5 * saving, saving, 0.0, saving)
        for rank, (name, saving) in enumerate(found, 1)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def read(rows: pd.DataFrame, unit: str | None = "dram", **counters: float) -> pd.DataFrame:
    ids = rows["launch_id"].unique()
    table = pd.DataFrame([dict.fromkeys(COUNTERS, 0.0) | counters] * len(ids), index=ids)
    return with_alternatives(rows, table, [unit] * len(ids))


def test_each_alternative_needs_what_counters_can_show() -> None:
    for others in alternatives().values():
        for other in others:
            assert other.needs in ("", *NEEDS)
            assert other.condition.startswith("if ")
            assert causes()[other.cause].kind == "flaw"
        assert len({other.cause for other in others}) == len(others)


def test_what_else_a_flaw_may_be_follows_it_and_costs_nothing_beside_it() -> None:
    table = read(launch(5, ("thread_divergence", 0.6), ("launch_overhead", 0.01), ("memory_limit", 0.0)))
    assert table["cause"].tolist() == ["thread_divergence", "predicated_off_threads", "launch_overhead", "memory_limit"]
    assert table["rank"].tolist() == [1, 2, 3, 4]
    other = table.iloc[1]
    assert (other["kind"], other["saving_ns"], other["saving_fraction"], other["low"]) == ("alternative", 0, 0, 0)
    assert other["high"] == 0.6


def test_causes_that_stand_out_come_before_what_else_the_answer_may_be() -> None:
    large = 1.5 * least_shares()["uncoalesced_loads"].share
    table = read(launch(5, ("thread_divergence", 0.6), ("uncoalesced_loads", large), ("memory_limit", 0.0)))
    assert table["cause"].tolist()[:3] == ["thread_divergence", "uncoalesced_loads", "predicated_off_threads"]


def test_a_cause_that_has_a_row_only_moves() -> None:
    found = launch(5, ("warp_imbalance", 0.5), ("few_loads_in_flight", 0.05), ("barriers", 0.02), ("memory_limit", 0.0))
    table = read(found)
    assert table["cause"].tolist() == ["warp_imbalance", "barriers", "few_loads_in_flight", "memory_limit"]
    assert set(table["kind"]) == {"flaw", "limit"}
    assert table["saving_fraction"].sum() == found["saving_fraction"].sum()


@pytest.mark.parametrize(("share", "place"), [(0.03, 2), (0.01, 1)])
def test_what_lifts_a_limit_follows_what_costs_something(share: float, place: int) -> None:
    table = read(launch(5, ("memory_limit", 0.0), ("tail_wave", share)))
    assert table["cause"][place] == "cache_thrashing"
    assert np.isnan(table["high"][place]), "no counter says what it saves"


@pytest.mark.parametrize(("unit", "meant"), [("dram", "cache_thrashing"), ("l2", "redundant_loads")])
def test_the_unit_of_a_limit_says_what_lifts_it(unit: str, meant: str) -> None:
    assert read(launch(5, ("memory_limit", 0.0)), unit)["cause"].tolist() == ["memory_limit", meant]


def test_counters_say_which_accesses_are_not_coalesced() -> None:
    gather = {"global_load_sectors": 1e6, "global_load_bytes_requested": 4e6}
    scatter = {"global_store_sectors": 1e6, "global_store_bytes_requested": 4e6}
    assert read(launch(5, ("unrelated_accesses", 0.0)), **gather)["cause"][1] == "uncoalesced_loads"
    assert read(launch(5, ("unrelated_accesses", 0.0)), **scatter)["cause"][1] == "uncoalesced_stores"


@pytest.mark.parametrize(("lanes", "also"), [(8.0, True), (30.0, False)])
def test_a_warp_is_partly_filled_if_half_of_its_lanes_are_off(lanes: float, also: bool) -> None:
    counters = {"inst_executed_warp": 1e6, "thread_inst_executed_pred_on": lanes * 1e6}
    table = read(launch(5, ("predicated_off_threads", 0.5), ("memory_limit", 0.0)), **counters)
    assert (table["cause"][1] == "partly_filled_warps") == also


def test_an_answer_without_another_meaning_stays_alone() -> None:
    rows = launch(5, ("grid_too_small", 0.9), ("memory_limit", 0.0))
    pd.testing.assert_frame_equal(read(rows), rows, check_dtype=False)


def test_no_rows_stay_none() -> None:
    assert with_alternatives(launch(5), pd.DataFrame({"duration_ns": [1.0]}, index=[5]), [None]).empty


def test_launches_keep_their_order() -> None:
    rows = pd.concat([launch(9, ("serial_section", 0.5)), launch(5, ("memory_limit", 0.0))], ignore_index=True)
    assert read(rows)["launch_id"].tolist() == [9, 9, 5, 5]
