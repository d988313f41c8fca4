"""Peak rates and limits of the device each launch ran on, and where each figure came from.

What an export says of its own device beats the catalogue; what neither says stays unknown.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from profsvc.analysis.potential.tensor_work import TENSOR_TYPES

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
    **{f"tensor_{kind}_peak_op_per_s": (f"tensor_{kind}_peak_op_per_s", "") for kind in TENSOR_TYPES},
}


def peaks(counters: pd.DataFrame, catalogue: Mapping[str, object] | None) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a row of figures a launch, and for each figure its origin: export, catalogue or unknown.

    ``counters`` has one row per launch and one column per counter; ``catalogue`` is the device's table of devices.toml.
    """
    figures, origin = pd.DataFrame(index=counters.index), {}
    for name, (counter, key) in FIGURES.items():
        own = counters[counter].astype("float64") if counter in counters else pd.Series(np.nan, counters.index)
        value = (catalogue or {}).get(key)
        listed = float(value) if isinstance(value, int | float) else np.nan
        origin[name] = "export" if own.notna().any() else "catalogue" if np.isfinite(listed) else "unknown"
        figures[name] = own.fillna(listed)
    if figures["sms"].isna().any() and "sms_used" in counters:
        figures["sms"] = figures["sms"].fillna(counters["sms_used"].astype("float64"))
        origin["sms"] = "export" if origin["sms"] == "unknown" else origin["sms"]
    rate = figures["sms"] * figures["sm_clock_hz"]
    for kind in ("fp32", "fp64"):
        measured = figures[f"{kind}_peak_flop_per_s"] / (2 * rate)
        figures[f"{kind}_lanes_per_sm"] = measured.fillna(figures[f"{kind}_lanes_per_sm"])
    for kind in TENSOR_TYPES:
        value = (catalogue or {}).get(f"tensor_{kind}_op_per_sm_cycle")
        of_sm = float(value) if isinstance(value, int | float) else np.nan
        figures[f"tensor_{kind}_peak_op_per_s"] = figures[f"tensor_{kind}_peak_op_per_s"].fillna(rate * of_sm)
    figures["sfu_per_sm"] = figures["sfu_per_sm"].fillna(16.0)
    figures["warp_size"] = figures["warp_size"].fillna(32.0)
    return figures, origin
