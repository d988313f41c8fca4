r"""Execution time of a kernel from how many warps overlap in memory, and how many compute meanwhile.

MWP, memory warp parallelism, is the number of warps of an SM whose requests are under way together; CWP, computation
warp parallelism, the number that compute during one memory period, and that warp. CWP above MWP: memory dominates the
time. MWP above CWP: computation does. No run is needed: counts of instructions, the launch configuration and a few
numbers of the machine suffice. Misses of instruction, constant and texture caches and bank conflicts are taken to be
absent, shared memory to cost what registers do. All times are cycles of the SM clock.

Modules::

    execution     cycles of a kernel, by case and round
    fit           memory parameters of a device, from micro-benchmarks
    instructions  issue cycles, and instructions of diverged warps
    parallelism   memory and computation warp parallelism
    result        result of several functions
"""

from profsvc.formulas.mwp_cwp.execution import CaseCycles, Execution, case_cycles, exec_cycles
from profsvc.formulas.mwp_cwp.fit import MemoryFit, fit_memory_parameters
from profsvc.formulas.mwp_cwp.instructions import comp_cycles, divergent_instructions, m_factor, mean_m_factor
from profsvc.formulas.mwp_cwp.parallelism import (
    BANDWIDTH,
    DEPARTURE,
    WARPS,
    ComputationParallelism,
    Latency,
    MemoryParallelism,
    cwp,
    independent_warps,
    mem_latency,
    mwp,
)
from profsvc.formulas.mwp_cwp.result import Quantity

__all__ = [
    "BANDWIDTH",
    "DEPARTURE",
    "WARPS",
    "CaseCycles",
    "ComputationParallelism",
    "Execution",
    "Latency",
    "MemoryFit",
    "MemoryParallelism",
    "Quantity",
    "case_cycles",
    "comp_cycles",
    "cwp",
    "divergent_instructions",
    "exec_cycles",
    "fit_memory_parameters",
    "independent_warps",
    "m_factor",
    "mean_m_factor",
    "mem_latency",
    "mwp",
]
