"""Lost time is divided among causes: made-up launches with one flaw each, and what the shares add up to."""

import numpy as np
import pandas as pd
import pytest

from profsvc import specs
from profsvc.analysis.causes.attribution import lost_time, savings
from profsvc.analysis.causes.rows import is_proven
from profsvc.analysis.causes.time_budget import STALLS
from profsvc.analysis.potential.peaks import peaks
from profsvc.specs.advice.causes import causes
from tests.analysis.causes.sample_launches import FLAWS, QUIET

MANY = {"waves_per_sm": 8.0, "warps_per_block": 8.0, "max_warps_per_sm": 64.0}
NO_REPEAT = {"global_load_again_fraction": 0.0}


def shares(launches: list[dict[str, float]]) -> pd.DataFrame:
    counters = pd.DataFrame(launches)
    return lost_time(counters, peaks(counters, specs.figures("NVIDIA H200", "9.0"))[0])


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_the_first_cause(flaw: str) -> None:
    found = savings(shares([QUIET | FLAWS[flaw]]), np.array([1.0])).drop(columns="unexplained")
    assert found.iloc[0].idxmax() == flaw


def test_a_mean_warp_that_waits_longer_than_it_works_waits_for_longer_ones() -> None:
    equal = QUIET | FLAWS["barriers"]
    table = shares([equal, equal | {"stall_not_selected_warp_cycles": 0.0}])
    assert table["warp_imbalance"][0] < 0.2 * table["barriers"][0]
    assert table["warp_imbalance"][1] > table["barriers"][1]


def test_accesses_without_a_queue_are_too_few() -> None:
    stored = QUIET | FLAWS["uncoalesced_stores"]
    waits = stored["stall_long_scoreboard_warp_cycles"] + stored["stall_drain_warp_cycles"]
    single = stored | {"global_store_inst_warp": waits / 300, "global_store_requests": waits / 300}
    found = savings(shares([stored, single]), np.ones(2))
    assert found["uncoalesced_stores"][0] > found["few_loads_in_flight"][0]
    assert found["few_loads_in_flight"][1] > found["uncoalesced_stores"][1]


def test_blocks_of_one_wave_that_end_early_are_unequal() -> None:
    waiting = QUIET | FLAWS["dependent_instructions"] | {"waves_per_sm": 0.25, "warps_per_block": 1.0}
    table = shares([waiting | {"achieved_occupancy_fraction": full} for full in (0.25, 0.1)])
    assert table["sm_imbalance"][0] == 0
    assert table["sm_imbalance"][1] > 0
    assert table["dependent_instructions"][1] < table["dependent_instructions"][0]


def test_slots_that_are_empty_for_longer_than_a_block_takes_to_start_are_of_ended_warps() -> None:
    many = {"waves_per_sm": 100.0, "warps_per_block": 8.0, "max_warps_per_sm": 64.0}
    waiting = QUIET | FLAWS["few_loads_in_flight"] | many | {"achieved_occupancy_fraction": 0.3}
    # Eight blocks an SM: one starts every 157 cycles, so that all slots of 0.7 x 1,800 cycles may wait for one.
    short, long = waiting, waiting | {"sm_active_cycles_avg": 1.8e6, "sm_elapsed_cycles_avg": 1.8e6}
    table = shares([short, long | {"sm_active_cycles_max": 1.8e6}])
    assert table["occupancy_block_size"][0] > 5 * table["warp_imbalance"][0]
    assert table["warp_imbalance"][1] > 5 * table["occupancy_block_size"][1]


def test_of_empty_slots_half_may_be_between_blocks_if_nobody_counted_how_long_these_last() -> None:
    waiting = QUIET | FLAWS["few_loads_in_flight"] | {"waves_per_sm": 100.0, "warps_per_block": 8.0}
    table = shares([waiting | {"achieved_occupancy_fraction": 0.3}])
    assert table["occupancy_block_size"][0] > 0.2 * table["warp_imbalance"][0] > 0


def test_blocks_that_wait_for_their_longest_warps_end_later_than_others() -> None:
    ragged = QUIET | MANY | {"sm_active_cycles_avg": 1.62e5}
    table = shares([ragged | {"achieved_occupancy_fraction": full} for full in (1.0, 0.3)])
    assert table["sm_imbalance"].tolist() == pytest.approx([0.1, 0.1 * (1 - 0.7 + 0.5 / 8)], abs=0.02)
    assert table["warp_imbalance"][1] - table["warp_imbalance"][0] > 0.05


