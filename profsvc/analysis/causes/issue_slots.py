"""Causes of issue slots, of waits for arithmetic, and of waits at barriers."""

import numpy as np

from profsvc.analysis.causes.time_budget import Array, TimeBudget, empty_slots, occupancy_limit, share_of
from profsvc.analysis.potential.avoidable_work import (
    OVERHEAD,
    POSSIBLE,
    avoidable_instructions,
)
from profsvc.analysis.potential.matrix_products import multiplies_matrices, repeated_share
from profsvc.analysis.potential.repeated_loads import word_by_word

# Below so many barriers and other instructions of no class for each warp, warps that wait have unequal work.
FEW_BARRIERS = 8
# Cycles of a barrier that all warps reach at once, and the most by which warps of equal work that take turns differ.
BARRIER_CYCLES, MOST_TURN_CYCLES = 40.0, 400.0
# With a smaller share of active lanes, warps work for one thread.
ALONE_BELOW = 0.5
# Instructions of one turn of a loop of compare and swap.
RETRY_LENGTH = 6


@np.errstate(all="ignore")
def issue_causes(budget: TimeBudget, on_chip: Array) -> dict[str, Array]:
    """Return the shares of the time that causes of issued instructions, and of waits for arithmetic, take.

    ``on_chip`` is the share of the waits for shared memory that is busy with what warps need.
    """
    c, stall, of = budget.c, budget.stall, budget.of_class
    fixed = stall["wait"] + stall["math_pipe_throttle"] + stall["dispatch_stall"] + stall["branch_resolving"]
    absent = budget.absent
    off = np.clip(1 - budget.lanes - absent, 0, 1)
    # Lanes that are off while the rest of the block waits for one thread are of its serial section.
    serial = np.where(
        budget.lanes < ALONE_BELOW, share_of(stall["barrier"], stall["barrier"] + off * budget.issued), 0.0
    )
    lone = _alone_share(budget)
    serial = np.where(np.isnan(lone), serial, share_of(lone * 31 / 32, off))
    # Where the first lanes of each warp work, the others wait for no path and no loop.
    first = share_of(c["inst_first_lanes_off_thread"] / 32 / c["inst_executed_warp"], off)
    # One thread that waits for other blocks does no work.
    meeting = share_of(c["inst_meeting_warp"] * 31 / 32 / c["inst_executed_warp"], off)
    # An atomic operation without hardware of its own, and one that others hold, loops until each lane has had its turn.
    retried = share_of(RETRY_LENGTH * budget.count("shared_atomic_inst_warp"), c["inst_executed_warp"]) * (1 - serial)
    # A fuller warp does in one instruction what these did in several, with one wait.
    full = budget.issued + fixed + on_chip
    useful = budget.issued * budget.on
    avoidable = {name: useful * part for name, part in avoidable_instructions(c).items()}
    spared = np.fmin(np.asarray(sum(avoidable.values())), useful)
    rest = np.clip(useful - spared, 0, None)
    needed = np.fmin(budget.payload, rest)
    loads = of["ldst"] * share_of(c["global_load_l1_hit_fraction"], 1.0) * repeated_share(c)
    # Addresses and loops serve the loads as well as the arithmetic; more of them than tuned kernels have are overhead.
    repeated = np.fmin(rest * loads * (1 + OVERHEAD), rest - needed)
    addresses = rest - needed - repeated
    # Loads of four words are of threads that use each value several times.
    repeated = repeated * word_by_word(c)
    matrices = multiplies_matrices(c)
    products, addresses = np.where(matrices, addresses, 0.0), np.where(matrices, 0.0, addresses)
    # Of the instructions of no class, those of kernels that wait at barriers are mostly the barriers.
    barriers = np.fmin(addresses, useful * of["misc"] * (stall["barrier"] > 0))
    addresses = addresses - barriers
    # Each instruction waits for its pipe, and for its fixed latency: those that are spared wait no more.
    full_lanes = 1 - off - absent
    waits = (stall["wait"] + stall["branch_resolving"]) * full_lanes
    throttled = (stall["math_pipe_throttle"] + stall["dispatch_stall"]) * full_lanes
    of_pipe = {name: share_of(part, spared + needed + products) for name, part in avoidable.items()}
    taken = {
        name: part + waits * share_of(part, useful) + throttled * of_pipe[name] for name, part in avoidable.items()
    }
    # The special cases of divisions and functions are predicated.
    off_lanes = (budget.lanes - budget.on) * budget.issued
    for name in ("integer_division", "expensive_functions"):
        taken[name] = taken[name] + off_lanes * share_of(avoidable[name], useful)
    of_cases = share_of(avoidable["integer_division"] + avoidable["expensive_functions"], useful)
    beyond = np.where(budget.has_classes, 1.0, POSSIBLE) * addresses
    # By Little's law, more warps make up for some of the idle issue slots, independent instructions for the rest.
    dependent = waits * share_of(useful - spared - repeated - beyond, useful)
    warps = np.log(1 / np.clip(np.nan_to_num(c["theoretical_occupancy_fraction"], nan=1.0), 1e-3, 1))
    ended, _, shorter = (np.log(1 / (1 - part)) for part in empty_slots(c))
    lacking = np.fmax(warps + ended + shorter, np.log(1 / np.clip(budget.issued, 1e-3, 0.999)))
    few_warps, ended, few_blocks = (dependent * share_of(part, lacking) for part in (warps, ended, shorter))
    return {
        **taken,
        **{f"occupancy_{name}": few * few_warps for name, few in occupancy_limit(c).items()},
        "partly_filled_warps": absent * full,
        "shared_memory_limit": -(off + absent) * on_chip,
        "thread_divergence": off * full * np.clip(1 - serial - retried - first - meeting, 0, 1),
        "contended_shared_atomics": off * full * retried,
        "serial_section": off * full * serial,
        "predicated_off_threads": off_lanes * (1 - of_cases) + off * full * first,
        "tensor_cores_unused": products + throttled * share_of(products, products + needed),
        "redundant_loads": repeated * (1 + share_of(waits, useful)),
        "overhead_instructions": taken["overhead_instructions"] + beyond * (1 + share_of(waits, useful)),
        "warp_imbalance": ended,
        "sm_imbalance": few_blocks,
        "dependent_instructions": dependent - few_warps - ended - few_blocks,
        "instruction_cache": stall["no_instruction"],
        "barriers": barriers + taken["barriers"] + off * full * meeting,
        "arithmetic_limit": rest
        - repeated
        - products
        - barriers
        - beyond
        + throttled * np.clip(1 - sum(of_pipe.values()) - share_of(products, products + needed), 0, 1),
    }


