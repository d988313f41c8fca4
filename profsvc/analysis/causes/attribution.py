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

from profsvc.analysis.causes.issue_slots import barrier_causes, issue_causes
from profsvc.analysis.causes.memory_waits import global_memory_causes, on_chip_causes
from profsvc.analysis.causes.time_budget import Array, TimeBudget


def lost_time(counters: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the elapsed time that each cause takes: one row per launch, one column per cause.

    ``counters`` has a column per counter, ``figures`` the peak rates of `profsvc.analysis.potential.peaks`. A launch
    without counts of stalls or active cycles has NaN.
    """
    budget = TimeBudget(counters, figures)
    total: dict[str, Array] = {
        "launch_overhead": budget.idle.ramp,
        "grid_too_small": budget.idle.small_grid,
        "tail_wave": budget.idle.tail,
        "sm_imbalance": budget.idle.imbalance,
    }
    on_chip, queued = on_chip_causes(budget)
    for parts in (issue_causes(budget), on_chip, global_memory_causes(budget, queued), barrier_causes(budget)):
        for name, share in parts.items():
            total[name] = total.get(name, np.zeros(len(counters))) + share
    table = pd.DataFrame(total, budget.c.index)
    return table.where(pd.Series(budget.known, table.index), np.nan)


def ranked(shares: Mapping[str, float], loss: float, kinds: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the causes of one launch with the share of the time that each takes, largest first.

    Shares of flaws never add up to more than ``loss``, the share of the time that the launch loses over its ideal; if
    that is not known (NaN), they are as they were counted.
    """
    flaws = {name: share for name, share in shares.items() if kinds[name] == "flaw" and share > 0}
    whole = sum(flaws.values())
    scale = loss / whole if whole > loss else 1.0
    found = sorted(flaws.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(name, share * scale) for name, share in found]
