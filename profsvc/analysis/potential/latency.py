"""The latency of loads that find no other under way, and the time of loads that wait for each other."""

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts

Array = NDArray[np.float64]
LATENCIES = (40.0, 270.0, 700.0)
"""Cycles that a single load takes to L1, to L2 and to DRAM."""
HITS = ("global_load_l1_hit_fraction", "l2_hit_fraction")
TRIPS = 5.0
"""Trips to DRAM that follow each other in the shortest launch: code, parameters, page table, first load, last store."""


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
def chained_ns(c: Counts) -> Array:
    """Time of loads whose address comes from the load before, with all slots for warps full, in ns; NaN if not known.

    The loads of one warp follow each other, so that by Little's law no more are under way than there are warps.
    """
    slots = c["sm_count"] * c["max_warps_per_sm"]
    cycles = c["global_load_chained_inst_warp"] / slots * unloaded_latency(c)
    return np.asarray(c["duration_ns"] * cycles / c["sm_elapsed_cycles_avg"], dtype=np.float64)
