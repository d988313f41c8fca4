"""The nine optimization criteria of [FineGrained2016] section IV, each with its potential speedup of section V.

A criterion lies in [0, 1]; 1 means that there is nothing to gain. ::

    A  host synchronization      host_sync, host_sync_of_sums
    B  device synchronization    device_sync
    C  divergence                divergence
    D  load balance of warps     load_balance_warp, load_balance_warp_printed
    E  load balance of SMs       load_balance_sm, load_balance_sm_printed
    F  L1 and L2 granularity     granularity, with lines of 128 and 32 bytes
    G  shared memory efficiency  shared_efficiency
    H  throughput / occupancy    throughput_occupancy

Their speedups are alternatives under one ceiling, `speedup.potential_speedup`; never multiply them.

Modules::

    balance          criteria C, D and E: balance of lanes, warps and SMs
    memory           criteria F, G and H: use of caches, shared memory and DRAM
    result           result of most criteria
    synchronization  criteria A and B: time between kernels, and at barriers
"""

from profsvc.formulas.criteria.balance import (
    Divergence,
    divergence,
    load_balance_sm,
    load_balance_sm_printed,
    load_balance_warp,
    load_balance_warp_printed,
)
from profsvc.formulas.criteria.memory import (
    SharedEfficiency,
    ThroughputOccupancy,
    granularity,
    shared_efficiency,
    throughput_occupancy,
)
from profsvc.formulas.criteria.result import Criterion
from profsvc.formulas.criteria.synchronization import HostSync, device_sync, host_sync, host_sync_of_sums

__all__ = [
    "Criterion",
    "Divergence",
    "HostSync",
    "SharedEfficiency",
    "ThroughputOccupancy",
    "device_sync",
    "divergence",
    "granularity",
    "host_sync",
    "host_sync_of_sums",
    "load_balance_sm",
    "load_balance_sm_printed",
    "load_balance_warp",
    "load_balance_warp_printed",
    "shared_efficiency",
    "throughput_occupancy",
]