def test_more_than_a_block_at_the_end_is_of_longer_blocks() -> None:
    unequal = QUIET | MANY | {"sm_active_cycles_avg": 0.6e5}
    table = shares([unequal | {"achieved_occupancy_fraction": full} for full in (1.0, 0.3)])
    assert table["sm_imbalance"][1] > 0.9 * table["sm_imbalance"][0]


@pytest.mark.parametrize("flaw", ["dependent_instructions", "few_loads_in_flight"])
def test_no_resource_limits_the_warps_of_a_grid_of_less_than_one_wave(flaw: str) -> None:
    fitting = {
        "theoretical_occupancy_fraction": 0.375, "occupancy_limit_by_registers_blocks": 6.0,
        "registers_per_thread": 80.0, "max_registers_per_sm": 65536.0, "max_warps_per_sm": 64.0,
    }  # fmt: skip
    table = shares([QUIET | FLAWS[flaw] | fitting | {"waves_per_sm": waves} for waves in (0.17, 4.0)])
    occupancy = table.filter(like="occupancy_").sum(axis=1)
    assert occupancy[0] == 0 < occupancy[1]
    assert table[flaw][0] > table[flaw][1]


def test_lanes_without_work_between_two_barriers_are_of_the_barriers() -> None:
    off = 0.5
    halved = QUIET | {"issue_active_elapsed_fraction": 0.9, "warp_nonpred_execution_efficiency_fraction": 1 - off}
    counts = [np.nan, 0.0, 16.0 * 1e6 / 2, 16.0 * 1e6]
    table = shares([halved | {"inst_predicated_off_between_barriers_thread": count} for count in counts])
    whole = table["predicated_off_threads"][0]
    assert whole == pytest.approx(0.9 * off)
    assert table["predicated_off_threads"].tolist() == pytest.approx([whole, whole, whole / 2, 0.0])
    assert (table["barriers"] - table["barriers"][0]).tolist() == pytest.approx([0.0, 0.0, whole / 2, whole])


def test_a_full_queue_of_idle_pipes_is_held_up_by_atomics() -> None:
    waiting = QUIET | {
        "stall_long_scoreboard_warp_cycles": 0.0, "stall_mio_throttle_warp_cycles": 6e8,
        "stall_short_scoreboard_warp_cycles": 2e8, "pipe_xu_elapsed_fraction": 0.1, "global_load_inst_warp": 1e6,
        "l1_tag_requests_global": 0.0,
    }  # fmt: skip
    table = shares([waiting, waiting | {"global_reduction_inst_warp": 3e6}])
    assert table["contended_global_atomics"][0] == 0
    dependent = table["dependent_instructions"][0]
    assert table["dependent_instructions"][1] == pytest.approx(dependent * (1 - 0.75 * 0.75))
    assert table["contended_global_atomics"][1] == pytest.approx(dependent * 0.75 * 0.75)


def test_an_array_in_registers_takes_the_comparisons_of_its_places_and_the_lanes_that_they_leave() -> None:
    compared = QUIET | {
        "issue_active_elapsed_fraction": 0.9, "warp_nonpred_execution_efficiency_fraction": 0.8,
        "inst_integer_thread": 3.2e7, "inst_register_array_thread": 3.2e7, "inst_angle_reduction_thread": 0.0,
    }  # fmt: skip
    table = shares([compared, compared | {"inst_angle_reduction_thread": 3.2e7}])
    # Half of the instructions, and half of the lanes that are off.
    assert table["local_memory"].tolist() == pytest.approx([0.45, 0.0])
    assert table["expensive_functions"].tolist() == pytest.approx([0.0, 0.45])


def test_the_parts_of_the_time_add_up_to_it() -> None:
    table = shares([QUIET | flaw for flaw in FLAWS.values()])
    assert set(table) <= set(causes())
    assert (table >= -1e-12).all().all()
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=0.02)


def test_flaws_save_the_loss_and_no_more() -> None:
    table = pd.DataFrame([{"barriers": 0.6, "uncoalesced_loads": 0.3, "memory_limit": 0.1}] * 3)
    found = savings(table, np.array([0.45, 0.95, np.nan]))
    assert list(found) == ["barriers", "uncoalesced_loads", "unexplained"]
    np.testing.assert_allclose(found["barriers"], [0.3, 0.6, 0.6])
    np.testing.assert_allclose(found["unexplained"], [0.0, 0.05, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), [0.45, 0.95, 0.9])


