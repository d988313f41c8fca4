"""Tiles that are copied to shared memory through registers: what copies that run ahead of the work would save."""

import numpy as np

from profsvc.analysis.causes.time_budget import GLOBAL_STALLS, Array, TimeBudget, share_of
from profsvc.analysis.potential.avoidable_work import repeated_steps

# What a block waits for between two tiles, and what no longer counts once the next tile is under way.
HIDDEN = ("dependent_instructions", "barriers", "few_loads_in_flight")
# Stores to shared memory for each global load, from which on tiles are loaded. A gathered tile has an index for each.
MIN_STORES_PER_LOAD = 1 / 3


@np.errstate(all="ignore")
def copyable_share(budget: TimeBudget) -> Array:
    """Share of the loads that asynchronous copies could make ahead of time; 0 where there are such copies already.

    Devices before 8.0 have no such copies, and no tool counts any for them. A place that comes from the load before is
    not known ahead of time.
    """
    c = budget.c
    uncopied = (c["global_ldgsts_inst_warp"] == 0) & (budget.count("tma_load_inst_warp") == 0)
    stores = share_of(c["shared_store_inst_warp"], c["global_load_inst_warp"])
    chained = share_of(c["global_load_chained_inst_warp"], c["global_load_inst_warp"])
    return np.where(uncopied & (stores > MIN_STORES_PER_LOAD), 1 - chained, 0.0) * repeated_steps(c)


@np.errstate(all="ignore")
def overlap(budget: TimeBudget, memory_busy: Array) -> Array:
    """Share of the time that loading and computing would overlap if copies ran ahead.

    Of two phases that alternate, the longer one is left; and memory needs the time in which it is busy. No more is
    saved than the shorter one lasts. ``memory_busy`` is the time of DRAM or L2, as a share of what they sustain.
    """
    loading = budget.stall["long_scoreboard"] * np.nan_to_num(budget.c["stall_tile_fraction"])
    computing = budget.active - np.asarray(sum(budget.stall[name] for name in GLOBAL_STALLS))
    saved = np.fmin(np.fmin(loading, computing), budget.active - np.fmax(memory_busy, computing))
    share: Array = np.clip(copyable_share(budget) * np.nan_to_num(saved), 0, 1)
    return share


def hidden_by_copies(shares: dict[str, Array], most: Array) -> dict[str, Array]:
    """Return the causes with what copies would hide: they save ``most``, more than the wait for the tile alone.

    While the next tile is under way, other waits between two tiles cost nothing, as long as memory limits.
    """
    waits = np.asarray(sum(shares[name] for name in HIDDEN))
    more = np.fmin(np.clip(most - shares["no_asynchronous_copies"], 0, None), waits)
    kept = 1 - share_of(more, waits)
    left = {name: shares[name] * kept for name in HIDDEN}
    return {**shares, **left, "no_asynchronous_copies": shares["no_asynchronous_copies"] + more}
