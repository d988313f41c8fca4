"""The nine criteria of real launches."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from profsvc import specs, store
from profsvc.analysis.launches import criteria
from profsvc.analysis.launches.characterization import Characterization
from profsvc.analysis.launches.timeline import append_launches
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.useful_time import Counts

NAMES = [c["name"] for c in specs.criteria()["criterion"]]


def rows(demo: Engine) -> pd.DataFrame:
    return pd.DataFrame(store.select(demo, "v1_criteria", run_id=1))


def test_every_launch_has_the_eight_and_the_run_has_the_nine(demo: Engine) -> None:
    found = rows(demo)
    of_launches = found.dropna(subset=["launch_id"])
    assert (of_launches.groupby("launch_id")["criterion"].nunique() == 8).all()
    assert set(found[found["launch_id"].isna()]["criterion"]) == set(NAMES)


def test_values_lie_in_range_and_consistent_speedups_never_slow_down(demo: Engine) -> None:
    found = rows(demo).dropna(subset=["value"])
    assert found["value"].between(0, 1).all()
    assert (found["speedup"].dropna() >= 1).all()


def test_a_missing_criterion_says_what_is_missing(demo: Engine) -> None:
    missing = rows(demo)
    missing = missing[missing["value"].isna()]
    assert missing["reason"].notna().all()
    assert "start times" in missing[missing["criterion"] == "host_sync"]["reason"].iloc[0]


def test_shares_of_the_time_add_up_to_one(demo: Engine) -> None:
    shares = criteria.unit_time_shares(Counts(store.counters(demo, 1)), {})
    assert abs(sum(shares.values()) - 1).max() < 1e-9


def test_known_kernels_are_known_for_what_they_do(demo: Engine) -> None:
    found = rows(demo).dropna(subset=["launch_id"])
    value = found.pivot_table(index=["launch_id", "kernel"], columns="criterion", values="value").reset_index(
        "launch_id"
    )
    assert value.loc["void shared_conflict<32>(float *, int)", "shared_efficiency"] < 0.05
    assert value.loc["void shared_conflict<1>(float *, int)", "shared_efficiency"] > 0.95
    assert value.loc["void divergent<32>(float *, int)", "divergence"] < 0.4
    assert value.loc["void divergent<1>(float *, int)", "divergence"] > 0.95
    strided = value.loc[[k for k in value.index if k.startswith("strided_copy")]].sort_values("launch_id")
    assert strided["l1_granularity"].is_monotonic_decreasing
    assert strided["l1_granularity"].iloc[-1] < 0.1


def test_host_sync_of_a_timeline() -> None:
    row = criteria.host_sync(append_launches(None, np.array([0, 30]), np.array([10.0, 10.0])))
    assert (row["value"], row["speedup"], row["share"], row["flags"]) == (0.5, 2.0, 0.5, 0)


def of_one_launch(**counters: float) -> pd.DataFrame:
    """The criteria of one launch of an H200 with these counters, by name."""
    table = pd.DataFrame([{"duration_ns": 1e6, **counters}], dtype="float64")
    figures, _ = peaks(table, specs.figures("NVIDIA H200", "9.0"))
    found = criteria.launch_criteria(table, figures, Characterization(), specs.criteria()["criterion"])
    return found.set_index("criterion")


def test_occupancy_knows_the_grid_in_every_form() -> None:
    """The source's occupancy depends on the size of the grid: 66 blocks of 8 warps give an SM one block."""
    made = {"theoretical_occupancy_fraction": 1.0, "dram_throughput_fraction": 0.2, "warps_per_block": 8.0}
    small = of_one_launch(grid_blocks=66.0, **made).loc["throughput_occupancy"]
    large = of_one_launch(grid_blocks=66e3, **made).loc["throughput_occupancy"]
    unknown = of_one_launch(**made).loc["throughput_occupancy"]
    assert small["value"] == pytest.approx(1 - (1 - 8 / 64) * 0.8)
    assert small["value_as_published"] == pytest.approx(1 - (1 - 8 / 64) * 0.2)
    assert large["value"] == unknown["value"] == 1


