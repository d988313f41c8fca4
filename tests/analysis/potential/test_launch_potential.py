"""The joint bound on real kernels, and under any counters."""

import re
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from profsvc import specs, store
from profsvc.analysis.potential.launch_potential import launch_potentials, needed_ns, run_potential
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.useful_time import UNITS, Counts, busy_shares, useful_times
from profsvc.formulas.numerics.flags import Flag, flag_names

SHARES = dict.fromkeys(UNITS, 0.8)
H200 = specs.figures("NVIDIA H200", "9.0")
# The counters that the model reads, each with the range that a hostile or broken export may give it.
FRACTIONS = [name for name in specs.counters() if name.endswith("_fraction")]
COUNTS = [
    "duration_ns", "elapsed_cycles", "sm_elapsed_cycles_sum", "sm_elapsed_cycles_avg", "sm_active_cycles_max",
    "sm_active_cycles_avg",
    "dram_read_bytes", "dram_write_bytes", "global_load_bytes_requested", "global_store_bytes_requested",
    "global_load_sectors", "global_load_l1_miss_sectors", "global_store_sectors", "l2_to_l1_read_bytes",
    "l1_to_l2_write_bytes", "global_theoretical_sectors", "global_theoretical_sectors_ideal", "shared_load_inst_warp",
    "shared_store_inst_warp", "shared_wavefronts_ideal", "global_load_inst_warp", "global_store_inst_warp",
    "fp32_add_inst_per_cycle", "fp32_fma_inst_per_cycle", "fp64_fma_inst_per_cycle", "inst_tensor_warp",
    "inst_executed_warp",
]  # fmt: skip
number = st.one_of(st.none(), st.just(0.0), st.floats(0, 1e15), st.floats(-1e3, 0), st.just(float("inf")))
share = st.one_of(st.none(), st.floats(0, 1), st.floats(1, 150))
counters = st.lists(
    st.fixed_dictionaries({}, optional={**dict.fromkeys(COUNTS, number), **dict.fromkeys(FRACTIONS[:60], share)}),
    min_size=1,
    max_size=4,
)


def frame(rows: list[dict[str, float | None]]) -> pd.DataFrame:
    return pd.DataFrame([{"duration_ns": 1e5, **row} for row in rows], dtype="float64")


@given(counters)
def test_no_launch_is_promised_more_than_its_time(rows: list[dict[str, float | None]]) -> None:
    table = frame(rows)
    figures, _ = peaks(table, H200)
    found, _ = launch_potentials(table, figures, SHARES)
    known = found["speedup"].notna()
    assert (found.loc[known, "speedup"] >= 1).all()
    assert (found.loc[known, "ideal_ns"] <= table.loc[known, "duration_ns"]).all()
    assert (found.loc[known, "ideal_ns"] > 0).all()
    assert found.loc[~known, "reason"].notna().all()


def test_a_launch_without_counters_has_no_potential_but_a_reason() -> None:
    table = pd.DataFrame({"duration_ns": [1e5, np.nan], "dram_throughput_fraction": [np.nan, 0.5]})
    found, _ = launch_potentials(table, peaks(table, None)[0], SHARES)
    assert found["speedup"].isna().all()
    assert "SpeedOfLight" in found["reason"][0]
    assert "duration" in found["reason"][1]


COUNTED = (
    "global_load_bytes_requested", "global_store_bytes_requested", "global_load_inst_warp", "global_store_inst_warp",
    "shared_load_inst_warp", "shared_store_inst_warp", "shared_wavefronts_ideal", "inst_fp32_thread",
    "inst_fp64_thread",
)  # fmt: skip


def test_a_potential_without_counts_of_what_was_useful_is_a_floor(demo: Engine) -> None:
    table = store.counters(demo, 1)
    lacking = table.drop(columns=[name for name in table if name in COUNTED or re.match("fp(32|64)_|flop_", name)])
    full, bare = (launch_potentials(one, peaks(one, H200)[0], SHARES)[0] for one in (table, lacking))
    is_floor = bare["flags"] & int(Flag.LOWER_BOUND) > 0
    assert (full["flags"] == 0).all()
    assert is_floor.sum() > 20
    assert (bare["speedup"] <= full["speedup"] * (1 + 1e-9))[is_floor].all()
    assert (full["speedup"] > 2 * bare["speedup"])[is_floor].any()


