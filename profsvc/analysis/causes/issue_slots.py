"""Causes of issue slots, of waits for arithmetic, and of waits at barriers."""

from typing import NamedTuple

import numpy as np

from profsvc.analysis.causes.time_budget import Array, TimeBudget, empty_slots, lacking_warps, occupancy_limit, share_of
from profsvc.analysis.potential.avoidable_work import (
    OVERHEAD,
    POSSIBLE,
    avoidable_instructions,
    register_array_share,
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


class _OffLanes(NamedTuple):
    """Lanes that were off, as shares of all, and what part of them belongs to what."""

    off: Array
    absent: Array
    """Lanes that never had a thread."""
    serial: Array
    """Part of those off that waited for one thread of their block."""
    lone: Array
    """Part of warps of which each works for one thread, while none waits for another."""
    retried: Array
    """Part that waited for a turn in a loop of compare and swap."""
    first: Array
    """Part of warps whose first lanes work alone."""
    meeting: Array
    """Part that waited for other blocks."""


class _Instructions(NamedTuple):
    """Issue slots with all active lanes, as shares of the time, by what the instructions are for."""

    useful: Array
    avoidable: dict[str, Array]
    spared: Array
    """All that is avoidable."""
    rest: Array
    """What is left of them: those below are parts of it."""
    needed: Array
    repeated: Array
    """Loads of values that L1 has, with their addresses."""
    products: Array
    """Of matrices, on other pipes than the tensor cores."""
    barriers: Array
    beyond: Array
    """Addresses and loops beyond those of tuned kernels."""


class _Latency(NamedTuple):
    """Waits for arithmetic, as shares of the time, by what would hide them."""

    few_warps: Array
    ended: Array
    few_blocks: Array
    dependent: Array


@np.errstate(all="ignore")
def issue_causes(budget: TimeBudget, on_chip: Array) -> dict[str, Array]:
    """Return the shares of the time that causes of issued instructions, and of waits for arithmetic, take.

    ``on_chip`` is the share of the waits for shared memory that is busy with what warps need.
    """
    c, stall, lanes, of = budget.c, budget.stall, _off_lanes(budget), _instructions(budget)
    # Each instruction waits for its pipe, and for its fixed latency: those that are spared wait no more.
    full_lanes = 1 - lanes.off - lanes.absent
    waits = (stall["wait"] + stall["branch_resolving"]) * full_lanes
    throttled = (stall["math_pipe_throttle"] + stall["dispatch_stall"]) * full_lanes
    of_pipe = {name: share_of(part, of.spared + of.needed + of.products) for name, part in of.avoidable.items()}
    taken = {
        name: part + waits * share_of(part, of.useful) + throttled * of_pipe[name]
        for name, part in of.avoidable.items()
    }
    # The special cases of divisions and functions are predicated, and so are all but one of the places of an array.
    predicated = (budget.lanes - budget.on) * budget.issued
    cases = {name: share_of(of.avoidable[name], of.useful) for name in ("integer_division", "expensive_functions")}
    cases["local_memory"] = register_array_share(c)
    for name, part in cases.items():
        taken[name] = taken[name] + predicated * part
    others = predicated * np.clip(1 - sum(cases.values()), 0, 1)
    # In a tree of sums fewer threads have work with each step, and all meet after it: shuffles need neither.
    between = c["inst_predicated_off_between_barriers_thread"] / 32 / c["inst_executed_warp"]
    of_steps = others * share_of(between, budget.lanes - budget.on)
    # Matrix instructions of single warps wait for each other, and keep their pipe busy for longer than those of groups.
    waits_of_useful = waits * share_of(of.useful - of.spared - of.repeated - of.beyond, of.useful)
    of_single_warps = budget.single_warps * waits_of_useful
    hidden = _latency(budget, waits_of_useful - of_single_warps)
    slower = budget.single_warps * (1 - budget.single_warp_rate)
    # A fuller warp does in one instruction what these did in several, with one wait.
    fixed = stall["wait"] + stall["math_pipe_throttle"] + stall["dispatch_stall"] + stall["branch_resolving"]
    full = budget.issued + fixed + on_chip
    # Nor does it fetch the code of each path again.
    off = lanes.off * (full + stall["no_instruction"])
    alike = np.clip(1 - lanes.serial - lanes.lone - lanes.retried - lanes.first - lanes.meeting, 0, 1)
    of_products = share_of(of.products, of.products + of.needed)
    return {
        **taken,
        **{f"occupancy_{name}": few * hidden.few_warps for name, few in occupancy_limit(c).items()},
        "partly_filled_warps": lanes.absent * full + off * lanes.lone,
        "shared_memory_limit": -(lanes.off + lanes.absent) * on_chip,
        "thread_divergence": off * alike,
        "contended_shared_atomics": off * lanes.retried,
        "serial_section": off * lanes.serial,
        "predicated_off_threads": others - of_steps + off * lanes.first,
        "tensor_cores_unused": of.products + throttled * of_products,
        "single_warp_matrices": of_single_warps + throttled * slower,
        "redundant_loads": of.repeated * (1 + share_of(waits, of.useful)),
        "overhead_instructions": taken["overhead_instructions"] + of.beyond * (1 + share_of(waits, of.useful)),
        "warp_imbalance": hidden.ended,
        "sm_imbalance": hidden.few_blocks,
        "dependent_instructions": hidden.dependent,
        "instruction_cache": stall["no_instruction"] * (1 - lanes.off),
        "barriers": of.barriers + taken["barriers"] + of_steps + off * lanes.meeting,
        "arithmetic_limit": of.rest
        - of.repeated
        - of.products
        - of.barriers
        - of.beyond
        + throttled * np.clip(1 - sum(of_pipe.values()) - of_products - slower, 0, 1),
    }


@np.errstate(all="ignore")
def _off_lanes(budget: TimeBudget) -> _OffLanes:
    c, absent, stall = budget.c, budget.absent, budget.stall
    off = np.clip(1 - budget.lanes - absent, 0, 1)
    # Lanes that are off while the rest of the block waits for one thread are of its serial section.
    serial = np.where(
        budget.lanes < ALONE_BELOW, share_of(stall["barrier"], stall["barrier"] + off * budget.issued), 0.0
    )
    lone = _alone_share(budget)
    serial = np.where(np.isnan(lone), serial, share_of(lone * 31 / 32, off))
    # Without barriers no other warp waits for it: those that have ended did.
    apart = np.where(c["barrier_inst_warp"] == 0, 1 - empty_slots(c).ended_warps, 0.0)
    serial, alone = serial * (1 - apart), serial * apart
    # Where the first lanes of each warp work, the others wait for no path and no loop.
    first = share_of(c["inst_first_lanes_off_thread"] / 32 / c["inst_executed_warp"], off)
    # One thread that waits for other blocks does no work.
    meeting = share_of(c["inst_meeting_warp"] * 31 / 32 / c["inst_executed_warp"], off)
    # An atomic operation without hardware of its own, and one that others hold, loops until each lane has had its turn.
    retried = share_of(RETRY_LENGTH * budget.count("shared_atomic_inst_warp"), c["inst_executed_warp"])
    retried = retried * (1 - serial - alone)
    return _OffLanes(off, absent, serial, alone, retried, first, meeting)


@np.errstate(all="ignore")
def _instructions(budget: TimeBudget) -> _Instructions:
    c, of = budget.c, budget.of_class
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
    barriers = np.fmin(addresses, useful * of["misc"] * (budget.stall["barrier"] > 0))
    beyond = np.where(budget.has_classes, 1.0, POSSIBLE) * (addresses - barriers)
    return _Instructions(useful, avoidable, spared, rest, needed, repeated, products, barriers, beyond)


@np.errstate(all="ignore")
def _latency(budget: TimeBudget, wait: Array) -> _Latency:
    """By Little's law, more warps make up for some of the idle issue slots, independent instructions for the rest."""
    warps = lacking_warps(budget.c)
    ended, _, shorter = (np.log(1 / (1 - part)) for part in empty_slots(budget.c))
    lacking = np.fmax(warps + ended + shorter, np.log(1 / np.clip(budget.issued, 1e-3, 0.999)))
    few_warps, ended, few_blocks = (wait * share_of(part, lacking) for part in (warps, ended, shorter))
    return _Latency(few_warps, ended, few_blocks, wait - few_warps - ended - few_blocks)


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