def test_nothing_is_unexplained_where_another_kernel_is_the_cure() -> None:
    table = pd.DataFrame({"barriers": 0.1, "single_warp_matrices": [0.2, 0.0, 0.2, 0.2]})
    found = savings(table, np.array([0.7, 0.7, np.nan, 0.15]))
    np.testing.assert_allclose(found["single_warp_matrices"], [0.6, 0.0, 0.2, 0.1])
    np.testing.assert_allclose(found["barriers"], [0.1, 0.1, 0.1, 0.05])
    np.testing.assert_allclose(found["unexplained"], [0.0, 0.6, 0.0, 0.0], atol=1e-12)


def test_without_stalls_nothing_is_attributed() -> None:
    bare = {name: value for name, value in QUIET.items() if not name.startswith("stall_")}
    assert shares([bare]).isna().all(axis=None)
    assert len(STALLS) == len(set(STALLS))


def test_of_the_wait_for_a_tile_half_may_be_of_the_few_warps_that_fit() -> None:
    staged = QUIET | FLAWS["occupancy_registers"] | {
        "shared_store_inst_warp": 5e5, "shared_load_inst_warp": 5e7, "global_ldgsts_inst_warp": 0.0,
        "tma_load_inst_warp": 0.0, "inst_per_warp": 5e3, "inst_fp32_thread": 1.6e8,
    }  # fmt: skip
    table = shares([staged, staged | {"shared_store_inst_warp": 0.0}])
    assert table["no_asynchronous_copies"][0] > 0 == table["no_asynchronous_copies"][1]
    assert table["occupancy_registers"][0] == pytest.approx(table["occupancy_registers"][1] / 2)


def test_of_a_tile_that_was_sampled_no_more_can_be_loaded_ahead_than_is_computed() -> None:
    staged = QUIET | {
        "shared_store_inst_warp": 5e5, "shared_load_inst_warp": 5e7, "global_ldgsts_inst_warp": 0.0,
        "tma_load_inst_warp": 0.0, "inst_per_warp": 5e3, "inst_fp32_thread": 1.6e8, "stall_tile_fraction": 0.5,
    }  # fmt: skip
    table = shares([staged, staged | {"stall_tile_fraction": 1.0}, staged | {"stall_tile_fraction": 0.0}])
    # It waits for 80 % of the time and issues in the other 20 %.
    assert table["no_asynchronous_copies"].tolist() == pytest.approx([0.2, 0.2, 0.0])
    assert (table["few_loads_in_flight"] > 0).all()


def test_warps_at_a_barrier_wait_for_those_that_stand_before_conflicting_banks() -> None:
    behind = QUIET | FLAWS["barriers"] | {
        "shared_wavefronts_sass": 132 * 1.8e5 * 0.9, "shared_wavefronts_ideal": 132 * 1.8e5 * 0.1,
        "shared_load_inst_warp": 1e6,
    }  # fmt: skip
    table = shares([behind, behind | {"shared_wavefronts_ideal": 132 * 1.8e5 * 0.9}])
    assert table["bank_conflicts"][1] == 0
    # The pipe is busy for 90 % of the time, and a launch without conflicts needs the 20 % in which it issues.
    assert table["bank_conflicts"][0] == pytest.approx(0.9 * (0.9 - 0.2))
    gained = table["bank_conflicts"][0] - table["bank_conflicts"][1]
    lost = table["barriers"].diff()[1] + table["warp_imbalance"].diff()[1]
    assert lost == pytest.approx(gained)


def test_loads_wait_behind_the_conflicts_of_shared_memory_in_the_pipe_of_l1() -> None:
    cycles = 132 * 1.8e5
    busy = QUIET | {
        "sol_l1_fraction": 0.9, "shared_wavefronts_sass": cycles * 0.9, "shared_wavefronts_ideal": cycles * 0.09,
    }  # fmt: skip
    loads, atomics, ideal = (
        busy | {"shared_load_inst_warp": 1e5},
        busy | {"shared_atomic_inst_warp": 1e5},
        busy | {"shared_load_inst_warp": 1e5, "shared_wavefronts_ideal": cycles * 0.9},
    )
    table = shares([loads, atomics, ideal])
    # Warps wait for global memory in the 80 % of the time in which none issues, nine tenths of it for the pipe.
    behind = 0.8 * 0.9 * 0.9
    assert table["bank_conflicts"].tolist() == pytest.approx([behind, 0.0, 0.0])
    assert table["contended_shared_atomics"].tolist() == pytest.approx([0.0, behind, 0.0])
    assert (table["memory_limit"][2] - table["memory_limit"]).tolist() == pytest.approx([behind, behind, 0.0])


