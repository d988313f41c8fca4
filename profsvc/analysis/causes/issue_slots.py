"""Causes of issue slots, of waits for arithmetic, and of waits at barriers."""

import numpy as np

from profsvc.analysis.causes.time_budget import POSSIBLE, Array, TimeBudget, share_of
from profsvc.analysis.potential.avoidable_work import (
    divided_share,
    expanded_share,
    multiplies_half_matrices,
    needless_conversions,
    repeated_share,
)

OVERHEAD = ("integer", "control", "bit_convert", "bit", "uniform")
# Below so many barriers and other instructions of no class for each warp, warps that wait have unequal work.
FEW_BARRIERS = 8


@np.errstate(all="ignore")
def issue_causes(budget: TimeBudget) -> dict[str, Array]:
    """Return the shares of the time that causes of issued instructions, and of waits for arithmetic, take."""
    c, stall, of = budget.c, budget.stall, budget.of_class
    fixed = stall["wait"] + stall["math_pipe_throttle"] + stall["dispatch_stall"] + stall["branch_resolving"]
    absent = budget.absent
    off = np.clip(1 - budget.lanes - absent, 0, 1)
    # A fuller warp does in one instruction what these did in several, with one wait.
    full = budget.issued + fixed
    useful = budget.issued * budget.on
    divided = useful * divided_share(c)
    expanded = expanded_share(c)
    doubled = np.where(budget.count("inst_fp64_thread") > 0, of["fp64"] + of["bit_convert"], 0.0)
    doubled = useful * doubled * share_of(of["bit_convert"], of["fp64"])
    # Reduction of the argument, selects and branches of a function belong to it as its polynomial does.
    functions = useful * expanded * np.where(budget.has_classes, of["fp32"] + of["bit_convert"] + of["bit"], 0.0)
    functions = functions * (1 + share_of(of["integer"] + of["control"], of["fp32"]))
    functions = np.fmin(functions, useful - divided)
    # Conversions beyond one for each value in memory, in kernels where no function nor double precision needs them.
    again = share_of(needless_conversions(c), budget.count("inst_bit_convert_thread"))
    converted = useful * of["bit_convert"] * again * (1 - expanded) * (of["fp64"] == 0)
    useful = np.clip(useful - divided - functions - doubled - converted, 0, None)
    counted = np.asarray(sum(of[name] for name in OVERHEAD)) - of["bit_convert"] * again
    overhead = np.where(budget.has_classes, counted, 1 - share_of(budget.payload, useful))
    payload = useful * (1 - overhead)
    loads = of["ldst"] * share_of(c["global_load_l1_hit_fraction"], 1.0) * repeated_share(c)
    # Addresses and loops serve the loads as well as the arithmetic.
    repeated = useful * loads * (1 + share_of(overhead, 1 - overhead))
    addresses = np.clip(useful * overhead - (repeated - useful * loads), 0, None)
    matrices = multiplies_half_matrices(c)
    throttled = stall["math_pipe_throttle"] + stall["dispatch_stall"]
    products = np.where(matrices, payload + throttled, 0.0)
    # Of the instructions of no class, those of kernels that wait at barriers are mostly the barriers.
    barriers = np.where(matrices, 0.0, useful * of["misc"] * (stall["barrier"] > 0))
    rest = np.clip(payload - useful * loads - products - barriers, 0, None)
    full_lanes = 1 - off - absent
    # The pipe of special functions and conversions is why arithmetic waits for its pipe.
    doubles = share_of(doubled, doubled + rest)
    of_conversions = share_of(converted, converted + rest) * (1 - doubles)
    return {
        "partly_filled_warps": absent * full,
        "thread_divergence": off * full,
        "predicated_off_threads": (budget.lanes - budget.on) * budget.issued,
        "type_conversions": converted + of_conversions * throttled * full_lanes,
        "integer_division": divided,
        "expensive_functions": functions,
        "accidental_double": doubled + doubles * throttled * full_lanes,
        "tensor_cores_unused": products,
        "redundant_loads": repeated,
        "overhead_instructions": POSSIBLE * addresses,
        "dependent_instructions": (stall["wait"] + stall["branch_resolving"]) * full_lanes,
        "instruction_cache": stall["no_instruction"],
        "barriers": barriers,
        "arithmetic_limit": rest
        + (1 - POSSIBLE) * addresses
        + np.where(matrices, 0.0, throttled * full_lanes * (1 - doubles - of_conversions)),
    }


@np.errstate(all="ignore")
def barrier_causes(budget: TimeBudget) -> dict[str, Array]:
    """Causes of waits at barriers: too many of them, one thread that works alone, or warps of unequal work."""
    c, of = budget.c, budget.of_class
    wait = budget.stall["barrier"]
    alone = np.where(budget.lanes < 0.5, 1.0, 0.0)
    per_warp = of["misc"] * np.nan_to_num(c["inst_per_warp"])
    rare = np.where((per_warp < FEW_BARRIERS) & budget.has_classes, 1.0, 0.0)
    return {
        "serial_section": wait * alone,
        "warp_imbalance": wait * (1 - alone) * rare,
        "barriers": wait * (1 - alone) * (1 - rare),
    }
