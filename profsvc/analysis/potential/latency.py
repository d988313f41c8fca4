"""The latency of loads that find no other under way, and the time of loads that wait for each other."""

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.formulas.performance.loaded_latency import loaded_time

Array = NDArray[np.float64]
LATENCIES = (40.0, 270.0, 700.0)
"""Cycles that a single load takes to L1, to L2 and to DRAM."""
HITS = ("global_load_l1_hit_fraction", "l2_hit_fraction")
TRIPS = 5.0
"""Trips to DRAM that follow each other in the shortest launch: code, parameters, page table, first load, last store."""
FILLED_SLOTS = 0.85
"""Share of its slots for warps that a kernel without a flaw has filled, over its time: blocks do not end all at once.

The median of achieved over theoretical occupancy, times that of active cycles, of 756 launches of one wave or more."""
QUEUEING = 0.07
"""Waiting in the queue of DRAM at half load over its latency, by its throughput at 8 to 16 KiB in each SM under way.

Measured on an H200: 0.07 to 0.09."""


@np.errstate(all="ignore")
def unloaded_latency(c: Counts) -> Array:
    """Cycles that a load takes if no other is under way, by where it hits."""
    l1, l2 = (np.clip(np.nan_to_num(c[name]), 0, 1) for name in HITS)
    return np.asarray(l1 * LATENCIES[0] + (1 - l1) * (l2 * LATENCIES[1] + (1 - l2) * LATENCIES[2]))


@np.errstate(all="ignore")
def fill_ns(c: Counts) -> Array:
    """Time in which SMs work that are not yet full, or not any more, however much there is to do, in ns; 0 if unknown.

    The first values arrive after some trips to DRAM through cold caches, and the last results take one more.
    """
    cycles = TRIPS * LATENCIES[2]
    return np.asarray(np.nan_to_num(c["duration_ns"] * cycles / c["sm_elapsed_cycles_avg"], posinf=0.0))


@np.errstate(all="ignore")
def chained_ns(c: Counts, issue_ns: Array) -> Array:
    """Time of loads whose address comes from the load before, with the slots for warps full, in ns; NaN if not known.

    The loads of one warp follow each other, so that by Little's law no more are under way than there are warps. Between
    two loads the warp executes its other instructions, each as soon as the one before allows it: ``issue_ns`` is the
    time that those which are needed take to issue, if schedulers issue all the time.
    """
    slots = c["sm_count"] * c["max_warps_per_sm"]
    cycles = c["global_load_chained_inst_warp"] / slots * unloaded_latency(c)
    loads = c["duration_ns"] * cycles / c["sm_elapsed_cycles_avg"]
    turns = (1 + np.nan_to_num(c["stall_wait_cycles_per_issue"])) * c["schedulers_per_sm"] / c["max_warps_per_sm"]
    path = loads + np.nan_to_num(issue_ns * turns)
    return np.asarray(np.where(loads > 0, path / FILLED_SLOTS, loads), dtype=np.float64)


@np.errstate(all="ignore")
def with_chains(c: Counts, needed: Array, issue_ns: Array, memory: int) -> Array:
    """Time that each unit needs, in ns, of shape (launches, units), with that of loads that wait for each other.

    ``memory`` is the column of the memory that the loads wait for. The busier the busiest unit, the longer is its
    queue, and the longer they wait.
    """
    chained = chained_ns(c, issue_ns)
    busiest = np.nan_to_num(needed).max(axis=1)
    queued = loaded_time(np.where(chained > 0, chained, 0.0), busiest, QUEUEING).value
    place = np.where(chained > busiest, memory, np.nan_to_num(needed, nan=-1.0).argmax(axis=1))
    found = needed.copy()
    rows = np.flatnonzero(chained > 0)
    found[rows, place[rows]] = queued[rows]
    return found
