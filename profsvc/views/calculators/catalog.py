"""All calculators by name."""

from collections.abc import Mapping
from types import MappingProxyType

from profsvc.errors import NotFoundError
from profsvc.views.calculators.benefit import barriers
from profsvc.views.calculators.criteria import idle_gaps
from profsvc.views.calculators.declaration import Calculator
from profsvc.views.calculators.memory_hierarchy import cache_sizes, work_flow
from profsvc.views.calculators.mwp_cwp import kernel_cycles, memory_parameters
from profsvc.views.calculators.performance import (
    access_pattern,
    balance,
    latency,
    load_balance,
    near_field,
    occupancy,
    optimization_search,
    peak_estimates,
    speedups,
    work_depth,
)
from profsvc.views.calculators.power import (
    energy_cores,
    energy_frequency,
    energy_split,
    fit_power,
    instruction_power,
    placement,
    sm_count,
)
from profsvc.views.calculators.thermal import leakage, temperature, temperature_fit
from profsvc.views.calculators.throughput import kernel as throughput_kernel

MODULES = (
    work_depth,
    balance,
    near_field,
    work_flow,
    cache_sizes,
    energy_split,
    energy_frequency,
    fit_power,
    instruction_power,
    sm_count,
    temperature,
    temperature_fit,
    leakage,
    placement,
    optimization_search,
    idle_gaps,
    kernel_cycles,
    throughput_kernel,
    memory_parameters,
    barriers,
    energy_cores,
    access_pattern,
    occupancy,
    peak_estimates,
    latency,
    load_balance,
    speedups,
)
"""Each has its `CALCULATORS`; one line per module, so that two can be added at a time."""
CALCULATORS: Mapping[str, Calculator] = MappingProxyType(
    {one.key: one for module in MODULES for one in module.CALCULATORS}
)
GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "energy": "Energy of work: over clocks and cores, and split between a CPU and a GPU.",
        "fit": "Parameters of a model from a table of measurements.",
        "kernel": "Predictions for a kernel that is described by its instructions.",
    }
)
"""The first word of commands of two words, and what these are about."""


def calculator_of(name: str) -> Calculator:
    """Return the calculator of a name in a path."""
    if name not in CALCULATORS:
        raise NotFoundError.near("model", name, CALCULATORS)
    return CALCULATORS[name]
