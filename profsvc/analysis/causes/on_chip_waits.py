"""Causes of waits for the queue of shared memory, special functions and indexed constants."""

from typing import NamedTuple

import numpy as np

from profsvc.analysis.causes.memory_queues import (
    atomics_share,
    conflicts_share,
    shared_atomics_share,
    shared_units,
    utilization,
)
from profsvc.analysis.causes.time_budget import Array, TimeBudget, share_of
from profsvc.analysis.potential.matrix_products import instructions_of_type, multiplies_matrices
from profsvc.analysis.potential.special_functions import conversions, special_unit_warps
from profsvc.formulas.performance.lost_time import wait_parts


class OnChipWaits(NamedTuple):
    """Result of `on_chip_causes`, shares of the time."""

    causes: dict[str, Array]
    queued: Array
    """Waits of the queue for global memory."""
    behind_conflicts: Array
    """Waits at barriers for warps that stand in line for conflicting banks."""
    issued_behind_conflicts: Array
    """Time of issue slots, at most, in which conflicts keep the pipe busy: fewer instructions save nothing of it."""


@np.errstate(all="ignore")
def on_chip_causes(budget: TimeBudget) -> OnChipWaits:
    """Return the shares of the time that causes of waits for the on-chip queue take."""
    c, stall = budget.c, budget.stall
    cycles = c["sm_elapsed_cycles_sum"]
    wait = stall["mio_throttle"] + stall["short_scoreboard"]
    wavefronts = np.nan_to_num(budget.count("shared_wavefronts_sass") / cycles)
    special = np.nan_to_num(c["pipe_xu_elapsed_fraction"])
    # A request beyond the instruction itself is for another address of the same warp.
    diverged = budget.count("constant_idc_requests") - budget.count("constant_ldc_inst_warp")
    constants = np.nan_to_num(np.clip(diverged, 0, None) / cycles)
    tags = np.where(np.isnan(c["l1_tag_requests_global"]), c["global_load_inst_warp"], c["l1_tag_requests_global"])
    tags = np.nan_to_num(tags / cycles)
    busy = wavefronts + special + constants + tags
    of_shared, of_special, of_constants = (share_of(part, busy) for part in (wavefronts, special, constants))
    conflicts, contended = conflicts_share(c), shared_atomics_share(budget)
    pipe = np.fmax(np.nan_to_num(c["sol_l1_fraction"]), wavefronts)
    shared = wait_parts(wait * of_shared, pipe, conflicts)
    converted = share_of(conversions(c) / 32 / budget.on, special_unit_warps(c))
    doubles = instructions_of_type(c, "fp64") > 0
    function = wait_parts(wait * of_special, special, converted)
    conflicting = (shared.waste + shared.latency * conflicts) * (1 - contended)
    # Without them other units are the limit: the launch takes as long as its busiest other unit: no less is saved.
    least = wavefronts - np.fmax(wavefronts * (1 - conflicts), np.fmax(budget.issued, np.fmax(*shared_units(c))))
    elsewhere = np.clip(pipe * least * (1 - contended) - conflicting, 0, None)
    at_barriers = np.fmin(elsewhere, stall["barrier"])
    # A warp group reads operands where they are, and does not wait for them.
    useful, latency = shared.useful * (1 - contended), shared.latency * (1 - conflicts) * (1 - contended)
    fragments = budget.single_warps * useful
    # A queue that is full while the pipes behind it idle is held up by what leaves it slowly, as contended atomics do.
    of_atomics = atomics_share(budget, utilization(c)[0]) * share_of(stall["mio_throttle"], wait)
    dependent = (1 - budget.single_warps) * latency + function.latency
    shares = {
        "contended_shared_atomics": wait * of_shared * contended,
        "contended_global_atomics": dependent * of_atomics,
        "bank_conflicts": conflicting + at_barriers,
        # A fragment of a matrix serves many products with each operand that it loads.
        "tensor_cores_unused": np.where(multiplies_matrices(c), useful, 0.0),
        "single_warp_matrices": fragments + budget.single_warps * latency,
        "shared_memory_limit": np.where(multiplies_matrices(c), 0.0, useful - fragments),
        "type_conversions": np.where(doubles, 0.0, function.waste),
        "accidental_double": np.where(doubles, function.waste, 0.0),
        "divergent_constants": wait * of_constants + stall["imc_miss"],
        "arithmetic_limit": function.useful,
        "dependent_instructions": dependent * (1 - of_atomics),
    }
    queued = wait * (1 - of_shared - of_special - of_constants)
    return OnChipWaits(shares, queued, at_barriers, elsewhere - at_barriers)
