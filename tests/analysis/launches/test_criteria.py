"""The nine criteria of real launches."""

import numpy as np
import pandas as pd
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


READ = sorted(
    {name for c in specs.criteria()["criterion"] for name in c["counters"]}
    | {
        "issue_active_elapsed_fraction", "issue_slot_utilization_fraction", "sm_efficiency_fraction", "elapsed_cycles",
        "active_warps_sum", "barrier_inst_warp", "warps_per_block", "blocks_per_sm_theoretical", "grid_blocks",
        "sm_elapsed_cycles_avg", "sm_elapsed_cycles_sum", "l1_tag_requests_global", "l1_hit_fraction",
        "global_load_l1_hit_fraction", "sol_l1_fraction", "sol_l2_fraction", "sol_sm_fraction", "block_threads",
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
    assert (known["speedup"].dropna() >= 1).all()
    assert known["share"].dropna().between(0, 1).all()
    assert found[found["value"].isna()]["reason"].notna().all()
