"""Counters of made-up launches: one that waits a little for memory, and what each flaw changes in it."""

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
    "occupancy_registers": {
        "dram_throughput_fraction": 0.3, "theoretical_occupancy_fraction": 0.125,
        "occupancy_limit_by_registers_blocks": 1.0,
    },
    "grid_too_small": {"grid_blocks": 33.0, "sm_active_cycles_avg": 0.45e5},
    "sm_imbalance": {"sm_active_cycles_avg": 0.6e5},
    "register_spills": {"local_load_sectors": 8e6, "register_spill_inst_warp": 2e6},
    "local_memory": {"local_load_sectors": 8e6},
    "contended_global_atomics": {"global_reduction_inst_warp": 5e6},
    "barriers": {
        "stall_barrier_warp_cycles": 9e8, "stall_not_selected_warp_cycles": 9e8, "inst_misc_thread": 8e6,
        "inst_per_warp": 500.0,
    },
    # No counted unit is busy, but each access takes far longer than a single one: it stands in a queue.
    "uncoalesced_stores": {
        "stall_drain_warp_cycles": 9e9, "global_store_inst_warp": 1e6, "global_store_requests": 1e6,
        "global_store_sectors": 3.2e7, "global_store_bytes_requested": 1.28e8,
    },
    "instruction_cache": {"stall_no_instruction_warp_cycles": 9e8},
    "divergent_constants": {"stall_imc_miss_warp_cycles": 9e8},
    "dependent_instructions": {"stall_wait_warp_cycles": 9e8},
    "thread_divergence": {
        "issue_active_elapsed_fraction": 0.9, "warp_execution_efficiency_fraction": 0.1,
        "warp_nonpred_execution_efficiency_fraction": 0.1,
    },
    "type_conversions": {"issue_active_elapsed_fraction": 0.9, "inst_bit_convert_thread": 9e8},
    "accidental_double": {
        "issue_active_elapsed_fraction": 0.9, "inst_bit_convert_thread": 9e8, "inst_fp64_thread": 9e8,
    },
    "expensive_functions": {
        "issue_active_elapsed_fraction": 0.9, "inst_fp32_thread": 9e9, "inst_bit_convert_thread": 5e8,
    },
    "integer_division": {
        "issue_active_elapsed_fraction": 0.9, "inst_pipe_xu_warp": 1.5e6, "inst_fp32_thread": 0.0,
        "inst_bit_convert_thread": 3.2e7, "inst_integer_thread": 2e8,
    },
    "warp_imbalance": {
        "achieved_occupancy_fraction": 0.1, "warps_per_block": 8.0,
        "warp_latency_avg_cycles": 1e4, "block_latency_avg_cycles": 1e5,
    },
    "occupancy_block_size": {
        "dram_throughput_fraction": 0.5, "theoretical_occupancy_fraction": 0.5, "occupancy_limit_by_warps_blocks": 8.0,
        "occupancy_limit_by_registers_blocks": 8.0,
    },
    "cache_thrashing": {
        "global_load_sectors": 1.6e7, "global_load_requests": 5e5, "l2_tex_read_sectors": 1.6e7,
        "l2_tex_requests": 1.6e7, "dram_read_bytes": 5e8, "dram_throughput_fraction": 0.9, "l2_read_hit_fraction": 0.1,
    },
    "partly_filled_warps": {
        "issue_active_elapsed_fraction": 0.9, "block_threads": 8.0, "warp_execution_efficiency_fraction": 0.25,
        "warp_nonpred_execution_efficiency_fraction": 0.25,
    },
}  # fmt: skip