def test_what_dram_brings_for_one_block_after_the_other_depends_on_their_order() -> None:
    busy = {"dram_throughput_fraction": 0.9, "l2_tex_read_sectors": 2e6, "global_load_shared_place_bytes": 6.4e7}
    table = shares([QUIET | busy, QUIET | busy | {"global_load_shared_place_bytes": 0.0}])
    assert table["cache_thrashing"][1] == 0
    whole = table["memory_limit"][1]
    assert table["cache_thrashing"][0] == pytest.approx(whole / 2)
    assert table["memory_limit"][0] == pytest.approx(whole / 2)


def test_what_dram_reads_beyond_distinct_places_of_threads_came_again() -> None:
    busy = {"dram_throughput_fraction": 0.9, "global_load_again_fraction": 0.75, "global_load_distinct_bytes": 1.6e7}
    table = shares([QUIET | busy, QUIET | busy | {"global_load_distinct_bytes": 6.4e7}, QUIET | busy | NO_REPEAT])
    # L1 lost them, too: the part of the wait in which nothing is busy is theirs.
    limit, latency = table["memory_limit"][2], table["few_loads_in_flight"][2]
    assert table["cache_thrashing"].tolist() == pytest.approx([0.75 * (limit + latency), 0.75 * latency, 0])


def test_what_l1_lost_of_what_a_thread_loaded_before_is_thrashing_and_no_redundant_load() -> None:
    busy = {"sol_l2_fraction": 0.9, "dram_read_bytes": 1e5, "global_load_again_fraction": 0.9}
    table = shares([QUIET | busy, QUIET | busy | {"global_load_again_fraction": 0.0}])
    assert table["cache_thrashing"][0] > table["redundant_loads"][0]
    assert table["cache_thrashing"][1] == 0
    assert table["redundant_loads"][1] > table["redundant_loads"][0]


def test_a_stride_is_uncoalesced_where_a_gather_is_unrelated() -> None:
    gather = QUIET | FLAWS["cache_thrashing"]
    table = shares([gather, gather | {"global_load_regular_excess_fraction": 1.0}])
    assert table["uncoalesced_loads"][1] > 0.5 > table["uncoalesced_loads"][0]
    assert table["cache_thrashing"][1] == table["unrelated_accesses"][1] == 0


def test_what_l1_loses_of_a_table_that_values_look_up_is_thrashing() -> None:
    sectors = {"l2_tex_read_sectors": 1.6e7, "l2_tex_requests": 4e6, "dram_read_bytes": 0.0}
    loads = QUIET | FLAWS["uncoalesced_loads"] | sectors | {"global_load_l1_hit_fraction": 0.25}
    table = shares([loads, loads | {"global_load_regular_excess_fraction": 0.0}])
    before, after = table["uncoalesced_loads"]
    assert table["cache_thrashing"].tolist() == pytest.approx([0, before - after])
    assert after < 0.3 * before
    counters = pd.DataFrame([loads, loads | {"global_load_regular_excess_fraction": 0.0}])
    assert is_proven("cache_thrashing", counters).tolist() == [0, 1]


def test_stores_at_places_that_memory_tells_are_unrelated() -> None:
    stored = QUIET | FLAWS["uncoalesced_stores"]
    stored = stored | {"dram_write_bytes": 10 * stored["global_store_bytes_requested"]}
    table = shares([stored, stored | {"global_store_regular_excess_fraction": 0.0}])
    scattered = 0.9 * table["uncoalesced_stores"][0]
    assert table["unrelated_accesses"].tolist() == pytest.approx([0, scattered])
    assert table["uncoalesced_stores"][1] == pytest.approx(table["uncoalesced_stores"][0] - scattered)


def test_lanes_behind_the_first_of_each_warp_are_predicated_off() -> None:
    off = QUIET | FLAWS["thread_divergence"]
    table = shares([off, off | {"inst_first_lanes_off_thread": 0.9 * 32e6}])
    assert table["predicated_off_threads"].tolist() == pytest.approx([0, table["thread_divergence"][0]])
    assert table["thread_divergence"][1] == pytest.approx(0)


