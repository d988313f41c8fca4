"""Work of an average warp as a graph, and hit ratios of caches over random orders of what warps ask for.

The graph says what bounds a kernel: issuing, waiting, or the bandwidth, and how far computation and memory are from
balance. The simulation says how often caches answer, of which only the order inside each warp is known.
"""

from profsvc.formulas.memory_hierarchy._streams import RATE, UNIFORM
from profsvc.formulas.memory_hierarchy.cache import cache_sim
from profsvc.formulas.memory_hierarchy.order import merge_order
from profsvc.formulas.memory_hierarchy.packed import Packed, pack
from profsvc.formulas.memory_hierarchy.placement import set_of
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
