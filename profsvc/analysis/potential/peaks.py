"""Peak rates and limits of the device each launch ran on, and where each figure came from.

What an export says of its own device beats the catalogue; what neither says stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from profsvc.analysis.counters.arrays import Array, or_else
from profsvc.analysis.potential.tensor_work import TENSOR_TYPES
from profsvc.tables.on_demand import pd

# figure -> (counter of the export that holds it, key of the catalogue)
FIGURES: Mapping[str, tuple[str, str]] = {
    "sms": ("sm_count", "sms"),
    "schedulers_per_sm": ("schedulers_per_sm", "schedulers_per_sm"),
    "max_warps_per_sm": ("max_warps_per_sm", "max_warps_per_sm"),
    "warp_size": ("warp_size", "warp_size"),
    "dram_peak_bytes_per_s": ("dram_peak_bytes_per_s", "dram_peak_bytes_per_s"),
    "sm_clock_hz": ("sm_clock_hz", "boost_clock_hz"),
    "boost_clock_hz": ("", "boost_clock_hz"),
    "fp32_peak_flop_per_s": ("fp32_peak_flop_per_s", ""),
    "fp64_peak_flop_per_s": ("fp64_peak_flop_per_s", ""),
    "fp32_lanes_per_sm": ("", "fp32_lanes_per_sm"),
    "fp64_lanes_per_sm": ("", "fp64_lanes_per_sm"),
    "sfu_per_sm": ("", "sfu_per_sm"),
    "tensor_sparsity_factor": ("", "tensor_sparsity_factor"),
    "tensor_single_warp_fraction": ("", "tensor_single_warp_fraction"),
    **{f"tensor_{kind}_peak_op_per_s": (f"tensor_{kind}_peak_op_per_s", "") for kind in TENSOR_TYPES},
}


def peaks(counters: pd.DataFrame, catalogue: Mapping[str, object] | None) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a row of figures a launch, and for each figure its origin: export, catalogue or unknown.

    ``counters`` has one row per launch and one column per counter; ``catalogue`` holds the figures of the device.
    """
    absent = np.full(len(counters), np.nan)

    def listed(key: str) -> float:
        value = (catalogue or {}).get(key)
        return float(value) if isinstance(value, int | float) else np.nan

    def exported(counter: str) -> Array:
        return counters[counter].to_numpy(dtype="float64", na_value=np.nan) if counter in counters else absent

    figures: dict[str, Array] = {}
    origin: dict[str, str] = {}
    for name, (counter, key) in FIGURES.items():
        own, value = exported(counter), listed(key)
        origin[name] = "catalogue" if np.isfinite(value) else "unknown"
        if not np.isnan(own).all():
            origin[name] = "export"
        figures[name] = or_else(own, value)
    if np.isnan(figures["sms"]).any() and "sms_used" in counters:
        figures["sms"] = or_else(figures["sms"], exported("sms_used"))
        origin["sms"] = "export" if origin["sms"] == "unknown" else origin["sms"]
    with np.errstate(all="ignore"):
        rate = figures["sms"] * figures["sm_clock_hz"]
        for kind in ("fp32", "fp64"):
            measured = figures[f"{kind}_peak_flop_per_s"] / (2 * rate)
            figures[f"{kind}_lanes_per_sm"] = or_else(measured, figures[f"{kind}_lanes_per_sm"])
    for kind in TENSOR_TYPES:
        name = f"tensor_{kind}_peak_op_per_s"
        figures[name] = or_else(figures[name], rate * listed(f"tensor_{kind}_op_per_sm_cycle"))
    figures["sfu_per_sm"] = or_else(figures["sfu_per_sm"], 16.0)
    figures["warp_size"] = or_else(figures["warp_size"], 32.0)
    return pd.DataFrame(figures, index=counters.index), origin
