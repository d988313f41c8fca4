"""Performance of a kernel as the peak its instructions allow, times the share of the cycles that produce something.

A stretch of computation C and a memory period M follow each other, for each of N warps of an SM. The requests that an
application needs under way, and those that the hardware allows, tell ten categories apart, each with its advice
(`profsvc.specs.advice.categories`). On a CPU a thread takes the place of a warp, with one of them a core.

Modules::

    categories    ten categories of an application
    execution     performance by the throughput model, and what-if
    idle          cycles in which all warps wait
    instructions  useful instructions and their peak
    parallelism   requests in flight, needed and possible
    suggestions   number of SMs, warps, frequency, CPU share
"""

from profsvc.formulas.throughput.categories import SLACK, Category, category
from profsvc.formulas.throughput.execution import Throughput, throughput, what_if
from profsvc.formulas.throughput.idle import IdleCycles, idle_cycles
from profsvc.formulas.throughput.instructions import (
    CompRatio,
    Mix,
    Strength,
    comp_ratio,
    instruction_mix,
    memory_strength,
    peak_achievable,
)
from profsvc.formulas.throughput.parallelism import (
    MemoryDemand,
    TotalParallelism,
    effective_latency,
    mwp_app,
    mwp_total,
)
from profsvc.formulas.throughput.suggestions import (
    Suggestion,
    start_share,
    suggest_cores,
    suggest_frequency,
    suggest_warps,
)

__all__ = [
    "SLACK",
    "Category",
    "CompRatio",
    "IdleCycles",
    "MemoryDemand",
    "Mix",
    "Strength",
    "Suggestion",
    "Throughput",
    "TotalParallelism",
    "category",
    "comp_ratio",
    "effective_latency",
    "idle_cycles",
    "instruction_mix",
    "memory_strength",
    "mwp_app",
    "mwp_total",
    "peak_achievable",
    "start_share",
    "suggest_cores",
    "suggest_frequency",
    "suggest_warps",
    "throughput",
    "what_if",
]
