"""Work of an average warp as a graph, and hit ratios of caches over random orders of what warps ask for.

The graph says what bounds a kernel: issuing, waiting, or the bandwidth, and how far computation and memory are from
balance. The simulation says how often caches answer, of which only the order inside each warp is known.

Modules::

    cache            hits of a set-associative cache
    lru              hits with least-recently-used replacement
    packed_trace     requests of a long trace in few bytes per line
    placement        set of a line
    reference_order  random valid orders of references
    simulation       hit ratios over random orders
    trace            references of a kernel, machine, coalescing
    warp_streams     pieces of warps, and keys that sort their references
    work_flow        work-flow graph of an average warp
"""

from profsvc.formulas.memory_hierarchy.cache import cache_sim
from profsvc.formulas.memory_hierarchy.packed_trace import Packed, pack
from profsvc.formulas.memory_hierarchy.placement import set_of
from profsvc.formulas.memory_hierarchy.reference_order import merge_order
from profsvc.formulas.memory_hierarchy.simulation import (
    LEVELS,
    Distribution,
    HierarchyRuns,
    Sites,
    hierarchy_mc,
    hierarchy_of,
)
from profsvc.formulas.memory_hierarchy.trace import (
    ALLOCATE,
    AROUND,
    ATOMIC,
    HASHED,
    LOAD,
    MODULO,
    STORE,
    Cache,
    Hierarchy,
    Requests,
    Trace,
    coalesce,
)
from profsvc.formulas.memory_hierarchy.warp_streams import RATE, UNIFORM
from profsvc.formulas.memory_hierarchy.work_flow import (
    BANDWIDTH,
    BARRIER,
    COMPUTE,
    ENTRY,
    EXIT,
    GLOBAL,
    ISSUE,
    LATENCY,
    SHARED,
    Costs,
    Graph,
    Visits,
    WorkFlow,
    wfg_costs,
    wfg_evaluate,
    wfg_visits,
)

__all__ = [
    "ALLOCATE",
    "AROUND",
    "ATOMIC",
    "BANDWIDTH",
    "BARRIER",
    "COMPUTE",
    "ENTRY",
    "EXIT",
    "GLOBAL",
    "HASHED",
    "ISSUE",
    "LATENCY",
    "LEVELS",
    "LOAD",
    "MODULO",
    "RATE",
    "SHARED",
    "STORE",
    "UNIFORM",
    "Cache",
    "Costs",
    "Distribution",
    "Graph",
    "Hierarchy",
    "HierarchyRuns",
    "Packed",
    "Requests",
    "Sites",
    "Trace",
    "Visits",
    "WorkFlow",
    "cache_sim",
    "coalesce",
    "hierarchy_mc",
    "hierarchy_of",
    "merge_order",
    "pack",
    "set_of",
    "wfg_costs",
    "wfg_evaluate",
    "wfg_visits",
]
