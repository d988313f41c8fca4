"""Loads that wait for each other: their time with all slots for warps full is needed."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.latency import FILLED_SLOTS, chained_ns, fill_ns, unloaded_latency, with_chains

# Each of 6400 slots walks 1000 loads of 270 cycles of half a nanosecond.
CHAIN = {
    "sm_count": 100.0, "max_warps_per_sm": 64.0, "schedulers_per_sm": 4.0, "duration_ns": 1e6,
    "sm_elapsed_cycles_avg": 2e6, "global_load_l1_hit_fraction": 0.0, "l2_hit_fraction": 1.0,
    "global_load_chained_inst_warp": 6400 * 1000.0, "stall_wait_cycles_per_issue": 3.0,
}  # fmt: skip
WALK = 1000 * 270 / 2


def test_a_chain_takes_the_latency_of_each_load_of_the_warps_of_a_slot() -> None:
    c = Counts(pd.DataFrame([CHAIN, CHAIN | {"global_load_chained_inst_warp": np.nan}]))
    assert unloaded_latency(c).tolist() == [270.0, 270.0]
    found = chained_ns(c, np.array([0.0, 0.0]))
    assert found[0] == pytest.approx(WALK / FILLED_SLOTS)
    assert np.isnan(found[1])


def test_between_two_loads_a_warp_executes_its_instructions_one_after_the_other() -> None:
    c = Counts(pd.DataFrame([CHAIN, CHAIN | {"global_load_chained_inst_warp": 0.0}]))
    # Four cycles for each instruction, and four schedulers for 64 warps: a quarter of the time that they issue.
    assert chained_ns(c, np.array([2e5, 2e5])) == pytest.approx([(WALK + 5e4) / FILLED_SLOTS, 0.0])
    unknown = Counts(pd.DataFrame([CHAIN]).drop(columns="schedulers_per_sm"))
    assert chained_ns(unknown, np.array([2e5])) == pytest.approx(WALK / FILLED_SLOTS)


def test_a_chain_waits_longer_the_busier_the_busiest_unit_is() -> None:
    others = [{}, {"global_load_chained_inst_warp": 0.0}, {"global_load_chained_inst_warp": np.nan}]
    c = Counts(pd.DataFrame([CHAIN | one for one in others]))
    alone = WALK / FILLED_SLOTS
    idle, busy, busier = (
        with_chains(c, np.array([[dram, 1e4, np.nan]] * 3), np.zeros(3), 1) for dram in (1e3, 1e5, 3e5)
    )
    assert alone < idle[0, 1] < 1.01 * alone
    assert 1.05 * alone < busy[0, 1] < 1.2 * alone
    assert 3e5 < busier[0, 0] < 1.1 * 3e5, "the busiest unit is still the limit"
    assert busier[0, 1] == 1e4
    for found in (idle, busy, busier):
        assert found[1:, 1].tolist() == [1e4, 1e4], "nothing is known of chains"
        assert np.isnan(found[:, 2]).all()


def test_sms_fill_and_drain_for_five_trips_to_dram_and_for_no_time_where_cycles_were_not_counted() -> None:
    launch = {"duration_ns": 1e6, "sm_elapsed_cycles_avg": 2e6}
    c = Counts(
        pd.DataFrame([launch, launch | {"sm_elapsed_cycles_avg": np.nan}, launch | {"sm_elapsed_cycles_avg": 0}])
    )
    assert fill_ns(c).tolist() == [5 * 700 / 2, 0.0, 0.0]