class Noted(Counts):
    """Counters that note which of them were asked for."""

    asked: ClassVar[set[str]] = set()

    def __getitem__(self, name: str) -> np.ndarray:
        self.asked.add(name)
        return super().__getitem__(name)


# Times of the passes of one launch differ, and a pipe is busy a little longer than its instructions need.
PASSES = 1.03


@pytest.fixture
def read(demo: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the counters that the potential reads, but those without which a launch or a pipe is another one."""
    Noted.asked.clear()
    with monkeypatch.context() as patched:
        for module in ("launch_potential", "useful_time"):
            patched.setattr(f"profsvc.analysis.potential.{module}.Counts", Noted)
        table = store.counters(demo, 1)
        launch_potentials(table, peaks(table, H200)[0], SHARES)
    names = Noted.asked & set(table) - {"duration_ns", "pipe_fmaheavy_elapsed_fraction"}
    assert len(names) > 50
    return sorted(names)


def test_whatever_is_missing_the_flags_say_to_which_side_a_bound_moved(demo: Engine, read: list[str]) -> None:
    table, rng = store.counters(demo, 1), np.random.default_rng(7)
    figures, _ = peaks(table, H200)
    full, _ = launch_potentials(table, figures, SHARES)
    seen = {column: dict.fromkeys(("=", ">", "<"), 0) for column in ("speedup", "speedup_ceiling")}
    for lacking in [*([name] for name in read), *(rng.choice(read, size) for size in (2, 3, 5, 10, 20, 30) * 5)]:
        bare, _ = launch_potentials(table.drop(columns=set(lacking)), figures, SHARES)
        for column, flags in (("speedup", "flags"), ("speedup_ceiling", "ceiling_flags")):
            is_floor, is_ceiling = (bare[flags] & int(flag) > 0 for flag in (Flag.LOWER_BOUND, Flag.UPPER_BOUND))
            ratio = bare[column] / full[column]
            assert not (ratio > PASSES)[~is_ceiling].any(), (column, lacking)
            assert not (ratio < 1 / PASSES)[~is_floor].any(), (column, lacking)
            for sign, flagged in (("=", ~is_floor & ~is_ceiling), (">", is_floor), ("<", is_ceiling)):
                seen[column][sign] += int((flagged & ratio.notna()).sum())
    assert min(number for of in seen.values() for number in of.values()) > 100


def test_of_an_unknown_device_the_potential_is_a_floor(demo: Engine) -> None:
    table = store.counters(demo, 1)
    figures, _ = peaks(table, H200)
    rates = ["schedulers_per_sm", "fp32_lanes_per_sm", "fp64_lanes_per_sm"]
    full, bare = (
        launch_potentials(table, one, SHARES)[0] for one in (figures, figures.assign(**dict.fromkeys(rates, np.nan)))
    )
    assert (bare["speedup"] <= PASSES * full["speedup"]).all()
    assert set(bare.loc[bare["flags"] == int(Flag.LOWER_BOUND), "ideal_bound"]) == {"fp32", "fp64", "issue"}


def test_the_whole_run_keeps_the_time_of_launches_without_a_bound() -> None:
    launches = pd.DataFrame(
        {
            "duration_ns": [100.0, 300.0], "ideal_ns": [50.0, np.nan],
            "bound": ["dram", None], "ideal_bound": ["dram", None],
            "mem_throughput_ratio": [0.5, np.nan], "arith_throughput_ratio": [0.1, np.nan],
            "speedup_ceiling": [2.0, np.nan], "flags": [int(Flag.UPPER_BOUND), 0], "ceiling_flags": [0, 0],
        }
    )  # fmt: skip
    whole = run_potential(launches)
    assert whole["speedup"] == 400 / 350
    assert flag_names(whole["flags"]) == ["UPPER_BOUND", "LOWER_BOUND"]
    assert flag_names(whole["ceiling_flags"]) == ["LOWER_BOUND"]
    no_ceiling = run_potential(launches.assign(speedup_ceiling=np.nan))
    assert np.isnan(no_ceiling["speedup_ceiling"])
    assert no_ceiling["ceiling_flags"] == 0


def test_useful_work_is_never_more_than_a_unit_did(demo: Engine) -> None:
    table = store.counters(demo, 1)
    figures, _ = peaks(table, H200)
    share = useful_times(table, figures).div(table["duration_ns"], axis=0)
    done = pd.DataFrame(busy_shares(Counts(table)), index=table.index)
    for unit in ("dram", "l2", "l1", "xu", "issue"):
        assert (share[unit] <= done[unit] * 1.02 + 1e-3).all(), unit


def test_special_functions_of_lanes_without_a_thread_are_not_useful() -> None:
    work = {
        "pipe_xu_elapsed_fraction": 0.8, "warp_execution_efficiency_fraction": 0.5, "flop_count_sp_add": 1e9,
        "flop_count_sp_mul": 0.0, "flop_count_sp_fma": 0.0, "flop_count_dp_add": 0.0, "flop_count_dp_mul": 0.0,
        "flop_count_dp_fma": 0.0, "elapsed_cycles": 1e5, "inst_executed_warp": 1e8, "global_load_inst_warp": 1e3,
        "inst_tensor_warp": 0.0, "warp_nonpred_execution_efficiency_fraction": 0.4,
    }  # fmt: skip
    table = frame([work, work | {"warp_execution_efficiency_fraction": 1.0}])
    times = useful_times(table, peaks(table, H200)[0])["xu"] / 1e5
    assert times.tolist() == pytest.approx([0.4, 0.8])


def test_the_same_work_implies_the_same_ideal(demo: Engine) -> None:
    rows = pd.DataFrame(store.select(demo, "v1_potential", run_id=1)).dropna(subset=["launch_id"])
    names = rows["kernel_short"].str.replace(r"_v\d.*|_naive|_tiled", "", regex=True)
    spread = rows.groupby(names)["ideal_ns"].agg(lambda ideal: ideal.max() / ideal.min())
    assert spread[["reduce", "divergent", "shared_conflict"]].max() < 1.5
    assert spread["strided_copy"] < 1.5
    # L1 counts which values it delivers again, and a tile of eight by eight in registers spares three quarters of them;
    # shared memory does not, and all that a tile is read counts as useful.
    assert spread["gemm"] < 3.3


def test_the_ratios_are_the_speedup_as_the_source_writes_it(demo: Engine) -> None:
    for row in store.select(demo, "v1_potential", run_id=1):
        if row["launch_id"] is not None:
            ratio = max(row["mem_throughput_ratio"], row["arith_throughput_ratio"])
            assert abs(row["speedup"] * ratio - 1) < 1e-9


def test_time_of_idle_sms_is_not_needed_by_their_units() -> None:
    # A quarter of the time is idle; at 80 % of its peak each unit would need 90 % of the time.
    idle = {"sm_elapsed_cycles_avg": 1e5, "sm_active_cycles_avg": 0.75e5}
    table = frame([idle, {**idle, "sm_active_cycles_avg": 0.0}])
    c, figures = Counts(table), peaks(table, H200)[0]
    times = pd.DataFrame({unit: [0.72e5, 0.72e5] for unit in UNITS})
    needed = pd.DataFrame(needed_ns(c, figures, times, np.full(len(UNITS), 0.8)), columns=UNITS)
    assert needed.loc[0, ["fp64", "issue", "l1"]].tolist() == pytest.approx([0.75e5] * 3)
    assert needed.loc[0, ["dram", "l2"]].tolist() == pytest.approx([0.9e5] * 2), "they serve all SMs"
    assert needed.loc[1].tolist() == pytest.approx([0.9e5] * len(UNITS)), "not counted"
