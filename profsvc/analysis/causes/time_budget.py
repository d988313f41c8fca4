"""The elapsed time of launches, split into idle SMs, issued instructions and stalls by what warps waited for."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.avoidable_work import POSSIBLE, class_shares
from profsvc.analysis.potential.tensor_work import uses_single_warps
from profsvc.analysis.potential.useful_time import useful_times
from profsvc.formulas.performance.lost_time import idle_time, stall_time

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
# Cycles in which a device starts one block on each SM, measured on an H200: blocks of 12 to 256 threads end no faster.
BLOCK_START_CYCLES = 157.0
MOST_EMPTY = 0.999
GLOBAL_STALLS = ("long_scoreboard", "lg_throttle", "tex_throttle", "drain", "membar")


@np.errstate(all="ignore")
def waits_of(c: Counts) -> Array:
    """Warp cycles by state of `STALLS`, on the last axis: as counted, else per issue, else by the groups of nvprof."""
    columns = []
    for stall in STALLS:
        cycles = c[f"stall_{stall}_warp_cycles"]
        cycles = np.where(np.isnan(cycles), c[f"stall_{stall}_cycles_per_issue"] * _issued(c), cycles)
        columns.append(np.where(np.isnan(cycles), c[NVPROF_STALLS.get(stall, "")], cycles))
    return np.column_stack(columns)


def _issued(c: Counts) -> Array:
    """Warp instructions issued, 1 where unknown: only the proportions of the waits are known then."""
    issued = np.where(np.isnan(c["inst_issued_warp"]), c["inst_executed_warp"], c["inst_issued_warp"])
    return np.where(np.isnan(issued), 1.0, issued)


def share_of(part: Array, whole: Array | float) -> Array:
    """Return part / whole in [0, 1], 0 where unknown."""
    with np.errstate(all="ignore"):
        return np.minimum(np.fmax(part / whole, 0.0), 1.0)


@np.errstate(all="ignore")
def occupancy_limit(c: Counts) -> dict[str, Array]:
    """Return the share that each resource has in the warps that an SM lacks: the one that limits its blocks most.

    Warps that registers leave room for, but a whole block does not fit into, are lacking by the size of the block.
    """
    limits = {  # of equal limits the first counts: no other resource helps beyond the slots of an SM
        "block_size": np.fmin(c["occupancy_limit_by_blocks_blocks"], c["occupancy_limit_by_warps_blocks"]),
        "registers": c["occupancy_limit_by_registers_blocks"],
        "barriers": c["occupancy_limit_by_barriers_blocks"],
        # The driver sets as much memory aside as the blocks need that the other resources allow.
        "shared_memory": c["occupancy_limit_by_shared_mem_blocks"],
    }
    table = np.column_stack([np.where(np.isnan(limit), np.inf, limit) for limit in limits.values()])
    least = table.argmin(axis=1)
    shares = {name: (least == place).astype(np.float64) for place, name in enumerate(limits)}
    # Registers leave room for more warps than there are, but not for another block of this size.
    registers = np.fmax(c["registers_per_thread"], c["registers_per_thread_allocated"])
    held = np.log(c["max_registers_per_sm"] / (32 * registers * c["max_warps_per_sm"]))
    coarse = shares["registers"] * (1 - share_of(-held, -np.log(c["theoretical_occupancy_fraction"])))
    coarse = np.where(np.isnan(held), 0.0, coarse)
    return {**shares, "registers": shares["registers"] - coarse, "block_size": shares["block_size"] + coarse}


@np.errstate(all="ignore")
def lacking_warps(c: Counts) -> Array:
    """Natural logarithm of the factor by which warps are fewer than an SM has slots, as blocks do not fit.

    A grid of less than one wave fits as it is: no resource keeps warps of it away.
    """
    occupancy = np.clip(np.nan_to_num(c["theoretical_occupancy_fraction"], nan=1.0), 1e-3, 1)
    return np.where(c["waves_per_sm"] < 1, 0.0, np.log(1 / occupancy))


class EmptySlots(NamedTuple):
    """Slots for warps of the active SMs that are empty, as shares of those that a part before has left."""

    ended_warps: Array
    """In blocks whose other warps still work."""
    between_blocks: Array
    """Of blocks that end as fast as a device starts them."""
    ended_blocks: Array
    """Of blocks that ended before the last ones, with none to follow."""


@np.errstate(all="ignore")
def empty_slots(c: Counts) -> EmptySlots:
    """Return the share of the slots for warps of the active SMs that are empty, by why.

    Between blocks they are empty for as long as a device takes to start that many. At the end of a grid no block
    follows: that is as long as a block lasts at most, which is all the time in a grid of one wave. Whether warps or
    whole blocks ended there before others, no counter tells.
    """
    waves = np.nan_to_num(c["waves_per_sm"], nan=1.0)
    expected = c["theoretical_occupancy_fraction"] * np.clip(waves, 0, 1)
    empty = np.clip(np.nan_to_num(1 - c["achieved_occupancy_fraction"] / expected), 0, MOST_EMPTY)
    several = c["warps_per_block"] > 1
    resident = c["theoretical_occupancy_fraction"] * c["max_warps_per_sm"] / c["warps_per_block"]
    lasts = c["sm_active_cycles_avg"] / np.fmax(waves, 1)
    starting = resident * BLOCK_START_CYCLES / lasts
    # Where it is unknown how long blocks last, half may be between them.
    starting = np.where(waves > 1, np.where(np.isnan(starting), POSSIBLE * empty, starting), 0.0)
    rest = empty - np.fmin(empty, starting)
    at_end = np.fmin(rest, 1 / np.fmax(waves, 1))
    early = np.clip(1 - c["warp_latency_avg_cycles"] / c["block_latency_avg_cycles"], 0, 1)
    early = np.where(np.isnan(early), rest - POSSIBLE * at_end, np.fmin(rest, early))
    warps = np.where(several, early, 0.0)
    # Of blocks of one warp no other works: what is empty before the end is between them.
    blocks = np.fmin(np.where(several, rest, empty) - warps, 1 / np.fmax(waves, 1))
    between = np.where(waves > 1, empty - warps - blocks, 0.0)
    return EmptySlots(warps, between / (1 - warps), blocks / (1 - warps - between))


class TimeBudget:
    """Counters of launches, with the parts of their time, each as a share of the elapsed time."""

    @np.errstate(all="ignore")
    def __init__(self, counters: pd.DataFrame, figures: pd.DataFrame) -> None:
        """Take a table with one row per launch and one column per counter, and its peak rates."""
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
        self.waits = waits_of(c)
        stalls = stall_time(self.active, self.issued, self.waits)
        self.stall = {name: np.nan_to_num(stalls[:, place]) for place, name in enumerate(STALLS)}
        # Of the cycles of warps, those that they stood at a barrier.
        unselected = c["stall_not_selected_warp_cycles"]
        unselected = np.where(np.isnan(unselected), c["stall_not_selected_cycles_per_issue"] * _issued(c), unselected)
        ready = np.where(np.isnan(c["inst_issued_warp"]), 0.0, _issued(c)) + np.nan_to_num(unselected)
        at_barriers = self.waits[:, STALLS.index("barrier")]
        self.at_barriers = share_of(at_barriers, np.nansum(self.waits, axis=1) + ready)
        self.lanes = np.nan_to_num(c["warp_execution_efficiency_fraction"], nan=1.0)
        on = c["warp_nonpred_execution_efficiency_fraction"]
        self.on = np.fmin(np.where(np.isnan(on), self.lanes, on), self.lanes)
        threads = c["block_threads"]
        self.absent = np.nan_to_num(1 - threads / (32 * np.ceil(threads / 32)))
        self.of_class = class_shares(c)
        self.has_classes = np.asarray(sum(self.of_class.values())) > 0
        # Where matrices are multiplied by single warps: 1, and the part of its rate that the tensor pipe has then.
        self.single_warps = uses_single_warps(c, figures).astype(np.float64)
        self.single_warp_rate = np.nan_to_num(figures["tensor_single_warp_fraction"].to_numpy("float64"), nan=1.0)
        # Of issue slots, the share with payload: arithmetic, and the accesses that it cannot do without.
        times = useful_times(c, figures)
        payload = (times["issue"] / c["duration_ns"]).to_numpy()
        self.payload = np.fmin(np.nan_to_num(payload, nan=1.0), self.issued)

    def count(self, *names: str) -> Array:
        """Sum of counters, unknown ones as 0."""
        return np.nan_to_num(self.c.total(*names))

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the active cycles, the issue slots and at least one stall reason were counted."""
        return np.asarray(~np.isnan(self.active) & ~np.isnan(self.issued) & ~np.isnan(self.waits).all(axis=1))
