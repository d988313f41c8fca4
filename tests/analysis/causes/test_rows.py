"""The rows of causes: ranked, with evidence, and savings that add up to the loss."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.causes.rows import COLUMNS, launch_causes
from profsvc.analysis.potential.launch_potential import launch_potentials
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.useful_time import UNITS
from profsvc.specs.advice.causes import least_shares
from tests.analysis.causes.sample_launches import FLAWS, QUIET


def rows(launches: list[dict[str, float]], ideal_ns: float, unit: str | None = "dram") -> pd.DataFrame:
    counters = pd.DataFrame(launches, index=[10 + place for place in range(len(launches))])
    figures = peaks(counters, specs.figures("NVIDIA H200", "9.0"))[0]
    return launch_causes(counters, figures, counters[["duration_ns"]].assign(ideal_ns=ideal_ns, ideal_bound=unit))


def test_savings_add_up_to_the_loss() -> None:
    table = rows([QUIET | flaw for flaw in FLAWS.values()], 0.3e5)
    assert tuple(table) == COLUMNS
    assert set(table["launch_id"]) == {10 + place for place in range(len(FLAWS))}
    for _, own in table.groupby("launch_id"):
        assert list(own["rank"]) == list(range(1, len(own) + 1))
        assert own["saving_fraction"].sum() == pytest.approx(0.7)
        assert (own["low"] <= own["saving_fraction"]).all()
        assert (own["saving_fraction"] <= own["high"]).all()


def test_the_cause_of_a_launch_has_its_saving_in_time() -> None:
    first = rows([QUIET | FLAWS["grid_too_small"]], 0.1e5).iloc[0]
    assert first["cause"] == "grid_too_small"
    assert first["saving_ns"] == pytest.approx(first["saving_fraction"] * 1e5)


def test_a_launch_without_stalls_has_no_row() -> None:
    bare = {name: value for name, value in QUIET.items() if not name.startswith("stall_")}
    assert rows([bare], 1e4).empty
    assert set(rows([bare, QUIET], 1e4)["launch_id"]) == {11}


def test_without_a_saving_beyond_its_uncertainty_the_limit_comes_first() -> None:
    table = rows([QUIET | FLAWS["dependent_instructions"]], 0.9e5)
    first = table.iloc[0]
    assert (first["cause"], first["kind"], first["saving_ns"]) == ("memory_limit", "limit", 0.0)
    assert (table["low"] == 0).all()
    assert rows([QUIET | FLAWS["dependent_instructions"]], 0.1e5).iloc[0]["cause"] == "dependent_instructions"


def test_a_launch_that_only_starts_and_drains_is_at_the_limit_of_that() -> None:
    tiny = QUIET | {"duration_ns": 2e3, "sm_elapsed_cycles_avg": 3500.0, "sm_active_cycles_max": 2000.0}
    longer = QUIET | {"duration_ns": 1e5, "sm_elapsed_cycles_avg": 175e3, "sm_active_cycles_max": 174e3}
    assert rows([tiny], 2e3)["cause"][0] == "launch_limit"
    assert rows([longer], 1e5)["cause"][0] == "memory_limit"


NO_OTHER_WORK = dict.fromkeys(
    (
        "inst_fp64_thread", "inst_tensor_warp", "global_store_inst_warp", "global_store_bytes_requested",
        "l1_to_l2_write_bytes", "shared_load_inst_warp", "shared_store_inst_warp",
    ), 0.0,
)  # fmt: skip


ADDRESSES = {
    "inst_fp32_thread": 9e7, "inst_integer_thread": 2.6e9, "inst_executed_warp": 8.5e7,
    "issue_active_elapsed_fraction": 0.9,
    "stall_long_scoreboard_warp_cycles": 1.0, "l2_to_l1_read_bytes": 6.4e7, **NO_OTHER_WORK,
}  # fmt: skip


def test_overhead_beyond_that_of_tuned_kernels_is_a_cause() -> None:
    table = rows([QUIET | ADDRESSES, QUIET | ADDRESSES | {"inst_fp32_thread": 9e8}], 0.5e5, "issue")
    first = table[table["rank"] == 1].set_index("launch_id")["cause"]
    assert first.to_dict() == {10: "overhead_instructions", 11: "arithmetic_limit"}


def test_fewer_instructions_save_nothing_while_conflicts_keep_the_pipe_busy() -> None:
    pipe = {"issue_active_elapsed_fraction": 0.5, "sol_l1_fraction": 1.0, "shared_wavefronts_sass": 132 * 1.8e5}
    conflicts = [QUIET | ADDRESSES | pipe | {"shared_wavefronts_ideal": 132 * ideal} for ideal in (0.9e5, 1.8e5)]
    table = rows(conflicts, 0.5e5, "issue").set_index(["launch_id", "cause"])["saving_fraction"]
    assert table[10, "bank_conflicts"] == pytest.approx(0.5, abs=0.01)
    assert (10, "overhead_instructions") not in table.index
    assert table[11, "overhead_instructions"] > 0.3


def test_what_may_be_needed_is_no_proof() -> None:
    places = {
        "global_load_sectors": 1.6e7, "l2_tex_read_sectors": 1.6e7, "l2_tex_requests": 1.6e7, "dram_read_bytes": 5e8,
        "dram_throughput_fraction": 0.9, "l2_read_hit_fraction": 0.1,
    }  # fmt: skip
    table = rows([QUIET | places], 0.5e5, "dram")
    assert list(table["cause"][:2]) == ["unrelated_accesses", "cache_thrashing"]
    assert table.iloc[1]["saving_fraction"] > 0.1
    assert table.iloc[1]["low"] == 0


def test_sectors_that_never_come_back_are_of_a_stride() -> None:
    places = {
        "global_load_sectors": 1.6e7, "l2_tex_read_sectors": 1.6e7, "l2_tex_requests": 1.6e7, "dram_read_bytes": 5e8,
        "dram_throughput_fraction": 0.9, "l2_read_hit_fraction": 0.0001,
    }  # fmt: skip
    assert rows([QUIET | places], 0.5e5, "dram").iloc[0]["cause"] == "uncoalesced_loads"


def test_lost_time_without_a_cause_is_unexplained() -> None:
    table = rows([QUIET | {"issue_active_elapsed_fraction": 1.0}], 0.1e5).set_index("cause")
    assert table.loc["unexplained", "saving_fraction"] > 0.3
    assert table["saving_fraction"].sum() == pytest.approx(0.9)


def test_without_an_ideal_time_shares_have_no_limits() -> None:
    table = rows([QUIET | FLAWS["grid_too_small"]], float("nan"), None)
    assert table.iloc[0]["cause"] == "grid_too_small"
    assert table.iloc[0]["saving_fraction"] == pytest.approx(0.75)
    assert table["low"].dropna().eq(0).all()


def test_any_counters_give_savings_within_the_time() -> None:
    rng = np.random.default_rng(19)
    names = [name for name, counter in specs.counters().items() if counter.kind == "number"]
    values = rng.choice([0.0, 0.3, 1.0, 31.0, 1e6, 1e15, -1.0, np.inf, np.nan], (300, len(names)))
    counters = pd.DataFrame(values, columns=names).assign(duration_ns=1e5)
    figures = peaks(counters, specs.figures("NVIDIA H200", "9.0"))[0]
    bounds = launch_potentials(counters, figures, dict.fromkeys(UNITS, 0.8))[0]
    table = launch_causes(counters, figures, bounds)
    assert table["launch_id"].nunique() > 50
    assert table["saving_fraction"].between(0, 1 + 1e-9).all()
    known = table.dropna(subset=["low", "high"])
    assert (known["low"] <= known["saving_fraction"]).all()
    assert (known["saving_fraction"] <= known["high"] + 1e-9).all()
    assert (table.groupby("launch_id")["saving_fraction"].sum() <= 1 + 1e-9).all()


def test_each_cause_stands_out_from_its_own_share_on() -> None:
    part_idle = QUIET | {"sm_active_cycles_avg": 1.55e5, "dram_throughput_fraction": 0.92}
    table = rows([part_idle | {"grid_blocks": 110.0}, part_idle], 0.8e5)
    first = table[table["rank"] == 1]
    assert first["cause"].tolist() == ["grid_too_small", "memory_limit"], "of SMs without a block, and that end early"
    shares = table.groupby("cause")["saving_fraction"].max()
    assert least_shares()["grid_too_small"].share < shares["grid_too_small"]
    assert shares["sm_imbalance"] < least_shares()["sm_imbalance"].share


def test_what_exceeds_its_share_most_is_the_answer_and_not_what_costs_most() -> None:
    both = QUIET | FLAWS["grid_too_small"] | {"dram_throughput_fraction": 0.1, "sm_active_cycles_avg": 1.25e5}
    table = rows([both], 0.1e5)
    named = table[table["kind"] == "flaw"].head(2)
    assert named["cause"].tolist() == ["grid_too_small", "few_loads_in_flight"]
    assert named["saving_fraction"].is_monotonic_increasing


def test_a_cause_of_a_small_part_of_a_large_loss_does_not_stand_out() -> None:
    flaw = {"sm_active_cycles_avg": 1.6e5, "dram_throughput_fraction": 0.88}
    table = rows([QUIET | flaw], 0.1e5)
    flaws = table[table["kind"] == "flaw"]
    assert all(
        share < least_shares()[name].share for name, share in zip(flaws.cause, flaws.saving_fraction, strict=True)
    )
    assert table.iloc[0]["kind"] == "limit"


def test_what_does_not_stand_out_is_in_the_order_of_the_factors_to_its_shares() -> None:
    both = QUIET | FLAWS["grid_too_small"] | {"dram_throughput_fraction": 0.1, "sm_active_cycles_avg": 1.25e5}
    table = rows([both], 0.97e5)
    flaws = table[table["kind"] == "flaw"]
    factors = [row.saving_fraction / least_shares()[row.cause].share for row in flaws.itertuples()]
    assert max(factors) < 1
    assert factors == sorted(factors, reverse=True)
    assert not flaws["saving_fraction"].is_monotonic_decreasing
