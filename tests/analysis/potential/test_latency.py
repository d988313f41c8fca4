"""Loads that wait for each other: their time with all slots for warps full is needed."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.latency import chained_ns, fill_ns, unloaded_latency


def test_a_chain_takes_the_latency_of_each_load_of_the_warps_of_a_slot() -> None:
    launch = {
        "sm_count": 100.0, "max_warps_per_sm": 64.0, "duration_ns": 1e6, "sm_elapsed_cycles_avg": 2e6,
        "global_load_l1_hit_fraction": 0.0, "l2_hit_fraction": 1.0, "global_load_chained_inst_warp": 6400 * 1000.0,
    }  # fmt: skip
    c = Counts(pd.DataFrame([launch, launch | {"global_load_chained_inst_warp": np.nan}]))
    assert unloaded_latency(c).tolist() == [270.0, 270.0]
    # Each of 6400 slots walks 1000 loads of 270 cycles of half a nanosecond.
    assert chained_ns(c)[0] == pytest.approx(1000 * 270 / 2)
    assert np.isnan(chained_ns(c)[1])


def test_sms_fill_and_drain_for_five_trips_to_dram_and_for_no_time_where_cycles_were_not_counted() -> None:
    launch = {"duration_ns": 1e6, "sm_elapsed_cycles_avg": 2e6}
    c = Counts(
        pd.DataFrame([launch, launch | {"sm_elapsed_cycles_avg": np.nan}, launch | {"sm_elapsed_cycles_avg": 0}])
    )
    assert fill_ns(c).tolist() == [5 * 700 / 2, 0.0, 0.0]
