"""Lost time is divided among causes: made-up launches with one flaw each, and what the shares add up to."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.causes.attribution import STALLS, lost_time, ranked
from profsvc.analysis.potential.peaks import peaks
from profsvc.specs.causes import causes

KINDS = {name: cause.kind for name, cause in causes().items()}
QUIET = {
    "duration_ns": 1e5, "elapsed_cycles": 1.8e5, "sm_elapsed_cycles_avg": 1.8e5, "sm_elapsed_cycles_sum": 132 * 1.8e5,
    "sm_active_cycles_max": 1.8e5, "sm_active_cycles_avg": 1.8e5, "sm_count": 132.0, "grid_blocks": 1056.0,
    "block_threads": 256.0, "waves_per_sm": 1.0, "issue_active_elapsed_fraction": 0.2,
    "theoretical_occupancy_fraction": 1.0,
    "warp_execution_efficiency_fraction": 1.0, "warp_nonpred_execution_efficiency_fraction": 1.0,
    "inst_executed_warp": 1e6, "inst_fp32_thread": 1.6e7, "inst_ldst_thread": 1.6e7, "global_load_inst_warp": 5e5,
    "global_load_sectors": 2e6, "global_load_bytes_requested": 6.4e7, "dram_read_bytes": 6.4e7,
    "stall_long_scoreboard_warp_cycles": 1e8, "occupancy_limit_by_warps_blocks": 8.0,
}  # fmt: skip
FLAWS = {
    "uncoalesced_loads": {"global_load_sectors": 1.6e7, "sol_l1_fraction": 0.95, "global_load_l1_hit_fraction": 0.9},
    "few_loads_in_flight": {"dram_throughput_fraction": 0.1},
    "occupancy_registers": {"theoretical_occupancy_fraction": 0.125, "occupancy_limit_by_registers_blocks": 1.0},
    "grid_too_small": {"grid_blocks": 33.0, "sm_active_cycles_avg": 0.45e5},
    "sm_imbalance": {"sm_active_cycles_avg": 0.6e5},
    "register_spills": {"local_load_sectors": 8e6, "register_spill_inst_warp": 2e6},
    "local_memory": {"local_load_sectors": 8e6},
    "contended_global_atomics": {"global_reduction_inst_warp": 5e6},
    "barriers": {"stall_barrier_warp_cycles": 9e8, "inst_misc_thread": 8e6, "inst_per_warp": 500.0},
    "instruction_cache": {"stall_no_instruction_warp_cycles": 9e8},
    "divergent_constants": {"stall_imc_miss_warp_cycles": 9e8},
    "dependent_instructions": {"stall_wait_warp_cycles": 9e8},
    "thread_divergence": {
        "issue_active_elapsed_fraction": 0.9, "warp_execution_efficiency_fraction": 0.1,
        "warp_nonpred_execution_efficiency_fraction": 0.1,
    },
    "partly_filled_warps": {
        "issue_active_elapsed_fraction": 0.9, "block_threads": 8.0, "warp_execution_efficiency_fraction": 0.25,
        "warp_nonpred_execution_efficiency_fraction": 0.25,
    },
}  # fmt: skip


def shares(launches: list[dict[str, float]]) -> pd.DataFrame:
    counters = pd.DataFrame(launches)
    return lost_time(counters, peaks(counters, specs.figures("NVIDIA H200", "9.0"))[0])


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_the_first_cause(flaw: str) -> None:
    parts = shares([QUIET | FLAWS[flaw]]).iloc[0].dropna().to_dict()
    assert ranked(parts, 1.0, KINDS)[0][0] == flaw


def test_the_parts_of_the_time_add_up_to_it() -> None:
    table = shares([QUIET | flaw for flaw in FLAWS.values()])
    assert set(table) <= set(KINDS)
    assert (table >= -1e-12).all().all()
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=0.02)


def test_shares_of_flaws_never_pass_the_loss() -> None:
    found = ranked({"barriers": 0.6, "uncoalesced_loads": 0.3, "memory_limit": 0.1}, 0.45, KINDS)
    assert [name for name, _ in found] == ["barriers", "uncoalesced_loads"]
    assert sum(share for _, share in found) == pytest.approx(0.45)
    assert ranked({"memory_limit": 1.0}, 0.45, KINDS) == []


def test_without_stalls_nothing_is_attributed() -> None:
    bare = {name: value for name, value in QUIET.items() if not name.startswith("stall_")}
    assert shares([bare]).isna().all(axis=None)
    assert len(STALLS) == len(set(STALLS))
