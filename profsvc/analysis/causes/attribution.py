"""The lost time of launches, divided among the causes of ``causes.toml``.

`profsvc.formulas.performance.lost_time` splits the elapsed time into idle SMs, issued instructions, and stalls by what
warps waited for. Here counters tell which cause each part has:

* idle SMs: a grid of too few blocks, a tail wave, or blocks of unequal length;
* issue slots: lanes that were off, address arithmetic, expansions of library functions, loads that repeat;
* waits for global memory: atomics, local memory, sectors that no lane requested, instructions that move few bytes;
  where no unit of memory is busy, latency that too few warps or loads hide;
* waits for the queue of shared memory and special functions: bank conflicts, divergent constants, conversions;
* waits at barriers, for instructions, and for the result of the instruction before.

What useful work needs is no loss: it counts for the limits.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.useful_time import useful_times
from profsvc.formulas.performance.lost_time import idle_time, stall_time, wait_parts

Array = NDArray[np.float64]

STALLS = (
    "barrier", "membar", "long_scoreboard", "short_scoreboard", "wait", "lg_throttle", "mio_throttle", "tex_throttle",
    "math_pipe_throttle", "no_instruction", "imc_miss", "branch_resolving", "dispatch_stall", "drain", "sleeping",
    "misc", "gmma",
)  # fmt: skip
# nvprof groups the states of warps; each group stands for the state that it mostly holds.
NVPROF_STALLS = {
    "barrier": "stall_sync_fraction",
    "long_scoreboard": "stall_memory_dependency_fraction",
    "wait": "stall_exec_dependency_fraction",
    "no_instruction": "stall_inst_fetch_fraction",
    "imc_miss": "stall_constant_memory_dependency_fraction",
    "tex_throttle": "stall_texture_fraction",
    "lg_throttle": "stall_memory_throttle_fraction",
    "math_pipe_throttle": "stall_pipe_busy_fraction",
    "misc": "stall_other_fraction",
}
GLOBAL = ("long_scoreboard", "lg_throttle", "tex_throttle", "drain", "membar")
THREAD_CLASSES = (
    "fp32", "fp64", "fp16", "integer", "bit_convert", "bit", "control", "ldst", "misc", "interthread", "uniform",
)  # fmt: skip
OVERHEAD = ("integer", "control", "bit_convert", "bit", "uniform")
SECTOR_BYTES = 32
WIDEST_BYTES = 16 * 32
# Instructions that a library function executes for each special function in it: powf and sincosf have more, expf fewer.
EXPANSION = 30.0
# Share of their peaks that DRAM and the sector port of L2 sustain under a copy.
DRAM_SUSTAINED, L2_SUSTAINED = 0.92, 0.6


def waits_of(c: Counts) -> Array:
    """Warp cycles by state of `STALLS`, on the last axis: as counted, else per issue, else by the groups of nvprof."""
    columns = []
    for stall in STALLS:
        cycles = c[f"stall_{stall}_warp_cycles"]
        cycles = np.where(np.isnan(cycles), c[f"stall_{stall}_cycles_per_issue"], cycles)
        columns.append(np.where(np.isnan(cycles), c[NVPROF_STALLS.get(stall, "")], cycles))
    return np.column_stack(columns)


def _share(part: Array, whole: Array | float) -> Array:
    """Return part / whole in [0, 1], 0 where unknown."""
    with np.errstate(all="ignore"):
        return np.clip(np.nan_to_num(part / whole), 0.0, 1.0)


class _Launches:
    """Counters of launches, with the budgets of their time."""

    def __init__(self, counters: pd.DataFrame, figures: pd.DataFrame) -> None:
        self.c = c = Counts(counters)
        self.sms = np.where(np.isnan(c["sm_count"]), figures["sms"].to_numpy(dtype="float64"), c["sm_count"])
        elapsed = c["sm_elapsed_cycles_avg"]
        self.active = np.clip(c["sm_active_cycles_avg"] / elapsed, 0, 1)
        self.active = np.where(np.isnan(self.active), c["sm_efficiency_fraction"], self.active)
        issued = c["issue_active_elapsed_fraction"]
        issued = np.where(np.isnan(issued), c["issue_slot_utilization_fraction"] * self.active, issued)
        self.issued = np.fmin(issued, self.active)
        self.idle = idle_time(
            elapsed, c["sm_active_cycles_max"], c["sm_active_cycles_avg"], c["waves_per_sm"], c["grid_blocks"], self.sms
        )
        stalls = stall_time(self.active, self.issued, waits_of(c))
        self.stall = {name: np.nan_to_num(stalls[:, place]) for place, name in enumerate(STALLS)}
        self.lanes = np.nan_to_num(c["warp_execution_efficiency_fraction"], nan=1.0)
        on = c["warp_nonpred_execution_efficiency_fraction"]
        self.on = np.fmin(np.where(np.isnan(on), self.lanes, on), self.lanes)
        counts = {name: np.nan_to_num(c[f"inst_{name}_thread"]) for name in THREAD_CLASSES}
        every = sum(counts.values())
        self.of_class = {name: _share(count, np.asarray(every)) for name, count in counts.items()}
        self.has_classes = every > 0
        # Of issue slots, the share with payload: arithmetic, and the accesses that it cannot do without.
        times = useful_times(counters, figures)
        self.payload = np.fmin(np.nan_to_num((times["issue"] / c["duration_ns"]).to_numpy(), nan=1.0), self.issued)

    def count(self, *names: str) -> Array:
        """Sum of counters, unknown ones as 0."""
        return np.nan_to_num(self.c.total(*names))


@np.errstate(all="ignore")
def _instructions(launches: _Launches) -> dict[str, Array]:
    """Causes of issue slots, and of waits for arithmetic."""
    c, stall, of = launches.c, launches.stall, launches.of_class
    fixed = stall["wait"] + stall["math_pipe_throttle"] + stall["dispatch_stall"] + stall["branch_resolving"]
    threads = c["block_threads"]
    absent = np.nan_to_num(1 - threads / (32 * np.ceil(threads / 32)))
    off = np.clip(1 - launches.lanes - absent, 0, 1)
    predicated = launches.lanes - launches.on
    # A fuller warp does in one instruction what these did in several, with one wait.
    full = launches.issued + fixed
    useful = launches.issued * launches.on
    conversions = launches.count("inst_bit_convert_thread") / 32 / launches.on
    special = np.clip(np.nan_to_num(c["inst_pipe_xu_warp"] - conversions), 0, None)
    # Range reduction converts to integers and back: a fast form of a function does not, nor does a reciprocal.
    expanded = useful * _share(EXPANSION * np.fmin(special, conversions), c["inst_executed_warp"])
    expanded = expanded * (of["fp64"] == 0)
    division = of["fp32"] + of["fp16"] < of["integer"]
    useful = useful - expanded
    counted = np.asarray(sum(of[name] for name in OVERHEAD))
    overhead = np.where(launches.has_classes, counted, 1 - _share(launches.payload, useful))
    payload = useful * (1 - overhead)
    loads = of["ldst"] * _share(c["global_load_l1_hit_fraction"], 1.0) * _repeats(launches)
    # Addresses and loops serve the loads as well as the arithmetic.
    again = useful * loads * (1 + _share(overhead, 1 - overhead))
    matrices = (of["fp16"] > 0.1) & (of["fp32"] > 0.5) & (launches.count("tensor_ops_fp16", "tensor_ops_bf16") == 0)
    products = np.where(matrices, payload + stall["math_pipe_throttle"] + stall["dispatch_stall"], 0.0)
    # Of the instructions of no class, those of kernels that wait at barriers are mostly the barriers.
    barriers = useful * of["misc"] * (stall["barrier"] > 0)
    rest = np.clip(payload - useful * loads - products - barriers, 0, None)
    limit = np.where(matrices, 0.0, stall["math_pipe_throttle"] + stall["dispatch_stall"])
    return {
        "partly_filled_warps": absent * full,
        "thread_divergence": off * full,
        "predicated_off_threads": predicated * launches.issued,
        "integer_division": np.where(division, expanded, 0.0),
        "expensive_functions": np.where(division, 0.0, expanded),
        "tensor_cores_unused": products,
        "redundant_loads": again,
        "overhead_instructions": useful * overhead - (again - useful * loads),
        "dependent_instructions": (stall["wait"] + stall["branch_resolving"]) * (1 - off - absent),
        "instruction_cache": stall["no_instruction"],
        "barriers": barriers,
        "arithmetic_limit": rest + limit * (1 - off - absent),
    }


@np.errstate(all="ignore")
def _repeats(launches: _Launches) -> Array:
    """Share of the loaded bytes that were loaded before: what DRAM did not have to bring."""
    return 1 - _share(launches.c["dram_read_bytes"], launches.c["global_load_bytes_requested"])


@np.errstate(all="ignore")
def _on_chip(launches: _Launches) -> dict[str, Array]:
    """Causes of waits for the queue that shared memory, special functions and indexed constants share."""
    c, stall, of = launches.c, launches.stall, launches.of_class
    cycles = c["sm_elapsed_cycles_sum"]
    wait = stall["mio_throttle"] + stall["short_scoreboard"]
    wavefronts = launches.count("shared_wavefronts_sass") / cycles
    atomics = launches.count("shared_atomic_inst_warp")
    special = np.nan_to_num(c["pipe_xu_elapsed_fraction"])
    constants = launches.count("constant_idc_requests") / cycles
    busy = np.nan_to_num(wavefronts) + special + np.nan_to_num(constants)
    of_shared, of_special = _share(wavefronts, busy), _share(special, busy)
    of_constants = _share(constants, busy)
    conflicts = _share(c["shared_wavefronts_sass"] - c["shared_wavefronts_ideal"], c["shared_wavefronts_sass"])
    pipe = np.fmax(np.nan_to_num(c["sol_l1_fraction"]), np.nan_to_num(wavefronts))
    shared = wait_parts(wait * of_shared, pipe, conflicts)
    contended = _share(atomics, atomics + launches.count("shared_load_inst_warp", "shared_store_inst_warp"))
    conversions = _share(launches.count("inst_bit_convert_thread") / 32 / launches.on, c["inst_pipe_xu_warp"])
    doubles = of["fp64"] > 0
    function = wait_parts(wait * of_special, special, conversions)
    return {
        "contended_shared_atomics": wait * of_shared * contended,
        "bank_conflicts": (shared.waste + shared.latency * conflicts) * (1 - contended),
        "shared_memory_limit": shared.useful * (1 - contended),
        "type_conversions": np.where(doubles, 0.0, function.waste),
        "accidental_double": np.where(doubles, function.waste, 0.0),
        "divergent_constants": wait * of_constants + stall["imc_miss"],
        "arithmetic_limit": function.useful,
        "dependent_instructions": shared.latency * (1 - conflicts) * (1 - contended) + function.latency,
    }


@np.errstate(all="ignore")
def _memory(launches: _Launches) -> dict[str, Array]:
    """Causes of waits for global memory."""
    c, stall = launches.c, launches.stall
    wait = np.asarray(sum(stall[name] for name in GLOBAL))
    atomics = launches.count("global_atomic_inst_warp", "global_reduction_inst_warp")
    accesses = launches.count("global_load_inst_warp", "global_store_inst_warp")
    accesses = accesses + launches.count("local_load_inst_warp", "local_store_inst_warp")
    reads = c["global_load_inst_warp"] * c["lsu_latency_global_cycles"]
    waited = 1 - _share(reads, c["stall_long_scoreboard_warp_cycles"])
    # Bulk copies wait in the same state, and no latency of theirs is counted.
    copies = launches.count("tma_load_inst_warp", "global_ldgsts_inst_warp", "texture_inst_warp") > 0
    waited = np.where(np.isnan(reads) | copies, 0.0, waited)
    of_atomics = np.where(atomics > 0, np.fmax(waited, _share(atomics, atomics + accesses)), 0.0)
    contended, wait = wait * of_atomics, wait * (1 - of_atomics)
    sectors = {kind: launches.count(f"{kind}_load_sectors", f"{kind}_store_sectors") for kind in ("local", "global")}
    of_local = _share(sectors["local"], sectors["local"] + sectors["global"])
    spilled = launches.count("register_spill_inst_warp") > 0
    local, wait = wait * of_local, wait * (1 - of_local)
    # The busiest unit on the way is the one before which requests queue.
    dram = np.nan_to_num(c["dram_throughput_fraction"]) / DRAM_SUSTAINED
    l2 = np.fmax(np.nan_to_num(c["l2_utilization_fraction"]) / L2_SUSTAINED, np.nan_to_num(c["sol_l2_fraction"]))
    l1 = np.nan_to_num(c["sol_l1_fraction"])
    utilization = np.clip(np.fmax(np.fmax(dram, l2), l1), 0, 1)
    wasted = {}
    for side in ("load", "store"):
        of_side = _share(launches.count(f"global_{side}_sectors"), sectors["global"])
        asked = c[f"global_{side}_bytes_requested"] / (SECTOR_BYTES * c[f"global_{side}_sectors"])
        wasted[side] = of_side * np.clip(np.nan_to_num(1 - asked), 0, 1)
    waste = wasted["load"] + wasted["store"]
    parts = wait_parts(wait, utilization, waste)
    of_loads = _share(wasted["load"], waste)
    # Sectors that neither cache had: random places, of which each brings few useful bytes from DRAM.
    missed = (1 - _share(c["global_load_l1_hit_fraction"], 1.0)) * (1 - _share(c["l2_hit_fraction"], 1.0))
    uncoalesced = parts.waste * of_loads
    thrashing = 0.45 * missed * uncoalesced
    queued = _share(stall["lg_throttle"], np.asarray(sum(stall[name] for name in GLOBAL)))
    hits = _share(c["global_load_l1_hit_fraction"], 1.0) * _repeats(launches)
    moved = launches.count("global_load_bytes_requested", "global_store_bytes_requested")
    narrow = 1 - _share(moved, WIDEST_BYTES * launches.count("global_load_inst_warp", "global_store_inst_warp"))
    latency = parts.latency
    again, thin = latency * queued * hits, latency * queued * (1 - hits) * narrow
    latency = latency - again - thin
    occupancy = np.nan_to_num(c["theoretical_occupancy_fraction"], nan=1.0)
    few_warps = latency * (1 - occupancy)
    staged = _share(c["shared_store_inst_warp"], c["global_load_inst_warp"])
    staged = np.where((launches.count("global_ldgsts_inst_warp", "tma_load_inst_warp") == 0) & (staged > 0.5), 1.0, 0.0)
    return {
        "contended_global_atomics": contended,
        "register_spills": np.where(spilled, local, 0.0),
        "local_memory": np.where(spilled, 0.0, local),
        "uncoalesced_loads": uncoalesced - thrashing,
        "cache_thrashing": thrashing,
        "uncoalesced_stores": parts.waste * (1 - of_loads),
        "memory_limit": parts.useful,
        "redundant_loads": again,
        "narrow_accesses": thin,
        "no_asynchronous_copies": staged * latency,
        **{f"occupancy_{name}": few * few_warps * (1 - staged) for name, few in _occupancy_limit(c).items()},
        "few_loads_in_flight": (latency - few_warps) * (1 - staged),
    }


def _occupancy_limit(c: Counts) -> dict[str, Array]:
    """Tell which resource limits the blocks of an SM most: 1 for it, 0 for the others."""
    limits = {
        "registers": c["occupancy_limit_by_registers_blocks"],
        "shared_memory": c["occupancy_limit_by_shared_mem_blocks"],
        "block_size": np.fmin(c["occupancy_limit_by_blocks_blocks"], c["occupancy_limit_by_warps_blocks"]),
        "barriers": c["occupancy_limit_by_barriers_blocks"],
    }
    table = np.column_stack([np.where(np.isnan(limit), np.inf, limit) for limit in limits.values()])
    least = table.argmin(axis=1)
    return {name: (least == place).astype(np.float64) for place, name in enumerate(limits)}


def _barriers(launches: _Launches) -> dict[str, Array]:
    """Causes of waits at barriers: too many of them, one thread that works alone, or warps of unequal work."""
    c, of = launches.c, launches.of_class
    wait = launches.stall["barrier"]
    alone = np.where(launches.lanes < 0.5, 1.0, 0.0)
    per_warp = of["misc"] * np.nan_to_num(c["inst_per_warp"])
    rare = np.where((per_warp < 8) & launches.has_classes, 1.0, 0.0)
    return {
        "serial_section": wait * alone,
        "warp_imbalance": wait * (1 - alone) * rare,
        "barriers": wait * (1 - alone) * (1 - rare),
    }


def lost_time(counters: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the elapsed time that each cause takes: one row per launch, one column per cause.

    ``counters`` has a column per counter, ``figures`` the peak rates of `profsvc.analysis.potential.peaks`. A launch
    without counts of stalls or active cycles has NaN.
    """
    launches = _Launches(counters, figures)
    total: dict[str, Array] = {
        "launch_overhead": launches.idle.ramp,
        "grid_too_small": launches.idle.small_grid,
        "tail_wave": launches.idle.tail,
        "sm_imbalance": launches.idle.imbalance,
    }
    for parts in (_instructions(launches), _on_chip(launches), _memory(launches), _barriers(launches)):
        for name, share in parts.items():
            total[name] = total.get(name, np.zeros(len(counters))) + share
    table = pd.DataFrame(total, launches.c.index)
    known = ~np.isnan(launches.active) & ~np.isnan(launches.issued) & ~np.isnan(waits_of(launches.c)).all(axis=1)
    return table.where(pd.Series(known, table.index), np.nan)


def ranked(shares: Mapping[str, float], loss: float, kinds: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the causes of one launch with the share of the time that each takes, largest first.

    Shares of flaws never add up to more than ``loss``, the share of the time that the launch loses over its ideal.
    """
    flaws = {name: share for name, share in shares.items() if kinds[name] == "flaw" and share > 0}
    whole = sum(flaws.values())
    scale = min(1.0, loss / whole) if whole > 0 else 0.0
    found = [(name, share * scale) for name, share in flaws.items()]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))
