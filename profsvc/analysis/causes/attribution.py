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

import numpy as np
import pandas as pd

from profsvc.analysis.causes.global_memory_waits import global_memory_causes
from profsvc.analysis.causes.issue_slots import barrier_causes, issue_causes
from profsvc.analysis.causes.memory_queues import shared_units
from profsvc.analysis.causes.on_chip_waits import on_chip_causes
from profsvc.analysis.causes.staged_tiles import hidden_by_copies, overlap
from profsvc.analysis.causes.time_budget import Array, TimeBudget, empty_slots, share_of
from profsvc.specs.advice.causes import causes

UNEXPLAINED = "unexplained"
# A cause whose cure is another kernel, of other tiles and other loads: what no cause explains is lost to it as well.
BY_ANOTHER_KERNEL = "single_warp_matrices"
# What rounding leaves of shares that add up.
SMALLEST_SHARE = 1e-9


def lost_time(counters: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the elapsed time that each cause takes: one row per launch, one column per cause.

    ``counters`` has a column per counter, ``figures`` the peak rates of `profsvc.analysis.potential.peaks`. A launch
    without counts of stalls or active cycles has NaN.
    """
    budget = TimeBudget(counters, figures)
    total = _idle_causes(budget)
    on_chip = on_chip_causes(budget)
    at_barriers = barrier_causes(budget, on_chip.behind_conflicts)
    for parts in (
        issue_causes(budget, on_chip.causes["shared_memory_limit"]),
        on_chip.causes,
        global_memory_causes(budget, on_chip.queued),
        at_barriers,
    ):
        for name, share in parts.items():
            total[name] = total.get(name, np.zeros(len(counters))) + share
    # Warps that are late at a barrier were held up by what all wait for elsewhere.
    elsewhere = np.clip(budget.active - budget.stall["barrier"], 0, 1)
    held_up = at_barriers["warp_imbalance"] * share_of(total["contended_global_atomics"], elsewhere)
    total["warp_imbalance"] = total["warp_imbalance"] - held_up
    total["contended_global_atomics"] = total["contended_global_atomics"] + held_up
    hidden = np.fmin(total["overhead_instructions"], on_chip.issued_behind_conflicts)
    total["overhead_instructions"] = total["overhead_instructions"] - hidden
    total["bank_conflicts"] = total["bank_conflicts"] + hidden
    total = hidden_by_copies(total, overlap(budget, np.fmax(*shared_units(budget.c))))
    table = pd.DataFrame(total, budget.c.index)
    return table.where(pd.Series(budget.known, table.index), np.nan)


@np.errstate(all="ignore")
def _idle_causes(budget: TimeBudget) -> dict[str, Array]:
    """Return the causes of SMs without work.

    The last blocks of a grid of several waves end later than others by one of them at most. Blocks that wait for their
    longest warps last longer by what these work alone.
    """
    idle, waves = budget.idle, budget.c["waves_per_sm"]
    longer = np.where(waves > 1, empty_slots(budget.c).ended_warps, 0.0)
    of_tail = np.nan_to_num(idle.tail * longer)
    of_last_blocks = np.nan_to_num(np.fmin(idle.imbalance, budget.active / waves) * longer)
    return {
        "launch_overhead": idle.ramp,
        "grid_too_small": idle.small_grid,
        "tail_wave": idle.tail - of_tail,
        "sm_imbalance": idle.imbalance - of_last_blocks,
        "warp_imbalance": of_tail + of_last_blocks,
    }


def savings(shares: pd.DataFrame, loss: Array) -> pd.DataFrame:
    """Return what removing each flaw saves, and what no cause explains, as shares of the time; a column for each.

    ``shares`` are those of `lost_time`. Flaws never save more than ``loss``, the share of the time that the launch
    loses over its ideal time, and with what is unexplained they save just that. Where it is not known (NaN) they save
    what they take, and nothing is unexplained. Nor is anything where another kernel is the cure.
    """
    names = [name for name in shares if causes()[str(name)].kind == "flaw"]
    flaws = shares[names].fillna(0.0).clip(lower=0.0, upper=1.0)
    whole = flaws.sum(axis=1).to_numpy()
    limit = np.where(np.isnan(loss), whole, loss)
    with np.errstate(all="ignore"):
        scale = np.where(whole > limit, limit / whole, 1.0)
    flaws = flaws.mul(scale, axis=0)
    rest = limit - whole * scale
    rest = np.where(rest > SMALLEST_SHARE, rest, 0.0)
    if BY_ANOTHER_KERNEL in flaws:
        replaced = np.where(flaws[BY_ANOTHER_KERNEL] > 0, rest, 0.0)
        flaws[BY_ANOTHER_KERNEL] += replaced
        rest = rest - replaced
    return flaws.assign(**{UNEXPLAINED: rest})
