"""Launches without counters of the useful work of their limiting unit: no potential, but the missing counters.

All work of such a unit would count as useful, and the potential would be the inverse of its utilization: a lower bound
without information.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.counters.missing import collection_hint, list_counters
from profsvc.analysis.potential.tensor_work import TENSOR_TYPES
from profsvc.analysis.potential.useful_time import UNITS, all_counted_useful
from profsvc.formulas.numerics.flags import Flag

BOUND_COLUMNS = ("speedup", "ideal_ns", "mem_throughput_ratio", "arith_throughput_ratio")
LOADS = ("global_load_inst_warp", "global_load_bytes_requested", "l2_to_l1_read_bytes")
STORES = ("global_store_inst_warp", "global_store_bytes_requested", "l1_to_l2_write_bytes")
SHARED = ("shared_load_inst_warp", "shared_store_inst_warp", "shared_wavefronts_ideal")
LANE_EFFICIENCY = "warp_nonpred_execution_efficiency_fraction"
ARITHMETIC: Mapping[str, tuple[str, ...]] = {
    kind: tuple(f"flop_count_{letter}_{what}" for what in ("add", "mul", "fma"))
    for kind, letter in (("fp32", "sp"), ("fp64", "dp"))
}
FLOP_COUNTS = (*ARITHMETIC["fp32"], *ARITHMETIC["fp64"])
# Attributes of the device are on every raw page, and on no other.
RAW_PAGE_COUNTER, RAW_PAGE_HINT = (
    "max_warps_per_sm",
    "the raw page of the report may contain them: ncu -i REPORT --csv --page raw",
)
NEEDED_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "dram": ("dram_read_bytes", "dram_write_bytes", *LOADS[1:], *STORES[1:]),
    "l2": (
        "l2_utilization_fraction",
        "global_theoretical_sectors_ideal",
        "global_theoretical_sectors",
        "l2_tex_requests",
        "l2_tex_read_sectors",
        "l2_tex_sectors",
        "l2_read_hit_fraction",
    ),
    "l1": (*LOADS, *STORES, *SHARED, *FLOP_COUNTS, "sm_elapsed_cycles_sum"),
    **ARITHMETIC,
    "tensor": tuple(f"tensor_ops_{kind}" for kind in TENSOR_TYPES[:3]),
    "xu": (*FLOP_COUNTS, LANE_EFFICIENCY, "elapsed_cycles"),
    "integer": (*FLOP_COUNTS, LANE_EFFICIENCY),
    "issue": (*LOADS, *STORES, *SHARED, *FLOP_COUNTS, LANE_EFFICIENCY, "inst_executed_warp", "elapsed_cycles"),
}
"""Counters that tell how much of the work of a unit is useful; of the tensor pipe those of the types met most."""


def without_uninformative_bounds(
    bounds: pd.DataFrame, counters: pd.DataFrame, figures: pd.DataFrame, tool: str, capability: str | None
) -> pd.DataFrame:
    """Take the numbers away that only repeat how busy a unit was, and give the reason: what to collect.

    ``bounds`` are those of `profsvc.analysis.potential.launch_potential.launch_potentials`, ``figures`` of
    `profsvc.analysis.potential.peaks.peaks`.
    """
    whole = all_counted_useful(counters, figures).to_numpy(dtype=bool)
    unit = np.array([UNITS.index(name) if name in UNITS else -1 for name in bounds["ideal_bound"]])
    empty = (unit >= 0) & whole[np.arange(len(bounds)), unit]
    found, c = bounds.copy(), Counts(counters)
    reasons = found["reason"].to_numpy(dtype=object, copy=True)
    said: dict[tuple[str, ...], str] = {}
    for place in np.flatnonzero(empty):
        name = UNITS[unit[place]]
        page = RAW_PAGE_HINT if tool == "ncu" and np.isnan(c[RAW_PAGE_COUNTER][place]) else ""
        lacking = (page, name, *(counter for counter in NEEDED_COUNTERS[name] if np.isnan(c[counter][place])))
        if lacking not in said:
            said[lacking] = _missing_reason(page, name, lacking[2:], tool, capability)
        reasons[place] = said[lacking]
    if tool == "nvprof":  # which has no sections
        reasons = np.array([_nvprof_reason(reason, capability) for reason in reasons], dtype=object)
    found.loc[empty, list(BOUND_COLUMNS)] = np.nan
    open_ = found["ceiling_flags"].to_numpy(dtype="int64") & int(Flag.LOWER_BOUND) > 0
    found.loc[empty & open_, "speedup_ceiling"] = np.nan
    found.loc[empty & open_, "ceiling_flags"] = 0
    return found.assign(reason=pd.Series(reasons, index=found.index, dtype=object))


def _missing_reason(page: str, unit: str, lacking: tuple[str, ...], tool: str, capability: str | None) -> str:
    title = next(one["title"] for one in specs.criteria()["unit"] if one["name"] == unit)
    why = f"useful work of the limiting unit was not counted ({title})"
    if not lacking:
        return f"{why}: the device table has no peak rates"
    if page:
        return f"{why}: the export has no {list_counters(lacking)}; {page}"
    ways = tuple(name for name in lacking if specs.how_to_collect(tool, name, capability))
    how = collection_hint(tool, ways, capability) if ways else f", which {tool} cannot collect on this device"
    return f"{why}: the export has no {list_counters(lacking)}{how}"


def _nvprof_reason(reason: str | None, capability: str | None) -> str | None:
    if reason is None or "collect" not in reason or "nvprof" in reason:
        return reason
    return f"{reason.partition(';')[0]}; {specs.how_to_measure('nvprof')}"
