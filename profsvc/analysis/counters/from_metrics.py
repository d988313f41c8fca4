"""Stored metrics to canonical counters: one row per launch, one column per counter, and where each value came from."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.formulas.performance.occupancy import Limits, occupancy

# Columns of the launch itself that are counters; they are known even when no metric says so.
LAUNCH_COLUMNS = (
    *("duration_ns", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("registers_per_thread", "shared_mem_static_bytes", "shared_mem_dynamic_bytes"),
)
# Counters that the catalogue knows of a device, under its own names, where a tool's expressions ask for them.
CATALOGUE_COUNTERS = {
    "sm_count": "sms", "max_warps_per_sm": "max_warps_per_sm", "schedulers_per_sm": "schedulers_per_sm",
    "dram_peak_bytes_per_s": "dram_peak_bytes_per_s", "fp32_lanes_per_sm": "fp32_lanes_per_sm",
    "fp64_lanes_per_sm": "fp64_lanes_per_sm",
}  # fmt: skip


def metric_values(metrics: pd.DataFrame, ids: list[int], tool: str, capability: str | None) -> dict[str, np.ndarray]:
    """Numbers of each metric of the tool over the launches ``ids``; missing is NaN.

    A page that prints labels instead of metrics is brought to the metric behind each label of its section. Where
    several rows of a launch mean one metric, the first counts.
    """
    pairs = metrics[["section", "metric"]].drop_duplicates()
    names = {pair: _metric_name(tool, capability, *pair) for pair in pairs.itertuples(index=False, name=None)}
    named = metrics.assign(name=[names[pair] for pair in zip(metrics["section"], metrics["metric"], strict=True)])
    numbers = named[named["value"].notna()].drop_duplicates(["launch_id", "name"])
    wide = numbers.pivot(index="launch_id", columns="name", values="value").reindex(ids)
    return {str(name): wide[name].to_numpy(dtype="float64") for name in wide}


def _metric_name(tool: str, capability: str | None, section: str | None, metric: str) -> str:
    """Return the metric that a page means; one that prints labels has it behind each label of its section."""
    return specs.metric_of(section, metric, capability) if tool == "ncu" else metric


def used_metric_names(tool: str, capability: str | None) -> Callable[[str | None, str], str | None]:
    """Return what tells the metric that a section and a name on a page mean; None if no counter is computed from it."""
    expressions = specs.metrics(tool, capability).values()
    used = frozenset(name for expression in expressions for name in expression.names)

    def wanted(section: str | None, metric: str) -> str | None:
        name = _metric_name(tool, capability, section, metric)
        return name if name in used else None

    return wanted


def _device_counters(own: Mapping[str, np.ndarray], device: Mapping[str, object]) -> dict[str, np.ndarray]:
    """What a tool's expressions may use without the tool: figures of the device, and the blocks that fit on its SMs."""
    count = len(own["block_x"])
    figures = {counter: device.get(key) for counter, key in CATALOGUE_COUNTERS.items()}
    found = {f"@{name}": np.full(count, float(n)) for name, n in figures.items() if isinstance(n, int | float)}
    if set(Limits._fields) <= set(device) and None not in (limits := [device[name] for name in Limits._fields]):
        threads = own["block_x"] * own["block_y"] * own["block_z"]
        shared = own["shared_mem_static_bytes"] + own["shared_mem_dynamic_bytes"]
        found["@blocks_per_sm_theoretical"] = occupancy(threads, own["registers_per_thread"], shared, limits).blocks
    return found


def launch_counters(
    launches: pd.DataFrame,
    metrics: pd.DataFrame,
    tool: str,
    capability: str | None,
    wide: Mapping[str, np.ndarray] | None = None,
    device: Mapping[str, object] | None = None,
) -> tuple[pd.DataFrame, Mapping[str, np.ndarray]]:
    """Return the counters of launches of one tool and capability, and the expression behind each value.

    ``launches`` has ``launch_id`` and the tidy columns; ``metrics`` has ``launch_id, section, metric, value``, in SI
    units. ``wide`` are more values, by metric one a launch, NaN where there is none; they count before ``metrics``.
    ``device`` is what the catalogue knows of it: the expressions of a tool that says nothing of its device use that.
    """
    ids = launches["launch_id"].tolist()
    own = {column: launches[column].to_numpy(dtype="float64", na_value=np.nan) for column in LAUNCH_COLUMNS}
    known = {f"@{column}": values for column, values in own.items() if not np.isnan(values).all()}
    known |= _device_counters(own, device or {})
    given = metric_values(metrics, ids, tool, capability)
    for name, numbers in (wide or {}).items():
        given[name] = np.where(np.isnan(numbers), given.get(name, np.nan), numbers)
    derived, sources = specs.derive_counters(tool, capability, given | known)
    table = pd.DataFrame(derived, index=pd.Index(ids, name="launch_id"), dtype="float64")
    for column, values in own.items():
        if column not in table:
            table[column] = values
            sources[column] = np.full(len(ids), f"col:'{column}'", dtype=object)
        else:
            table[column] = table[column].fillna(pd.Series(values, index=table.index))
    return table, sources
