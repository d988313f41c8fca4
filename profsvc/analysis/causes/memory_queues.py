"""How busy the units on the way to memory are, and how long accesses stood in their queues."""

import numpy as np

from profsvc.analysis.causes.time_budget import GLOBAL_STALLS, STALLS, Array, TimeBudget, share_of
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.latency import HITS, LATENCIES, unloaded_latency

# Share of their peaks that DRAM and the sector port of L2 sustain under a copy.
DRAM_SUSTAINED, L2_SUSTAINED = 0.92, 0.6


@np.errstate(all="ignore")
def shared_units(c: Counts) -> tuple[Array, Array]:
    """Share of the time in which DRAM and L2 were busy, of what they sustain."""
    l2 = np.fmax(np.nan_to_num(c["l2_utilization_fraction"]) / L2_SUSTAINED, np.nan_to_num(c["sol_l2_fraction"]))
    return np.nan_to_num(c["dram_throughput_fraction"]) / DRAM_SUSTAINED, l2


@np.errstate(all="ignore")
def utilization(c: Counts) -> tuple[Array, Array]:
    """Share of the time in which the busiest counted unit on the way to global memory was busy, and DRAM's part in it.

    The pipe of L1 serves shared memory as well: where a load takes no longer than a single one, it does not queue
    before that pipe.
    """
    dram, l2 = shared_units(c)
    l1 = np.nan_to_num(c["sol_l1_fraction"])
    queue = 1 - unloaded_latency(c) / c["lsu_latency_global_cycles"]
    queued = np.fmin(l1, np.where(np.isnan(queue), 1.0, np.clip(queue, 0, 1)))
    return np.clip(np.fmax(np.fmax(dram, l2), queued), 0, 1), share_of(dram, dram + l2 + l1)


def l1_share(c: Counts) -> Array:
    """Share of L1 in what keeps the units on the way to global memory busy."""
    l1 = np.nan_to_num(c["sol_l1_fraction"])
    return share_of(l1, np.asarray(sum(shared_units(c))) + l1)


def conflicts_share(c: Counts) -> Array:
    """Share of the wavefronts of shared memory that its instructions would not need without conflicts."""
    wavefronts = c["shared_wavefronts_sass"]
    # A table that is read at random places has the conflicts of its data.
    of_lookups = share_of(np.nan_to_num(c["shared_lookup_wavefronts"]), wavefronts)
    return np.clip(share_of(wavefronts - c["shared_wavefronts_ideal"], wavefronts) - of_lookups, 0, 1)


def shared_atomics_share(budget: TimeBudget) -> Array:
    """Share of the instructions on shared memory that are atomics."""
    atomics = budget.count("shared_atomic_inst_warp")
    return share_of(atomics, atomics + budget.count("shared_load_inst_warp", "shared_store_inst_warp"))


@np.errstate(all="ignore")
def behind_conflicts_share(c: Counts) -> Array:
    """Share of the queue to global memory that stands behind conflicts of shared memory.

    Both go through the pipe of L1: where wavefronts that only conflicts need keep it busy, loads of global memory wait
    for them.
    """
    l1 = np.nan_to_num(c["sol_l1_fraction"])
    wavefronts = np.nan_to_num(c["shared_wavefronts_sass"] / c["sm_elapsed_cycles_sum"])
    return l1_share(c) * share_of(np.fmin(wavefronts, l1), l1) * conflicts_share(c)


@np.errstate(all="ignore")
def queued_share(budget: TimeBudget) -> Array:
    """Share of the latency of accesses to global memory that they stood in a queue, at least.

    By Little's law, accesses that are too few to keep memory busy find no queue: each takes as long as a single one.
    One that takes longer waits for others, whether the unit that they wait for is counted or not. A warp waits for the
    farthest of its sectors, so that a few of them that miss may determine how long a single access takes.
    """
    c = budget.c
    sectors = np.fmax(np.nan_to_num(c["global_load_sectors_per_request"]), 1.0)
    l1, l2 = (np.clip(sectors * (1 - np.nan_to_num(c[name])), 0, 1) for name in HITS)
    longest = (1 - l1) * LATENCIES[0] + l1 * ((1 - l2) * LATENCIES[1] + l2 * LATENCIES[2])
    return np.clip(np.nan_to_num(1 - longest / _latency(budget)), 0, 1)


@np.errstate(all="ignore")
def atomics_share(budget: TimeBudget, busy: Array) -> Array:
    """Share of the waits for global memory beyond what its utilization explains, where there are atomics."""
    atomics = _atomics(budget)
    every = ("global_load_inst_warp", "global_store_inst_warp", "local_load_inst_warp", "local_store_inst_warp")
    instructions = share_of(atomics, atomics + budget.count(*every))
    expected = LATENCIES[2] / (1 - np.clip(busy, 0, 0.95))
    unexplained = np.clip(1 - np.nan_to_num(expected / _latency(budget), nan=1.0), 0, 1)
    return np.where(atomics > 0, np.fmax(unexplained, instructions), 0.0)


@np.errstate(all="ignore")
def _latency(budget: TimeBudget) -> Array:
    """Cycles from an access to global memory to its result, at least: what its warp waited; NaN where not known.

    A warp with several accesses under way waits for all of them at once. Bulk copies and textures wait in the same
    state, and are not counted among the accesses.
    """
    c = budget.c
    plain = [f"{space}_{side}_inst_warp" for space in ("global", "local") for side in ("load", "store")]
    waited = np.nansum(budget.waits[:, [STALLS.index(name) for name in GLOBAL_STALLS]], axis=1)
    waited = waited / (_atomics(budget) + budget.count(*plain))
    copies = budget.count("tma_load_inst_warp", "global_ldgsts_inst_warp", "texture_inst_warp") > 0
    return np.where(copies | ~np.isfinite(waited), np.nan, np.fmax(c["lsu_latency_global_cycles"], waited))


@np.errstate(all="ignore")
def _atomics(budget: TimeBudget) -> Array:
    """Warp instructions that are global atomics and reductions; where not counted, their requests."""
    c = budget.c
    kinds = (np.fmax(c[f"global_{kind}_inst_warp"], c[f"global_{kind}_requests"]) for kind in ("atomic", "reduction"))
    return np.asarray(sum(np.nan_to_num(kind) for kind in kinds), dtype=np.float64)
