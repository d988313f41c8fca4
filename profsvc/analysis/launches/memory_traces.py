"""Memory traces: which caches a device has, and the rows of results from the hit ratios of random orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from profsvc.errors import NotFoundError
from profsvc.formulas.memory_hierarchy import HASHED, LEVELS, Cache, Hierarchy
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.occupancy import Limits, occupancy
from profsvc.specs.hardware import Device
from profsvc.tables.on_demand import pd

VERSION = "2"
"""Raised when any number changes for the same trace."""

MODEL = "memory_hierarchy"
LINE_BYTES = 128
SECTOR_BYTES = 32
# No maker prints ways. On an H200, lines 33 apart fill L1 as a random function into sets of 16 does.
L1_WAYS, L2_WAYS = 16, 16
MIN_HASHED_CAPABILITY = (5, 0)
"""Compute capability from which sets are hashed and L1 fills sectors [Jia2018]; before it, whole lines, by modulo."""
DRAM_FETCH_BYTES, MIN_FETCH_CAPABILITY = 64, (8, 0)
"""What DRAM gives L2 at a time: the default of cudaLimitMaxL2FetchGranularity, as an H200 has it."""
MIN_L1_SHARE = 7 / 8
"""Share of a unified L1 that a kernel without shared memory has at least: 224 of 256 KiB were measured on an H200."""
STATISTICS = {"": "mean", "_sd": "sd", "_p05": "p05", "_p50": "p50", "_p95": "p95"}
COLUMNS = ("launch_id", "kernel", "model", "quantity", "value", "unit", "form", "flags", "reason")


def device_caches(device: Device, warps_per_block: int) -> Hierarchy:
    """Return the caches of a device, with as many blocks on an SM as there is room for if each has so many warps."""
    sizes = {"l1_size_bytes": device.l1_size_bytes, "l2_size_bytes": device.l2_size_bytes}
    if lacking := [name for name, size in sizes.items() if not size]:
        raise NotFoundError(
            f"the catalogue has no {' and no '.join(lacking)} of {device.name}, so its caches cannot be simulated"
        )
    limits = Limits(**{name: getattr(device, name) for name in Limits._fields})
    blocks = occupancy(32 * max(1, warps_per_block), 0, 0, limits).blocks
    l1, l2 = (
        Cache(max(1, int(size or 0) // (ways * LINE_BYTES)), ways)
        for size, ways in zip(sizes.values(), (L1_WAYS, L2_WAYS), strict=True)
    )
    known = Hierarchy(device.sms, max(1, int(blocks)), l1, l2, LINE_BYTES)
    capability = tuple(int(part) for part in device.compute_capability.split("."))
    if capability < MIN_HASHED_CAPABILITY:
        return known
    least = l1._replace(sets=max(1, int(l1.sets * MIN_L1_SHARE))) if device.l1_unified_with_shared_mem else None
    fetched = DRAM_FETCH_BYTES if capability >= MIN_FETCH_CAPABILITY else 0
    return known._replace(sector_bytes=SECTOR_BYTES, fetch_bytes=fetched, placement=HASHED, l1_least=least)


def trace_rows(traces: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]) -> pd.DataFrame:
    """Return the rows of the model for traces with their draws, as ``v1_traces`` and ``v1_trace_draws`` have them."""
    found: list[dict[str, Any]] = []
    for about, draws in traces:
        common = {"launch_id": None, "kernel": about["kernel"], "model": MODEL, "form": f"upload {about['upload_id']}"}
        flags = sum(int(Flag[name]) for name in str(about["flags"] or "").split())
        for quantity, value, unit in _trace_quantities(about, draws):
            known = bool(np.isfinite(value))
            reason = None if known else about["reason"] or "no reference reaches this cache"
            row = {"quantity": quantity, "value": value if known else None, "unit": unit, "reason": reason}
            found.append({**common, **row, "flags": flags})
    return pd.DataFrame(found, columns=list(COLUMNS))


def _trace_quantities(about: Mapping[str, Any], draws: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, str]]:
    if not draws:
        return [(f"{level}_hit_ratio", float("nan"), "1") for level in LEVELS]
    line_bytes = float(about["line_bytes"])
    found = []
    for level in (*LEVELS, "dram"):
        column, unit, factor = ("dram_lines", "byte", line_bytes) if level == "dram" else (f"{level}_ratio", "1", 1.0)
        name = "dram_bytes" if level == "dram" else f"{level}_hit_ratio"
        values = [draw[column] for draw in draws]
        if None in values:
            found.append((name, float("nan"), unit))
            continue
        measured = draw_statistics([factor * value for value in values])
        measures = {ending: measured[measure] for ending, measure in STATISTICS.items()}
        found += [(name + ending, value, unit) for ending, value in measures.items() if value is not None]
    return [*found, ("draws", float(len(draws)), "1")]


def draw_statistics(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean, standard deviation and percentiles of draws; one draw has no deviation."""
    p05, p50, p95 = (float(q) for q in np.quantile(values, (0.05, 0.5, 0.95)))
    # The mean of equal numbers may differ from them by rounding.
    sd = None if len(values) < 2 else float(np.std(values, ddof=1)) if max(values) > min(values) else 0.0
    return {"mean": float(np.mean(values)), "sd": sd, "p05": p05, "p50": p50, "p95": p95}
