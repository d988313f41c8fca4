"""Launches of whose limiting unit nobody counted the useful work: they have no number, but what is lacking.

All that kept such a unit busy would be taken as useful, and the potential would be the inverse of its utilization: a
floor that says nothing of what there is to gain.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from profsvc import specs
from profsvc.analysis.counts import Counts
from profsvc.analysis.models.rows import collecting, listed
from profsvc.analysis.tensor import TYPES
from profsvc.analysis.useful_time import UNITS, taken_whole
from profsvc.formulas.flags import Flag

NUMBERS = ("speedup", "ideal_ns", "mem_throughput_ratio", "arith_throughput_ratio")
LOADS = ("global_load_inst_warp", "global_load_bytes_requested", "l2_to_l1_read_bytes")
STORES = ("global_store_inst_warp", "global_store_bytes_requested", "l1_to_l2_write_bytes")
SHARED = ("shared_load_inst_warp", "shared_store_inst_warp", "shared_wavefronts_ideal")
LANES = "warp_nonpred_execution_efficiency_fraction"
ARITHMETIC: Mapping[str, tuple[str, ...]] = {
    kind: tuple(f"flop_count_{letter}_{what}" for what in ("add", "mul", "fma"))
    for kind, letter in (("fp32", "sp"), ("fp64", "dp"))
}
BOTH = (*ARITHMETIC["fp32"], *ARITHMETIC["fp64"])
# Attributes of the device are on every raw page, and on no other.
ON_RAW_PAGES, RAW_PAGE = "max_warps_per_sm", "the raw page of the report may: ncu -i REPORT --csv --page raw"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "dram": ("dram_read_bytes", "dram_write_bytes", *LOADS[1:], *STORES[1:]),
    "l2": ("l2_utilization_fraction", "global_theoretical_sectors_ideal", "global_theoretical_sectors"),
    "l1": (*LOADS, *STORES, *SHARED, *BOTH, "sm_elapsed_cycles_sum"),
    **ARITHMETIC,
    "tensor": tuple(f"tensor_ops_{kind}" for kind in TYPES[:3]),
    "xu": (*BOTH, LANES, "elapsed_cycles"),
    "integer": (*BOTH, LANES),
    "issue": (*LOADS, *STORES, *SHARED, *BOTH, LANES, "inst_executed_warp", "elapsed_cycles"),
}
"""Counters that tell how much of the work of a unit is useful; of the tensor pipe those of the types met most."""


def without_empty_bounds(
    bounds: pd.DataFrame, counters: pd.DataFrame, figures: pd.DataFrame, tool: str, capability: str | None
) -> pd.DataFrame:
    """Take the numbers away that only repeat how busy a unit was, and give the reason: what to collect.

    ``bounds`` are those of `profsvc.analysis.potential.potential`, ``figures`` of `profsvc.analysis.peaks.peaks`.
    """
    whole = taken_whole(counters, figures).to_numpy(dtype=bool)
    unit = np.array([UNITS.index(name) if name in UNITS else -1 for name in bounds["ideal_bound"]])
    empty = (unit >= 0) & whole[np.arange(len(bounds)), unit]
    found, c = bounds.copy(), Counts(counters)
    reasons = found["reason"].to_numpy(dtype=object, copy=True)
    said: dict[tuple[str, ...], str] = {}
    for place in np.flatnonzero(empty):
        name = UNITS[unit[place]]
        page = RAW_PAGE if tool == "ncu" and np.isnan(c[ON_RAW_PAGES][place]) else ""
        lacking = (page, name, *(counter for counter in NEEDED[name] if np.isnan(c[counter][place])))
        if lacking not in said:
            said[lacking] = _words(page, name, lacking[2:], tool, capability)
        reasons[place] = said[lacking]
    if tool == "nvprof":  # which has no sections
        reasons = np.array([_of_nvprof(reason, capability) for reason in reasons], dtype=object)
    found.loc[empty, list(NUMBERS)] = np.nan
    open_ = found["ceiling_flags"].to_numpy(dtype="int64") & int(Flag.LOWER_BOUND) > 0
    found.loc[empty & open_, "speedup_ceiling"] = np.nan
    found.loc[empty & open_, "ceiling_flags"] = 0
    return found.assign(reason=pd.Series(reasons, index=found.index, dtype=object))


def _words(page: str, unit: str, lacking: tuple[str, ...], tool: str, capability: str | None) -> str:
    title = next(one["title"] for one in specs.criteria()["unit"] if one["name"] == unit)
    why = f"nobody counted how much of the work of what limits it is useful ({title})"
    if not lacking:
        return f"{why}: the device table does not tell the peak rates"
    if page:
        return f"{why}: the export has no {listed(lacking)}; {page}"
    ways = tuple(name for name in lacking if specs.how_to_collect(tool, name, capability))
    how = collecting(tool, ways, capability) if ways else f", which {tool} does not count on this device"
    return f"{why}: the export has no {listed(lacking)}{how}"


def _of_nvprof(reason: str | None, capability: str | None) -> str | None:
    if reason is None or "collect" not in reason or "nvprof" in reason:
        return reason
    return f"{reason.partition(';')[0]}; {specs.how_to_measure('nvprof')}"