@np.errstate(all="ignore")
def _alone_share(budget: TimeBudget) -> Array:
    """Share of the warp instructions that one thread executed, in long sections where these are known; else NaN."""
    c = budget.c
    alone = np.where(np.isnan(c["inst_alone_section_warp"]), c["inst_lone_warp"], c["inst_alone_section_warp"])
    return np.asarray(alone / c["inst_executed_warp"], dtype=np.float64)


@np.errstate(all="ignore")
def barrier_causes(budget: TimeBudget, behind_conflicts: Array) -> dict[str, Array]:
    """Causes of waits at barriers: too many of them, one thread that works alone, or warps of unequal work.

    ``behind_conflicts`` is the part of the waits that belongs to bank conflicts.

    Warps of equal work that take turns at their scheduler arrive one after the other: the mean of them waits no longer
    than it works. What they wait beyond that, they wait for longer ones.
    """
    c, of = budget.c, budget.of_class
    wait = budget.stall["barrier"] - behind_conflicts
    lone = _alone_share(budget)
    alone = np.where(np.where(np.isnan(lone), 1 - budget.lanes, lone) > 1 - ALONE_BELOW, 1.0, 0.0)
    # The warps of a block wait for the section of one of them: the longer it is beside what each has to do.
    section = c["inst_alone_section_warp"] / c["grid_blocks"]
    others = (c["inst_executed_warp"] - c["inst_alone_section_warp"]) / c["warps_launched"]
    alone = np.where(np.isnan(section), alone, share_of(section, others))
    # At a meeting of the grid a block waits for the blocks that come last, whatever its own warps do.
    meets = c["inst_meeting_warp"] > 0
    alone = np.where(meets, 0.0, alone)
    per_warp = of["misc"] * np.nan_to_num(c["inst_per_warp"])
    rare = np.where((per_warp < FEW_BARRIERS) & budget.has_classes, 1.0, 0.0)
    waited = budget.at_barriers
    unequal = np.fmax(rare, np.clip(1 - (1 - waited) / waited, 0, 1))
    # Where barriers are counted: what each takes if warps of equal work take turns between two of them.
    turns = np.fmin(c["active_warps_per_scheduler_avg"], np.ceil(c["block_threads"] / 32 / 4)) / 2
    step = c["inst_executed_warp"] / c["barrier_inst_warp"] * turns
    each = c["stall_barrier_warp_cycles"] / c["barrier_inst_warp"]
    equal = (BARRIER_CYCLES + np.fmin(step, MOST_TURN_CYCLES)) / each
    unequal = np.where(np.isnan(equal), unequal, np.clip(1 - equal, 0, 1))
    unequal = np.where(meets, 0.0, unequal)
    return {
        "serial_section": wait * alone,
        "warp_imbalance": wait * (1 - alone) * unequal,
        "barriers": wait * (1 - alone) * (1 - unequal),
    }