def test_the_conditional_form_leaves_idle_sms_and_lanes_to_their_own_criteria() -> None:
    found = of_one_launch(
        theoretical_occupancy_fraction=0.5, dram_throughput_fraction=0.2, sm_efficiency_fraction=0.4,
        sol_l2_fraction=0.1, sol_l1_fraction=0.3, global_load_bytes_requested=8e6, l1_tag_requests_global=1e6,
        l1_sectors=1e6, l2_tex_sectors=1e6, global_theoretical_sectors=1e6, global_theoretical_sectors_ideal=9e5,
    )  # fmt: skip
    here = found.loc["throughput_occupancy"]
    assert here["value"] == pytest.approx(1 - 0.5 * 0.8)
    assert here["value_conditional"] == pytest.approx(1 - 0.5 * (1 - 0.2 / 0.4))
    assert found.loc["l1_granularity", "value"] == pytest.approx(8e6 / 128e6)
    assert found.loc[["l1_granularity", "l2_granularity"], "value_conditional"].tolist() == pytest.approx([0.9, 0.9])


def test_the_conditional_form_is_null_without_its_counters() -> None:
    found = of_one_launch(
        theoretical_occupancy_fraction=0.5, dram_throughput_fraction=0.2, global_load_bytes_requested=8e6,
        l1_tag_requests_global=1e6, stall_sync_fraction=0.25,
    )  # fmt: skip
    assert found.loc[["throughput_occupancy", "l1_granularity"], "value"].notna().all()
    assert found.loc[["throughput_occupancy", "l1_granularity"], "value_conditional"].isna().all()
    assert found.loc["device_sync", "value_conditional"] == found.loc["device_sync", "value"] == 0.75


def test_the_conditional_form_of_a_run_is_weighted_by_time(demo: Engine) -> None:
    found = rows(demo).dropna(subset=["value_conditional"])
    assert found["value_conditional"].between(0, 1).all()
    durations = pd.DataFrame(store.select(demo, "v1_launches", run_id=1)).set_index("launch_id")["duration_ns"]
    one = found[found["criterion"] == "throughput_occupancy"].set_index("launch_id")["value_conditional"]
    of_launches = one[one.index.notna()]
    weights = durations.loc[of_launches.index]
    assert one[one.index.isna()].item() == pytest.approx((of_launches * weights).sum() / weights.sum())


READ = sorted(
    {name for c in specs.criteria()["criterion"] for name in c["counters"]}
    | {
        "issue_active_elapsed_fraction", "issue_slot_utilization_fraction", "sm_efficiency_fraction", "elapsed_cycles",
        "active_warps_sum", "barrier_inst_warp", "warps_per_block", "blocks_per_sm_theoretical", "grid_blocks",
        "sm_elapsed_cycles_avg", "sm_elapsed_cycles_sum", "l1_tag_requests_global", "l1_hit_fraction",
        "global_load_l1_hit_fraction", "sol_l1_fraction", "sol_l2_fraction", "sol_sm_fraction", "block_threads",
        "global_theoretical_sectors", "global_theoretical_sectors_ideal",
    }
)  # fmt: skip
number = st.one_of(
    st.none(), st.just(0.0), st.floats(0, 1), st.floats(0, 1e15), st.floats(-1e3, 0), st.just(float("inf"))
)


@given(st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(READ, number)), min_size=1, max_size=3))
def test_any_counters_give_values_in_range_or_a_reason(made: list[dict[str, float | None]]) -> None:
    table = pd.DataFrame([{"duration_ns": 1.0, **row} for row in made], dtype="float64")
    figures, _ = peaks(table, specs.figures("NVIDIA H200", "9.0"))
    found = criteria.launch_criteria(table, figures, Characterization(), specs.criteria()["criterion"])
    known = found.dropna(subset=["value"])
    assert known["value"].between(0, 1).all()
    assert known["value_conditional"].dropna().between(0, 1).all()
    assert (known["speedup"].dropna() >= 1).all()
    assert known["share"].dropna().between(0, 1).all()
    assert found[found["value"].isna()]["reason"].notna().all()