def test_warps_of_one_working_lane_are_partly_filled_where_none_waits_for_another() -> None:
    alone = QUIET | FLAWS["thread_divergence"] | {"inst_lone_warp": 0.8e6, "warps_per_block": 8.0}
    ended = {"barrier_inst_warp": 0.0, "achieved_occupancy_fraction": 0.125}
    ended |= {"warp_latency_avg_cycles": 1e4, "block_latency_avg_cycles": 8e4}
    table = shares([alone, alone | {"barrier_inst_warp": 8448.0}, alone | {"barrier_inst_warp": 0.0}, alone | ended])
    assert table["partly_filled_warps"][:2].tolist() == [0, 0]
    assert table["partly_filled_warps"][2] == pytest.approx(table["serial_section"][1])
    assert table["serial_section"][2] == pytest.approx(0)
    # Seven of eight warps have ended: the one that is left works for its block.
    assert table["serial_section"][3] == pytest.approx(0.875 * table["serial_section"][1])


def test_lanes_on_paths_of_their_own_fetch_the_code_of_each() -> None:
    full = QUIET | FLAWS["instruction_cache"]
    paths = full | {"warp_execution_efficiency_fraction": 0.1, "warp_nonpred_execution_efficiency_fraction": 0.1}
    table = shares([full, paths])
    fetched = table["instruction_cache"][0]
    assert table["instruction_cache"][1] == pytest.approx(0.1 * fetched)
    assert table["thread_divergence"][1] > 0.9 * fetched


def test_warps_late_at_a_barrier_waited_for_contended_atomics() -> None:
    late = QUIET | {"barrier_inst_warp": 1e4, "stall_barrier_warp_cycles": 1e8}
    table = shares([late, late | FLAWS["contended_global_atomics"]])
    assert table["warp_imbalance"][0] > 0.1
    assert table["warp_imbalance"][1] < 0.5 * table["warp_imbalance"][0]
    assert table["contended_global_atomics"][1] > table["warp_imbalance"][0]


def test_a_block_waits_for_a_long_section_of_one_thread() -> None:
    waits = QUIET | FLAWS["barriers"] | {"warps_launched": 8448.0, "inst_lone_warp": 1e5}
    # 47 instructions of one thread a block, while each warp does 107; and the last instructions of warps, all short.
    table = shares([waits | {"inst_alone_section_warp": 5e4}, waits | {"inst_alone_section_warp": 0.0}])
    section, others = 5e4 / 1056, 9.5e5 / 8448
    waited = table[["serial_section", "barriers", "warp_imbalance"]].sum(axis=1)
    assert table["serial_section"][0] == pytest.approx(section / others * waited[0], rel=0.1)
    assert table["serial_section"][1] == 0


def test_a_thread_that_waits_for_other_blocks_is_at_a_barrier_of_the_grid() -> None:
    waits = (
        QUIET | FLAWS["barriers"] | {"warps_launched": 8448.0, "inst_lone_warp": 1e5, "stall_membar_warp_cycles": 1e6}
    )
    alone, met = {"inst_alone_section_warp": 1e5}, {"inst_alone_section_warp": 0.0, "inst_meeting_warp": 1e5}
    asks = {"stall_long_scoreboard_warp_cycles": 2e6, "stall_meeting_fraction": 1.0}
    table = shares([waits | alone | asks, waits | met | asks])
    assert table["serial_section"][0] > 0.1
    assert table.loc[1, ["serial_section", "warp_imbalance", "thread_divergence"]].tolist() == pytest.approx([0, 0, 0])
    assert table["barriers"][1] > table["barriers"][0] + table["serial_section"][0]


def test_warps_of_a_block_at_other_schedulers_take_no_turns() -> None:
    wait = {"barrier_inst_warp": 1e5, "stall_barrier_warp_cycles": 2e7, "active_warps_per_scheduler_avg": 8.0}
    waits = QUIET | FLAWS["barriers"] | wait
    table = shares([waits | {"block_threads": 1024.0}, waits | {"block_threads": 128.0}])
    assert table["barriers"][0] > table["barriers"][1]
    assert table["warp_imbalance"][0] < table["warp_imbalance"][1]


def test_a_place_that_comes_from_the_load_before_is_of_no_list_and_needs_no_word() -> None:
    narrow = (
        QUIET
        | FLAWS["few_loads_in_flight"]
        | {f"memory_inst_{bits}bit_warp": 1e6 * (bits == 16) for bits in (8, 16, 32, 64, 128)}
    )
    loads = narrow["global_load_inst_warp"]
    table = shares([narrow, narrow | {"global_load_chained_inst_warp": loads}])
    assert table["narrow_accesses"][0] > table["narrow_accesses"][1]


def test_a_sector_of_one_word_for_all_lanes_is_not_uncoalesced() -> None:
    loads = QUIET | FLAWS["uncoalesced_loads"] | {"global_theoretical_sectors": 1.6e7}
    table = shares([loads | {"global_theoretical_sectors_ideal": ideal} for ideal in (2e6, 8e6, 1.6e7)])
    assert table["uncoalesced_loads"][0] > table["uncoalesced_loads"][1] > 0 == table["uncoalesced_loads"][2]


def test_arithmetic_that_warps_wait_for_behind_longer_ones_is_of_their_imbalance() -> None:
    waits = QUIET | FLAWS["dependent_instructions"] | {"warps_per_block": 8.0, "achieved_occupancy_fraction": 0.25}
    table = shares([waits | {"warp_latency_avg_cycles": 25.0, "block_latency_avg_cycles": 100.0}, waits])
    equal = shares([waits | {"warp_latency_avg_cycles": 100.0, "block_latency_avg_cycles": 100.0}])
    assert table["warp_imbalance"][0] > 0.3
    assert equal["warp_imbalance"][0] < 0.01


def test_loads_of_tiles_are_of_the_matrix_instructions_that_would_spare_them() -> None:
    tiles = QUIET | {
        "inst_fp16_thread": 8e6, "inst_fp32_thread": 2e7, "flop_count_sp_fma": 2e7, "thread_inst_executed": 3.2e7,
        "inst_tensor_warp": 0.0, "shared_load_inst_warp": 1e6, "sol_l1_fraction": 0.9,
        "stall_mio_throttle_warp_cycles": 9e8, "shared_wavefronts_sass": 2e7, "shared_wavefronts_ideal": 2e7,
        "global_load_bytes_requested": 4e6,
    }  # fmt: skip
    table = shares([tiles, tiles | {"inst_tensor_warp": 1e6}])
    assert table["shared_memory_limit"][0] == 0 < table["shared_memory_limit"][1]
    assert table["tensor_cores_unused"][0] >= table["shared_memory_limit"][1]
    assert table["tensor_cores_unused"][1] == 0


def test_warps_that_registers_leave_room_for_are_lacking_by_the_size_of_the_block() -> None:
    held = {"max_registers_per_sm": 65536.0, "max_warps_per_sm": 64.0, "registers_per_thread": 56.0}
    large = QUIET | FLAWS["occupancy_registers"] | held
    found = shares([large | {"theoretical_occupancy_fraction": warps / 64} for warps in (22, 36)])
    both = found["occupancy_block_size"] + found["occupancy_registers"]
    fitting = 65536 / 32 / 56
    of_size = [np.log(fitting / warps) / np.log(64 / warps) for warps in (22, 36)]
    assert (found["occupancy_block_size"] / both).tolist() == pytest.approx(of_size, abs=1e-6)


def test_memory_that_the_driver_sets_aside_for_the_blocks_that_fit_is_no_limit() -> None:
    fitting = {f"occupancy_limit_by_{name}_blocks": 4.0 for name in ("shared_mem", "barriers")}
    few = QUIET | FLAWS["occupancy_registers"] | {"occupancy_limit_by_registers_blocks": 32.0} | fitting
    found = shares([few, few | {"occupancy_limit_by_shared_mem_blocks": 3.0}])
    assert found["occupancy_barriers"][0] > found["occupancy_shared_memory"][0] == 0
    assert found["occupancy_shared_memory"][1] > found["occupancy_barriers"][1] == 0


def test_a_fuller_warp_waits_less_for_shared_memory() -> None:
    queued = QUIET | {
        "stall_mio_throttle_warp_cycles": 9e8, "stall_long_scoreboard_warp_cycles": 1e7,
        "shared_wavefronts_sass": 132 * 1.7e5, "shared_wavefronts_ideal": 132 * 1.7e5,
        "shared_load_inst_warp": 132 * 1.7e5,
        "sol_l1_fraction": 0.95,
    }  # fmt: skip
    found = shares([queued, queued | {"warp_execution_efficiency_fraction": 0.5}])
    assert found["thread_divergence"][1] > 0.3
    assert found["shared_memory_limit"][1] == pytest.approx(found["shared_memory_limit"][0] / 2, rel=0.01)
